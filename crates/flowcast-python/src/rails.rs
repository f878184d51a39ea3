//! Rail schedulers.

use flowcast::{
    scheduler::{Rail, discipline::SchedulerName, messages, schedule::simulate, turns::Shares},
    units::Time,
};
use pyo3::prelude::*;

use crate::work::beside;

/// What a scheduler chose: the rail of each message, when it is delivered, the virtual finishing time of its rail, and when
/// the last is delivered; in microseconds.
type Scheduled = (Vec<u8>, Vec<f64>, Vec<f64>, f64);

/// The messages: CSV, or arrivals in microseconds with sizes in bytes.
#[derive(FromPyObject)]
pub(crate) enum Messages {
    Csv(String),
    Rows(Vec<(f64, u64)>),
}

/// Lets a scheduler choose a rail (`NAME=g,G,o,Lus`) for each message.
#[pyfunction]
#[pyo3(signature = (rails, messages, scheduler, shares=None))]
pub(crate) fn simulate_rails(
    py: Python<'_>,
    rails: Vec<String>,
    messages: Messages,
    scheduler: String,
    shares: Option<Vec<u32>>,
) -> PyResult<Scheduled> {
    beside(py, move || {
        let rails = rails
            .iter()
            .map(|rail| Ok(Rail::parse(rail)?.cost))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let messages = match messages {
            Messages::Csv(text) => messages::read(&text)?,
            Messages::Rows(rows) => messages::read(&csv_of(&rows))?,
        };
        let shares = match shares {
            Some(shares) => Shares::new(&shares)?,
            None => Shares::by_bandwidth(&rails)?,
        };
        let scheduler: SchedulerName = scheduler.parse()?;
        let found = simulate(scheduler, &rails, shares, &messages)?;
        let micros = |times: &[Time]| times.iter().map(|time| time.as_micros()).collect();
        let choices = found.schedule.choices.iter().map(|rail| rail.0).collect();
        let (delivered, virtual_finish) = (
            micros(&found.schedule.delivered),
            micros(&found.virtual_finish),
        );
        Ok((
            choices,
            delivered,
            virtual_finish,
            found.schedule.makespan.as_micros(),
        ))
    })
}

/// As the text of a file, whose reader says what a message may be.
fn csv_of(rows: &[(f64, u64)]) -> String {
    let lines = rows
        .iter()
        .map(|(arrival, size)| format!("{arrival},{size}\n"));
    "arrival_us,size_B\n".to_owned() + &lines.collect::<String>()
}

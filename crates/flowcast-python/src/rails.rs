//! Rail schedulers.

use flowcast::{
    scheduler::{Rail, discipline::SchedulerName, messages, schedule::simulate, turns::Shares},
    units::Time,
};
use pyo3::prelude::*;

use crate::work::run_in_background;

/// Choices of a scheduler: rail, time of delivery and virtual finish time of the rail for each message, and the time of the
/// last delivery; times in microseconds.
type Scheduled = (Vec<u8>, Vec<f64>, Vec<f64>, f64);

/// Messages: CSV, or arrivals in microseconds with sizes in bytes.
#[derive(FromPyObject)]
pub(crate) enum Messages {
    Csv(String),
    Rows(Vec<(f64, u64)>),
}

/// Runs a scheduler, which chooses one of the rails (`NAME=g,G,o,Lus`) for each message.
#[pyfunction]
#[pyo3(signature = (rails, messages, scheduler, shares=None))]
pub(crate) fn simulate_rails(
    py: Python<'_>,
    rails: Vec<String>,
    messages: Messages,
    scheduler: String,
    shares: Option<Vec<u32>>,
) -> PyResult<Scheduled> {
    run_in_background(py, move || {
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

/// Returns the messages as the text of a CSV file, whose reader validates them.
fn csv_of(rows: &[(f64, u64)]) -> String {
    let lines = rows
        .iter()
        .map(|(arrival, size)| format!("{arrival},{size}\n"));
    "arrival_us,size_B\n".to_owned() + &lines.collect::<String>()
}

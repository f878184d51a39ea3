//! Hockney's model: `α + β·s` for each message, one after the other (Hockney, "The communication challenge for MPP", Parallel
//! Computing 20(3), 1994; Lichei, section 2.2.2). It says nothing of contention.

use flowcast_model::stats::regression::least_squares_at_least_zero;
use flowcast_units::{Bytes, Time};

use super::{Form, Instance, Medians, MessageCost, Model, alone};

/// Start-up α and time per byte β; the published fit is least squares through half of plain round trips.
pub const MODEL: Model = Model {
    name: "hockney",
    source: "Hockney 1994; Lichei, section 2.2.2",
    instances: |_| vec![instance()],
    procedure: Some(procedure),
};

struct Hockney;

impl MessageCost for Hockney {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([1.0, size.0 as f64])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![self.one_way(size).and(delay)]
    }
}

fn instance() -> Instance {
    alone(&["α", "β/B"], Hockney)
}

fn procedure(medians: Medians<'_>) -> Option<(Instance, Vec<f64>)> {
    let all = medians.points.iter().zip(medians.times);
    let (x, y): (Vec<f64>, Vec<f64>) = all
        .filter(|(point, _)| point.messages == 1)
        .map(|(point, time)| (point.size.0 as f64, time / 2.0))
        .unzip();
    let line = least_squares_at_least_zero(&x, &y).ok()?;
    Some((instance(), vec![line.intercept, line.slope]))
}

//! Parametrised LogP: overhead and gap are tables by size, and the network needs the whole gap for each message, the first one
//! too, `L + g(s)` (Kielmann, Bal and Verstoep, 2000; Lichei, sections 2.2.6 and 3.1.3). Between the places of the tables
//! times are interpolated.
//!
//! The published procedure takes `g(0)` from many messages in a row, `g(s) = RTT(s) - RTT(0) + g(0)` and
//! `L = RTT(0)/2 - g(0)`. Its answers have no bytes; here they are as long as the messages, so that half of the
//! difference of round trips counts. The smallest size stands for 0.

use std::iter;

use flowcast_units::{Bytes, Time};

use super::{Form, Instance, Medians, MessageCost, Model, Parameter, Unit};
use crate::prtt::PrttPoint;

/// L, and at each place of the tables the gap and the overhead.
pub const MODEL: Model = Model {
    name: "plogp",
    source: "Kielmann, Bal and Verstoep 2000; Lichei, sections 2.2.6 and 3.1.3",
    instances: |observed| {
        let sizes = observed.sizes();
        [2, 3, 5, 8]
            .into_iter()
            .filter_map(|count| some_of(&sizes, count))
            .map(instance)
            .collect()
    },
    procedure: Some(procedure),
};

struct PLogP {
    /// Sizes at which the tables have entries, ascending.
    places: Vec<Bytes>,
}

impl PLogP {
    /// What counts of the table that begins behind `before` parameters; the tables are equally long.
    fn table(&self, before: usize, size: Bytes) -> Form {
        let mut coefficients = vec![0.0; 1 + 2 * self.places.len()];
        let places = &self.places;
        let above = places.partition_point(|place| *place < size);
        let (low, high) = (above.saturating_sub(1), above.min(places.len() - 1));
        let width = places[high].0 - places[low].0;
        let share = if width == 0 {
            0.0
        } else {
            (size.0 - places[low].0) as f64 / width as f64
        };
        coefficients[before + low] += 1.0 - share;
        coefficients[before + high] += share;
        if above == places.len() && above > 1 {
            // Beyond the table its last slope goes on.
            let slope =
                (size.0 - places[high].0) as f64 / (places[high].0 - places[high - 1].0) as f64;
            coefficients[before + high] += slope;
            coefficients[before + high - 1] -= slope;
        }
        Form::new(coefficients)
    }

    fn gap(&self, size: Bytes) -> Form {
        self.table(1, size)
    }

    fn overhead(&self, size: Bytes) -> Form {
        self.table(1 + self.places.len(), size)
    }
}

impl MessageCost for PLogP {
    fn one_way(&self, size: Bytes) -> Form {
        let mut form = self.gap(size);
        form.coefficients[0] = 1.0;
        form
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![self.overhead(size).and(delay), self.gap(size)]
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(vec![self.gap(size)])
    }
}

fn instance(places: Vec<Bytes>) -> Instance {
    let of = |table: &'static str| {
        places
            .iter()
            .map(move |place| time(format!("{table}({place})")))
    };
    Instance {
        choice: format!("{} sizes", places.len()),
        parameters: iter::once(time("L".to_owned()))
            .chain(of("g"))
            .chain(of("o"))
            .collect(),
        cost: Box::new(PLogP { places }),
    }
}

fn time(symbol: String) -> Parameter {
    Parameter {
        symbol,
        unit: Unit::Time,
    }
}

/// So many of the sizes, the smallest and the largest among them, evenly in their order; none where there are fewer.
fn some_of(sizes: &[Bytes], count: usize) -> Option<Vec<Bytes>> {
    (sizes.len() >= count).then(|| {
        (0..count)
            .map(|at: usize| sizes[at * (sizes.len() - 1) / (count - 1)])
            .collect()
    })
}

fn procedure(medians: Medians<'_>) -> Option<(Instance, Vec<f64>)> {
    let sizes: Vec<Bytes> = medians
        .points
        .iter()
        .filter(|point| point.messages == 1)
        .map(|point| point.size)
        .collect();
    let smallest = *sizes.iter().min()?;
    let round_trip = |size: Bytes| medians.at(PrttPoint::round_trip(size));
    let first = round_trip(smallest)?;
    let rows = || {
        medians
            .points
            .iter()
            .zip(medians.times)
            .filter(|(point, _)| point.size == smallest)
    };
    let in_a_row = rows().filter(|(point, _)| point.messages > 1 && point.delay == Time::ZERO);
    let (point, time) = in_a_row.max_by_key(|(point, _)| point.messages)?;
    let gap = (time / f64::from(point.messages)).min(first / 2.0);
    let overhead = |size: Bytes| {
        let delayed = medians.points.iter().zip(medians.times);
        let mut delayed =
            delayed.filter(|(point, _)| point.size == size && point.delay > Time::ZERO);
        let (point, time) = delayed.next_back()?;
        let spacing = (time - round_trip(size)?) / f64::from(point.messages - 1);
        Some((spacing - point.delay.as_nanos()).max(0.0))
    };
    let gaps = sizes
        .iter()
        .map(|size| Some(((round_trip(*size)? - first) / 2.0 + gap).max(0.0)));
    let gaps: Vec<f64> = gaps.collect::<Option<_>>()?;
    let smallest_overhead = overhead(smallest).unwrap_or(0.0);
    let overheads = sizes
        .iter()
        .map(|size| overhead(*size).unwrap_or(smallest_overhead));
    let latency = (first / 2.0 - gap).max(0.0);
    let all = iter::once(latency).chain(gaps).chain(overheads).collect();
    Some((instance(sizes), all))
}

#[cfg(test)]
mod tests {
    use super::{super::Cost, *};

    /// Lichei, section 3.1.3: n messages and an answer of no bytes take `2L + (n+1)·g`.
    #[test]
    fn a_flood_takes_as_long_as_the_thesis_says() {
        let model = PLogP {
            places: vec![Bytes(1)],
        };
        let parameters = [76_500.0, 783.0, 0.0];
        let point = PrttPoint::new(16, Time::ZERO, Bytes(1));
        assert_eq!(
            Cost::of_round_trip(&model, point)
                .at(&parameters)
                .as_nanos(),
            2.0 * 76_500.0 + 17.0 * 783.0
        );
    }

    #[test]
    fn tables_are_interpolated_and_go_on_beyond_their_ends() {
        let model = PLogP {
            places: vec![Bytes(10), Bytes(20), Bytes(40)],
        };
        let parameters = [0.0, 1.0, 3.0, 4.0, 0.0, 0.0, 0.0];
        let gaps = [5, 10, 15, 20, 30, 40, 80].map(|size| model.gap(Bytes(size)).at(&parameters));
        assert_eq!(gaps, [1.0, 1.0, 2.0, 3.0, 3.5, 4.0, 6.0]);
    }
}

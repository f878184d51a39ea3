//! Networks whose measured parameters do not differ significantly count as equal.
//!
//! Disturbances of a few round trips can make one of two equal networks look a tenth slower than the other. Messages would
//! be split accordingly and wait for the network with the larger part. An even split over networks that do differ by that
//! much loses less than half of the difference.

use std::array;

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::Rail;

/// Factor within which gaps per byte count as equal.
const ALIKE: f64 = 1.2;

/// Gives rails with similar gaps per byte the same parameters: the means.
pub(super) fn even_out(rails: &mut [Rail]) {
    let mut order: Vec<usize> = (0..rails.len()).collect();
    order.sort_by(|a, b| gap(&rails[*a]).total_cmp(&gap(&rails[*b])));
    let mut rest = order.as_slice();
    while let Some(first) = rest.first() {
        let most = gap(&rails[*first]) * ALIKE;
        let (group, others) = rest.split_at(
            rest.partition_point(|rail| gap(&rails[*rail]) <= most)
                .max(1),
        );
        let mean = mean(group.iter().map(|rail| &rails[*rail].cost));
        group.iter().for_each(|rail| rails[*rail].cost = mean);
        rest = others;
    }
}

fn gap(rail: &Rail) -> f64 {
    rail.cost.gap_per_byte.as_nanos()
}

fn mean<'a>(costs: impl ExactSizeIterator<Item = &'a LogGp> + Clone) -> LogGp {
    let count = costs.len() as f64;
    LogGp::from_nanos(array::from_fn(|at| {
        costs.clone().map(|cost| cost.as_nanos()[at]).sum::<f64>() / count
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;

    fn evened_out<const COUNT: usize>(gaps: [f64; COUNT]) -> Vec<f64> {
        let rail = |gap: f64| Rail {
            name: String::new(),
            cost: LogGp {
                gap_per_byte: TimePerByte::from_nanos(gap),
                ..LogGp::default()
            },
            overhead_per_byte: TimePerByte::from_nanos(0.0),
        };
        let mut rails: Vec<Rail> = gaps.into_iter().map(rail).collect();
        even_out(&mut rails);
        rails
            .iter()
            .map(|rail| rail.cost.gap_per_byte.as_nanos().round())
            .collect()
    }

    #[test]
    fn rails_within_a_fifth_are_equal_and_others_stay_unchanged() {
        assert_eq!(evened_out([90.0, 80.0]), [85.0, 85.0]);
        assert_eq!(
            evened_out([90.0, 8.0, 80.0, 9.0, 900.0]),
            [85.0, 9.0, 85.0, 9.0, 900.0]
        );
        assert_eq!(evened_out([100.0, 82.0, 70.0]), [100.0, 76.0, 76.0]);
        assert_eq!(evened_out([0.0, 0.0]), [0.0, 0.0]);
        assert!(evened_out([]).is_empty());
    }
}

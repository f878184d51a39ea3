//! Grouping of measured times (RR-5910, Fig. 5 and section 6.2).
//!
//! Repeated measurements of a flow in conflict concentrate in a few narrow groups. Neighbours in the sorted sample that
//! differ by at most 0.2 % of the lower value are joined, and groups of more than 10 % of the points are kept. The bands of
//! Fig. 5 assign a flow cut α to a time: `[(1+α-h)·t, (1+α+h)·t]`, both ends included.

use super::{StatsError, check, sample::quantile_of_sorted};

/// Rule for joining values and keeping groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupingRule {
    /// Neighbours are joined if they differ by at most this share of the lower one.
    pub relative_gap: f64,
    /// Groups with more than this share of all points are kept.
    pub min_share: f64,
}

impl Default for GroupingRule {
    fn default() -> GroupingRule {
        GroupingRule {
            relative_gap: 0.002,
            min_share: 0.1,
        }
    }
}

/// A group of close values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalCluster {
    /// Smallest value of the group.
    pub min: f64,
    /// Median of the group's values.
    pub median: f64,
    /// Largest value of the group.
    pub max: f64,
    /// Number of values in the group, at least 1.
    pub count: usize,
}

/// Groups of a sample, in ascending order.
///
/// # Errors
/// No value, or one that is not finite.
pub fn interval_clusters(
    values: &[f64],
    rule: GroupingRule,
) -> Result<Vec<IntervalCluster>, StatsError> {
    check("interval clusters", values, 1)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Ok(sorted
        .chunk_by(|low: &f64, high: &f64| high - low <= rule.relative_gap * low)
        .filter(|group: &&[f64]| group.len() as f64 > rule.min_share * sorted.len() as f64)
        .map(|group: &[f64]| IntervalCluster {
            min: group[0],
            median: quantile_of_sorted(group, 0.5),
            max: group[group.len() - 1],
            count: group.len(),
        })
        .collect())
}

/// Flow cut of each time: the first of `alphas` whose band contains the time. `half` is the half-width of a band, in units
/// of `alone`, the time without conflict.
pub fn alpha_bands(values: &[f64], alone: f64, alphas: &[f64], half: f64) -> Vec<Option<f64>> {
    // A double misses the ends of a band, which are decimal fractions, by an ulp. A value on the end is inside.
    let slack = 4.0 * f64::EPSILON;
    let band = |value: f64| {
        alphas
            .iter()
            .find(|alpha: &&f64| {
                (value / alone - (1.0 + **alpha)).abs() <= half + slack * (1.0 + **alpha)
            })
            .copied()
    };
    values.iter().map(|value| band(*value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_neighbours_join_and_small_groups_are_dropped() {
        let mut values = vec![2.0; 6];
        values.extend([1.0, 1.001, 1.0029]);
        values.push(1.5);
        let clusters = interval_clusters(&values, GroupingRule::default()).unwrap();
        let expected = [
            IntervalCluster {
                min: 1.0,
                median: 1.001,
                max: 1.0029,
                count: 3,
            },
            IntervalCluster {
                min: 2.0,
                median: 2.0,
                max: 2.0,
                count: 6,
            },
        ];
        assert_eq!(clusters, expected);
    }

    #[test]
    fn a_group_of_exactly_the_share_is_dropped() {
        let mut values = vec![3.0; 9];
        values.push(7.0);
        assert_eq!(
            interval_clusters(&values, GroupingRule::default())
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn times_are_grouped_by_their_band() {
        let bands = alpha_bands(
            &[0.95, 1.1, 1.12, 1.45, 1.61, 2.0, 2.2],
            1.0,
            &[0.0, 0.5, 1.0],
            0.1,
        );
        assert_eq!(
            bands,
            [Some(0.0), Some(0.0), None, Some(0.5), None, Some(1.0), None]
        );
    }
}

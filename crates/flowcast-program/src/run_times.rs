//! Times of a program's run: in total, by rank, by type of call and by region. Measured and predicted runs have the same
//! form, so that they can be compared.

use std::collections::BTreeMap;

use flowcast_units::Time;
use serde::{Deserialize, Serialize};

/// Results of a run, as times or as plain numbers. In files, the numbers are in seconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunTimes<T = Time> {
    /// Time from the end of `MPI_Init` to the beginning of `MPI_Finalize`, on the rank where it is longest.
    #[serde(rename = "total_s")]
    pub total: T,
    /// Time in MPI's calls, indexed by rank.
    #[serde(rename = "communication_s")]
    pub communication: Vec<T>,
    /// Time outside of MPI's calls, indexed by rank.
    #[serde(rename = "computation_s")]
    pub computation: Vec<T>,
    /// Time in each function of MPI, such as `MPI_Waitall`, summed over all ranks.
    #[serde(rename = "calls_s")]
    pub calls: BTreeMap<String, T>,
    /// Time in each region, on the rank that spends the longest in it.
    #[serde(rename = "regions_s")]
    pub regions: BTreeMap<String, T>,
}

impl<T> RunTimes<T> {
    /// Converts each time with the function `convert`.
    pub fn map<U>(self, convert: impl Fn(T) -> U) -> RunTimes<U> {
        let [communication, computation] = [self.communication, self.computation]
            .map(|times| times.into_iter().map(&convert).collect());
        let [calls, regions] = [self.calls, self.regions].map(|times| {
            let times = times.into_iter();
            times.map(|(name, time)| (name, convert(time))).collect()
        });
        RunTimes {
            communication,
            computation,
            calls,
            regions,
            total: convert(self.total),
        }
    }
}

impl RunTimes {
    /// Creates the times of a run on `ranks` ranks, all zero.
    pub fn of_ranks(ranks: usize) -> RunTimes {
        RunTimes {
            communication: vec![Time::ZERO; ranks],
            computation: vec![Time::ZERO; ranks],
            ..RunTimes::default()
        }
    }

    /// Adds time to a function of MPI.
    pub fn add_call(&mut self, call: &str, time: Time) {
        match self.calls.get_mut(call) {
            Some(sum) => *sum += time,
            None => drop(self.calls.insert(call.to_owned(), time)),
        }
    }

    /// Records a rank's time in a region; the longest of all ranks is kept.
    pub fn add_region(&mut self, region: &str, time: Time) {
        let longest = self.regions.entry(region.to_owned()).or_default();
        *longest = (*longest).max(time);
    }
}

/// Time that one rank spends in its regions, which may be nested.
///
/// ```
/// use flowcast_program::run_times::OpenRegions;
/// use flowcast_units::Time;
///
/// let mut regions = OpenRegions::default();
/// regions.begin("solve", Time::from_micros(1.0));
/// regions.end(Time::from_micros(4.0));
/// assert_eq!(regions.sums()["solve"], Time::from_micros(3.0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct OpenRegions {
    open: Vec<(String, Time)>,
    sums: BTreeMap<String, Time>,
}

impl OpenRegions {
    /// Begins a region, inside those that are open.
    pub fn begin(&mut self, name: &str, now: Time) {
        self.open.push((name.to_owned(), now));
    }

    /// Ends the region that began last.
    pub fn end(&mut self, now: Time) {
        if let Some((name, begun)) = self.open.pop() {
            *self.sums.entry(name).or_default() += now - begun;
        }
    }

    /// Total time in each region; regions that are still open do not count.
    pub fn sums(&self) -> &BTreeMap<String, Time> {
        &self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_regions_end_in_reverse_and_sum_up() {
        let at = Time::from_micros;
        let mut regions = OpenRegions::default();
        regions.begin("outer", at(1.0));
        regions.begin("inner", at(2.0));
        regions.end(at(4.0));
        regions.begin("inner", at(5.0));
        regions.end(at(6.0));
        regions.end(at(10.0));
        regions.end(at(11.0));
        regions.begin("open", at(12.0));
        assert_eq!(
            *regions.sums(),
            BTreeMap::from([("inner".into(), at(3.0)), ("outer".into(), at(9.0))])
        );
    }

    #[test]
    fn a_region_takes_as_long_as_on_its_slowest_rank() {
        let mut times = RunTimes::of_ranks(2);
        times.add_region("solve", Time::from_micros(3.0));
        times.add_region("solve", Time::from_micros(2.0));
        times.add_call("Bcast", Time::from_micros(1.0));
        times.add_call("Bcast", Time::from_micros(1.0));
        assert_eq!(times.regions["solve"], Time::from_micros(3.0));
        assert_eq!(times.calls["Bcast"], Time::from_micros(2.0));
    }
}

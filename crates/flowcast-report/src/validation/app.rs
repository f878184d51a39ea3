//! Accuracy of predictions of a program: its measured times, in total, by region, by rank and by type of call, beside those
//! of each predictor.
//!
//! The measured value is the median of the runs. From six runs on, its 95 % interval comes from order statistics. For fewer
//! runs, where these give no interval, it comes from Student's t around the mean. Errors are
//! `(predicted - measured) / measured`.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_program::run_times::RunTimes;
use flowcast_statistics::{
    StatsError,
    interval::{mean_interval, median_interval},
    observation::{Observation, Observations},
    sample::{median, quantile},
};
use flowcast_units::{Time, named};

const LEVEL: f64 = 0.95;
/// Fraction of several predictions that a range contains.
const RANGE: f64 = 0.9;
/// Fraction of the run below which a region or call has no error, because clocks and the recorder dominate there.
const LEAST_SHARE: f64 = 1e-4;

/// A program that was run, recorded and predicted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppValidation {
    /// Title of the page: the program.
    pub title: String,
    /// Names of the predictors.
    pub predictors: Vec<String>,
    /// Measured times of the runs in which no call was recorded: the total and the regions.
    pub runs: Vec<RunTimes>,
    /// Measured times of the recorded runs, with those of ranks and calls.
    pub recorded: Vec<RunTimes>,
    /// Times that each predictor gives for each recording and seed; at least one each.
    pub predicted: Vec<Vec<RunTimes>>,
    /// Processor time in the recorded run, indexed by rank.
    pub worked: Vec<Time>,
    /// Fraction of the time in which ranks that share processors compute; `None` if each has a processor.
    pub processor_share: Option<f64>,
    /// Provenance of the results.
    pub provenance: BTreeMap<String, String>,
}

named! {
    /// Kind of quantity of a row.
    pub enum MeasuredQuantity {
        /// The whole run, from the first call to the last.
        Total = "total",
        /// A region of the program.
        Region = "region",
        /// The communication time of a rank.
        Rank = "communication of rank",
        /// A type of call, summed over all ranks.
        Call = "call",
    }
}

/// One measured quantity and its predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantityRow {
    /// Kind of the quantity: the run, a region, a rank or a call.
    pub quantity: MeasuredQuantity,
    /// Name of the region, rank or call.
    pub name: String,
    /// The median of the runs.
    pub measured: Time,
    /// Interval of the median; from two runs on.
    pub interval: Option<(Time, Time)>,
    /// Median of each predictor's times, indexed by predictor.
    pub predicted: Vec<Time>,
    /// Interval that contains nine of ten predictions, indexed by predictor; `None` for a single prediction.
    pub ranges: Vec<Option<(Time, Time)>>,
    /// `true` if the measured time suffices for a meaningful error.
    pub has_errors: bool,
}

impl QuantityRow {
    /// The signed error of a predictor, or `None` if the measured time is too short for a meaningful error.
    pub fn error(&self, predictor: usize) -> Option<f64> {
        self.observation(predictor, ()).map(|one| one.error())
    }

    fn observation<T>(&self, predictor: usize, of: T) -> Option<Observation<T>> {
        self.has_errors.then_some(Observation {
            of,
            predicted: self.predicted[predictor].as_seconds(),
            measured: self.measured.as_seconds(),
        })
    }
}

/// Accuracy of one predictor.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictorAccuracy {
    /// Error of the total.
    pub total: f64,
    /// Error of the communication time, summed over all ranks.
    pub communication: f64,
    /// Regions that are long enough to have an error, keyed by name; `None` if there are none.
    pub regions: Option<Observations<String>>,
}

impl AppValidation {
    /// Returns all rows: the total, regions, ranks, calls.
    ///
    /// # Errors
    /// No run.
    pub fn rows(&self) -> Result<Vec<QuantityRow>, StatsError> {
        let mut rows = vec![self.row(MeasuredQuantity::Total, "all", |run| run.total)?];
        for region in self.names(|run| &run.regions) {
            rows.push(self.row(MeasuredQuantity::Region, &region, |run| {
                time_of(&run.regions, &region)
            })?);
        }
        for rank in 0..self.ranks() {
            rows.push(self.row(
                MeasuredQuantity::Rank,
                &rank.to_string(),
                |run: &RunTimes| run.communication.get(rank).copied().unwrap_or_default(),
            )?);
        }
        for call in self.names(|run| &run.calls) {
            rows.push(self.row(MeasuredQuantity::Call, &call, |run| {
                time_of(&run.calls, &call)
            })?);
        }
        Ok(rows)
    }

    fn row(
        &self,
        quantity: MeasuredQuantity,
        name: &str,
        of: impl Fn(&RunTimes) -> Time,
    ) -> Result<QuantityRow, StatsError> {
        let source = match quantity {
            MeasuredQuantity::Total | MeasuredQuantity::Region => &self.runs,
            MeasuredQuantity::Rank | MeasuredQuantity::Call => &self.recorded,
        };
        let values: Vec<f64> = source.iter().map(|run| of(run).as_seconds()).collect();
        let measured = median(&values)?;
        let said = self.predicted.iter().map(|runs: &Vec<RunTimes>| {
            runs.iter()
                .map(|run| of(run).as_seconds())
                .collect::<Vec<_>>()
        });
        let said: Vec<Vec<f64>> = said.collect();
        let predicted: Vec<Time> = said
            .iter()
            .map(|values| Ok(Time::from_seconds(median(values)?)))
            .collect::<Result<_, StatsError>>()?;
        let whole = source
            .iter()
            .map(|run| run.total)
            .max()
            .unwrap_or_default()
            .as_seconds();
        let ranks = if quantity == MeasuredQuantity::Call {
            self.ranks().max(1) as f64
        } else {
            1.0
        };
        Ok(QuantityRow {
            quantity,
            name: name.to_owned(),
            measured: Time::from_seconds(measured),
            interval: interval(&values)?,
            has_errors: measured > 0.0 && measured >= LEAST_SHARE * whole * ranks,
            predicted,
            ranges: said
                .iter()
                .map(|values| range(values))
                .collect::<Result<_, _>>()?,
        })
    }

    fn ranks(&self) -> usize {
        self.recorded
            .first()
            .map_or(0, |run| run.communication.len())
    }

    /// Returns the additional time of the recorded runs, as a fraction of the time of the others; medians of both.
    ///
    /// # Errors
    /// No run.
    pub fn recording_cost(&self) -> Result<f64, StatsError> {
        let [plain, recorded] = [&self.runs, &self.recorded].map(|runs| {
            let totals: Vec<f64> = runs.iter().map(|run| run.total.as_seconds()).collect();
            median(&totals)
        });
        Ok(recorded? / plain? - 1.0)
    }

    fn names(&self, of: fn(&RunTimes) -> &BTreeMap<String, Time>) -> Vec<String> {
        let measured = self.runs.iter().chain(&self.recorded);
        let all = measured.chain(self.predicted.iter().flatten());
        let names: BTreeSet<&String> = all.flat_map(|run| of(run).keys()).collect();
        names.into_iter().cloned().collect()
    }

    /// Returns the accuracy of each predictor.
    ///
    /// # Errors
    /// The same as for [`AppValidation::rows`].
    pub fn fared(&self) -> Result<Vec<PredictorAccuracy>, StatsError> {
        let rows = self.rows()?;
        let communication =
            self.row(MeasuredQuantity::Rank, "communication", |run: &RunTimes| {
                run.communication.iter().copied().sum::<Time>()
            })?;
        (0..self.predictors.len())
            .map(|at| {
                Ok(PredictorAccuracy {
                    total: rows[0].error(at).unwrap_or(f64::NAN),
                    communication: communication.error(at).unwrap_or(f64::NAN),
                    regions: observations(&rows, MeasuredQuantity::Region, at)?,
                })
            })
            .collect()
    }
}

/// Returns the predictions of one predictor beside the measured rows of a quantity, or `None` if no row has an error.
///
/// # Errors
/// A prediction that is not finite.
pub fn observations(
    rows: &[QuantityRow],
    quantity: MeasuredQuantity,
    predictor: usize,
) -> Result<Option<Observations<String>>, StatsError> {
    let own = rows.iter().filter(|row| row.quantity == quantity);
    let own: Vec<_> = own
        .filter_map(|row| row.observation(predictor, row.name.clone()))
        .collect();
    (!own.is_empty())
        .then(|| Observations::new(own))
        .transpose()
}

fn interval(values: &[f64]) -> Result<Option<(Time, Time)>, StatsError> {
    let times =
        |low: f64, high: f64| Some((Time::from_seconds(low.max(0.0)), Time::from_seconds(high)));
    if let Some(interval) = median_interval(values, LEVEL)? {
        return Ok(times(interval.low, interval.high));
    }
    if values.len() < 2 {
        return Ok(None);
    }
    let interval = mean_interval(values, LEVEL)?;
    Ok(times(
        interval.mean - interval.half_width,
        interval.mean + interval.half_width,
    ))
}

fn range(values: &[f64]) -> Result<Option<(Time, Time)>, StatsError> {
    if values.len() < 2 {
        return Ok(None);
    }
    let [low, high] = [1.0 - RANGE, 1.0 + RANGE]
        .map(|share| quantile(values, share / 2.0).map(Time::from_seconds));
    Ok(Some((low?, high?)))
}

fn time_of(times: &BTreeMap<String, Time>, name: &str) -> Time {
    times.get(name).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(total: f64, solve: f64, ranks: [f64; 2], bcast: f64) -> RunTimes {
        let time = Time::from_seconds;
        RunTimes {
            total: time(total),
            communication: ranks.map(time).to_vec(),
            computation: vec![time(0.5); 2],
            calls: BTreeMap::from([("Bcast".into(), time(bcast))]),
            regions: BTreeMap::from([("solve".into(), time(solve)), ("tiny".into(), time(1e-6))]),
        }
    }

    fn validation() -> AppValidation {
        AppValidation {
            title: "mpirun <x>".into(),
            predictors: vec!["limits/formula".into(), "fair/openmpi".into()],
            runs: vec![
                run(2.0, 1.0, [1.0, 1.5], 0.4),
                run(2.2, 1.0, [1.0, 1.5], 0.4),
                run(2.1, 1.0, [1.0, 1.5], 0.4),
            ],
            recorded: vec![run(2.142, 1.0, [1.0, 1.5], 0.4)],
            predicted: vec![
                vec![run(2.31, 0.8, [1.1, 1.4], 0.4)],
                vec![run(2.1, 1.05, [1.0, 1.5], 0.2)],
            ],
            worked: vec![Time::from_seconds(0.5); 2],
            processor_share: None,
            provenance: BTreeMap::new(),
        }
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn rows_stand_beside_each_other_with_intervals_and_errors() {
        let rows = validation().rows().unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["all", "solve", "tiny", "0", "1", "Bcast"]);
        near(rows[0].measured.as_seconds(), 2.1);
        near(rows[0].error(0).unwrap(), 0.1);
        let (low, high) = rows[0].interval.unwrap();
        // Student's t with two degrees of freedom: 4.302653 * 0.1 / sqrt(3).
        near(high.as_seconds() - 2.1, 2.1 - low.as_seconds());
        assert!((high.as_seconds() - 2.1 - 0.248_413_77).abs() < 1e-6);
        assert_eq!(rows[2].error(0), None);
        assert_eq!(rows[3].interval, None);
        near(validation().recording_cost().unwrap(), 0.02);
        near(rows[5].error(1).unwrap(), -0.5);
    }

    #[test]
    fn order_statistics_bound_the_median_of_many_runs() {
        let mut validation = validation();
        validation.runs = (1..=6)
            .map(|at| run(f64::from(at), 1.0, [1.0, 1.0], 0.1))
            .collect();
        let row = &validation.rows().unwrap()[0];
        assert_eq!(
            row.interval,
            Some((Time::from_seconds(1.0), Time::from_seconds(6.0)))
        );
        validation.runs.truncate(1);
        assert_eq!(validation.rows().unwrap()[0].interval, None);
        validation.runs.clear();
        assert!(validation.rows().is_err());
    }

    #[test]
    fn a_predictor_has_errors_of_total_communication_and_regions() {
        let fared = validation().fared().unwrap();
        near(fared[0].total, 0.1);
        near(fared[0].communication, 0.0);
        let regions = fared[0].regions.as_ref().unwrap();
        let worst = regions.worst();
        assert_eq!((regions.all().len(), worst.of.as_str()), (1, "solve"));
        near(worst.error(), -0.2);
        near(regions.share_within(0.1), 0.0);
        near(fared[1].regions.as_ref().unwrap().share_within(0.1), 1.0);
    }

    #[test]
    fn several_predictions_give_a_median_and_a_range() {
        let mut validation = validation();
        validation.predicted[1] = validation.runs.clone();
        let total = &validation.rows().unwrap()[0];
        assert_eq!(
            (total.predicted[1], total.ranges[0]),
            (validation.runs[2].total, None)
        );
        let (low, high) = total.ranges[1].unwrap();
        near(low.as_seconds(), 2.01);
        near(high.as_seconds(), 2.19);
        validation.predicted[1].clear();
        assert!(validation.rows().is_err());
    }
}

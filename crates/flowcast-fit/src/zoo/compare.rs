//! Comparison of all models on the same samples: parameters with intervals, and errors on sizes that were left out.
//!
//! Every fifth size is left out in turn with all its round trips (every size if there are fewer than ten). The model is
//! fitted to the others, including its choice of sizes, and predicts those left out. The best model has the smallest mean
//! of the absolute relative errors. If bursts of several lengths were measured, each length is left out in turn as well. If
//! patterns between several nodes were measured, whole patterns are left out in turn, each name with all its sizes, in at
//! most ten parts. The best model is then the one with the smallest mean of both errors. Intervals are bootstrap
//! percentiles: samples are resampled within each point and each pattern.

use std::collections::{BTreeMap, BTreeSet};

use flowcast_network::quantity::Quantity;
use flowcast_statistics::{
    StatsError,
    resampling::{Resampler, percentile_interval},
    sample::{mean, median_in_place},
};
use flowcast_units::{Bytes, Time};

use super::{
    ExchangeObservation, MODELS, TimedExchange, ZooError, ZooModel, ZooParameter,
    fit::{Fitted, PredictionError},
    pattern::{PatternSamples, ZooPattern},
};
use crate::{
    prtt::PrttPoint,
    samples::{PrttSamples, nanos},
};

/// Number of sizes from which several are left out at the same time.
const MANY_SIZES: usize = 10;
/// Minimum number of sizes for a comparison.
pub const LEAST_SIZES: usize = 3;
/// Number of parts if there are many sizes.
const FOLDS: usize = 5;
/// Number of parts if there are many patterns.
const PATTERN_FOLDS: usize = 10;

/// Options for the intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// Number of bootstrap replicates, at least 1.
    pub replicates: usize,
    /// Confidence level of the intervals, above 0 and below 1.
    pub level: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// Result of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Name of the model.
    pub model: &'static str,
    /// Models that differ from it only in the treatment of contention, which is not compared.
    pub aliases: &'static [&'static str],
    /// Paper, year and section of the model.
    pub source: &'static str,
    /// Choice of the model's open sizes, such as a threshold.
    pub choice: String,
    /// Parameters in the order of the model.
    pub parameters: Vec<FittedParameter>,
    /// Mean absolute relative error on all points of the fit.
    pub fitted: f64,
    /// Mean absolute relative error on sizes that were left out.
    pub left_out: f64,
    /// Mean absolute relative error on sizes that were left out, by the published procedure. `None` if there is none or
    /// these samples do not allow it.
    pub left_out_by_procedure: Option<f64>,
    /// Mean absolute relative error on lengths of bursts that were left out. `None` if there are fewer than two.
    pub lengths_left_out: Option<f64>,
    /// Mean absolute relative error on patterns that were left out. `None` if there are fewer than two.
    pub patterns_left_out: Option<f64>,
    /// Each pattern with its median and the prediction of a fit without the patterns of its name. Empty if no pattern is
    /// left out.
    pub by_pattern: Vec<Predicted<ZooPattern>>,
    /// Number of points and patterns with a predicted time below 0, in the worst of all fits, with and without left-out
    /// parts. A model with such predictions is rejected and comes after all others.
    pub negative: usize,
    /// Each point with its median and the prediction of a fit without its size.
    pub predicted: Vec<Predicted<PrttPoint>>,
    /// Mean signed relative error of the round trips of each size, predicted without this size, in ascending order of size.
    pub by_size: Vec<(Bytes, f64)>,
}

/// A median and the prediction of a model that was fitted without it.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted<E> {
    /// The round trip or the pattern.
    pub exchange: E,
    /// Number of the part, starting with 0. Exchanges of the same part were left out together.
    pub part: usize,
    /// Median of the measured times.
    pub measured: Time,
    /// Time predicted by the model, fitted without this part.
    pub predicted: Time,
}

impl Compared {
    /// Returns the value that models are sorted by: the error on sizes left out or, if patterns were left out, the mean of
    /// both errors. It is infinite for a rejected model.
    pub fn rank(&self) -> f64 {
        if self.negative > 0 {
            return f64::INFINITY;
        }
        self.patterns_left_out
            .map_or(self.left_out, |patterns| 0.5 * (self.left_out + patterns))
    }
}

/// A fitted parameter of a message model, with its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedParameter {
    /// Symbol of the parameter in the paper.
    pub symbol: String,
    /// Value of the parameter, 0 or more.
    pub value: Quantity,
    /// Lower and upper end. Both are equal if samples do not differ.
    pub interval: (Quantity, Quantity),
}

/// Compares all models and sorts them, the best first, and the simplest first among equals. `patterns` may be empty.
///
/// # Errors
/// Fewer than three sizes, or a level outside (0, 1).
pub fn compare(
    samples: &PrttSamples,
    patterns: &[PatternSamples],
    options: CompareOptions,
) -> Result<Vec<Compared>, ZooError> {
    let sizes: BTreeSet<Bytes> = samples.points().map(|(point, _)| point.size).collect();
    if sizes.len() < LEAST_SIZES {
        return Err(ZooError::TooFewSizes(sizes.len()));
    }
    let points = samples.points();
    let points = points.map(|(point, times)| (TimedExchange::RoundTrip(point), times));
    let of_patterns = patterns
        .iter()
        .map(|one| (TimedExchange::Pattern(one.pattern.clone()), &*one.times));
    let (exchanges, times): (Vec<TimedExchange>, Vec<Vec<f64>>) = points
        .chain(of_patterns)
        .map(|(exchange, times)| (exchange, nanos(times)))
        .unzip();
    let names = patterns.iter().map(|one| &*one.pattern.name).collect();
    let mut resampler = Resampler::from_seed(options.seed);
    let mut drawn = Vec::new();
    let mut resampled = vec![Vec::new(); options.replicates];
    for medians in &mut resampled {
        for times in &times {
            resampler.draw_into(times, &mut drawn);
            medians.push(median_in_place(&mut drawn));
        }
    }
    let comparison = ModelComparison {
        parts: parts(&exchanges, &sizes, &names),
        exchanges,
        medians: times
            .into_iter()
            .map(|mut times| median_in_place(&mut times))
            .collect(),
        resampled,
        level: options.level,
    };
    let mut compared = MODELS
        .iter()
        .map(|model| comparison.compare_model(model))
        .collect::<Result<Vec<_>, _>>()?;
    compared.sort_by(|one, other| one.rank().total_cmp(&other.rank()));
    Ok(compared)
}

fn mean_absolute(errors: &[PredictionError]) -> Result<f64, StatsError> {
    let errors: Vec<f64> = errors.iter().map(|one| one.error.abs()).collect();
    mean(&errors)
}

/// Returns the mean absolute error, or `None` if nothing was left out.
fn mean_left_out(errors: &[PredictionError]) -> Result<Option<f64>, StatsError> {
    let some = Some(errors).filter(|errors| !errors.is_empty());
    some.map(mean_absolute).transpose()
}

/// Number of predictions below 0.
fn less_than_no_time(errors: &[PredictionError]) -> usize {
    errors.iter().filter(|one| one.error < -1.0).count()
}

/// Returns the parts with which each exchange is left out: of sizes, of lengths of bursts without delays, and of patterns.
/// A part contains every fifth size, or a single size if there are few. Names of patterns form one part each, or every
/// tenth name together.
fn parts(
    exchanges: &[TimedExchange],
    sizes: &BTreeSet<Bytes>,
    names: &BTreeSet<&str>,
) -> Vec<[Option<usize>; 3]> {
    let folds = match sizes.len() {
        few @ ..MANY_SIZES => few,
        _ => FOLDS,
    };
    let sizes: BTreeMap<&Bytes, usize> = sizes.iter().zip((0..folds).cycle()).collect();
    let names: BTreeMap<&&str, usize> = names.iter().zip((0..PATTERN_FOLDS).cycle()).collect();
    exchanges
        .iter()
        .map(|exchange| match exchange {
            TimedExchange::RoundTrip(point) => {
                let is_burst = point.messages > 1 && point.delay == Time::ZERO;
                let length = is_burst.then_some(point.messages as usize);
                [sizes.get(&point.size).copied(), length, None]
            }
            TimedExchange::Pattern(pattern) => [None, None, names.get(&&*pattern.name).copied()],
        })
        .collect()
}

struct ModelComparison {
    /// Round trips, followed by patterns.
    exchanges: Vec<TimedExchange>,
    /// Parts of each exchange.
    parts: Vec<[Option<usize>; 3]>,
    /// Median time of each exchange, in nanoseconds.
    medians: Vec<f64>,
    /// Medians of resampled times for each replicate.
    resampled: Vec<Vec<f64>>,
    level: f64,
}

impl ModelComparison {
    fn compare_model(&self, model: &'static ZooModel) -> Result<Compared, ZooError> {
        let observed = self.observed(&self.medians);
        let fitted = model.fit(&observed);
        let own: Vec<PredictionError> = (0..observed.len())
            .map(|at| fitted.error(at, 0, observed[at]))
            .collect();
        let by_procedure = model.procedure.map_or_else(Vec::new, |procedure| {
            self.left_out(0, |kept| {
                let (choice, parameters) = procedure(kept)?;
                Some(Fitted {
                    model,
                    choice,
                    parameters,
                })
            })
        });
        let [sizes, lengths, mut patterns] =
            [0, 1, 2].map(|by| self.left_out(by, |kept| Some(model.fit(kept))));
        patterns.sort_by_key(|one| one.part);
        let negative = [&own, &sizes, &lengths, &patterns].map(|errors| less_than_no_time(errors));
        Ok(Compared {
            negative: negative.into_iter().max().unwrap_or(0),
            model: model.name,
            aliases: model.aliases,
            source: model.source,
            fitted: mean_absolute(&own)?,
            left_out: mean_absolute(&sizes)?,
            left_out_by_procedure: mean_left_out(&by_procedure)?,
            lengths_left_out: mean_left_out(&lengths)?,
            patterns_left_out: mean_left_out(&patterns)?,
            predicted: self.predicted(&sizes, TimedExchange::round_trip),
            by_pattern: self.predicted(&patterns, TimedExchange::pattern),
            by_size: self.by_size(&sizes)?,
            parameters: self.with_intervals(&fitted)?,
            choice: fitted.choice.to_string(),
        })
    }

    fn observed(&self, times: &[f64]) -> Vec<ExchangeObservation<'_>> {
        let observed = self.exchanges.iter().zip(times);
        observed
            .map(|(exchange, time)| ExchangeObservation {
                exchange,
                time: *time,
            })
            .collect()
    }

    /// Returns the prediction errors of a cross-validation, sorted by exchange: each part of this kind is predicted by a fit
    /// to all other exchanges. Empty if there are fewer than two parts or a fit is impossible.
    fn left_out<'a>(
        &self,
        kind: usize,
        fit: impl Fn(&[ExchangeObservation]) -> Option<Fitted<'a>>,
    ) -> Vec<PredictionError> {
        let observed = self.observed(&self.medians);
        let parts: BTreeSet<usize> = self.parts.iter().filter_map(|parts| parts[kind]).collect();
        let mut errors = Vec::new();
        for part in parts.iter().filter(|_| parts.len() > 1) {
            let (left_out, kept): (Vec<usize>, Vec<usize>) =
                (0..observed.len()).partition(|at| self.parts[*at][kind] == Some(*part));
            let kept: Vec<ExchangeObservation> = kept.into_iter().map(|at| observed[at]).collect();
            let Some(fitted) = fit(&kept) else {
                return Vec::new();
            };
            errors.extend(
                left_out
                    .into_iter()
                    .map(|at| fitted.error(at, *part, observed[at])),
            );
        }
        errors.sort_by_key(|one| one.at);
        errors
    }

    fn predicted<E>(
        &self,
        errors: &[PredictionError],
        exchange: impl Fn(&TimedExchange) -> Option<E>,
    ) -> Vec<Predicted<E>> {
        let predicted = errors.iter().filter_map(|one| {
            Some(Predicted {
                exchange: exchange(&self.exchanges[one.at])?,
                part: one.part,
                measured: Time::from_nanos(self.medians[one.at]),
                predicted: Time::from_nanos(self.medians[one.at] * (1.0 + one.error)),
            })
        });
        predicted.collect()
    }

    fn by_size(&self, errors: &[PredictionError]) -> Result<Vec<(Bytes, f64)>, StatsError> {
        let mut by_size: BTreeMap<Bytes, Vec<f64>> = BTreeMap::new();
        for one in errors {
            let size = self.exchanges[one.at].size();
            by_size.entry(size).or_default().push(one.error);
        }
        let means = by_size.into_iter();
        means
            .map(|(size, errors)| Ok((size, mean(&errors)?)))
            .collect()
    }

    fn with_intervals(&self, fitted: &Fitted) -> Result<Vec<FittedParameter>, StatsError> {
        let Fitted {
            model,
            choice,
            parameters,
        } = fitted;
        let again: Vec<Vec<f64>> = self
            .resampled
            .iter()
            .map(|times| model.fit_choice(choice, &self.observed(times)).0)
            .collect();
        let fitted = model.parameters(choice).into_iter().zip(parameters);
        fitted
            .enumerate()
            .map(|(at, (ZooParameter { symbol, unit }, value))| {
                let drawn: Vec<f64> = again.iter().map(|parameters| parameters[at]).collect();
                let (low, high) = match &drawn[..] {
                    [] => (*value, *value),
                    drawn => percentile_interval(drawn, self.level)?,
                };
                Ok(FittedParameter {
                    symbol,
                    value: unit.with_number(*value),
                    interval: (
                        unit.with_number(low.min(*value)),
                        unit.with_number(high.max(*value)),
                    ),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{prtt::prtt, zoo::OpenSizes};
    use flowcast_network::loggp::LogGp;
    use flowcast_statistics::resampling::normal_score;
    use flowcast_units::{Node, TimePerByte};

    const OPTIONS: CompareOptions = CompareOptions {
        replicates: 20,
        level: 0.9,
        seed: 1,
    };

    /// Round trips under LogGP with 1 % noise, seven samples of each.
    fn samples() -> PrttSamples {
        let network = LogGp {
            latency: Time::from_micros(24.3),
            overhead: Time::from_micros(1.9),
            gap: Time::from_micros(3.4),
            gap_per_byte: TimePerByte::from_micros(0.00409),
        };
        let mut noise: Vec<f64> = (0..700)
            .map(|at| 0.01 * normal_score((f64::from(at) + 0.5) / 700.0))
            .collect();
        Resampler::from_seed(3).shuffle(&mut noise);
        let mut samples = PrttSamples::default();
        let rows = [(1, 0.0), (16, 0.0), (16, 500.0)];
        let points = [1, 1025, 2049, 4097, 8193, 16_385, 32_769, 65_537]
            .map(Bytes)
            .into_iter();
        let points = points.flat_map(|size| {
            rows.map(|(n, delay)| PrttPoint::new(n, Time::from_micros(delay), size))
        });
        for (point, noise) in points.flat_map(|point| [point; 7]).zip(noise) {
            samples.push(point, prtt(&network, point) * (1.0 + noise));
        }
        samples
    }

    #[test]
    fn a_model_with_a_negative_prediction_ranks_last() {
        let errors = [0.5, -0.5, -1.0, -1.2, -9.0].map(|error| PredictionError {
            at: 0,
            part: 0,
            error,
        });
        assert_eq!(less_than_no_time(&errors), 2);
        let compared = compare(&samples(), &[], OPTIONS).unwrap();
        assert!(
            compared
                .iter()
                .all(|one| one.negative == 0 && one.rank().is_finite())
        );
        let refused = Compared {
            negative: 1,
            ..compared[0].clone()
        };
        assert!(compared.iter().all(|one| one.rank() < refused.rank()));
    }

    #[test]
    fn the_model_that_made_the_samples_explains_them_best() {
        let compared = compare(&samples(), &[], OPTIONS).unwrap();
        // LogGPS may be equally close, with a threshold beyond all sizes but the largest.
        let best = &compared[0];
        assert!(best.left_out < 0.01, "{} {}", best.model, best.left_out);
        let loggp = compared
            .iter()
            .find(|compared| compared.model == "loggp")
            .unwrap();
        let by_procedure = loggp.left_out_by_procedure.unwrap();
        assert!(
            loggp.left_out < 0.01 && by_procedure < 0.03,
            "{} {by_procedure} {}",
            loggp.left_out,
            best.left_out
        );
        // Delays of 500 us with 1 % noise hardly determine an overhead of 1.9 us.
        for (at, truth, tolerance) in [(0, 24_300.0, 0.1), (3, 4.09, 0.03)] {
            let found = &loggp.parameters[at];
            let [value, low, high] =
                [found.value, found.interval.0, found.interval.1].map(Quantity::number);
            assert!((value / truth - 1.0).abs() < tolerance, "{found:?}");
            assert!(low <= truth && truth <= high, "{found:?}");
        }
        let hockney = compared
            .iter()
            .find(|compared| compared.model == "hockney")
            .unwrap();
        assert!(
            hockney.left_out > 0.1 && hockney.by_size.len() == 8 && hockney.predicted.len() == 24
        );
        // All bursts have the same length.
        assert_eq!(hockney.lengths_left_out, None);
    }

    #[test]
    fn the_model_that_made_the_bursts_predicts_a_length_that_was_left_out() {
        let mut samples = samples();
        let points: Vec<(PrttPoint, Time)> = samples
            .points()
            .map(|(point, times)| (point, times[0]))
            .collect();
        for (point, time) in points
            .iter()
            .filter(|(point, _)| point.messages == 16 && point.delay == Time::ZERO)
        {
            let (_, once) = points
                .iter()
                .find(|(own, _)| *own == PrttPoint::round_trip(point.size))
                .unwrap();
            let longer = *once + (*time - *once) * (63.0 / 15.0);
            samples.push(PrttPoint::new(64, Time::ZERO, point.size), longer);
        }
        let compared = compare(&samples, &[], OPTIONS).unwrap();
        let error = |name: &str| {
            compared
                .iter()
                .find(|own| own.model == name)
                .unwrap()
                .lengths_left_out
                .unwrap()
        };
        assert!(
            error("loggp") < 0.03 && error("hockney") > 0.1,
            "{} {}",
            error("loggp"),
            error("hockney")
        );
    }

    /// Exchanges of several sizes with the times of LogGP.
    fn patterns(parameters: &[f64], messages: &[&[(u32, u32)]]) -> Vec<PatternSamples> {
        let model = MODELS.iter().find(|model| model.name == "loggp").unwrap();
        let sizes = [1, 8193, 65_537].map(Bytes);
        messages
            .iter()
            .enumerate()
            .flat_map(|(at, messages)| {
                let messages: Vec<_> = messages
                    .iter()
                    .map(|(from, to)| (Node(*from), Node(*to)))
                    .collect();
                sizes.map(|size| {
                    let pattern = ZooPattern {
                        name: format!("p{at}"),
                        size,
                        messages: messages.clone(),
                    };
                    let exchange = TimedExchange::Pattern(pattern.clone());
                    let time = model.cost(&OpenSizes::Nothing, &exchange).at(parameters);
                    PatternSamples {
                        pattern,
                        times: vec![Time::from_nanos(time)],
                    }
                })
            })
            .collect()
    }

    const GATHERS: [&[(u32, u32)]; 6] = [
        &[(0, 1)],
        &[(1, 0), (2, 0)],
        &[(1, 0), (2, 0), (3, 0)],
        &[(1, 0), (2, 0), (3, 0), (4, 0)],
        &[(0, 1), (2, 3), (4, 5)],
        &[(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0)],
    ];

    #[test]
    fn whole_patterns_are_left_out_and_the_model_that_made_them_predicts_them() {
        let costs = [24_300.0, 1900.0, 3400.0, 4.09];
        let patterns = patterns(&costs, &GATHERS);
        let compared = compare(&samples(), &patterns, OPTIONS).unwrap();
        let of = |name: &str| compared.iter().find(|own| own.model == name).unwrap();
        assert!(
            of("loggp").patterns_left_out.unwrap() < 0.03
                && of("hockney").patterns_left_out.unwrap() > 0.2
        );
        let parts: Vec<usize> = of("loggp").by_pattern.iter().map(|one| one.part).collect();
        assert_eq!(
            parts,
            [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]
        );
        // A model without contention predicts the time of one message for a gather.
        let worst = of("hockney")
            .by_pattern
            .iter()
            .find(|one| one.exchange.name == "p5" && one.exchange.size.0 > 9000);
        assert!(worst.unwrap().predicted < worst.unwrap().measured * 0.5);
    }

    #[test]
    fn two_sizes_are_too_few() {
        let mut samples = PrttSamples::default();
        [1, 2].into_iter().for_each(|size| {
            samples.push(PrttPoint::round_trip(Bytes(size)), Time::from_micros(9.0))
        });
        assert_eq!(
            compare(&samples, &[], OPTIONS),
            Err(ZooError::TooFewSizes(2))
        );
    }
}

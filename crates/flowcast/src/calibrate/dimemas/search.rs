//! Search for Dimemas' parameters.

use std::collections::BTreeMap;

use super::{
    DimemasFit, DimemasFitError, DimemasIntervals, Exercise, MeasuredRegion, NodeLinks,
    regions::{Parameters, by_row, once},
};
use crate::calibrate::narrowing::by_smaller_steps;
use flowcast_network::collective::{Phase, PhaseSize, Repeats, Row};
use flowcast_statistics::{
    linear_fit::{LinearFit, LinearRow},
    observation::{Observation, Observations},
    resampling::{Resampler, percentile_interval},
    sample::correlation,
};
use flowcast_units::{Bytes, CollectiveOp, Rate, Time};

/// Largest number of links of a node that is tried. For the measured exercises, more links are as good as no limit.
const MOST_LINKS: u32 = 4;
/// Smallest gain that counts. Smaller gains would only make the table differ from a simpler one.
const LEAST_GAIN: f64 = 1e-9;

/// Factor of the steps of latency and bandwidth at which the search ends.
const SMALLEST_STEP: f64 = 1.002;

/// Bootstrap replicates, their seed, and the confidence level of the intervals.
const REPLICATES: usize = 100;
const SEED: u64 = 1;
const LEVEL: f64 = 0.95;
/// Largest correlation. With a correlation of 1, the second of two drawn parameters would have no variation of its own.
const MOST_CORRELATION: f64 = 0.99;

/// Finds the parameters.
///
/// # Errors
/// [`DimemasFitError`]: round trips of fewer than two sizes, or a region that took no time.
pub fn fit(regions: &[MeasuredRegion]) -> Result<DimemasFit, DimemasFitError> {
    if let Some(region) = regions.iter().find(|region| region.once <= Time::ZERO) {
        return Err(DimemasFitError::NoTime(region.name.clone()));
    }
    let task = SearchTask::new(regions);
    let start = task.settled(line(regions)?);
    let best = by_smaller_steps(start, [1.5, SMALLEST_STEP], |best, step| {
        let better = task.neighbour(best, step);
        better.map(|better| *best = better).is_some()
    });
    task.finish(&best)
}

/// The line through the round trips that minimises the sum of squared relative residuals.
fn line(regions: &[MeasuredRegion]) -> Result<Parameters, DimemasFitError> {
    let round_trips: Vec<&MeasuredRegion> = regions
        .iter()
        .filter(|region| region.exercise == Exercise::PingPong)
        .collect();
    let mut sizes: Vec<Bytes> = round_trips.iter().map(|region| region.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return Err(DimemasFitError::TooFewRoundTrips(sizes.len()));
    }
    let rows = round_trips.iter().map(|region| {
        let time = region.once.as_nanos() / 2.0;
        LinearRow {
            columns: vec![1.0, region.size.0 as f64],
            value: time,
            variance: time * time,
        }
    });
    let rows: Vec<LinearRow> = rows.collect();
    let slope = LinearFit::new(&rows).map_or(0.0, |fit| fit.values[1]);
    let slope = slope.max(1e-3);
    // The best latency for this bandwidth.
    let weights: f64 = rows.iter().map(|row| 1.0 / row.variance).sum();
    let rest = rows
        .iter()
        .map(|row| (row.value - slope * row.columns[1]) / row.variance);
    let intercept = (rest.sum::<f64>() / weights).max(1.0);
    Ok(Parameters {
        latency: Time::from_nanos(intercept),
        bandwidth: Rate::from_bytes_per_second(1e9 / slope),
        links: NodeLinks {
            incoming: 1,
            outgoing: 1,
        },
        buses: 0,
    })
}

/// A region of one operation, with the bytes that a rank sends and receives in it.
type SizedRegion<'a> = (&'a MeasuredRegion, (Bytes, Bytes));

struct SearchTask<'a> {
    regions: &'a [MeasuredRegion],
    /// Regions of messages.
    messages: Vec<&'a MeasuredRegion>,
    /// Regions of each operation, with the bytes sent and received.
    operations: BTreeMap<CollectiveOp, Vec<SizedRegion<'a>>>,
    rows: Vec<Row>,
    links: Vec<NodeLinks>,
    most_buses: u32,
}

/// Parameters with the best table for them, and their mean error.
struct BestParameters {
    parameters: Parameters,
    rows: BTreeMap<CollectiveOp, Row>,
    miss: f64,
}

impl<'a> SearchTask<'a> {
    fn new(regions: &'a [MeasuredRegion]) -> SearchTask<'a> {
        let mut task = SearchTask {
            regions,
            messages: Vec::new(),
            operations: BTreeMap::new(),
            rows: all_rows(),
            links: all_links(),
            most_buses: regions
                .iter()
                .map(|region| region.ranks / 2)
                .max()
                .unwrap_or(0),
        };
        for region in regions {
            match region.exercise {
                Exercise::Collective(op, send, recv) => {
                    task.operations
                        .entry(op)
                        .or_default()
                        .push((region, (send, recv)));
                }
                _ => task.messages.push(region),
            }
        }
        task
    }

    /// The best point with latency or bandwidth one step up or down; `None` if no such point is better.
    fn neighbour(&self, settled: &BestParameters, step: f64) -> Option<BestParameters> {
        let moved = around(&settled.parameters, step)
            .into_iter()
            .map(|parameters| self.settled(parameters));
        moved
            .filter(|moved| moved.miss < settled.miss - LEAST_GAIN)
            .min_by(|a, b| a.miss.total_cmp(&b.miss))
    }

    /// The best links, buses and rows for this latency and bandwidth.
    fn settled(&self, parameters: Parameters) -> BestParameters {
        let mut best: Option<BestParameters> = None;
        for buses in 0..=self.most_buses {
            let (parameters, of_messages) = smallest(self.links.iter().map(|links: &NodeLinks| {
                let parameters = Parameters {
                    links: *links,
                    buses,
                    ..parameters
                };
                (parameters, self.miss_of_messages(&parameters))
            }));
            let mut miss = of_messages;
            let mut rows = BTreeMap::new();
            for (op, regions) in &self.operations {
                let (row, of_op) = smallest(
                    self.rows
                        .iter()
                        .map(|row| (*row, miss_of(regions, *row, &parameters))),
                );
                rows.insert(*op, row);
                miss += of_op;
            }
            let miss = miss / self.regions.len() as f64;
            if best
                .as_ref()
                .is_none_or(|best| miss < best.miss - LEAST_GAIN)
            {
                best = Some(BestParameters {
                    parameters,
                    rows,
                    miss,
                });
            }
        }
        best.expect("no limit on buses is always tried")
    }

    fn miss_of_messages(&self, parameters: &Parameters) -> f64 {
        self.messages
            .iter()
            .map(|region: &&MeasuredRegion| {
                off(
                    once(region, parameters).expect("collectives are not among them"),
                    region.once,
                )
            })
            .sum()
    }

    fn finish(&self, settled: &BestParameters) -> Result<DimemasFit, DimemasFitError> {
        let Parameters {
            latency,
            bandwidth,
            links,
            buses,
        } = settled.parameters;
        let regions = self.regions.iter().map(|region| Observation {
            of: region.clone(),
            predicted: predicted(region, &settled.rows, &settled.parameters).as_seconds(),
            measured: region.once.as_seconds(),
        });
        let regions = Observations::new(regions)?;
        let intervals = self.intervals(settled);
        Ok(DimemasFit {
            latency,
            bandwidth,
            links,
            buses,
            rows: settled.rows.clone(),
            regions,
            intervals,
        })
    }

    fn intervals(&self, settled: &BestParameters) -> DimemasIntervals {
        let mut resampler = Resampler::from_seed(SEED);
        let (mut latencies, mut bandwidths) = (Vec::new(), Vec::new());
        for _ in 0..REPLICATES {
            let places = resampler.draw_places(self.regions.len());
            let drawn: Vec<&MeasuredRegion> = places
                .into_iter()
                .map(|place| &self.regions[place])
                .collect();
            let Parameters {
                latency, bandwidth, ..
            } = nearest(&drawn, settled);
            latencies.push(latency.as_nanos());
            bandwidths.push(bandwidth.as_bytes_per_second());
        }
        let ((least, most), (slowest, fastest)) = (ends(&latencies), ends(&bandwidths));
        DimemasIntervals {
            latency: (Time::from_nanos(least), Time::from_nanos(most)),
            bandwidth: (
                Rate::from_bytes_per_second(slowest),
                Rate::from_bytes_per_second(fastest),
            ),
            correlation: correlation(&latencies, &bandwidths)
                .map(|r| r.clamp(-MOST_CORRELATION, MOST_CORRELATION)),
            level: LEVEL,
        }
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    percentile_interval(values, LEVEL).expect("there are replicates, all of them finite")
}

/// Latency and bandwidth with the smallest error on the regions, searched in steps from the settled ones. Links, buses and
/// rows stay the same.
fn nearest(regions: &[&MeasuredRegion], settled: &BestParameters) -> Parameters {
    let start = (
        settled.parameters,
        miss(regions, settled, &settled.parameters),
    );
    by_smaller_steps(start, [1.1, SMALLEST_STEP], |best, step| {
        let moved = around(&best.0, step)
            .map(|parameters| (parameters, miss(regions, settled, &parameters)));
        let better = moved
            .into_iter()
            .filter(|moved| moved.1 < best.1 - LEAST_GAIN)
            .min_by(|a, b| a.1.total_cmp(&b.1));
        better.map(|better| *best = better).is_some()
    })
    .0
}

fn miss(regions: &[&MeasuredRegion], settled: &BestParameters, parameters: &Parameters) -> f64 {
    regions
        .iter()
        .map(|region| off(predicted(region, &settled.rows, parameters), region.once))
        .sum()
}

/// Points with latency or bandwidth one step up or down.
fn around(parameters: &Parameters, step: f64) -> [Parameters; 4] {
    let Parameters {
        latency, bandwidth, ..
    } = *parameters;
    [
        (step, 1.0),
        (1.0 / step, 1.0),
        (1.0, step),
        (1.0, 1.0 / step),
    ]
    .map(|(of_latency, of_bandwidth)| Parameters {
        latency: latency * of_latency,
        bandwidth: Rate::from_bytes_per_second(bandwidth.as_bytes_per_second() * of_bandwidth),
        ..*parameters
    })
}

fn predicted(
    region: &MeasuredRegion,
    rows: &BTreeMap<CollectiveOp, Row>,
    parameters: &Parameters,
) -> Time {
    match region.exercise {
        Exercise::Collective(op, send, recv) => by_row(region, send, recv, rows[&op], parameters),
        _ => once(region, parameters).expect("not a collective"),
    }
}

fn miss_of(
    regions: &[(&MeasuredRegion, (Bytes, Bytes))],
    row: Row,
    parameters: &Parameters,
) -> f64 {
    regions
        .iter()
        .map(|(region, (send, recv))| {
            off(by_row(region, *send, *recv, row, parameters), region.once)
        })
        .sum()
}

/// `|ln(predicted / measured)|`; a prediction of 0 counts as off by a factor of a thousand.
fn off(predicted: Time, measured: Time) -> f64 {
    let ratio = (predicted.as_nanos() / measured.as_nanos()).max(1e-3);
    ratio.ln().abs()
}

/// The first candidate with the smallest error.
fn smallest<T>(candidates: impl Iterator<Item = (T, f64)>) -> (T, f64) {
    let mut best: Option<(T, f64)> = None;
    for (candidate, miss) in candidates {
        if best
            .as_ref()
            .is_none_or(|(_, least)| miss < least - LEAST_GAIN)
        {
            best = Some((candidate, miss));
        }
    }
    best.expect("there is always a candidate")
}

/// All rows, simple ones first, so that the simpler of two equal ones wins.
fn all_rows() -> Vec<Row> {
    use PhaseSize::{Max, Mean, Min, Recv, Send, Sum, TwiceMax};
    use Repeats::{Constant, Linear, Logarithmic, Null};
    let null = Phase {
        repeats: Null,
        size: Max,
    };
    let phases: Vec<Phase> = [Constant, Logarithmic, Linear]
        .into_iter()
        .flat_map(|repeats| {
            [Max, Min, Mean, TwiceMax, Sum, Send, Recv].map(|size| Phase { repeats, size })
        })
        .collect();
    let alone = phases.iter().map(|phase| Row {
        fan_in: *phase,
        fan_out: null,
    });
    let both = phases.iter().flat_map(|first| {
        phases.iter().map(|second| Row {
            fan_in: *first,
            fan_out: *second,
        })
    });
    alone.chain(both).collect()
}

/// All limits on links, beginning with one link each way.
fn all_links() -> Vec<NodeLinks> {
    let mut all = vec![NodeLinks {
        incoming: 1,
        outgoing: 0,
    }];
    for incoming in 1..=MOST_LINKS {
        all.extend((1..=MOST_LINKS).map(|outgoing| NodeLinks { incoming, outgoing }));
    }
    all.sort_by_key(|links| (links.outgoing == 0, links.incoming + links.outgoing));
    all.push(NodeLinks {
        incoming: 0,
        outgoing: 0,
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u64; 6] = [16, 256, 4096, 16_384, 65_536, 262_144];

    fn truth() -> (Parameters, Vec<(CollectiveOp, &'static str)>) {
        let parameters = Parameters {
            latency: Time::from_micros(130.0),
            bandwidth: Rate::from_bytes_per_second(2.4e6),
            links: NodeLinks {
                incoming: 1,
                outgoing: 2,
            },
            buses: 0,
        };
        let rows = vec![
            (CollectiveOp::Bcast, "LOG MAX | NULL"),
            (CollectiveOp::Allreduce, "LOG 2MAX | LOG MAX"),
            (CollectiveOp::Alltoall, "LIN MEAN | CT MAX"),
        ];
        (parameters, rows)
    }

    /// Regions of `ranks` ranks under the true parameters, with times off by up to `noise`.
    fn measured(ranks: u32, noise: f64) -> Vec<MeasuredRegion> {
        let (parameters, rows) = truth();
        let messages = [
            Exercise::PingPong,
            Exercise::Exchange,
            Exercise::FanOut,
            Exercise::FanIn,
            Exercise::Pairs,
        ]
        .into_iter();
        let mut regions = Vec::new();
        for size in SIZES.map(Bytes) {
            let blank = |exercise| MeasuredRegion {
                name: "x".into(),
                exercise,
                size,
                ranks,
                once: Time::from_nanos(1.0),
            };
            for exercise in messages.clone() {
                let region = blank(exercise);
                regions.push(MeasuredRegion {
                    once: once(&region, &parameters).unwrap(),
                    ..region
                });
            }
            for (op, row) in &rows {
                let (send, recv) = (size, Bytes(size.0 * u64::from(ranks)));
                let region = blank(Exercise::Collective(*op, send, recv));
                let once = by_row(&region, send, recv, row.parse().unwrap(), &parameters);
                regions.push(MeasuredRegion { once, ..region });
            }
        }
        for (at, region) in regions.iter_mut().enumerate() {
            region.once = region.once * (1.0 + noise * ((at * 7 % 11) as f64 / 5.0 - 1.0));
        }
        regions
    }

    #[test]
    fn exact_regions_give_back_their_parameters() {
        let fit = fit(&measured(6, 0.0)).unwrap();
        let (truth, rows) = truth();
        assert!(
            (fit.latency.as_micros() / 130.0 - 1.0).abs() < 2e-3,
            "{}",
            fit.latency
        );
        assert!(
            (fit.bandwidth.as_bytes_per_second() / 2.4e6 - 1.0).abs() < 2e-3,
            "{}",
            fit.bandwidth
        );
        assert_eq!((fit.links, fit.buses), (truth.links, truth.buses));
        assert_eq!(fit.rows.len(), rows.len());
        assert!(fit.regions.share_within(0.005) == 1.0, "{:?}", fit.rows);
        assert_eq!(fit.rows[&CollectiveOp::Bcast].to_string(), "LOG MAX | NULL");
    }

    #[test]
    fn noise_of_five_percent_moves_the_parameters_by_less() {
        let fit = fit(&measured(6, 0.05)).unwrap();
        assert!(
            (fit.latency.as_micros() / 130.0 - 1.0).abs() < 0.05,
            "{}",
            fit.latency
        );
        assert!(
            (fit.bandwidth.as_bytes_per_second() / 2.4e6 - 1.0).abs() < 0.05,
            "{}",
            fit.bandwidth
        );
        assert!(fit.regions.share_within(0.1) > 0.95);
        let DimemasIntervals {
            latency: (least, most),
            bandwidth: (slowest, fastest),
            ..
        } = fit.intervals;
        assert!(
            least < fit.latency && fit.latency < most,
            "{least} {} {most}",
            fit.latency
        );
        assert!(
            slowest < fastest
                && slowest.as_bytes_per_second() < 2.4e6
                && fastest.as_bytes_per_second() > 2.3e6
        );
    }

    #[test]
    fn one_bus_is_distinguished_from_none() {
        let mut regions = measured(6, 0.0);
        let (truth, _) = truth();
        let one = Parameters { buses: 1, ..truth };
        regions.retain(|region| !matches!(region.exercise, Exercise::Collective(..)));
        regions
            .iter_mut()
            .for_each(|region| region.once = once(region, &one).unwrap());
        assert_eq!(fit(&regions).unwrap().buses, 1);
    }

    #[test]
    fn regions_without_round_trips_or_time_are_refused() {
        let mut regions = measured(4, 0.0);
        regions[0].once = Time::ZERO;
        assert_eq!(
            fit(&regions).unwrap_err().to_string(),
            "region `x`: found a time of 0, expected a time above 0"
        );
        regions.retain(|region| region.exercise != Exercise::PingPong);
        assert_eq!(
            fit(&regions).unwrap_err(),
            DimemasFitError::TooFewRoundTrips(0)
        );
    }
}

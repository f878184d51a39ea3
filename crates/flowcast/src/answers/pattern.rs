//! Document of a pattern's prediction: `flowcast/pattern-prediction/1`.

use flowcast_network::{
    network::Network,
    quantity::Quantity,
    sharing::{completion::RateInterval, link_loads::ClassLoad},
};
use flowcast_table::{Document, Grouped, Rows, figure, fixed, rows};
use flowcast_traffic::{
    flows::concurrent::FlowPrediction,
    packet::seeds::{LEVEL, Spread},
};
use flowcast_units::Time;

use super::{ROWS, levels::level_table, prediction::interval_fields};
use crate::{
    PatternIntervals, PatternPrediction,
    statements::{margin_of_steps, marked_name, of_networks, shown_time, stand_ins},
};

/// A prediction of a pattern, and the data for its document.
pub struct PatternAnswer<'a> {
    /// Predictions, indexed by step; at least one.
    pub predicted: &'a [PatternPrediction],
    /// The network.
    pub network: &'a Network,
    /// Intervals of the makespan and of each flow, if they are known.
    pub intervals: Option<&'a PatternIntervals>,
    /// `true` if intervals were requested.
    pub has_interval: bool,
    /// Number of runs with random starts, if there are any.
    pub seeds: Option<u32>,
    /// `true` if the document explains what limited each flow.
    pub explains: bool,
    /// Maximum number of rows in a printed table. JSON has all rows.
    pub most_rows: usize,
}

impl<'a> PatternAnswer<'a> {
    /// Time at which the last flow of the last step ends.
    ///
    /// # Panics
    /// There is no step.
    pub fn makespan(&self) -> Time {
        self.last().prediction.makespan()
    }

    fn last(&self) -> &PatternPrediction {
        self.predicted.last().expect("a pattern has a step")
    }

    /// The document.
    ///
    /// # Panics
    /// There is no step.
    pub fn document(&self) -> Document {
        let PatternAnswer {
            predicted, network, ..
        } = self;
        let (model, makespan) = (self.last().model, self.makespan());
        let interval = self.intervals.map(|intervals| &intervals.makespan);
        let in_steps = match predicted.len() {
            1 => String::new(),
            several => format!(" in {several} steps"),
        };
        let explained = margin_of_steps(predicted.len(), network, interval, self.has_interval);
        let answer = format!(
            "{}{in_steps} on {} ({}): the last ends at {}",
            self.flows_text(),
            marked_name(network),
            model.name(),
            shown_time(makespan, interval)
        );
        let mut document = Document::new("pattern-prediction")
            .schema("flowcast/pattern-prediction/1")
            .titled(format!(
                "{} on {}, {}",
                self.flows_text(),
                network.name,
                model.name()
            ))
            .field("network", &network.name)
            .field("stand_ins", stand_ins(network))
            .field("model", model.name())
            .field("makespan_s", makespan)
            .field("margin", &explained)
            .line(answer)
            .line(explained)
            .noted(of_networks([*network]))
            .table("flows", self.flow_table());
        document = match self.seeds {
            None => document.fields(interval_fields(interval)),
            Some(seeds) => document
                .field("seeds", seeds)
                .field("interval_level", LEVEL)
                .line(format!(
                    "medians of {seeds} runs; 90 % of the runs end between low and high"
                )),
        };
        if self.explains {
            document = document.line("").shown(self.interval_table());
            if network.topology.is_some() {
                let seen = network.seen_by(model);
                let steps = (1..).zip(*predicted);
                let loads: Vec<(usize, ClassLoad)> = steps
                    .flat_map(|(step, of)| {
                        let loads = of.prediction.loads(&seen);
                        loads.into_iter().map(move |load| (step, load))
                    })
                    .collect();
                let table = level_table(&loads, predicted.len() > 1);
                document = document.line("").table("levels", table);
            }
        }
        document
    }

    /// Number of flows in words.
    fn flows_text(&self) -> String {
        let flows = self
            .predicted
            .iter()
            .map(|step| step.prediction.flows.len());
        flows_text(flows.sum())
    }

    /// Table of all flows, with the margins of their durations if they are known.
    fn flow_table(&self) -> Rows<(usize, FlowOfStep<'a>)> {
        let predicted = self.predicted;
        let mut table = rows(FlowOfStep::all(predicted).enumerate());
        if predicted.len() > 1 {
            table = table.column("step", "step", |(_, of)| of.step);
        }
        table = table
            .column("id", "flow", |(_, of)| of.flow().flow.id)
            .column("src", "from", |(_, of)| of.flow().flow.src)
            .column("dst", "to", |(_, of)| of.flow().flow.dst)
            .column("bytes", "size", |(_, of)| of.flow().flow.size)
            .column("start_s", "start", |(_, of)| of.flow().flow.start)
            .column("end_s", "end", |(_, of)| of.flow().end)
            .column("duration_s", "duration", |(_, of)| of.flow().duration)
            .column("alone_s", "alone", |(_, of)| of.flow().alone)
            .column("slowdown", "slowdown", |(_, of)| {
                fixed(of.flow().slowdown(), 3)
            });
        if predicted.iter().any(|step| !step.spreads.is_empty()) {
            table = table
                .column("end_s_low", "low", |(_, of)| {
                    of.spread().map(|of| of.low.end)
                })
                .column("end_s_high", "high", |(_, of)| {
                    of.spread().map(|of| of.high.end)
                })
                .field("duration_s_low", |(_, of)| {
                    of.spread().map(|of| of.low.duration)
                })
                .field("duration_s_high", |(_, of)| {
                    of.spread().map(|of| of.high.duration)
                });
        }
        if let Some(PatternIntervals { flows: margins, .. }) = self.intervals {
            table = table.field("interval_s", |(at, _)| {
                margins.get(at).map(|margin| (margin.low, margin.high))
            });
        }
        if self.explains {
            table = table.field("intervals", |(_, of)| {
                rows(of.intervals())
                    .field("from_s", |interval| interval.from)
                    .field("to_s", |interval| interval.to)
                    .field("share", |interval| interval.share.0)
                    .field("limit", |interval| of.reason(interval))
            });
        }
        table.most(self.most_rows, ROWS)
    }

    fn interval_table(&self) -> Rows<(FlowOfStep<'a>, &'a RateInterval)> {
        let lone = Quantity::Rate(self.network.nic.rate());
        let all = FlowOfStep::all(self.predicted);
        rows(all.flat_map(|of| of.intervals().iter().map(move |interval| (of, interval))))
            .cell("flow", |(of, _)| of.flow().flow.id)
            .cell("from", |(_, interval)| interval.from)
            .cell("until", |(_, interval)| interval.to)
            .cell("share", |(_, interval)| fixed(interval.share.0, 3))
            .cell("rate", |(_, interval)| {
                figure(lone.with_number(interval.share.0 * lone.number()).rounded())
            })
            .cell("cause", |(of, interval)| of.reason(interval))
    }
}

/// A number of flows in words.
pub fn flows_text(flows: usize) -> String {
    match flows {
        1 => "1 flow".into(),
        _ => format!("{} flows", Grouped(flows as u64)),
    }
}

/// A flow of a pattern in steps.
#[derive(Clone, Copy)]
struct FlowOfStep<'a> {
    /// Number of the step, from 1.
    step: usize,
    of: &'a PatternPrediction,
    /// Index of the flow in its step, from 0.
    index: usize,
}

impl<'a> FlowOfStep<'a> {
    fn all(predicted: &'a [PatternPrediction]) -> impl Iterator<Item = FlowOfStep<'a>> {
        (1..).zip(predicted).flat_map(|(step, of)| {
            (0..of.prediction.flows.len()).map(move |index| FlowOfStep { step, of, index })
        })
    }

    fn flow(self) -> &'a FlowPrediction {
        &self.of.prediction.flows[self.index]
    }

    fn spread(self) -> Option<&'a Spread> {
        self.of.spreads.get(self.index)
    }

    fn intervals(self) -> &'a [RateInterval] {
        self.of.prediction.intervals_of(self.index)
    }

    fn reason(self, interval: &RateInterval) -> String {
        self.of.prediction.reason(self.index, interval.limit)
    }
}

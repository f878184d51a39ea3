//! Document of a prediction: printed by the command, and the source of its JSON and of Python's attributes.

use flowcast_network::network::{self, Network};
use flowcast_program::{Program, program::Transfers};
use flowcast_replay::{outcome::Outcome, sweep::SetOutcome};
use flowcast_report::standing::Interval;
use flowcast_table::{Document, Grouped, Record, Rows, figure, percent, rows};
use flowcast_units::{Rank, Rounded};

use super::{
    ROWS,
    explained::explained,
    levels::{level_table, with_delays},
};
use crate::{
    Prediction, Prepared, RailPrediction, RailsPrediction,
    program::split,
    statements::{Counts, margin, marked_name, shown_time, stand_ins},
    why::Noisy,
};

/// One of several programs that run at the same time.
#[derive(Debug, Clone, Copy)]
pub struct ConcurrentProgram<'a> {
    /// Name of its trace in the document.
    pub name: &'a str,
    /// The program.
    pub program: &'a Program,
}

/// A prediction, and the data for its document.
pub struct PredictionAnswer<'a> {
    /// The programs, if there are several; otherwise empty.
    pub applications: Vec<ConcurrentProgram<'a>>,
    /// The trace, prepared for replay.
    pub prepared: &'a Prepared<'a>,
    /// The prediction.
    pub prediction: &'a Prediction,
    /// The network, followed by further rails; empty for a schedule with LogGOPS parameters.
    pub networks: Vec<&'a Network>,
    /// Interval of the makespan, if it is known.
    pub interval: Option<&'a Interval>,
    /// `true` if an interval was requested.
    pub has_interval: bool,
    /// The requested distribution of delays, and the times under it.
    pub noise: Option<(&'a str, &'a Noisy)>,
    /// Maximum number of rows in a printed table. JSON has all rows.
    pub most_rows: usize,
}

impl PredictionAnswer<'_> {
    /// Outcome of each of several programs.
    fn outcomes(&self) -> Vec<Outcome> {
        let programs: Vec<&Program> = self.applications.iter().map(|one| one.program).collect();
        split(&self.prediction.outcome, &programs)
    }

    /// The document: `flowcast/replay/1` for one trace, kind `applications` for several programs that run at the same time.
    pub fn document(&self) -> Document {
        let Prediction {
            model,
            outcome,
            unused,
            explanation,
            loops,
            ..
        } = &self.prediction;
        let no_influence = rows(unused)
            .field("parameter", |one| &one.parameter)
            .field("reason", |one| one.reason);
        let loop_fields = loops.as_ref().map(|loops| {
            Record::new()
                .field("iterations", loops.iterations)
                .field("walked", loops.walked)
                .field("tick_s", loops.tick)
        });
        let document = match self.applications[..] {
            [] => Document::new("replay").schema("flowcast/replay/1"),
            _ => Document::new("applications"),
        };
        let mut document = document
            .field("margin", self.margin())
            .fields(prediction_fields(
                self.prediction,
                self.networks.first().copied(),
                self.interval,
            ))
            .field("no_influence", no_influence)
            .known("noise", self.noise.map(|(_, noisy)| noisy.document()))
            .known("loops", loop_fields);
        if let Some(rails) = &self.prediction.rails {
            document = document.field("scheduler", rails.policy.to_string());
        }
        let time = shown_time(outcome.makespan(), self.interval);
        let names: Vec<String> = self.networks.iter().copied().map(marked_name).collect();
        let on = match &names[..] {
            [] => String::new(),
            names => format!(" on {}", names.join(" and ")),
        };
        if self.applications.is_empty() {
            let names: Vec<&str> = self.networks.iter().map(|one| one.name.as_str()).collect();
            document = document
                .field("network", (!names.is_empty()).then(|| names.join(" and ")))
                .line(format!(
                    "predicted time{on}: {time} by model {}",
                    model.name()
                ))
                .line(communication(outcome));
            if let Some((distribution, noisy)) = self.noise {
                document = document.line(format!("with noise {distribution}: {noisy}"));
            }
            let (program, collectives) = (self.prepared.program(), self.prepared.collectives());
            document = document
                .fields(outcome_fields(program, outcome))
                .lines(counts(
                    program,
                    collectives,
                    outcome,
                    self.prediction.transfers,
                ));
            document = self.with_statements(document);
            if let Some(rails) = &self.prediction.rails {
                document = document.table("rails", rail_table(rails));
            }
            document = document.shown(rank_table(program, outcome, self.most_rows));
        } else {
            document = document.line(format!(
                "{} concurrent programs{on}: {time} by model {}",
                self.applications.len(),
                model.name()
            ));
            let mut applications = Vec::new();
            for (ConcurrentProgram { name, program }, outcome) in
                self.applications.iter().zip(self.outcomes())
            {
                let (time, collectives) = (outcome.makespan(), program.collectives());
                let application = Record::new()
                    .field("trace", *name)
                    .field("makespan_s", time)
                    .fields(outcome_fields(Some(program), &outcome));
                applications.push(application);
                document = document
                    .line(format!("{name}: predicted time {}", Rounded(time)))
                    .lines(counts(
                        Some(program),
                        collectives,
                        &outcome,
                        program.transfers(),
                    ))
                    .shown(rank_table(Some(program), &outcome, self.most_rows));
            }
            document = self.with_statements(document.field("applications", applications));
        }
        match explanation {
            Some(explanation) => {
                let has_levels = self
                    .networks
                    .first()
                    .is_some_and(|network| network.topology.is_some());
                if has_levels && !outcome.loads.is_empty() {
                    let loads: Vec<_> = outcome
                        .loads
                        .iter()
                        .cloned()
                        .map(|load| (1, load))
                        .collect();
                    document = document.table("levels", level_table(&loads, false));
                    if let Some(program) = self.prepared.program() {
                        document = with_delays(document, program, outcome, self.most_rows);
                    }
                }
                explained(document, explanation)
            }
            None => document,
        }
    }

    /// Adds the sentences below the answer, in the order in which they are read.
    fn with_statements(&self, document: Document) -> Document {
        document
            .line(self.margin())
            .lines(self.prediction.sentences())
            .noted(&self.prediction.notes)
    }

    fn margin(&self) -> String {
        margin(
            self.networks.iter().copied(),
            self.interval,
            self.has_interval,
        )
    }
}

/// Table of the traffic of each rail.
fn rail_table(rails: &RailsPrediction) -> Rows<&RailPrediction> {
    rows(&rails.rails)
        .column("name", "rail", |rail| &rail.name)
        .column("model", "model", |rail| rail.model)
        .column("messages", "messages and pieces", |rail| {
            rail.traffic.messages
        })
        .column("bytes", "bytes", |rail| rail.traffic.bytes)
        .column("share", "share", |rail| percent(rails.share(rail), 1))
}

/// Share of the ranks' time that is not the program's own computation, in words.
fn communication(outcome: &Outcome) -> String {
    let share = SetOutcome::from(outcome).communication_share();
    format!(
        "communication takes {:.1} % of the ranks' time",
        100.0 * share
    )
}

/// Fields of a prediction that all documents contain: model, effects left out, traffic inside nodes, margin.
pub fn prediction_fields(
    prediction: &Prediction,
    network: Option<&Network>,
    interval: Option<&Interval>,
) -> Record {
    let Prediction {
        model,
        outcome,
        transfers,
        inside,
        ..
    } = prediction;
    let inside_nodes = inside.map(|inside| {
        Record::new()
            .field("source", inside.source.name())
            .field("messages", inside.messages)
            .field("bytes", inside.bytes)
            .field("time_s", inside.time)
    });
    let one_sided = (transfers.count > 0).then(|| {
        Record::new()
            .field("transfers", transfers.count)
            .field("bytes", transfers.bytes)
    });
    interval_fields(interval)
        .field("makespan_s", outcome.makespan())
        .field("model", model.name())
        .field("model_reason", &model.reason)
        .field("collectives", model.collectives)
        .field("leaves_out", model.leaves_out())
        .field("progress", model.progress.map(network::Progress::name))
        .field("uncontended", model.is_uncontended)
        .field("inside_nodes", inside_nodes)
        .field("stand_ins", network.map(stand_ins))
        .known("one_sided", one_sided)
}

/// Margin of a prediction; null if it is unknown.
pub fn interval_fields(interval: Option<&Interval>) -> Record {
    Record::new()
        .field("interval_s", interval.map(|of| (of.low, of.high)))
        .field("interval_level", interval.map(|of| of.level))
        .field("interval_covers", interval.map(|of| &of.covers))
}

/// Messages, bytes and ranks of an outcome.
fn outcome_fields(program: Option<&Program>, outcome: &Outcome) -> Record {
    Record::new()
        .field("messages", outcome.messages)
        .field("bytes", outcome.bytes)
        .field("ranks", ranks_in(program, outcome, 0..outcome.ranks.len()))
}

/// Sentences on the contents of the replayed trace, and on the transfers of one-sided communication if there are any.
fn counts(
    program: Option<&Program>,
    collectives: u64,
    outcome: &Outcome,
    transfers: Transfers,
) -> Vec<String> {
    let streams = outcome.ranks.len();
    let ranks = program.map_or(streams, |program| program.threads_of_tasks().len());
    let counts = Counts {
        ranks,
        messages: outcome.messages,
        collectives,
    };
    let threads = if streams == ranks {
        String::new()
    } else {
        format!(", {} threads", Grouped(streams as u64))
    };
    let mut lines = vec![format!(
        "{counts}, {} bytes{threads}",
        Grouped(outcome.bytes.0)
    )];
    if transfers.count > 0 {
        lines.push(format!(
            "{} one-sided transfers, {} bytes",
            Grouped(transfers.count),
            Grouped(transfers.bytes.0)
        ));
    }
    lines
}

/// Table of at most `most_rows` ranks. If not all rows are shown, the slowest ranks come first.
fn rank_table(program: Option<&Program>, outcome: &Outcome, most_rows: usize) -> Rows<usize> {
    let mut ranks: Vec<usize> = (0..outcome.ranks.len()).collect();
    if most_rows < ranks.len() {
        ranks.sort_by_key(|rank| (std::cmp::Reverse(outcome.ranks[*rank].end), *rank));
    }
    ranks_in(program, outcome, ranks).most(most_rows, ROWS)
}

/// Rows of ranks in the given order. Threads of a task are ranks, with their task and thread in the row.
fn ranks_in(
    program: Option<&Program>,
    outcome: &Outcome,
    order: impl IntoIterator<Item = usize>,
) -> Rows<usize> {
    let (ranks, stream) = (rows(order), |rank| Rank(rank as u32));
    let ranks = match program.filter(|program| program.has_threads()) {
        None => ranks.column("rank", "rank", |rank| rank),
        Some(program) => ranks
            .field("rank", |rank| rank)
            .field("task", |rank| program.task(stream(rank)))
            .field("thread", |rank| program.thread(stream(rank)))
            .cell("task.thread", |rank| {
                let rank = stream(rank);
                figure(format!("{}.{}", program.task(rank), program.thread(rank)))
            }),
    };
    ranks
        .column("end_s", "end", |rank| outcome.ranks[rank].end)
        .column("compute_s", "compute", |rank| outcome.ranks[rank].compute)
        .column("blocked_s", "blocked", |rank| outcome.ranks[rank].blocked)
        .column("overhead_s", "overhead", |rank| {
            outcome.ranks[rank].overhead
        })
}

//! Writes report pages of a made-up program: a stencil on a grid of ranks with an all-reduce now and then.
//!
//! ```text
//! cargo run --release --example report_page -- page.html
//! cargo run --release --example report_page -- page.html large
//! ```
//!
//! The first page shows 16 ranks on three networks, the second 64 ranks and more than 200,000 segments on one.

use std::collections::BTreeMap;
use std::process::ExitCode;

use flowcast::model::builtin;
use flowcast::model::network::Network;
use flowcast::replay::outcome::{Outcome, RankOutcome};
use flowcast::replay::timeline::{Activity, MessageSpan, Segment, Timeline};
use flowcast::report::{LimitPart, Limits, NetworkView, Page, parameter_line};
use flowcast::units::{Bytes, Rank, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const ALL_REDUCE_EVERY: usize = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (stencil, names): (Stencil, &[&str]) = match arguments.get(1).map(String::as_str) {
        Some("large") => (Stencil { side: 8, iterations: 330, halo: Bytes(24_000) }, &["gige-tcp"]),
        _ => (Stencil { side: 4, iterations: 24, halo: Bytes(32_768) }, &["gige-tcp", "myrinet-gm", "infiniband-2006"]),
    };
    let Some(path) = arguments.first() else {
        eprintln!("expected the name of the page to write, and `large` for the large one");
        return ExitCode::from(2);
    };
    let html = page(stencil, names).to_html();
    match std::fs::write(path, &html) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(3)
        }
    }
}

fn page(stencil: Stencil, names: &[&str]) -> Page {
    let ranks = stencil.side * stencil.side;
    let networks = names.iter().map(|name| {
        let network = builtin::network(name).expect("the names are built in");
        view(&network, stencil.run(&network))
    });
    Page {
        title: format!("Five-point stencil on {ranks} ranks"),
        subtitle: format!("{} iterations, {} a halo, made up to show the page", stencil.iterations, stencil.halo),
        networks: networks.collect(),
        provenance: BTreeMap::from([
            ("flowcast".into(), env!("CARGO_PKG_VERSION").into()),
            ("origin".into(), "synthetic, seed 7; no measurement".into()),
        ]),
    }
}

fn view(network: &Network, timeline: Timeline) -> NetworkView {
    let outcome = outcome(&timeline);
    let mut view = NetworkView {
        name: network.name.clone(),
        title: network.title.clone(),
        parameters: parameter_line(network),
        outcome,
        timeline,
        limits: Limits::default(),
    };
    view.limits = limits_of_slowest(&view);
    view
}

/// The slowest rank's time by activity, for want of a critical path.
fn limits_of_slowest(view: &NetworkView) -> Limits {
    let Some(slowest) = view.slowest_rank() else { return Limits::default() };
    let segments = &view.timeline.ranks[slowest.index()];
    let end = view.outcome.makespan().as_nanos();
    let share = |activity| segments.iter().filter(|s| s.activity == activity).map(nanos).sum::<f64>() / end;
    let part = |activity: &Activity| LimitPart { label: activity.name().into(), share: share(*activity) };
    let mut parts: Vec<_> = Activity::ALL.iter().map(part).filter(|part| part.share > 0.0).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let sentence = format!("{} takes {:.0} % of rank {slowest}'s time.", parts[0].label, parts[0].share * 100.0);
    Limits { parts, sentence, path: Vec::new() }
}

fn nanos(segment: &Segment) -> f64 {
    (segment.end - segment.start).as_nanos()
}

fn outcome(timeline: &Timeline) -> Outcome {
    let rank = |segments: &Vec<Segment>| {
        let time = |wanted: &dyn Fn(Activity) -> bool| {
            Time::from_nanos(segments.iter().filter(|s| wanted(s.activity)).map(nanos).sum())
        };
        RankOutcome {
            end: segments.last().map_or(Time::ZERO, |last| last.end),
            compute: time(&|activity| activity == Activity::Compute),
            overhead: time(&|activity| activity == Activity::Overhead),
            blocked: time(&|activity| !matches!(activity, Activity::Compute | Activity::Overhead)),
        }
    };
    Outcome {
        ranks: timeline.ranks.iter().map(rank).collect(),
        messages: timeline.messages.len() as u64,
        bytes: Bytes(timeline.messages.iter().map(|message| message.size.0).sum()),
        ..Outcome::default()
    }
}

struct Stencil {
    side: usize,
    iterations: usize,
    halo: Bytes,
}

impl Stencil {
    fn run(&self, network: &Network) -> Timeline {
        let mut run = Run::start(self, network);
        for iteration in 0..self.iterations {
            run.compute();
            run.exchange(iteration);
            if iteration % ALL_REDUCE_EVERY == ALL_REDUCE_EVERY - 1 {
                run.all_reduce();
            }
        }
        Timeline { ranks: run.ranks, messages: run.messages }
    }

    fn neighbours(&self, rank: usize) -> Vec<usize> {
        let (x, y, side) = (rank % self.side, rank / self.side, self.side);
        let mut found = Vec::new();
        found.extend((x > 0).then(|| rank - 1));
        found.extend((x + 1 < side).then(|| rank + 1));
        found.extend((y > 0).then(|| rank - side));
        found.extend((y + 1 < side).then(|| rank + side));
        found
    }
}

struct Run<'a> {
    stencil: &'a Stencil,
    network: &'a Network,
    overhead: Time,
    clock: Vec<Time>,
    ranks: Vec<Vec<Segment>>,
    messages: Vec<MessageSpan>,
    random: Pcg64,
}

impl<'a> Run<'a> {
    fn start(stencil: &'a Stencil, network: &'a Network) -> Run<'a> {
        let count = stencil.side * stencil.side;
        let random = Pcg64::seed_from_u64(7);
        let (clock, ranks) = (vec![Time::ZERO; count], vec![Vec::new(); count]);
        let overhead = network.nic.overhead.max(Time::from_micros(2.0));
        Run { stencil, network, overhead, clock, ranks, messages: Vec::new(), random }
    }

    fn spend(&mut self, rank: usize, until: Time, activity: Activity) {
        let start = self.clock[rank];
        if until > start {
            self.ranks[rank].push(Segment { start, end: until, activity });
            self.clock[rank] = until;
        }
    }

    /// Computation of uneven length; one rank has more to do than the others.
    fn compute(&mut self) {
        for rank in 0..self.ranks.len() {
            let uneven = self.random.random_range(0.85..1.15) * if rank == 5 { 1.25 } else { 1.0 };
            let until = self.clock[rank] + Time::from_micros(900.0 * uneven);
            self.spend(rank, until, Activity::Compute);
        }
    }

    /// Every rank sends to its neighbours one after another, then receives from them.
    fn exchange(&mut self, iteration: usize) {
        let nic = &self.network.nic;
        let first = self.messages.len();
        for src in 0..self.ranks.len() {
            let mut interface_free = Time::ZERO;
            for dst in self.stencil.neighbours(src) {
                let sent = self.clock[src];
                self.spend(src, sent + self.overhead, Activity::Overhead);
                interface_free = interface_free.max(self.clock[src]) + nic.per_byte().time_for(self.stencil.halo);
                let arrived = interface_free + nic.latency;
                let (src, dst) = (Rank(src as u32), Rank(dst as u32));
                let (size, tag) = (self.stencil.halo, iteration as i32);
                self.messages.push(MessageSpan { src, dst, size, tag, sent, arrived, received: arrived });
            }
        }
        self.receive(first);
    }

    fn receive(&mut self, first: usize) {
        for i in first..self.messages.len() {
            let message = self.messages[i];
            let dst = message.dst.index();
            self.spend(dst, message.sent, Activity::LateSender);
            self.spend(dst, message.arrived, Activity::Transfer);
            self.spend(dst, self.clock[dst] + self.overhead, Activity::Overhead);
            self.messages[i].received = self.clock[dst];
        }
    }

    fn all_reduce(&mut self) {
        let ready = self.clock.iter().copied().fold(Time::ZERO, Time::max);
        let steps = (self.ranks.len() as f64).log2().ceil();
        let done = ready + (self.network.nic.latency + self.overhead) * (2.0 * steps);
        for rank in 0..self.ranks.len() {
            self.spend(rank, ready, Activity::CollectiveWait);
            self.spend(rank, done, Activity::Collective);
        }
    }
}

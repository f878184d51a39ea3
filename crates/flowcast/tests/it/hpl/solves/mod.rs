//! What ranks call while HPL solves, as text: as the description says it. Recordings are written in the same way.

mod matrix;

use std::fmt::Write;

use flowcast::{
    hpl::{Exchange, HplSettings, KernelRates, NodeProcessors, Pivots, Script, ScriptStep},
    units::Rank,
};

/// The calls of a rank within its row and its column, each in their order. Which of a row's calls come before which of a
/// column's depends on the time at which a probe finds something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    row: Vec<Call>,
    column: Vec<Call>,
}

/// A call of a rank: which, with whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) peer: u32,
}

/// Sends say how many bytes. Whether a receive was posted before the send beside it is told by their order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    Send(u64),
    Ssend(u64),
    Issend(u64),
    Receive,
}

impl Calls {
    pub(crate) fn push(&mut self, settings: &HplSettings, rank: u32, call: Call) {
        let same_row = rank / settings.columns == call.peer / settings.columns;
        let calls = if same_row {
            &mut self.row
        } else {
            &mut self.column
        };
        calls.push(call);
    }
}

/// A run on processors that are all alike.
pub(crate) fn script(settings: HplSettings, pivots: &Pivots) -> Script {
    let table = "node,intercept_s,s_per_mnk,resid_per_mnk\n0,1e-6,1e-10,0\n";
    let node = NodeProcessors::parse(table).unwrap();
    let ranks = settings.ranks();
    let processors = node.of_ranks(ranks, ranks).unwrap();
    Script::new(settings, pivots, KernelRates::default(), processors)
}

/// What each rank calls by the description of a run of HPL's test program, with the pivots of its matrix.
pub(crate) fn described(settings: HplSettings) -> Vec<Calls> {
    let pivots = matrix::pivots(settings.order as usize);
    let script = script(settings, &Pivots::Given(pivots));
    let ranks = 0..settings.ranks();
    ranks.map(|rank| described_rank(&script, rank)).collect()
}

fn described_rank(script: &Script, rank: u32) -> Calls {
    let mut calls = Calls::default();
    for step in script.steps(Rank(rank)) {
        if let ScriptStep::Exchange(exchange) = step {
            for call in calls_of(&exchange) {
                calls.push(script.settings(), rank, call);
            }
        }
    }
    calls
}

fn calls_of(exchange: &Exchange) -> Vec<Call> {
    use Function::{Issend, Receive, Send, Ssend};
    let functions = match (exchange.send, exchange.receive, exchange.synchronous) {
        (Some(bytes), Some(_), false) => vec![Receive, Send(bytes)],
        (Some(bytes), Some(_), true) => vec![Issend(bytes), Receive],
        (Some(bytes), None, false) => vec![Send(bytes)],
        (Some(bytes), None, true) => vec![Ssend(bytes)],
        (None, Some(_), _) => vec![Receive],
        (None, None, _) => Vec::new(),
    };
    let peer = exchange.partner;
    let calls = functions.into_iter();
    calls.map(|function| Call { function, peer }).collect()
}

/// A line with the settings, then two for each rank: its row's calls, its column's.
pub(crate) fn text(settings: &HplSettings, ranks: &[Calls]) -> String {
    let mut text = heading(settings);
    for (rank, calls) in ranks.iter().enumerate() {
        for (name, calls) in [("row", &calls.row), ("column", &calls.column)] {
            write!(text, "{rank} {name}:").unwrap();
            for Call { function, peer } in calls {
                match function {
                    Function::Send(bytes) => write!(text, " send {peer} {bytes}"),
                    Function::Ssend(bytes) => write!(text, " ssend {peer} {bytes}"),
                    Function::Issend(bytes) => write!(text, " issend {peer} {bytes}"),
                    Function::Receive => write!(text, " receive {peer}"),
                }
                .unwrap();
            }
            text.push('\n');
        }
    }
    text
}

fn heading(settings: &HplSettings) -> String {
    let HplSettings {
        order,
        block,
        rows,
        columns,
        depth,
        broadcast,
        swap,
    } = settings;
    format!("run {order} {block} {rows} {columns} {depth} {broadcast} {swap}\n")
}

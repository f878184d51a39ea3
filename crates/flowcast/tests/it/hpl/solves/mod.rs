//! Calls of ranks while HPL solves, as text, according to the description. Recordings are written in the same form.

mod matrix;

use std::fmt::Write;

use flowcast::{
    hpl::{Exchange, HplSettings, KernelRates, NodeProcessors, Pivots, Script, ScriptStep},
    units::Rank,
};

/// Calls of a rank within its row and its column, each in their order. The order between calls of a row and calls of a
/// column depends on the time at which a probe finds something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    row: Vec<Call>,
    column: Vec<Call>,
}

/// A call of a rank: its function and its partner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) peer: u32,
}

/// Functions; sends include the number of bytes. Their order tells if a receive was posted before the send beside it.
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

/// A run on equal processors.
pub(crate) fn script(settings: HplSettings, pivots: &Pivots) -> Script {
    let table = "node,intercept_s,s_per_mnk,resid_per_mnk\n0,1e-6,1e-10,0\n";
    let node = NodeProcessors::parse(table).unwrap();
    let ranks = settings.ranks();
    let processors = node.of_ranks(ranks, ranks).unwrap();
    Script::new(settings, pivots, KernelRates::default(), processors)
}

/// Calls of each rank according to the description of a run of HPL's test program, with the pivots of its matrix.
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

/// A line with the settings, then two lines for each rank: the calls of its row and the calls of its column.
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

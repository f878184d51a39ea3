//! Calls of a replay by kind: number, times and bytes.

use std::collections::BTreeMap;

use super::{Function, NAMED};
use crate::distribution::TimeDistribution;
use flowcast_units::{Bytes, CollectiveOp, Time};

/// Kind of a call in a table of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// A call of the program.
    Function(Function),
    /// A call for one of the messages that carry out a collective operation.
    Within(CollectiveOp, Function),
    /// A one-sided operation or an operation on files, by its name.
    Access(&'static str),
}

/// The calls of one kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallTally {
    /// Time of each call, including waiting.
    pub times: TimeDistribution,
    /// Bytes of the messages that they sent or received; 0 for collective operations by formula.
    pub bytes: Bytes,
}

/// A call that has begun. It ends at `end` or later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenCall {
    pub kind: CallKind,
    pub bytes: Bytes,
    pub start: Time,
    pub end: Time,
}

impl OpenCall {
    /// Adds another part of the same call.
    pub(crate) fn extend(&mut self, part: OpenCall) {
        self.end = part.end;
        self.bytes = Bytes(self.bytes.0.saturating_add(part.bytes.0));
    }
}

/// Tallies by kind of call. Most kinds are found by their index, without a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tallies {
    functions: Vec<CallTally>,
    others: BTreeMap<CallKind, CallTally>,
}

impl Tallies {
    /// Counts one more call.
    pub(crate) fn add(
        &mut self,
        OpenCall {
            kind,
            bytes,
            start,
            end,
        }: OpenCall,
    ) {
        let tally = match kind.index() {
            Some(index) => {
                if self.functions.len() <= index {
                    self.functions.resize(index + 1, CallTally::default());
                }
                &mut self.functions[index]
            }
            None => self.others.entry(kind).or_default(),
        };
        tally.times.add(end - start);
        tally.bytes = Bytes(tally.bytes.0.saturating_add(bytes.0));
    }

    /// Tallies of all kinds that were called.
    pub(crate) fn into_kinds(self) -> Vec<(CallKind, CallTally)> {
        let functions = self
            .functions
            .into_iter()
            .enumerate()
            .filter(|(_, tally)| tally.times.number() > 0);
        let functions = functions.map(|(index, tally)| (CallKind::of_index(index), tally));
        functions.chain(self.others).collect()
    }
}

impl CallKind {
    /// The called function; `None` for one-sided operations and operations on files.
    pub fn function(self) -> Option<Function> {
        match self {
            CallKind::Function(function) | CallKind::Within(_, function) => Some(function),
            CallKind::Access(_) => None,
        }
    }

    /// Index of the kind; `None` for accesses and for functions that the trace names.
    fn index(self) -> Option<usize> {
        let code = self.function()?.code() as usize;
        let before = match self {
            CallKind::Within(op, _) => FUNCTIONS * (op as usize + 1),
            _ => 0,
        };
        (code < FUNCTIONS).then_some(before + code)
    }

    fn of_index(index: usize) -> CallKind {
        let function = Function::of_code((index % FUNCTIONS) as u64);
        match (index / FUNCTIONS).checked_sub(1) {
            None => CallKind::Function(function),
            Some(op) => CallKind::Within(CollectiveOp::ALL[op], function),
        }
    }
}

/// Number of functions with codes, without those that a trace names.
const FUNCTIONS: usize = NAMED as usize + 1;

//! The calls of a replay by kind: how many, how long, how many bytes.

use std::collections::BTreeMap;

use super::{Function, NAMED};
use crate::distribution::TimeDistribution;
use flowcast_units::{Bytes, CollectiveOp, Time};

/// What calls are told apart by in a table of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// A call of the program.
    Function(Function),
    /// A call for one of the messages that carry out a collective operation.
    Within(CollectiveOp, Function),
    /// A one-sided operation or one on files, by its name.
    Access(&'static str),
}

/// The calls of one kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallTally {
    /// How long each took, waiting included.
    pub times: TimeDistribution,
    /// The bytes of the messages that they sent or received; collective operations by formula have none.
    pub bytes: Bytes,
}

/// A call that has begun, and ends no earlier than said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenCall {
    pub kind: CallKind,
    pub bytes: Bytes,
    pub start: Time,
    pub end: Time,
}

impl OpenCall {
    /// A further part of the same call.
    pub(crate) fn extend(&mut self, part: OpenCall) {
        self.end = part.end;
        self.bytes = Bytes(self.bytes.0.saturating_add(part.bytes.0));
    }
}

/// Tallies by kind of call; most kinds are found at their index without a search.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tallies {
    functions: Vec<CallTally>,
    others: BTreeMap<CallKind, CallTally>,
}

impl Tallies {
    /// One more call.
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

    /// All kinds that were called.
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
    /// What was called; nothing for one-sided operations and those on files.
    pub fn function(self) -> Option<Function> {
        match self {
            CallKind::Function(function) | CallKind::Within(_, function) => Some(function),
            CallKind::Access(_) => None,
        }
    }

    /// A number for each kind but accesses and functions that the trace names.
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

/// How many functions have codes, without those that a trace names.
const FUNCTIONS: usize = NAMED as usize + 1;

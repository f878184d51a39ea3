//! Who has come to which collective, and when it is done.

use super::costs::Costs;
use flowcast_trace::program::{CollectiveMode, Program};
use flowcast_units::Rank;

/// A rank's arrival at a collective.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The rank.
    pub rank: u32,
    /// Its call.
    pub call: u32,
    /// When it came.
    pub came: f64,
    /// When its own part of a root-synchronous operation is done.
    pub own_end: f64,
}

/// One execution of a collective.
#[derive(Debug, Clone, Copy)]
struct Gathering {
    entered: u32,
    /// The last to come; of those of equal time the one with the highest rank.
    last: Option<Entry>,
    /// The last to come among those that call themselves the root.
    root: Option<Entry>,
    /// The one whose part of a root-synchronous operation is done last.
    last_part: Option<Entry>,
    finish: Option<Done>,
    /// The rank that came to wait last; the others follow through `next_waiting`.
    waiting: u32,
}

/// When an operation is done, and who decided that by coming when.
pub type Done = (f64, (f64, u32));

const NOBODY: u32 = u32::MAX;

/// All executions of collectives in a replay.
pub struct Collectives<'a> {
    program: &'a Program,
    gatherings: Vec<Gathering>,
    next_waiting: Vec<u32>,
}

impl<'a> Collectives<'a> {
    /// None has begun.
    pub fn new(program: &'a Program) -> Collectives<'a> {
        let gathering =
            Gathering { entered: 0, last: None, root: None, last_part: None, finish: None, waiting: NOBODY };
        Collectives {
            program,
            gatherings: vec![gathering; program.instances().len()],
            next_waiting: vec![NOBODY; program.streams()],
        }
    }

    /// A rank comes. If it is the one that all wait for, those that wait become ready.
    pub fn enter(&mut self, instance: u32, entry: Entry, costs: &Costs, ready: &mut Vec<u32>) {
        let call = &self.program.calls()[entry.call as usize];
        let members = self.program.communicators()[call.communicator as usize].members.len() as u32;
        let gathering = &mut self.gatherings[instance as usize];
        gathering.entered += 1;
        replace_if_later(&mut gathering.last_part, entry, |entry| entry.own_end);
        replace_if_later(&mut gathering.last, entry, |entry| entry.came);
        if call.is_root {
            replace_if_later(&mut gathering.root, entry, |entry| entry.came);
        }
        if gathering.entered < members {
            return;
        }
        let last = gathering.last.expect("someone has entered");
        let deciding = gathering.root.unwrap_or(last);
        let decides = &self.program.calls()[deciding.call as usize];
        gathering.finish = Some(match decides.mode {
            CollectiveMode::RootSynchronous => {
                let part = gathering.last_part.expect("someone has entered");
                (part.own_end, (part.came, part.rank))
            }
            _ => {
                let sizes = (decides.send, decides.recv);
                let cost = costs.collective(decides.op, decides.communicator, Rank(deciding.rank), sizes);
                (last.came + cost, (last.came, last.rank))
            }
        });
        let mut waiting = std::mem::replace(&mut gathering.waiting, NOBODY);
        while waiting != NOBODY {
            ready.push(waiting);
            waiting = self.next_waiting[waiting as usize];
        }
    }

    /// When the operation is done, once all have come.
    pub fn finish(&self, instance: u32) -> Option<Done> {
        self.gatherings[instance as usize].finish
    }

    /// The rank becomes ready when the last has come.
    pub fn wait(&mut self, instance: u32, rank: u32) {
        let gathering = &mut self.gatherings[instance as usize];
        self.next_waiting[rank as usize] = std::mem::replace(&mut gathering.waiting, rank);
    }
}

/// Of equal times the one that came later decides, of those that came together the one with the highest rank.
fn replace_if_later(kept: &mut Option<Entry>, entry: Entry, time: impl Fn(&Entry) -> f64) {
    let order = |entry: &Entry| (time(entry), entry.came, entry.rank);
    if kept.is_none_or(|kept| order(&entry) > order(&kept)) {
        *kept = Some(entry);
    }
}

//! Positions of the ranks when none can continue, described so that the user finds the records at fault.

use super::{
    SimulateError,
    deadlock::{Wait, deadlock},
    last_sends::LastSends,
};
use flowcast_program::{
    opcodes::{self, Op},
    program::Program,
    slot::Slot,
};
use flowcast_units::{Bytes, Rank};

/// Position of a rank.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RankPosition {
    /// Index of its instruction in its words.
    pub at: usize,
    /// Slot of its next receive.
    pub next_slot: Slot,
    /// `true` if it has started the instruction.
    pub entered: bool,
    /// `true` if it has ended.
    pub done: bool,
}

/// A program that has stopped.
pub(crate) struct DeadlockReport<'a> {
    /// Program that has stopped.
    pub program: &'a Program,
    /// Slots of the last sends of each rank.
    pub sent: &'a LastSends<Option<Slot>>,
    /// Position of each rank, indexed by rank.
    pub ranks: Vec<RankPosition>,
}

impl DeadlockReport<'_> {
    /// The error that lists the waiting ranks and what they wait for.
    pub(crate) fn explain(&self) -> SimulateError {
        let senders = self.senders();
        let stopped = self
            .ranks
            .iter()
            .enumerate()
            .filter(|(_, stand)| !stand.done);
        let waits: Vec<Wait> = stopped
            .map(|(rank, stand)| self.explain_wait(Rank(rank as u32), stand, &senders))
            .collect();
        deadlock(&waits)
    }

    /// Sender and message class of each slot, indexed by slot.
    fn senders(&self) -> Vec<Option<(Rank, u32)>> {
        let mut senders = vec![None; self.program.messages() as usize];
        for rank in Rank::all(self.program.streams()) {
            for (_, op) in self.program.ops(rank) {
                if let Op::Send { class, slot } = op {
                    senders[slot] = Some((rank, class));
                }
            }
        }
        senders
    }

    fn explain_wait(
        &self,
        rank: Rank,
        stand: &RankPosition,
        senders: &[Option<(Rank, u32)>],
    ) -> Wait {
        let words = self.program.words(rank);
        let record = 1
            + (0..)
                .scan(0, |at, _| next_begin(words, at, stand.at))
                .count() as u32;
        let (what, on) = match opcodes::decode(words, stand.at).map(|(op, _)| op) {
            Some(Op::Recv) => self.explain_message(senders[stand.next_slot]),
            Some(Op::WaitRecv(own)) => {
                self.explain_message(senders[self.program.first_slot(rank) + own])
            }
            Some(Op::Send { class, slot }) => self.explain_receiver(class, slot),
            Some(Op::WaitSend(ago)) => {
                let slot = self.sent.get(rank, ago).copied().flatten();
                match slot.and_then(|slot| Some((senders[slot]?.1, slot))) {
                    Some((class, slot)) => self.explain_receiver(class, slot),
                    None => (
                        "the receive of one of its own messages".to_owned(),
                        Vec::new(),
                    ),
                }
            }
            Some(Op::Collective { instance, .. } | Op::WaitCollective(instance)) => {
                self.explain_collective(instance)
            }
            Some(Op::Access(access)) => match self.program.access(access).target() {
                Some(target) => (format!("a lock on the memory of rank {target}"), Vec::new()),
                None => ("the file system".to_owned(), Vec::new()),
            },
            _ => (
                "an unreadable instruction (the compiled trace is damaged)".to_owned(),
                Vec::new(),
            ),
        };
        Wait {
            rank,
            owner: self.program.owner(rank),
            place: self.program.place(rank, record),
            what,
            on,
        }
    }

    fn explain_message(&self, sender: Option<(Rank, u32)>) -> (String, Vec<Rank>) {
        let Some((rank, class)) = sender else {
            return ("a message that no rank sends".to_owned(), Vec::new());
        };
        let (from, class) = (self.program.owner(rank), *self.program.class(class));
        let text = format!(
            "a message from rank {from} (tag {}, communicator {})",
            class.tag, class.communicator
        );
        (text, vec![rank])
    }

    fn explain_receiver(&self, class: u32, slot: Slot) -> (String, Vec<Rank>) {
        let receiver = self.program.receiver(slot);
        let Bytes(size) = self.program.class(class).size;
        let shown = self.program.owner(receiver);
        (
            format!("rank {shown} to receive its message ({size} bytes, synchronous)"),
            vec![receiver],
        )
    }

    fn explain_collective(&self, instance: u32) -> (String, Vec<Rank>) {
        let communicator = self
            .program
            .communicator(self.program.communicator_of(instance));
        let members = communicator.members.iter().copied();
        let missing: Vec<Rank> = members
            .filter(|member| self.is_missing(*member, instance))
            .collect();
        let names: Vec<String> = missing
            .iter()
            .take(8)
            .map(|rank| self.program.owner(*rank).to_string())
            .collect();
        (
            format!(
                "rank {} in a collective on communicator {}",
                names.join(", "),
                communicator.id
            ),
            missing,
        )
    }

    /// `true` if a rank has not called this execution of a collective yet.
    fn is_missing(&self, rank: Rank, instance: u32) -> bool {
        let words = self.program.words(rank);
        let stand = &self.ranks[rank];
        let mut at = stand.at;
        while let Some((op, next)) = opcodes::decode(words, at) {
            if matches!(op, Op::Collective { instance: own, .. } if own == instance) {
                return at != stand.at || !stand.entered;
            }
            at = next;
        }
        false
    }
}

/// Advances `at` to the next record; `None` if there is none, or if it starts after `end`.
fn next_begin(words: &[u32], at: &mut usize, end: usize) -> Option<()> {
    loop {
        let (_, next) = opcodes::decode(words, *at)?;
        *at = next;
        if next > end || next >= words.len() {
            return None;
        }
        if !opcodes::continues(words, next) {
            return Some(());
        }
    }
}

//! Collectives between neighbours: a message to each destination and from each source.

use super::{Action, RequestKind, Translation};
use flowcast_program::build::NON_BLOCKING;
use flowcast_recording::{summary::neighbours, table::MpiFunction};
use flowcast_units::Bytes;

/// Tag of these messages, above the tags that programs use.
const TAG: i32 = i32::MAX;

/// Messages of a rank in one execution, by their numbers among its sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NeighbourExchange {
    first_send: u32,
    sends: u32,
    first_post: u32,
    posts: u32,
}

impl Translation<'_> {
    pub(super) fn between_neighbours(&mut self, function: &MpiFunction, words: &[i64]) {
        let exchange = self.begin_exchange(words);
        if !function.makes_request() {
            self.end_exchange(exchange);
        }
        self.request(function, RequestKind::Exchange(exchange));
    }

    /// Posts the receives and sends to the destinations.
    pub(super) fn begin_exchange(&mut self, words: &[i64]) -> NeighbourExchange {
        let (destinations, sources) = neighbours(words);
        let (first_send, first_post) = (self.out.sends.len() as u32, self.out.posts.len() as u32);
        self.at_begin(Action::Nothing);
        for source in sources {
            if let Some(channel) = self.channel(words, *source, i64::from(TAG)) {
                let post = self.out.add_post(Some(channel), None);
                self.at_begin(Action::Irecv(post));
            }
        }
        for (destination, bytes) in destinations {
            if let Some(channel) = self.channel(words, destination, i64::from(TAG)) {
                let send = self.out.add_send(channel, Bytes(bytes), NON_BLOCKING);
                self.at_begin(Action::Send(send));
            }
        }
        NeighbourExchange {
            first_send,
            sends: self.out.sends.len() as u32 - first_send,
            first_post,
            posts: self.out.posts.len() as u32 - first_post,
        }
    }

    /// Waits for all messages.
    pub(super) fn end_exchange(&mut self, exchange: NeighbourExchange) {
        for post in 0..exchange.posts {
            self.at_end(Action::WaitRecv(exchange.first_post + post));
        }
        for send in 0..exchange.sends {
            self.at_end(Action::WaitSend(exchange.first_send + send));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded_by_hand::{TestCall, notes_of, read};
    use flowcast_program::opcodes::Op;
    use flowcast_units::Rank;

    #[test]
    fn a_persistent_exchange_has_its_messages_at_each_start() {
        // Both ranks send 8 and 24 bytes to each other, in two executions.
        let calls = |other| [0, 2, other, 8, other, 24, other, other];
        let (first, second) = (calls(1), calls(0));
        let of = |words| -> [TestCall<'_>; 5] {
            let init: TestCall<'_> = ("Neighbor_alltoallv_init", words, 0);
            [
                init,
                ("Start", &[0], 0),
                ("Wait", &[0], 0),
                ("Start", &[0], 0),
                ("Wait", &[0], 0),
            ]
        };
        let program = read([&of(&first), &of(&second)]);
        assert_eq!((program.messages(), program.bytes().0), (8, 128));
        let waits = program
            .ops(Rank(0))
            .filter(|(_, op)| matches!(op, Op::WaitRecv(_) | Op::WaitSend(_)))
            .count();
        assert_eq!(waits, 8);
        assert!(program.ignored().is_empty(), "{:?}", program.ignored());
    }

    /// The next request gets the slot that the call's request would have had.
    #[test]
    fn recordings_without_neighbours_are_read_with_a_note() {
        let calls: [TestCall<'_>; 3] = [
            ("Ineighbor_allgather", &[], 0),
            ("Isend", &[0, 1, 5, 100], 0),
            ("Wait", &[0], 0),
        ];
        let program = read([&calls, &[("Recv", &[0, 0, 5, 0], 0)]]);
        assert_eq!(
            notes_of(&program),
            ["1 calls of MPI_Ineighbor_allgather left out of the replay"]
        );
        assert!(
            program
                .ops(Rank(0))
                .any(|(_, op)| matches!(op, Op::WaitSend(0))),
            "the wait is for the send"
        );
    }
}

//! Requests that outlast their call: persistent ones, and those that a wait or test completes.

use super::{Action, OpenRequest, Post, RequestKind, Translation, word};
use flowcast_program::program::{CollectiveMode, SendMode};
use flowcast_recording::{
    decode::{Item, RankFile},
    format::{CANCELLED, MATCHED},
    operation,
};
use flowcast_units::CollectiveOp;

impl<'a> Translation<'a> {
    /// Adds a persistent request that has not been started. Each start posts a new send, receive or collective.
    pub(super) fn persistent(&mut self) {
        self.add(OpenRequest {
            signature: self.signature(),
            is_persistent: true,
            operation: RequestKind::Nothing,
        });
        self.at_begin(Action::Nothing);
    }

    /// Returns the signature of the current call.
    pub(super) fn signature(&self) -> u32 {
        match self.file.items[self.item as usize] {
            Item::Call(call) => call.signature,
            _ => unreachable!("calls alone are translated"),
        }
    }

    /// Starts a persistent request.
    pub(super) fn start(&mut self, slot: i64) {
        let Some(Some(OpenRequest {
            signature,
            is_persistent: true,
            ..
        })) = self.slot(slot).copied()
        else {
            return;
        };
        let file: &'a RankFile = self.file;
        let words = &file.signatures[signature as usize][..];
        let Some(function) = self.functions[words[0] as usize] else {
            return;
        };
        let started = match operation(&function.name) {
            Some(op) => self.start_collective(op, words),
            None if function.kind == "recv-init" => self.start_recv(words),
            None if function.is_between_neighbours() => {
                RequestKind::Exchange(self.begin_exchange(words))
            }
            None => {
                let mode = SendMode {
                    synchronous: function.kind == "ssend-init",
                    non_blocking: true,
                    persistent: true,
                };
                self.add_send(words, mode)
                    .map_or(RequestKind::Nothing, |send| {
                        self.at_begin(Action::Send(send));
                        RequestKind::Send(send)
                    })
            }
        };
        if let Some(Some(request)) = self.slot(slot) {
            request.operation = started;
        }
    }

    fn start_recv(&mut self, words: &[i64]) -> RequestKind {
        let post = if word(words, 4) > 0 {
            self.add_wildcard(words)
        } else {
            let channel = self.channel(words, word(words, 2), word(words, 3));
            if channel.is_none() {
                return RequestKind::Nothing;
            }
            self.out.add_post(channel, None)
        };
        self.at_begin(Action::Irecv(post));
        RequestKind::Recv(post)
    }

    fn start_collective(&mut self, op: CollectiveOp, words: &[i64]) -> RequestKind {
        let number = self.add_collective(op, words, CollectiveMode::NonBlocking);
        number.map_or(RequestKind::Nothing, |number| {
            self.at_begin(Action::Collective(number));
            RequestKind::Collective(number)
        })
    }

    fn slot(&mut self, slot: i64) -> Option<&mut Option<OpenRequest>> {
        self.slots.get_mut(usize::try_from(slot).ok()?)
    }

    /// Completes the requests of a wait or test.
    pub(super) fn complete(&mut self, mut words: &[i64]) {
        let mut any = false;
        while let Some((first, rest)) = words.split_first() {
            let matched = (first & MATCHED != 0).then(|| (word(rest, 0), word(rest, 1)));
            words = if matched.is_some() {
                rest.get(2..).unwrap_or(&[])
            } else {
                rest
            };
            any |= self.complete_one(first >> 2, first & CANCELLED != 0, matched);
        }
        if !any {
            self.at_end(Action::Nothing);
        }
    }

    fn complete_one(&mut self, slot: i64, cancelled: bool, matched: Option<(i64, i64)>) -> bool {
        let Some(Some(request)) = self.slot(slot) else {
            return false;
        };
        let OpenRequest {
            signature,
            is_persistent,
            operation,
        } = *request;
        if is_persistent {
            request.operation = RequestKind::Nothing;
        } else {
            self.free(slot);
        }
        match operation {
            RequestKind::Nothing => return false,
            RequestKind::Send(send) => self.at_end(Action::WaitSend(send)),
            RequestKind::Exchange(exchange) => self.end_exchange(exchange),
            RequestKind::Collective(number) => self.at_end(Action::WaitCollective(number)),
            RequestKind::Transfer { window, target } => self.flush(window, Some(target), self.end),
            RequestKind::Recv(post) => {
                if let Some((source, tag)) = matched {
                    let file: &'a RankFile = self.file;
                    let words = &file.signatures[signature as usize];
                    self.out.posts[post as usize].channel = self.channel(words, source, tag);
                } else if cancelled {
                    self.out.posts[post as usize] = Post::default();
                }
                self.at_end(Action::WaitRecv(post));
            }
        }
        true
    }

    /// Frees a request, so its slot can be used again.
    pub(super) fn free(&mut self, slot: i64) {
        if self.slot(slot).and_then(Option::take).is_some() {
            self.free_slots.free(slot as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded_by_hand::{TestCall, read};
    use flowcast_program::{
        opcodes::Op,
        paraver_events::{CALLED, function_name},
    };
    use flowcast_units::Rank;

    #[test]
    fn calls_have_events_if_their_operations_have_other_names() {
        let message = [0, 1, 5, 100];
        let sender: [TestCall<'_>; 9] = [
            ("Isend", &message, 0),
            ("Issend", &message, 0),
            ("Waitall", &[0, 4], 0),
            ("Barrier", &[0], 0),
            ("Iallreduce", &[0, -1, 8, 8], 0),
            ("Wait", &[0], 0),
            ("Send_init", &message, 0),
            ("Startall", &[0], 0),
            ("Wait", &[0], 0),
        ];
        let received: TestCall<'_> = ("Recv", &[0, 0, 5, 0], 0);
        let receiver = [
            received,
            received,
            ("Barrier", &[0], 0),
            ("Iallreduce", &[0, -1, 8, 8], 0),
            ("Test", &[0], 0),
            received,
        ];
        let program = read([&sender, &receiver]);
        let names = |rank| -> Vec<&str> {
            let events = program.ops(Rank(rank)).filter_map(|(_, op)| match op {
                Op::Event(event) => Some(program.events()[event as usize]),
                _ => None,
            });
            events
                .map(|(kind, value)| match kind {
                    CALLED if value == 0 => "",
                    _ => function_name(kind, value).unwrap(),
                })
                .collect()
        };
        let of_sender = ["Issend", "Waitall", "", "Wait", "Startall", ""];
        assert_eq!((names(0), names(1)), (of_sender.to_vec(), vec!["Test", ""]));
    }
}

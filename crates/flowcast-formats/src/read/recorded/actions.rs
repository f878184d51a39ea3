//! Translation of a rank's calls to actions.

mod gaps;
mod neighbours;
mod one_sided;
#[cfg(test)]
mod recorded_by_hand;
mod requests;

use std::collections::BTreeMap;

use super::{Clock, Regions};
use crate::lowest_free::LowestFree;
use flowcast_program::{
    access::Access,
    build::{CallRecord, Channel, NON_BLOCKING},
    paraver_events::REGION,
    program::{CollectiveMode, SendMode},
    recorded_times::has_threads,
};
use flowcast_recording::{
    decode::{Item, Members, RankFile, RecordedCall},
    format::{ANY_SOURCE, ANY_TAG},
    operation, region_name,
    summary::bytes_sent,
    table::{FunctionNumber, MpiFunction},
};
use flowcast_units::{Bytes, CollectiveOp, Rank};
use neighbours::NeighbourExchange;
use one_sided::Epochs;

/// Remarks on calls that are not replayed. A remark names their difference from replayed calls, or their treatment.
const LEFT_OUT: &str = "";
const BETWEEN_GROUPS: &str = " between two groups";
pub(super) const FILES: &str = "; they take their recorded times";

/// Receive, with its match once that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Post {
    /// Source, tag and communicator; `None` if it was never matched.
    pub channel: Option<Channel>,
    /// Criteria of the receive, if the trace does not contain the message that it matched.
    pub takes: Option<MatchCriteria>,
}

/// Criteria of a receive from any source or with any tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MatchCriteria {
    /// Global number of the communicator.
    pub communicator: i32,
    /// World rank of the source, if one is named.
    pub source: Option<Rank>,
    /// The tag, if one is named.
    pub tag: Option<i32>,
}

/// Send of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Send {
    /// Receiver, tag and communicator of the message.
    pub channel: Channel,
    /// Size of the message's data.
    pub size: Bytes,
    /// Mode, which determines what the send waits for.
    pub mode: SendMode,
    /// `true` if the message is never received, so the send is left out.
    pub dropped: bool,
}

impl Send {
    /// Returns the receiver, and the channel of the message as the receiver sees it.
    pub(super) fn seen_by_receiver(&self, sender: Rank) -> (Rank, Channel) {
        let peer = sender;
        (
            self.channel.peer,
            Channel {
                peer,
                ..self.channel
            },
        )
    }
}

/// Call of a collective operation by one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CollectiveAction {
    /// Call with the arguments of this rank.
    pub record: CallRecord,
    /// `true` if not all ranks reached the call.
    pub dropped: bool,
}

/// Action of a rank; numbers are indices into the rank's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Compute(u64),
    Send(u32),
    Recv(u32),
    Irecv(u32),
    Collective(u32),
    WaitSend(u32),
    WaitRecv(u32),
    WaitCollective(u32),
    Access(u32),
    Event(i64, i64),
    Nothing,
    /// Signal that lets another thread of the rank continue, by the number of that thread.
    Signal(u32),
    /// Wait for the next signal from the thread with this number.
    Await(u32),
}

/// Call of a rank with several threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadCall {
    /// Thread that made the call.
    pub thread: u32,
    /// Computation before the call, in ns.
    pub computed: u64,
    /// Start of the call, in ns after the recorder's start.
    pub begin: u64,
    /// Return of the call, in ns after the recorder's start.
    pub end: u64,
}

/// Action, with the call that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActionStep {
    /// Index of the call among the rank's items.
    pub item: u32,
    /// Thread that performs the action.
    pub thread: u32,
    /// Time of the action: the start of its call, or the return.
    pub time: u64,
    /// Action of the rank at this time.
    pub action: Action,
}

/// Program of a rank, before it is matched with other ranks.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankActions {
    /// Actions of the rank, in program order.
    pub steps: Vec<ActionStep>,
    /// All receives; steps refer to their indices.
    pub posts: Vec<Post>,
    /// All sends; steps refer to their indices.
    pub sends: Vec<Send>,
    /// All collective calls; steps refer to their indices.
    pub collectives: Vec<CollectiveAction>,
    /// All accesses to memory of other ranks; steps refer to their indices.
    pub accesses: Vec<Access>,
    /// Calls in the order of their returns; empty if the rank has one thread.
    pub calls: Vec<ThreadCall>,
    /// Function of each item that is a call.
    pub called: Vec<Option<CalledFunction>>,
    /// Calls that are not replayed, by function and remark.
    pub left_out: BTreeMap<(String, &'static str), CallSum>,
}

impl RankActions {
    /// Returns the bytes that the rank's calls send, replayed or not. Calls on files do not count.
    pub(super) fn bytes_sent(&self) -> u64 {
        let sent = self.sends.iter().map(|send| send.size.0);
        let collectives = self.collectives.iter().map(|call| call.record.send.0);
        let accessed = self.accesses.iter().map(|access| match access {
            Access::Transfer { size, .. } => size.0,
            _ => 0,
        });
        let left_out = self
            .left_out
            .iter()
            .filter(|((_, remark), _)| *remark != FILES);
        sent.chain(collectives)
            .chain(accessed)
            .chain(left_out.map(|(_, sum)| sum.bytes))
            .fold(0, u64::saturating_add)
    }

    /// Adds a send and returns its number.
    pub(crate) fn add_send(&mut self, channel: Channel, size: Bytes, mode: SendMode) -> u32 {
        self.sends.push(Send {
            channel,
            size,
            mode,
            dropped: false,
        });
        self.sends.len() as u32 - 1
    }

    /// Adds a receive and returns its number.
    pub(crate) fn add_post(
        &mut self,
        channel: Option<Channel>,
        takes: Option<MatchCriteria>,
    ) -> u32 {
        self.posts.push(Post { channel, takes });
        self.posts.len() as u32 - 1
    }

    /// Adds a collective call and returns its number.
    pub(crate) fn add_collective(&mut self, record: CallRecord) -> u32 {
        self.collectives.push(CollectiveAction {
            record,
            dropped: false,
        });
        self.collectives.len() as u32 - 1
    }
}

/// Function of a call, and the actions that a replay labels with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalledFunction {
    /// Number of the function.
    pub number: FunctionNumber,
    /// `true` if sends have this name.
    pub sends: bool,
    /// `true` if sends of persistent requests have this name.
    pub starts: bool,
    /// `true` if receives and waits for single messages have this name.
    pub waits: bool,
}

impl CalledFunction {
    fn named(name: &str) -> Option<CalledFunction> {
        Some(CalledFunction {
            number: FunctionNumber::named(name)?,
            sends: matches!(name, "Send" | "Isend" | "Sendrecv"),
            starts: name == "Start",
            waits: matches!(name, "Send" | "Recv" | "Wait" | "Sendrecv"),
        })
    }
}

/// Totals of a function's calls that are not replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallSum {
    /// Number of calls, which is reported with the ignored records of the program.
    pub calls: u64,
    /// Bytes that the calls moved, as far as they are known.
    pub bytes: u64,
}

/// Data that concern all ranks.
pub(crate) struct Context<'a> {
    /// Global number of each communicator of the rank.
    pub ids: &'a [u32],
    /// Global number of the communicator of each window of the rank; `None` if the window's communicator is unknown.
    pub windows: &'a [Option<i32>],
    /// Regions of all ranks, with their global numbers.
    pub regions: &'a Regions,
    /// Clock that measures computations.
    pub clock: Clock,
}

/// Request in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenRequest {
    /// Signature of the call that made the request.
    signature: u32,
    /// `true` if each start repeats the operation.
    is_persistent: bool,
    operation: RequestKind,
}

/// Operation that a request stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Send(u32),
    Recv(u32),
    Collective(u32),
    /// Messages to and from neighbours.
    Exchange(NeighbourExchange),
    /// Transfer to or from a target's memory.
    Transfer {
        window: i32,
        target: Rank,
    },
    /// No operation, as for a persistent request that is not started.
    Nothing,
}

/// Translates a rank's calls to actions.
pub(crate) fn actions(file: &RankFile, context: &Context<'_>) -> RankActions {
    let functions = file.functions.iter().map(|name| MpiFunction::named(name));
    let several = has_threads(file);
    let mut translation = Translation {
        file,
        context,
        functions: functions.collect(),
        several,
        gaps: gaps::Gaps::new(if several { &file.items } else { &[] }),
        slots: Vec::new(),
        free_slots: LowestFree::default(),
        epochs: Epochs::default(),
        out: RankActions::default(),
        left_out: BTreeMap::new(),
        item: 0,
        thread: 0,
        begin: 0,
        end: 0,
    };
    for (item, number) in file.items.iter().zip(0..) {
        translation.item = number;
        match item {
            Item::Call(call) => {
                translation.thread = call.thread;
                translation.begin = call.begin;
                translation.end = call.begin.saturating_add(call.time);
                translation.call(call);
            }
            Item::Polls(polls) => {
                (translation.thread, translation.begin) = (polls.thread, 0);
                translation.compute(polls.burst);
            }
            Item::Off(_) => {}
        }
    }
    translation.release_locks();
    translation.insert_signals();
    translation.out.called = called(file);
    translation.out.left_out = translation
        .left_out
        .into_iter()
        .map(|((function, remark), sum)| ((file.functions[function].clone(), remark), sum))
        .collect();
    translation.out
}

fn called(file: &RankFile) -> Vec<Option<CalledFunction>> {
    let functions = file.functions.iter();
    let functions: Vec<_> = functions.map(|name| CalledFunction::named(name)).collect();
    let items = file.items.iter().map(|item| match item {
        Item::Call(call) => functions[file.signatures[call.signature as usize][0] as usize],
        _ => None,
    });
    items.collect()
}

/// Returns the names of a rank's regions; the name of a numbered region is its number.
pub(crate) fn region_names(file: &RankFile) -> Vec<String> {
    file.signatures
        .iter()
        .filter(|words| file.functions[words[0] as usize] == "Pcontrol" && words.len() == 3)
        .map(|words| region_name(file, words))
        .collect()
}

struct Translation<'a> {
    file: &'a RankFile,
    context: &'a Context<'a>,
    functions: Vec<Option<&'static MpiFunction>>,
    /// `true` if several threads call concurrently: a blocking call is then translated to a start and a wait.
    several: bool,
    gaps: gaps::Gaps,
    slots: Vec<Option<OpenRequest>>,
    free_slots: LowestFree,
    epochs: Epochs,
    out: RankActions,
    /// Calls that are not replayed, by function and remark.
    left_out: BTreeMap<(usize, &'static str), CallSum>,
    /// Current call: its item, its thread, its start and its return.
    item: u32,
    thread: u32,
    begin: u64,
    end: u64,
}

/// Returns a word of a signature, or -1 if a damaged file lacks it.
fn word(words: &[i64], index: usize) -> i64 {
    words.get(index).copied().unwrap_or(-1)
}

impl<'a> Translation<'a> {
    fn push(&mut self, time: u64, action: Action) {
        self.out.steps.push(ActionStep {
            item: self.item,
            thread: self.thread,
            time,
            action,
        });
    }

    /// Adds an action at the start of the call.
    fn at_begin(&mut self, action: Action) {
        self.push(self.begin, action);
    }

    /// Adds an action at the return of the call.
    fn at_end(&mut self, action: Action) {
        self.push(self.end, action);
    }

    /// Adds computation before the call.
    fn compute(&mut self, nanos: u64) {
        if nanos > 0 {
            self.at_begin(Action::Compute(nanos));
        }
    }

    fn call(&mut self, call: &RecordedCall) {
        let file: &'a RankFile = self.file;
        let words = &file.signatures[call.signature as usize][..];
        let burst = match self.context.clock {
            Clock::Wall => call.burst,
            Clock::ThreadCpu => call.cpu.min(call.burst),
        };
        let computed = burst.saturating_sub(file.header.overhead);
        if self.several {
            self.gap(call, computed);
        } else {
            self.compute(computed);
        }
        match self.functions[words[0] as usize] {
            None => self.leave_out(words, LEFT_OUT),
            Some(function) if function.is_left_out(words) => {
                self.leave_out(words, LEFT_OUT);
                if words.len() > 1 {
                    self.request(function, RequestKind::Nothing);
                }
            }
            // A failed call has no words except its function, like a call without arguments.
            Some(function) if words.len() == 1 && function.makes_request() => {
                self.at_begin(Action::Nothing)
            }
            Some(function) => self.meaning(function, words),
        }
        if self.several {
            self.gaps.called(self.out.steps.len());
        }
    }

    fn meaning(&mut self, function: &MpiFunction, words: &[i64]) {
        match function.kind.as_str() {
            "send" | "ssend" | "isend" | "issend" => self.send(function, words),
            "recv" | "mrecv" | "irecv" | "imrecv" => self.recv(function, words),
            "sendrecv" => self.sendrecv(words),
            "start" | "startall" => words[1..].iter().for_each(|slot| self.start(*slot)),
            "wait" | "waitall" | "waitany" | "waitsome" | "test" | "testall" | "testany"
            | "testsome" => self.complete(&words[1..]),
            "request-free" => self.free(word(words, 1)),
            "rma" | "irma" | "win-sync" | "win-test" | "win-free" => {
                self.one_sided(function, words)
            }
            "io" | "iio" => {
                self.leave_out(words, FILES);
                if self.end > self.begin {
                    self.at_end(Action::Compute(self.end - self.begin));
                }
                self.request(function, RequestKind::Nothing);
            }
            "pcontrol" => self.region(words),
            kind if kind.ends_with("-init") => self.persistent(),
            _ if function.is_between_neighbours() => self.between_neighbours(function, words),
            _ => match operation(&function.name) {
                Some(op) => self.collective(function, op, words),
                None => self.at_begin(Action::Nothing),
            },
        }
    }

    /// Counts a call that is not replayed.
    fn leave_out(&mut self, words: &[i64], remark: &'static str) {
        self.count_left_out(words, remark);
        self.at_begin(Action::Nothing);
    }

    fn count_left_out(&mut self, words: &[i64], remark: &'static str) {
        let function = words[0] as usize;
        let bytes = self.functions[function].map_or(0, |known| bytes_sent(known, words));
        let sum = self.left_out.entry((function, remark)).or_default();
        sum.calls += 1;
        sum.bytes = sum.bytes.saturating_add(bytes);
    }

    fn communicator(&self, words: &[i64]) -> Option<(&'a Members, u32)> {
        let own = usize::try_from(word(words, 1)).ok()?;
        Some((
            &**self.file.communicators.get(own)?,
            *self.context.ids.get(own)?,
        ))
    }

    /// Returns the channel to a peer, given by its number; `None` if there is no such peer.
    fn channel(&self, words: &[i64], peer: i64, tag: i64) -> Option<Channel> {
        let (members, id) = self.communicator(words)?;
        let peer = members.world_rank(peer)?;
        Some(Channel {
            peer,
            tag: i32::try_from(tag).ok()?,
            communicator: id as i32,
        })
    }

    /// Assigns the lowest free slot to a new request, like the recorder.
    fn request(&mut self, function: &MpiFunction, operation: RequestKind) {
        if function.makes_request() {
            self.add(OpenRequest {
                signature: self.signature(),
                is_persistent: false,
                operation,
            });
        }
    }

    fn add(&mut self, request: OpenRequest) {
        let slot = self.free_slots.take();
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(request);
    }

    fn add_send(&mut self, words: &[i64], mode: SendMode) -> Option<u32> {
        let channel = self.channel(words, word(words, 2), word(words, 3))?;
        let size = Bytes(word(words, 4).max(0) as u64);
        Some(self.out.add_send(channel, size, mode))
    }

    /// Adds a receive whose matched message may become known later.
    fn add_wildcard(&mut self, words: &[i64]) -> u32 {
        let (source, tag, flags) = (word(words, 2), word(words, 3), word(words, 4));
        let takes = self.communicator(words).map(|(members, id)| MatchCriteria {
            communicator: id as i32,
            source: if flags & ANY_SOURCE == 0 {
                members.world_rank(source)
            } else {
                None
            },
            tag: if flags & ANY_TAG == 0 {
                i32::try_from(tag).ok()
            } else {
                None
            },
        });
        self.out.add_post(None, takes)
    }

    fn send(&mut self, function: &MpiFunction, words: &[i64]) {
        let returns_at_once = function.makes_request();
        let mode = SendMode {
            synchronous: function.kind.ends_with("ssend"),
            non_blocking: returns_at_once || self.several,
            persistent: false,
        };
        let send = self.add_send(words, mode);
        self.at_begin(send.map_or(Action::Nothing, Action::Send));
        if let (Some(send), true) = (send, self.several && !returns_at_once) {
            self.at_end(Action::WaitSend(send));
        }
        self.request(
            function,
            send.map_or(RequestKind::Nothing, RequestKind::Send),
        );
    }

    fn recv(&mut self, function: &MpiFunction, words: &[i64]) {
        let (source, tag, flags) = (word(words, 2), word(words, 3), word(words, 4));
        let returns_at_once = function.makes_request();
        let matched = self.channel(words, source, tag);
        // A receive from any source learns its source at its completion.
        let is_open = flags > 0 && (returns_at_once || matched.is_none());
        if matched.is_none() && !is_open {
            self.at_begin(Action::Nothing);
            return self.request(function, RequestKind::Nothing);
        }
        let post = if is_open {
            self.add_wildcard(words)
        } else {
            self.out.add_post(matched, None)
        };
        if returns_at_once {
            self.at_begin(Action::Irecv(post));
        } else {
            self.receive(post);
        }
        self.request(function, RequestKind::Recv(post));
    }

    /// Adds a blocking receive. With several threads, it becomes a post and a wait.
    fn receive(&mut self, post: u32) {
        if self.several {
            self.at_begin(Action::Irecv(post));
            self.at_end(Action::WaitRecv(post));
        } else {
            self.at_begin(Action::Recv(post));
        }
    }

    fn sendrecv(&mut self, words: &[i64]) {
        let send = self.add_send(words, NON_BLOCKING);
        let from = self.channel(words, word(words, 5), word(words, 6));
        self.at_begin(send.map_or(Action::Nothing, Action::Send));
        let received = [0, 1, 5, 6, 7].map(|index| word(words, index));
        if from.is_some() {
            let post = self.out.add_post(from, None);
            self.receive(post);
        } else if received[4] > 0 {
            let post = self.add_wildcard(&received);
            self.receive(post);
        }
        if let Some(send) = send {
            self.at_end(Action::WaitSend(send));
        }
    }

    fn add_collective(
        &mut self,
        op: CollectiveOp,
        words: &[i64],
        mode: CollectiveMode,
    ) -> Option<u32> {
        let (members, id) = self
            .communicator(words)
            .filter(|(members, _)| members.remote.is_empty())?;
        let record = CallRecord {
            op,
            communicator: id as i32,
            mode,
            is_root: members.world_rank(word(words, 2)) == Some(self.file.header.rank),
            root: None,
            send: Bytes(word(words, 3).max(0) as u64),
            recv: Bytes(word(words, 4).max(0) as u64),
        };
        Some(self.out.add_collective(record))
    }

    /// Returns the mode in which a blocking collective is executed.
    fn mode_of_blocking(&self) -> CollectiveMode {
        if self.several {
            CollectiveMode::NonBlocking
        } else {
            CollectiveMode::Blocking
        }
    }

    /// Adds a blocking collective. With several threads, it becomes a start and a wait.
    fn execute(&mut self, number: u32) {
        self.at_begin(Action::Collective(number));
        if self.several {
            self.at_end(Action::WaitCollective(number));
        }
    }

    fn collective(&mut self, function: &MpiFunction, op: CollectiveOp, words: &[i64]) {
        let returns_at_once = function.makes_request();
        let mode = if returns_at_once {
            CollectiveMode::NonBlocking
        } else {
            self.mode_of_blocking()
        };
        let number = self.add_collective(op, words, mode);
        match number {
            Some(number) if returns_at_once => self.at_begin(Action::Collective(number)),
            Some(number) => self.execute(number),
            None => self.leave_out(words, BETWEEN_GROUPS),
        }
        self.request(
            function,
            number.map_or(RequestKind::Nothing, RequestKind::Collective),
        );
    }

    fn region(&mut self, words: &[i64]) {
        if words.len() < 3 {
            return self.at_begin(Action::Nothing);
        }
        let number = self.context.regions.number(&region_name(self.file, words));
        let value = if words[1] > 0 { number } else { 0 };
        self.at_begin(Action::Event(REGION, value));
    }
}

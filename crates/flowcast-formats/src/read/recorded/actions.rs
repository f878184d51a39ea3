//! From a rank's calls to what they do.

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

/// Remarks on calls that are not replayed: how they differ from those that are, or what becomes of them.
const LEFT_OUT: &str = "";
const BETWEEN_GROUPS: &str = " between two groups";
pub(super) const FILES: &str = "; they take the time that was recorded";

/// A receive: what it is matched with, as soon as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Post {
    /// Where from; nothing if it never came to that.
    pub channel: Option<Channel>,
    /// What it would take, where the trace does not tell what it got.
    pub takes: Option<Takes>,
}

/// What a receive from any source or with any tag would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Takes {
    /// The communicator, by its number among all.
    pub communicator: i32,
    /// The source, if one is named, as a rank of the world.
    pub source: Option<Rank>,
    /// The tag, if one is named.
    pub tag: Option<i32>,
}

/// A send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Send {
    /// Receiver, tag and communicator of the message.
    pub channel: Channel,
    /// Size of the message's data.
    pub size: Bytes,
    /// Whom it waits for.
    pub mode: SendMode,
    /// Whether nobody receives it, so that it is left out.
    pub dropped: bool,
}

/// A collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CollectiveAction {
    /// The call as this rank makes it.
    pub record: CallRecord,
    /// Not all ranks came to it.
    pub dropped: bool,
}

/// What a rank does; numbers are indices into its lists.
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
    /// Another thread of the rank, by its number, goes on when this one has come here.
    Signal(u32),
    /// The thread has slept until another one came to its next signal for it.
    Await(u32),
}

/// A call of a rank with several threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadCall {
    /// The thread that called.
    pub thread: u32,
    /// What it computed before, in ns.
    pub computed: u64,
    /// When it called, in ns after the recorder's start.
    pub begin: u64,
    /// When the call returned.
    pub end: u64,
}

/// An action and the call that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActionStep {
    /// The call's place among the rank's items.
    pub item: u32,
    /// The thread that does it.
    pub thread: u32,
    /// When it happens: the begin of its call, or the end.
    pub time: u64,
    /// What the rank does then.
    pub action: Action,
}

/// A rank's program before it is matched with the others.
#[derive(Debug, Clone, Default)]
pub(crate) struct RankActions {
    /// What the rank does, in program order.
    pub steps: Vec<ActionStep>,
    /// All receives, by the index that steps name.
    pub posts: Vec<Post>,
    /// All sends, by the index that steps name.
    pub sends: Vec<Send>,
    /// All collective calls, by the index that steps name.
    pub collectives: Vec<CollectiveAction>,
    /// All accesses to memory of other ranks, by the index that steps name.
    pub accesses: Vec<Access>,
    /// The calls in the order in which they returned; empty where there is one thread.
    pub calls: Vec<ThreadCall>,
    /// The function of each item that is a call.
    pub called: Vec<Option<CalledFunction>>,
    /// What is not replayed, by function and remark.
    pub left_out: BTreeMap<(String, &'static str), CallSum>,
}

impl RankActions {
    /// Bytes that the rank's calls send, whether they are replayed or left out; those to files are none.
    pub(super) fn bytes_sent(&self) -> u64 {
        let sent = self.sends.iter().map(|send| send.size.0);
        let collectives = self.collectives.iter().map(|call| call.record.send.0);
        let accessed = self.accesses.iter().map(|access| match access {
            Access::Transfer { size, .. } => size.0,
            _ => 0,
        });
        let left_out = self.left_out.iter();
        let left_out = left_out.filter(|((_, remark), _)| *remark != FILES);
        sent.chain(collectives)
            .chain(accessed)
            .chain(left_out.map(|(_, sum)| sum.bytes))
            .fold(0, u64::saturating_add)
    }

    /// A further send; gives its number.
    pub(crate) fn add_send(&mut self, channel: Channel, size: Bytes, mode: SendMode) -> u32 {
        self.sends.push(Send {
            channel,
            size,
            mode,
            dropped: false,
        });
        self.sends.len() as u32 - 1
    }

    /// A further receive; gives its number.
    pub(crate) fn add_post(&mut self, channel: Option<Channel>, takes: Option<Takes>) -> u32 {
        self.posts.push(Post { channel, takes });
        self.posts.len() as u32 - 1
    }

    /// A further collective call; gives its number.
    pub(crate) fn add_collective(&mut self, record: CallRecord) -> u32 {
        self.collectives.push(CollectiveAction {
            record,
            dropped: false,
        });
        self.collectives.len() as u32 - 1
    }
}

/// The function that a call names, and which actions have its name in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalledFunction {
    /// Its number.
    pub number: FunctionNumber,
    /// Sends do.
    pub sends: bool,
    /// Sends of persistent requests do.
    pub starts: bool,
    /// Receives and waits for single messages do.
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

/// Calls of a function that are not replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CallSum {
    /// How many they are.
    pub calls: u64,
    /// Bytes that they moved, as far as they are known.
    pub bytes: u64,
}

/// What all ranks have in common.
pub(crate) struct Context<'a> {
    /// The rank's communicators by their number among all.
    pub ids: &'a [u32],
    /// The rank's windows by their number among all communicators; nothing where it is not known whose they are.
    pub windows: &'a [Option<i32>],
    /// Regions of all ranks, by their number among all.
    pub regions: &'a Regions,
    /// Which time computations take.
    pub clock: Clock,
}

/// What a request stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Send(u32),
    /// A receive, posted by the call with this signature.
    Recv {
        post: u32,
        signature: u32,
    },
    Collective(u32),
    /// Messages to and from neighbours.
    Exchange(NeighbourExchange),
    /// A transfer to or from a target's memory.
    Transfer {
        window: i32,
        target: Rank,
    },
    Nothing,
    /// Started anew each time by the call with this signature.
    Persistent {
        signature: u32,
        started: Started,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    Not,
    Send(u32),
    Recv(u32),
    Collective(u32),
    Exchange(NeighbourExchange),
}

/// Turns a rank's calls into actions.
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

/// The names of a rank's regions; numbered ones are named by their number.
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
    /// Threads call at the same time: what blocks begins and ends at two places.
    several: bool,
    gaps: gaps::Gaps,
    slots: Vec<Option<RequestKind>>,
    free_slots: LowestFree,
    epochs: Epochs,
    out: RankActions,
    /// What is not replayed, by function and remark.
    left_out: BTreeMap<(usize, &'static str), CallSum>,
    /// The call that is translated: its item, its thread, when it began and when it returned.
    item: u32,
    thread: u32,
    begin: u64,
    end: u64,
}

/// Words of a signature that a damaged file may lack.
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

    /// What the rank does when the call begins.
    fn at_begin(&mut self, action: Action) {
        self.push(self.begin, action);
    }

    /// What the rank does when the call returns.
    fn at_end(&mut self, action: Action) {
        self.push(self.end, action);
    }

    /// Computation before the call.
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
            // A call that failed has no words but its function; so have those without arguments.
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

    /// A call that is not replayed, which is counted.
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
            self.file.communicators.get(own)?,
            *self.context.ids.get(own)?,
        ))
    }

    /// The channel of a peer's number; nothing if there is no peer.
    fn channel(&self, words: &[i64], peer: i64, tag: i64) -> Option<Channel> {
        let (members, id) = self.communicator(words)?;
        let peer = members.world_rank(peer)?;
        Some(Channel {
            peer,
            tag: i32::try_from(tag).ok()?,
            communicator: id as i32,
        })
    }

    /// The lowest free slot is the new request's, as in the recorder.
    fn request(&mut self, function: &MpiFunction, request: RequestKind) {
        if function.makes_request() {
            self.add(request);
        }
    }

    fn add(&mut self, request: RequestKind) {
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

    /// A receive that may learn later what it got.
    fn add_wildcard(&mut self, words: &[i64]) -> u32 {
        let (source, tag, flags) = (word(words, 2), word(words, 3), word(words, 4));
        let takes = self.communicator(words).map(|(members, id)| Takes {
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
        // A receive from any source learns its source when it is completed.
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
        let signature = self.signature();
        self.request(function, RequestKind::Recv { post, signature });
    }

    /// Receives what is posted before it goes on.
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

    /// How a collective that blocks is executed.
    fn mode_of_blocking(&self) -> CollectiveMode {
        if self.several {
            CollectiveMode::NonBlocking
        } else {
            CollectiveMode::Blocking
        }
    }

    /// Executes a collective before it goes on.
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

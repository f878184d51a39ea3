//! Conversion of events to calls.

use std::collections::BTreeMap;

use super::{Collective, Event, Peer, definitions::Definitions};
use crate::read::calls::{self, CommunicatorOrigin, CompletedRequest, RankCalls, TracedCall};
use flowcast_program::{ReadOptions, TraceError, program::Program};
use flowcast_recording::{
    format::{ANY_SOURCE, ANY_TAG},
    table::MpiFunction,
};

/// Names of the blocking and the non-blocking function, indexed by OTF2's number of the operation.
const OPERATIONS: [(&str, &str); 17] = [
    ("Barrier", "Ibarrier"),
    ("Bcast", "Ibcast"),
    ("Gather", "Igather"),
    ("Gatherv", "Igatherv"),
    ("Scatter", "Iscatter"),
    ("Scatterv", "Iscatterv"),
    ("Allgather", "Iallgather"),
    ("Allgatherv", "Iallgatherv"),
    ("Alltoall", "Ialltoall"),
    ("Alltoallv", "Ialltoallv"),
    ("Alltoallw", "Ialltoallw"),
    ("Allreduce", "Iallreduce"),
    ("Reduce", "Ireduce"),
    ("Reduce_scatter", "Ireduce_scatter"),
    ("Scan", "Iscan"),
    ("Exscan", "Iexscan"),
    ("Reduce_scatter_block", "Ireduce_scatter_block"),
];

/// Collector of an archive's events.
pub struct Events<'a> {
    definitions: &'a Definitions,
    functions: BTreeMap<u32, Option<&'static str>>,
    /// Rank of each location.
    rank_of: BTreeMap<u64, usize>,
    ranks: Vec<EventRank>,
    is_score_p: bool,
    left_out: BTreeMap<String, u64>,
}

impl<'a> Events<'a> {
    /// Creates a collector without events, for an archive with these definitions.
    pub fn new(definitions: &'a Definitions) -> Events<'a> {
        let locations = definitions.ranks();
        let count = locations.len() as u32;
        let ranks = definitions.communicators(count).into_iter();
        let ranks = ranks.map(EventRank::new).collect();
        let functions = definitions.functions();
        let rank_of = locations.into_iter().zip(0..).collect();
        Events {
            definitions,
            functions,
            rank_of,
            ranks,
            is_score_p: definitions.creator.contains("Score-P"),
            left_out: BTreeMap::new(),
        }
    }

    /// Adds an event. The events of a location must arrive in chronological order.
    pub fn event(&mut self, location: u64, time: u64, event: Event) {
        let Some(rank) = self.rank_of.get(&location) else {
            if !matches!(event, Event::Enter(_) | Event::Leave(_) | Event::Other) {
                self.leave_out("events of threads that are not MPI ranks");
            }
            return;
        };
        let rank = &mut self.ranks[*rank];
        rank.now = self.definitions.nanos(time);
        if rank.out.calls.is_empty() {
            rank.call("Init", Vec::new());
        }
        let note = match event {
            Event::Enter(region) => {
                rank.enter(self.functions.get(&region).copied());
                None
            }
            Event::Leave(region) if self.functions.contains_key(&region) => rank.leave(),
            Event::Leave(_) => None,
            Event::Measurement(on) => rank.measurement(on),
            other => rank.communication(other, self.is_score_p),
        };
        if let Some(kind) = note {
            self.leave_out(&kind);
        }
    }

    fn leave_out(&mut self, kind: &str) {
        *self.left_out.entry(kind.to_owned()).or_default() += 1;
    }

    /// Returns the program.
    ///
    /// # Errors
    /// Ranks that call different collectives in the same turn, or an archive without ranks.
    pub fn program(self, name: &str, options: ReadOptions) -> Result<Program, TraceError> {
        if self.ranks.is_empty() {
            let problem = "found no location of an MPI process, expected one for each rank";
            return Err(TraceError::damaged(name, problem));
        }
        let ranks = self.ranks.into_iter().map(EventRank::end).collect();
        calls::program(name, ranks, self.left_out, options)
    }
}

/// Events of one rank so far.
#[derive(Default)]
struct EventRank {
    out: RankCalls,
    /// Position of each communicator of the archive in the rank's list.
    communicators: BTreeMap<u32, usize>,
    /// Current time, in ns.
    now: u64,
    /// Number of nested MPI regions that the rank is in. The next fields are the start of the outermost region, its
    /// function, and the number of calls before it.
    depth: u32,
    since: u64,
    function: Option<&'static str>,
    calls_before: usize,
    off_since: Option<u64>,
    /// Index of the call that posted each receive in flight or started each collective in flight, by request.
    posted: BTreeMap<u64, usize>,
    /// Requests of the posted receives that have not been completed, by the index of the call that posted them.
    open: BTreeMap<usize, u64>,
    /// Requests that represent the send of an `MPI_Sendrecv`.
    halves: Vec<u64>,
}

impl EventRank {
    fn new(communicators: Vec<(u32, CommunicatorOrigin)>) -> EventRank {
        let (numbers, communicators): (Vec<u32>, Vec<_>) = communicators.into_iter().unzip();
        EventRank {
            out: RankCalls {
                communicators,
                ..RankCalls::default()
            },
            communicators: numbers.into_iter().zip(0..).collect(),
            ..EventRank::default()
        }
    }

    /// Adds a call that lasts until now.
    fn call(&mut self, function: &'static str, words: Vec<i64>) -> &mut TracedCall {
        let begin = if self.depth > 0 { self.since } else { self.now };
        self.since = self.now;
        self.out.calls.push(TracedCall {
            function,
            words,
            begin,
            end: self.now,
            ..TracedCall::default()
        });
        self.out.calls.last_mut().expect("a call was just added")
    }

    /// Enters a region; `function` is `None` if the region does not belong to MPI.
    fn enter(&mut self, function: Option<Option<&'static str>>) {
        let Some(function) = function else { return };
        if self.depth == 0 {
            self.since = self.now;
            self.function = function;
            self.calls_before = self.out.calls.len();
        }
        self.depth += 1;
    }

    /// Leaves a region of MPI.
    fn leave(&mut self) -> Option<String> {
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            return None;
        }
        self.depth = 1;
        for half in std::mem::take(&mut self.halves) {
            self.call("Wait", Vec::new())
                .completes
                .push(CompletedRequest::new(half));
        }
        let told = self.out.calls.len() > self.calls_before;
        let name = self.function.take();
        let note = name
            .filter(|_| !told)
            .and_then(|name| self.bare_call(name, &MpiFunction::named(name)?.kind));
        self.depth = 0;
        if let Some(last) = self.out.calls.last_mut().filter(|_| told) {
            last.end = self.now;
        }
        note
    }

    /// Adds a call of a function without events inside. Some functions have none, and for others the tracer wrote none.
    fn bare_call(&mut self, name: &'static str, kind: &str) -> Option<String> {
        match kind {
            // The tracer does not name the completed receives. They are the oldest posted ones.
            "wait" | "waitany" | "waitall" => {
                let most = if kind == "waitall" { usize::MAX } else { 1 };
                let oldest = std::iter::from_fn(|| self.open.pop_first()).take(most);
                let completes = oldest
                    .map(|(_, request)| CompletedRequest::new(request))
                    .collect();
                self.call(name, Vec::new()).completes = completes;
                None
            }
            "send" | "ssend" | "isend" | "issend" | "recv" | "irecv" | "sendrecv" => {
                self.only_named(name)
            }
            kind if flowcast_recording::operation(name).is_some() && !kind.ends_with("-init") => {
                self.only_named(name)
            }
            _ => {
                self.call(name, Vec::new());
                None
            }
        }
    }

    /// Adds the time of a call whose arguments the trace lacks. Returns the kind of the call.
    fn only_named(&mut self, name: &str) -> Option<String> {
        self.call("Init", Vec::new());
        Some(format!("calls of MPI_{name} that the trace only names,"))
    }

    fn measurement(&mut self, on: bool) -> Option<String> {
        if !on {
            self.call("Init", Vec::new());
            self.off_since = Some(self.now);
            return None;
        }
        let since = self.off_since.take()?;
        let call = self.call("Init", Vec::new());
        call.begin = since.min(call.begin);
        Some("intervals without measurement,".to_owned())
    }

    /// Returns the position of a communicator in the rank's list.
    fn communicator(&mut self, number: u32) -> i64 {
        let next = self.out.communicators.len();
        let place = *self.communicators.entry(number).or_insert(next);
        if place == next {
            self.out.communicators.push(CommunicatorOrigin::Unknown);
        }
        place as i64
    }

    fn words(&mut self, peer: Peer, last: i64) -> Vec<i64> {
        vec![
            self.communicator(peer.communicator),
            i64::from(peer.rank),
            i64::from(peer.tag as i32),
            last,
        ]
    }

    fn communication(&mut self, event: Event, is_score_p: bool) -> Option<String> {
        use Event::*;
        let function = self.function.unwrap_or("");
        match event {
            Send { to, bytes } => {
                let words = self.words(to, bytes as i64);
                if function.starts_with("Sendrecv") {
                    let half = u64::MAX - self.halves.len() as u64;
                    self.halves.push(half);
                    self.call("Isend", words).makes = Some(half);
                } else {
                    self.call(if function == "Ssend" { "Ssend" } else { "Send" }, words);
                }
            }
            Isend { to, bytes, request } => {
                let words = self.words(to, bytes as i64);
                self.call(
                    if function == "Issend" {
                        "Issend"
                    } else {
                        "Isend"
                    },
                    words,
                )
                .makes = Some(request);
            }
            Recv(from) => {
                let words = self.words(from, 0);
                self.call("Recv", words);
            }
            IrecvPosted(request) => {
                self.post(request);
                self.open.insert(self.out.calls.len(), request);
                self.call("Irecv", Vec::new()).makes = Some(request);
            }
            Irecv { from, request } => self.received(from, request),
            IsendComplete(request) => self.complete(CompletedRequest::new(request)),
            Cancelled(request) => {
                if let Some(post) = self.posted.get(&request) {
                    self.open.remove(post);
                }
                let done = CompletedRequest {
                    cancelled: true,
                    ..CompletedRequest::new(request)
                };
                self.complete(done);
            }
            Collective(collective) => return self.collective(collective, None, is_score_p),
            CollectivePosted(request) => {
                self.post(request);
                self.call("Init", Vec::new());
            }
            CollectiveComplete(collective, request) => {
                return self.collective(collective, Some(request), is_score_p);
            }
            _ => {}
        }
        None
    }

    /// Notes that the next call makes a request, whose number an earlier request may have had.
    fn post(&mut self, request: u64) {
        if let Some(earlier) = self.posted.insert(request, self.out.calls.len()) {
            self.open.remove(&earlier);
        }
    }

    /// Completes a request. The completing call is the current function if it completes requests, otherwise `MPI_Wait`.
    fn complete(&mut self, done: CompletedRequest) {
        let function = self.function.unwrap_or_default();
        let completes = function.starts_with("Wait") || function.starts_with("Test");
        let function = if completes { function } else { "Wait" };
        self.call(function, Vec::new()).completes.push(done);
    }

    /// Adds the end of a receive, which contains its source and tag. A receive without a post is a blocking one.
    fn received(&mut self, from: Peer, request: u64) {
        let words = self.words(from, 0);
        match self.posted.remove(&request) {
            Some(post) => {
                self.open.remove(&post);
                self.out.calls[post].words = words;
                self.complete(CompletedRequest::new(request));
            }
            None => drop(self.call("Recv", words)),
        }
    }

    fn collective(
        &mut self,
        collective: Collective,
        request: Option<u64>,
        is_score_p: bool,
    ) -> Option<String> {
        let Some((blocking, non_blocking)) = OPERATIONS.get(usize::from(collective.operation))
        else {
            self.call("Init", Vec::new());
            return Some("collective operations on windows, files and communicators".to_owned());
        };
        let place = self.communicator(collective.communicator);
        let ranks = match &self.out.communicators[place as usize] {
            CommunicatorOrigin::Known(members) => members.own.len() as u64,
            _ => 1,
        };
        let root = i64::from(collective.root);
        let root = if root < ranks as i64 { root } else { -1 };
        let (send, recv) = if is_score_p {
            once(&collective, ranks)
        } else {
            (collective.sent, collective.received)
        };
        let words = vec![place, root, send as i64, recv as i64];
        match request {
            None => drop(self.call(blocking, words)),
            Some(request) => {
                if let Some(post) = self.posted.remove(&request) {
                    let call = &mut self.out.calls[post];
                    (call.function, call.words, call.makes) = (non_blocking, words, Some(request));
                }
                self.complete(CompletedRequest::new(request));
            }
        }
        None
    }

    /// Ends the rank. Receives that were never completed match any remaining message. The rank computes until its last
    /// event.
    fn end(mut self) -> RankCalls {
        let world = (0..self.out.communicators.len())
            .max_by_key(|place| size(&self.out.communicators[*place]));
        for call in &mut self.out.calls {
            if call.function == "Irecv" && call.words.is_empty() {
                call.words = vec![world.unwrap_or(0) as i64, -1, -1, ANY_SOURCE | ANY_TAG];
            }
        }
        self.depth = 0;
        self.call("Init", Vec::new());
        self.out
    }
}

fn size(origin: &CommunicatorOrigin) -> usize {
    if let CommunicatorOrigin::Known(members) = origin {
        members.own.len()
    } else {
        0
    }
}

/// Returns the bytes as recordings count them. Score-P multiplies the bytes for each rank by the number of ranks, even if
/// all ranks get the same bytes.
fn once(collective: &Collective, ranks: u64) -> (u64, u64) {
    let Collective {
        operation,
        sent,
        received,
        ..
    } = *collective;
    let ranks = ranks.max(1);
    match OPERATIONS[usize::from(operation)].0 {
        "Bcast" => {
            let bytes = if received > 0 { received } else { sent / ranks };
            (bytes, bytes)
        }
        "Allreduce" => (sent / ranks, received / ranks),
        "Reduce" => (sent, sent),
        "Allgather" | "Allgatherv" => (sent / ranks, received),
        _ => (sent, received),
    }
}

//! Conversion of calls to the words of their signatures. The module `format` of `flowcast_recording` lists the words of each
//! kind.

use flowcast_recording::format::{ANY_SOURCE, ANY_TAG, CANCELLED, MATCHED};

use crate::{
    arguments::Arguments,
    communicators::{Key, MemberGroup, c_handle},
    completions::{RequestCompletion, is_wildcard},
    encoder::Times,
    functions::{BufferShape, FunctionKind, NONE, Places},
    requests::{PendingRequest, want_statuses},
    session::{ProbedMessage, RecordingSession},
    threads::Thread,
};

/// Call that has returned.
pub(crate) struct Made<'a> {
    pub arguments: Arguments<'a>,
    pub times: Times,
    /// `true` if the call reported an error.
    pub failed: bool,
    /// Requests that the call was to complete.
    pub completion: Option<RequestCompletion>,
    /// Handle that the call replaced or freed.
    pub before: Option<Key>,
}

/// Returns `true` if a function frees or replaces a handle, which must then be read before the call.
#[inline]
pub(crate) fn takes_handle(kind: FunctionKind) -> bool {
    use FunctionKind::*;
    matches!(
        kind,
        RequestFree | CommFree | WinFree | FileClose | Mrecv | Imrecv
    )
}

/// Returns the handle that such a function frees or replaces, before the call.
pub(crate) fn handle_before(arguments: &Arguments<'_>) -> Key {
    let at = &arguments.function.at;
    let place = [
        at.message,
        at.request,
        at.communicator,
        at.window,
        at.new_file,
    ];
    arguments.key_behind(place.into_iter().find(|place| *place != NONE).unwrap_or(0))
}

pub(crate) fn note(session: &mut RecordingSession, thread: &Thread, call: Made<'_>) {
    let (function, times) = (call.arguments.function, call.times);
    if session.off_since.is_some() {
        // Objects that later calls refer to must be known all the same.
        if !call.failed && always_counts(function.kind) {
            session.words.clear();
            Note::new(session, &call).rarer();
        }
        return;
    }
    if session.over {
        return;
    }
    if goes_outside(session, &call) {
        session.begin_words_outside(function);
        return session.record(thread, times);
    }
    let number = session.begin_words(function);
    if call.failed {
        return session.record(thread, times);
    }
    let mut note = Note::new(session, &call);
    let is_done = match function.kind {
        FunctionKind::Send | FunctionKind::Ssend => note.send(),
        FunctionKind::Recv => note.recv(),
        kind if kind.completes() => note.complete(),
        _ => note.rarer(),
    };
    if is_done {
        session.record(thread, times);
    } else {
        session.poll(thread, number, times);
    }
}

/// Returns `true` if a call concerned processes outside the world, which have no ranks in the recording.
#[inline]
fn goes_outside(session: &mut RecordingSession, call: &Made<'_>) -> bool {
    let Made { arguments, .. } = call;
    let at = &arguments.function.at;
    at.communicator != NONE
        && !call.failed
        && !matches!(
            arguments.function.kind,
            FunctionKind::Comm | FunctionKind::Icomm | FunctionKind::CommFree
        )
        && session.communicator(arguments.key(at.communicator)).outside
        && !arguments.found_nothing()
}

/// Returns `true` if a call must be processed even while recording is off, because later calls refer to the object that it
/// made.
pub(crate) fn always_counts(kind: FunctionKind) -> bool {
    use FunctionKind::*;
    matches!(kind, Comm | CommFree | Win | File | TypeFree)
}

/// Call whose words are being collected.
struct Note<'a> {
    session: &'a mut RecordingSession,
    arguments: &'a Arguments<'a>,
    at: &'static Places,
    kind: FunctionKind,
    call: &'a Made<'a>,
}

impl<'a> Note<'a> {
    #[inline]
    fn new(session: &'a mut RecordingSession, call: &'a Made<'a>) -> Note<'a> {
        let arguments = &call.arguments;
        let function = arguments.function;
        Note {
            session,
            arguments,
            at: &function.at,
            kind: function.kind,
            call,
        }
    }

    /// Collects the words of the rarer kinds of call. Returns `false` if a test or probe found nothing.
    fn rarer(&mut self) -> bool {
        use FunctionKind::*;
        match self.kind {
            Isend | Issend | SendInit | SsendInit => {
                self.send();
                self.make_request();
            }
            Irecv | RecvInit => self.irecv(),
            Sendrecv => self.sendrecv(),
            Probe | Iprobe | Mprobe | Improbe => return self.probe(),
            Mrecv | Imrecv => self.mrecv(),
            Start | Startall => self.start(),
            RequestFree => self.request_free(),
            Cancel => self.cancel(),
            Collective | CollectiveInit => self.collective(),
            Neighbor | NeighborInit => self.between_neighbours(),
            Comm | Icomm => self.new_communicator(),
            CommFree => self.comm_free(),
            TypeFree => self.session.forget_types(),
            Rma | Irma | Win | WinFree | WinSync | WinTest => return self.one_sided(),
            File | FileClose | FileSync | Io | Iio => self.file(),
            _ => {}
        }
        true
    }

    #[inline]
    fn push(&mut self, words: &[i64]) {
        self.session.words.extend_from_slice(words);
    }

    #[inline]
    fn communicator(&mut self) -> MemberGroup {
        self.session
            .communicator(self.arguments.key(self.at.communicator))
    }

    fn bytes(&mut self, count: u8, datatype: u8) -> i64 {
        let count = self.arguments.count_or_one(count);
        // A count of 0 is valid with any datatype.
        if count == 0 || datatype == NONE {
            return 0;
        }
        count.saturating_mul(self.session.type_size(self.arguments.key(datatype))) as i64
    }

    fn sent_bytes(&mut self) -> i64 {
        self.bytes(self.at.count, self.at.datatype)
    }

    #[inline]
    fn send(&mut self) -> bool {
        let (at, arguments) = (self.at, self.arguments);
        let communicator = i64::from(self.communicator().number);
        let peer = arguments.peer(arguments.int(at.peer));
        let bytes = self.sent_bytes();
        let tag = i64::from(arguments.int(at.tag));
        self.push(&[communicator, peer, tag, bytes]);
        true
    }

    /// Returns source, tag and flags of a receive. If there is a `status`, it provides the values that a wildcard matched.
    fn received(&self, source: u8, tag: u8, status: Option<usize>) -> [i64; 3] {
        let (arguments, library) = (self.arguments, self.arguments.library);
        let (source, tag) = (arguments.int(source), arguments.int(tag));
        let any_source = if source == library.any_source {
            ANY_SOURCE
        } else {
            0
        };
        let any_tag = if tag == library.any_tag { ANY_TAG } else { 0 };
        let flags = any_source | any_tag;
        if flags == 0 || source == library.proc_null {
            return [arguments.peer(source), i64::from(tag), 0];
        }
        match status {
            Some(status) => {
                // SAFETY: a receive from any source got a status, either the program's or a stand-in.
                let (source, tag, _) = unsafe { library.status(status, 0) };
                [arguments.peer(source), i64::from(tag), flags]
            }
            None => [
                if any_source != 0 {
                    -1
                } else {
                    arguments.peer(source)
                },
                if any_tag != 0 { -1 } else { i64::from(tag) },
                flags,
            ],
        }
    }

    fn status(&self) -> Option<usize> {
        Some(self.arguments.word(self.at.status))
    }

    fn recv(&mut self) -> bool {
        self.receive(self.status());
        true
    }

    /// Returns communicator, source, tag and flags.
    fn receive(&mut self, status: Option<usize>) -> [i64; 4] {
        let communicator = i64::from(self.communicator().number);
        let [source, tag, flags] = self.received(self.at.peer, self.at.tag, status);
        let words = [communicator, source, tag, flags];
        self.push(&words);
        words
    }

    fn irecv(&mut self) {
        let [.., flags] = self.receive(None);
        let wildcard = is_wildcard(self.arguments, self.at.peer, self.at.tag) && flags != 0;
        want_statuses(i32::from(wildcard));
        self.make_request().wildcard = wildcard;
    }

    fn sendrecv(&mut self) {
        self.send();
        self.push(&self.received(self.at.source, self.at.source_tag, self.status()));
    }

    /// Adds the request that the call made.
    fn make_request(&mut self) -> &mut PendingRequest {
        use FunctionKind::*;
        let persistent = matches!(
            self.kind,
            SendInit | SsendInit | RecvInit | CollectiveInit | NeighborInit
        );
        let key = self.arguments.key_behind(self.at.request);
        let requests = &mut self.session.requests;
        let slot = requests.add(
            key.0,
            PendingRequest {
                persistent,
                active: !persistent,
                ..PendingRequest::default()
            },
        );
        requests.get(slot)
    }

    /// Adds the request of a call, if the form of the function has one.
    fn make_request_if_any(&mut self) {
        if self.at.request != NONE {
            self.make_request();
        }
    }

    fn start(&mut self) {
        let arguments = self.arguments;
        for index in 0..arguments.count_or_one(self.at.length) as usize {
            // SAFETY: the index is within the list of requests.
            let key = unsafe { arguments.key_at(arguments.word(self.at.request), index) };
            if let Some(slot) = self.session.requests.slot(key.0) {
                self.session.requests.get(slot).active = true;
                self.push(&[i64::from(slot)]);
            }
        }
    }

    fn request_free(&mut self) {
        let Some(key) = self.call.before else { return };
        let requests = &mut self.session.requests;
        if let Some(slot) = requests.slot(key.0) {
            if requests.get(slot).needs_status() {
                want_statuses(-1);
            }
            requests.remove(key.0);
            self.push(&[i64::from(slot)]);
        }
    }

    fn cancel(&mut self) {
        let key = self.arguments.key_behind(self.at.request);
        let requests = &mut self.session.requests;
        if let Some(slot) = requests.slot(key.0) {
            let request = requests.get(slot);
            want_statuses(i32::from(!request.needs_status()));
            request.cancelled = true;
            self.push(&[i64::from(slot)]);
        }
    }

    fn complete(&mut self) -> bool {
        let Some(completion) = &self.call.completion else {
            return true;
        };
        completion.completed(self.arguments, |index, status| {
            self.complete_one(completion.key(index), status);
        })
    }

    fn complete_one(&mut self, key: Key, status: usize) {
        let arguments = self.arguments;
        let Some(slot) = self.session.requests.slot(key.0) else {
            return;
        };
        let request = *self.session.requests.get(slot);
        if !request.active {
            return;
        }
        let word = i64::from(slot) * 4;
        let statuses = arguments.word(self.at.status);
        // SAFETY: the call got statuses, either the program's or stand-ins.
        let told = request
            .needs_status()
            .then(|| unsafe { arguments.library.status(statuses, status) });
        match told {
            Some((.., true)) => self.push(&[word + CANCELLED]),
            Some((source, tag, _)) if request.wildcard => {
                self.push(&[word + MATCHED, arguments.peer(source), i64::from(tag)]);
            }
            _ => self.push(&[word]),
        }
        if request.new_communicator != 0 {
            // SAFETY: the program keeps the variable until the operation is complete.
            let key = unsafe { arguments.key_at(request.new_communicator, 0) };
            self.session.communicator(key);
        }
        self.settle(key, slot);
    }

    /// Removes a completed request unless it is persistent.
    fn settle(&mut self, key: Key, slot: u32) {
        let request = self.session.requests.get(slot);
        if request.persistent {
            request.active = false;
            if request.cancelled {
                request.cancelled = false;
                want_statuses(-i32::from(!request.wildcard));
            }
            return;
        }
        if request.needs_status() {
            want_statuses(-1);
        }
        self.session.requests.remove(key.0);
    }

    fn probe(&mut self) -> bool {
        if self.arguments.found_nothing() {
            return false;
        }
        let [communicator, source, tag, _] = self.receive(self.status());
        if self.at.message != NONE {
            let handle = self.arguments.key_behind(self.at.message).0;
            self.session.messages.push(ProbedMessage {
                handle,
                communicator,
                source,
                tag,
            });
        }
        true
    }

    /// Collects the words of the receive of a probed message, whose source and tag are known.
    fn mrecv(&mut self) {
        let handle = self.call.before.unwrap_or(Key(0)).0;
        let messages = &mut self.session.messages;
        let found = messages.iter().position(|message| message.handle == handle);
        let words = found.map_or([0, -1, -1, 0], |place| {
            let message = messages.remove(place);
            [message.communicator, message.source, message.tag, 0]
        });
        self.push(&words);
        self.make_request_if_any();
    }

    fn collective(&mut self) {
        let group = self.communicator();
        let root = match self.at.root {
            NONE => -1,
            root => i64::from(self.arguments.int(root)),
        };
        let (send, recv) = if group.between {
            (0, 0)
        } else {
            self.volume(group)
        };
        self.push(&[i64::from(group.number), root, send, recv]);
        self.make_request_if_any();
    }

    /// Collects the words of a neighbourhood collective. If the neighbours are unknown, the words lack them.
    fn between_neighbours(&mut self) {
        let arguments = self.arguments;
        let key = arguments.key(self.at.communicator);
        let number = self.session.communicator(key).number;
        self.push(&[i64::from(number)]);
        if let Some(neighbours) = self.session.neighbours(key) {
            let is_rank = |rank: &i32| arguments.peer(*rank) >= 0;
            let destinations = neighbours.destinations.iter().enumerate();
            let destinations = destinations.filter(|(_, rank)| is_rank(rank));
            self.push(&[destinations.clone().count() as i64]);
            for (index, rank) in destinations {
                let bytes = self.bytes_for(index);
                self.push(&[i64::from(*rank), bytes]);
            }
            let sources = neighbours.sources.iter().filter(|rank| is_rank(rank));
            self.session
                .words
                .extend(sources.map(|rank| i64::from(*rank)));
        }
        self.make_request_if_any();
    }

    /// Returns the bytes for the neighbour at a position in the counts.
    fn bytes_for(&mut self, index: usize) -> i64 {
        let (at, arguments) = (self.at, self.arguments);
        if at.counts == NONE {
            return self.sent_bytes();
        }
        let count = arguments.count_at(at.counts, index);
        if count == 0 {
            return 0;
        }
        let datatype = match arguments.function.shape {
            // SAFETY: the list has a datatype for each neighbour.
            BufferShape::Alltoallw => unsafe {
                arguments.key_at(arguments.word(at.datatype), index)
            },
            _ => arguments.key(at.datatype),
        };
        count.saturating_mul(self.session.type_size(datatype)) as i64
    }

    /// Returns the bytes that this rank sends and receives in a collective, as sums over all peers.
    fn volume(&mut self, group: MemberGroup) -> (i64, i64) {
        use BufferShape::*;
        let (at, arguments) = (self.at, self.arguments);
        let size = i64::from(group.size);
        let is_root = at.root != NONE && arguments.int(at.root) == group.rank;
        let here = arguments.is_in_place(at.buffer);
        match arguments.function.shape {
            Barrier => (0, 0),
            Bcast | Reduce => {
                let bytes = self.sent_bytes();
                (bytes, bytes)
            }
            shape @ (Gather | Allgather) => {
                let all = if is_root || shape == Allgather {
                    self.received_from_all(group)
                } else {
                    0
                };
                let own = if here { all / size } else { self.sent_bytes() };
                (own, all)
            }
            Scatter => {
                let all = if is_root { self.sent_to_all(group) } else { 0 };
                let own = if arguments.is_in_place(at.recv_buffer) {
                    all / size
                } else {
                    self.bytes(at.recv_count, at.recv_datatype)
                };
                (all, own)
            }
            Alltoall | Alltoallw => {
                let all = self.received_from_all(group);
                (if here { all } else { self.sent_to_all(group) }, all)
            }
            ReduceScatter if at.recv_counts == NONE => {
                let own = self.bytes(at.recv_count, at.recv_datatype);
                (own * size, own)
            }
            ReduceScatter => {
                let count = arguments.count_at(at.recv_counts, group.rank.max(0) as usize);
                let own = count * self.session.type_size(arguments.key(at.recv_datatype));
                (self.received_from_all(group), own as i64)
            }
        }
    }

    /// Returns the bytes that the root of a scatter or a rank of an all-to-all sends.
    fn sent_to_all(&mut self, group: MemberGroup) -> i64 {
        match self.at.counts {
            NONE => self.sent_bytes() * i64::from(group.size),
            counts => self.sum(counts, self.at.datatype, group.size),
        }
    }

    fn received_from_all(&mut self, group: MemberGroup) -> i64 {
        let at = self.at;
        match at.recv_counts {
            NONE => self.bytes(at.recv_count, at.recv_datatype) * i64::from(group.size),
            counts => self.sum(counts, at.recv_datatype, group.size),
        }
    }

    /// Returns the bytes of a vector of counts, with one datatype or with one for each rank.
    fn sum(&mut self, counts: u8, datatype: u8, ranks: u32) -> i64 {
        let arguments = self.arguments;
        let each = arguments.function.shape == BufferShape::Alltoallw;
        let mut sum = 0u64;
        for rank in 0..ranks as usize {
            let mut count = arguments.count_at(counts, rank);
            if each && count > 0 {
                // SAFETY: the list has a datatype for each rank.
                let key = unsafe { arguments.key_at(arguments.word(datatype), rank) };
                count = count.saturating_mul(self.session.type_size(key));
            }
            sum = sum.saturating_add(count);
        }
        let unit = if each || sum == 0 {
            1
        } else {
            self.session.type_size(arguments.key(datatype))
        };
        sum.saturating_mul(unit) as i64
    }

    fn new_communicator(&mut self) {
        let (at, arguments) = (self.at, self.arguments);
        let old = i64::from(self.communicator().number);
        if self.kind == FunctionKind::Icomm {
            self.push(&[old, 0]);
            self.make_request().new_communicator = arguments.word(at.new_communicator);
            return;
        }
        let key = arguments.key_behind(at.new_communicator);
        let handle = c_handle(key, arguments.library);
        let new = if handle == arguments.library.no_communicator {
            0
        } else {
            // The handle may have belonged to another communicator that was freed unnoticed.
            self.session.communicators.forget(key);
            self.session.communicators.forget(Key::c(handle));
            i64::from(self.session.communicator(key).number) + 1
        };
        self.push(&[old, new]);
    }

    fn comm_free(&mut self) {
        let Some(key) = self.call.before else { return };
        if let Some(group) = self.session.communicators.get(key) {
            self.push(&[i64::from(group.number)]);
            self.session.communicators.forget(key);
        }
    }

    fn one_sided(&mut self) -> bool {
        let (at, arguments) = (self.at, self.arguments);
        if self.arguments.found_nothing() {
            return false;
        }
        if at.new_window != NONE {
            let communicator = Some(self.communicator().number);
            let key = arguments.key_behind(at.new_window);
            let window = self.session.window(key, communicator);
            let bytes = if arguments.fortran == 1 {
                0
            } else {
                arguments.word(at.window_bytes)
            };
            self.push(&[window, -1, bytes as i64]);
            return true;
        }
        let key = self.call.before.unwrap_or_else(|| arguments.key(at.window));
        let window = self.session.window(key, None);
        let target = match at.peer {
            NONE => -1,
            peer => arguments.peer(arguments.int(peer)),
        };
        let mut moved = self.sent_bytes();
        if at.recv_count != NONE {
            // A fetch moves data both ways.
            moved += self.bytes(at.recv_count, at.recv_datatype);
        }
        self.push(&[window, target, moved]);
        let library = arguments.library;
        if at.lock != NONE {
            let lock = library.lock_type(arguments.int(at.lock));
            self.session.words.extend(lock);
        }
        if at.group != NONE {
            let key = arguments.key(at.group);
            let group = key
                .as_fortran()
                .map_or(key.0 as usize, |number| library.group_of_fortran(number));
            let mut ranks = library.ranks_in_world(group);
            ranks.retain(|rank| *rank >= 0);
            self.push(&[ranks.len() as i64]);
            self.session.words.extend(ranks.into_iter().map(i64::from));
        }
        self.make_request_if_any();
        true
    }

    fn file(&mut self) {
        let (at, arguments) = (self.at, self.arguments);
        let number = if self.kind == FunctionKind::File {
            let communicator = Some(self.communicator().number);
            let key = arguments.key_behind(at.new_file);
            self.session.file(key, communicator)
        } else {
            let key = self.call.before.unwrap_or_else(|| arguments.key(at.file));
            self.session.file(key, None)
        };
        let moved = self.sent_bytes();
        self.push(&[number, moved]);
        self.make_request_if_any();
    }
}

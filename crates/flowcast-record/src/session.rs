//! Recording of one process: the program's known handles, and the file for its calls.

use std::{collections::BTreeMap, sync::Arc};

use flowcast_recording::format::{self, control};

use crate::{
    clock,
    communicators::{Key, KnownCommunicators, MemberGroup, c_handle},
    encoder::{Encoder, Times},
    functions::{FUNCTIONS, WrappedFunction},
    handles::Handles,
    library::LoadedMpi,
    neighbours::Neighbours,
    own_file::{OwnFile, Uncancelled, report},
    requests::PendingRequests,
    threads::Thread,
};

/// Longest time that calls wait before they are written to the disk, in nanoseconds.
const FLUSH_EVERY: u64 = 1_000_000_000;
/// Longest time that calls wait if they are folded, in nanoseconds. Folding is more effective with more calls.
const FOLD_EVERY: u64 = 30_000_000_000;

/// Probed message that has not been received: its handle, communicator, source and tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbedMessage {
    pub handle: u64,
    pub communicator: i64,
    pub source: i64,
    pub tag: i64,
}

/// Tests that have found nothing so far.
#[derive(Debug, Clone, Copy, Default)]
struct SessionPolls {
    thread: u32,
    function: i64,
    count: u64,
    burst: u64,
    time: u64,
}

/// Longest computation between two tests that still counts as polling, in nanoseconds.
const IDLE: u64 = 1_000;

/// Recording of this process.
pub(crate) struct RecordingSession {
    pub library: &'static LoadedMpi,
    rank: i32,
    pub encoder: Encoder,
    pub requests: PendingRequests,
    pub communicators: KnownCommunicators,
    pub messages: Vec<ProbedMessage>,
    /// Neighbours that have been queried, keyed by communicator.
    neighbours: BTreeMap<u32, Option<Arc<Neighbours>>>,
    windows: Numbered,
    files: Numbered,
    names: Vec<Vec<u8>>,
    /// Words of the signature that is being collected.
    pub words: Vec<i64>,
    types: Box<[(u64, u64)]>,
    polls: SessionPolls,
    file: Option<OwnFile>,
    limit: usize,
    timeout: u64,
    flushed: u64,
    /// Set when the budget is used up or the file can no longer be written.
    pub over: bool,
    /// Time at which recording was switched off, in ticks.
    pub off_since: Option<u64>,
}

const TYPES: usize = 64;

impl RecordingSession {
    /// Begins a recording with a file that already has its header.
    pub(crate) fn new(
        library: &'static LoadedMpi,
        encoder: Encoder,
        file: OwnFile,
        limit: usize,
    ) -> RecordingSession {
        let timeout = if encoder.folds() {
            FOLD_EVERY
        } else {
            FLUSH_EVERY
        };
        RecordingSession {
            library,
            rank: library.world_rank(),
            encoder,
            requests: PendingRequests::default(),
            communicators: KnownCommunicators::default(),
            messages: Vec::new(),
            neighbours: BTreeMap::new(),
            windows: Numbered::new(control::WINDOW),
            files: Numbered::new(control::FILE),
            names: Vec::new(),
            words: Vec::with_capacity(256),
            types: vec![(u64::MAX, 0); TYPES].into(),
            polls: SessionPolls::default(),
            file: Some(file),
            limit,
            timeout,
            flushed: clock::now(),
            over: false,
            off_since: None,
        }
    }

    /// Returns a communicator by its handle, and writes its definition if it is new.
    #[inline]
    pub(crate) fn communicator(&mut self, key: Key) -> MemberGroup {
        match self.communicators.get(key) {
            Some(group) => group,
            None => self.learn(key),
        }
    }

    #[cold]
    fn learn(&mut self, key: Key) -> MemberGroup {
        let (group, learned) = self.communicators.learn(key, self.library);
        if let Some(learned) = learned {
            self.encoder
                .communicator(&learned.own, learned.remote.as_deref());
        }
        group
    }

    /// Returns the neighbours of this process in a communicator.
    pub(crate) fn neighbours(&mut self, key: Key) -> Option<Arc<Neighbours>> {
        let (number, library) = (self.communicator(key).number, self.library);
        self.neighbours
            .entry(number)
            .or_insert_with(|| Neighbours::query(library, c_handle(key, library)).map(Arc::new))
            .clone()
    }

    /// Returns the size of one element of a datatype, in bytes.
    #[inline]
    pub(crate) fn type_size(&mut self, key: Key) -> u64 {
        let place = (key.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as usize;
        let (known, size) = self.types[place];
        if known == key.0 {
            return size;
        }
        let handle = key.as_fortran().map_or(key.0 as usize, |number| {
            self.library.type_of_fortran(number)
        });
        let size = self.library.type_size(handle);
        self.types[place] = (key.0, size);
        size
    }

    /// Forgets the sizes of datatypes, because a handle may stand for another datatype from now on.
    pub(crate) fn forget_types(&mut self) {
        self.types.fill((u64::MAX, 0));
    }

    /// Returns the number of a window. For a new window, `communicator` is the number of its communicator.
    pub(crate) fn window(&mut self, key: Key, communicator: Option<u32>) -> i64 {
        self.windows.number(key, communicator, &mut self.encoder)
    }

    /// Returns the number of a file. For a new file, `communicator` is the number of its communicator.
    pub(crate) fn file(&mut self, key: Key, communicator: Option<u32>) -> i64 {
        self.files.number(key, communicator, &mut self.encoder)
    }

    /// Returns the number of a region's name.
    pub(crate) fn name(&mut self, name: &[u8]) -> i64 {
        if let Some(known) = self.names.iter().position(|known| known == name) {
            return known as i64;
        }
        self.encoder.name(name);
        self.names.push(name.to_owned());
        self.names.len() as i64 - 1
    }

    /// Begins a signature with its function and returns the function's number.
    pub(crate) fn begin_words(&mut self, function: &WrappedFunction) -> i64 {
        let number = self.encoder.function(function.number, function.name);
        self.words.clear();
        self.words.push(number);
        number
    }

    /// Begins the signature of a call that concerns processes outside the world. The function gets a name for which the
    /// replay has no model.
    #[cold]
    pub(crate) fn begin_words_outside(&mut self, function: &WrappedFunction) {
        let name = format!("{} with processes outside MPI_COMM_WORLD", function.name);
        let place = FUNCTIONS.len() as u16 + function.number;
        let number = self.encoder.function(place, &name);
        self.words.clear();
        self.words.push(number);
    }

    /// Records the call whose signature is in `words`.
    #[inline]
    pub(crate) fn record(&mut self, thread: &Thread, times: Times) {
        if self.polls.count > 0 {
            self.end_polls();
        }
        let mut rest = thread.rest.get();
        self.encoder
            .call(&self.words, thread.number(), times, &mut rest);
        thread.rest.set(rest);
    }

    /// Records a test or probe that found nothing.
    pub(crate) fn poll(&mut self, thread: &Thread, function: i64, times: Times) {
        let number = thread.number();
        if self.polls.count > 0 && (self.polls.thread != number || self.polls.function != function)
        {
            self.end_polls();
        }
        let idle = self.polls.count > 0 && times.burst < IDLE;
        self.polls.thread = number;
        self.polls.function = function;
        self.polls.count += 1;
        self.polls.burst += if idle { 0 } else { times.cpu };
        self.polls.time += times.call
            + if idle {
                times.burst
            } else {
                times.burst.saturating_sub(times.cpu)
            };
    }

    fn end_polls(&mut self) {
        let SessionPolls {
            thread,
            function,
            count,
            burst,
            time,
        } = std::mem::take(&mut self.polls);
        self.encoder.thread(thread);
        self.encoder
            .control(control::POLLS, &[function as u64, count, burst, time]);
    }

    /// Records the nanoseconds that the thread has lost to the recorder. Does nothing if calls are folded, because the item
    /// would interrupt their sequence.
    pub(crate) fn pause(&mut self, thread: &Thread, nanos: u64) {
        if self.encoder.folds() {
            return;
        }
        self.special(thread, control::PAUSE, &[nanos]);
    }

    /// Records an item other than a call.
    pub(crate) fn special(&mut self, thread: &Thread, kind: u8, numbers: &[u64]) {
        if self.polls.count > 0 {
            self.end_polls();
        }
        self.encoder.thread(thread.number());
        self.encoder.control(kind, numbers);
    }

    /// Returns `true` if data should be written to the disk now.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.encoder.waiting() >= self.limit
            || clock::nanos(now.saturating_sub(self.flushed)) >= self.timeout
    }

    /// Writes the waiting bytes as one block.
    #[cold]
    pub(crate) fn flush(&mut self) {
        let _uncancelled = Uncancelled::new();
        self.encoder.settle();
        if self.encoder.is_spent() && !self.over {
            self.encoder.control(control::STOPPED, &[]);
            self.over = true;
        }
        let (file, rank) = (&mut self.file, self.rank);
        self.encoder.drain(|bytes| {
            if let (false, Some(out)) = (bytes.is_empty(), file.as_mut())
                && let Err(error) = write_block(out, bytes)
            {
                report(&format!(
                    "rank {rank}: its file can no longer be written ({error})"
                ));
                *file = None;
            }
        });
        self.over |= self.file.is_none();
        self.flushed = clock::now();
    }

    /// Ends the recording because the system refuses memory: the known calls are written, and later ones are ignored.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        self.flush();
        self.file = None;
        self.over = true;
        report(&format!(
            "rank {}: out of memory; its recording ends here",
            self.rank
        ));
    }

    /// Records the end of the program.
    pub(crate) fn end(&mut self, thread: &Thread) {
        if !self.over {
            self.special(thread, control::END, &[]);
        }
        self.flush();
        self.file = None;
        self.over = true;
    }
}

fn write_block(out: &mut OwnFile, bytes: &[u8]) -> std::io::Result<()> {
    out.write_all(&format::head(bytes))?;
    out.write_all(bytes)
}

/// Objects that the recording numbers in the order in which they appear.
struct Numbered {
    handles: Handles,
    count: u32,
    kind: u8,
}

impl Numbered {
    fn new(kind: u8) -> Numbered {
        Numbered {
            handles: Handles::default(),
            count: 0,
            kind,
        }
    }

    fn number(&mut self, key: Key, communicator: Option<u32>, encoder: &mut Encoder) -> i64 {
        if let (Some(known), None) = (self.handles.get(key.0), communicator) {
            return i64::from(known);
        }
        let number = self.count;
        self.count += 1;
        self.handles.set(key.0, number);
        encoder.control(self.kind, &[u64::from(communicator.unwrap_or(0))]);
        i64::from(number)
    }
}

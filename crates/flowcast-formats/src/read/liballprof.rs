//! Text traces of liballprof, LogGOPSim's tracer: a file for each rank, and a line for each call,
//! `MPI_Name:begin:argument:...:end`, with times in microseconds and arguments as in the C prototype.
//!
//! A datatype is `handle,size,extent`, and a communicator is `handle,rank,size`. Buffers and requests are addresses; the
//! addresses identify the requests. A vector of counts or displacements is an address and `n,n,...`. The traces lack
//! statuses, so the sender of a receive from any source and the result of a test are unknown. Constants reveal the MPI
//! library.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    calls::{self, CommunicatorOrigin, CompletedRequest, Leaders, RankCalls, Sizes, TracedCall},
    fault::Fault,
    parts::{TracePart, content_lines, words_of},
    scan::{ScanInput, bytes_of, lines, parsed, shown},
};
use flowcast_program::{ReadOptions, TraceError, program::Program};
use flowcast_recording::{
    format::{ANY_SOURCE, ANY_TAG, NO_RANK},
    operation,
    table::MpiFunction,
};

/// Returns `true` if the text is such a trace: its first line with content, after comments, is a call of `MPI_Init`.
pub(super) fn recognises(text: &[u8]) -> bool {
    content_lines(text)
        .next()
        .is_some_and(|first| is_start(text[first].trim_ascii()))
}

fn is_start(line: &[u8]) -> bool {
    line.starts_with(b"MPI_Init:-:") || line.starts_with(b"MPI_Init_thread:-:")
}

/// Reads the trace. A part may contain several ranks, one after the other.
pub(super) fn read(
    name: &str,
    parts: &[TracePart],
    options: ReadOptions,
) -> Result<Program, TraceError> {
    let mut sections = Vec::new();
    for (name, bytes) in parts {
        let input = ScanInput {
            name,
            text: bytes_of(bytes),
        };
        let starts: Vec<usize> = lines(input.text, 0)
            .filter(|range| is_start(&input.text[range.clone()]))
            .map(|range| range.start)
            .chain([input.text.len()])
            .collect();
        sections.extend(starts.windows(2).map(|part| (input, part[0], part[1])));
    }
    let mut ranks: Vec<Option<RankCalls>> = vec![None; sections.len()];
    let (mut some_of_several, mut without_types) = (0, 0);
    for (number, (input, start, end)) in sections.iter().copied().enumerate() {
        let mut section = LiballprofSection::new(input, sections.len());
        section.read(start, end)?;
        let rank = section.rank.unwrap_or(number);
        if ranks[rank].is_some() {
            return Err(input.fault(start, format!("rank {rank} again"), "each rank once"));
        }
        some_of_several += section.some_of_several;
        without_types += section.without_types;
        ranks[rank] = Some(section.out);
    }
    let ranks = ranks.into_iter().map(Option::unwrap_or_default).collect();
    let unread = [
        (
            "waits for any of several requests; each completes the first one".to_owned(),
            some_of_several,
        ),
        (
            "all-to-alls with a datatype for each rank, whose size is not in the trace; an element counts as one byte"
                .to_owned(),
            without_types,
        ),
    ];
    calls::program(name, ranks, unread, options)
}

/// Constants of the program's MPI library.
#[derive(Debug, Clone, Copy)]
struct Constants {
    any_source: i64,
    no_rank: i64,
    /// Size of a request in bytes. The traces give arrays of requests by address.
    request: u64,
}

const ANY_TAG_VALUE: i64 = -1;

impl Constants {
    /// Derives the constants from the handle of the world communicator: a fixed number in MPICH, an address in Open MPI's C,
    /// and 0 in its Fortran.
    fn new(world: u64) -> Constants {
        let is_mpich = world == 0x4400_0000;
        let (any_source, no_rank) = if is_mpich { (-2, -1) } else { (-1, -2) };
        let is_address = world > u64::from(u32::MAX);
        Constants {
            any_source,
            no_rank,
            request: if is_address { 8 } else { 4 },
        }
    }
}

/// Lines of one rank.
struct LiballprofSection<'a> {
    input: ScanInput<'a>,
    ranks: usize,
    rank: Option<usize>,
    constants: Constants,
    /// Lead of the rank's clock, in microseconds.
    ahead: f64,
    communicators: BTreeMap<u64, usize>,
    /// Rank and size in each communicator, once its handle has appeared.
    places: Vec<Option<(u64, u64)>>,
    /// Communicators whose handles have not appeared.
    unseen: BTreeSet<usize>,
    /// Requests in flight; `true` if a request is persistent.
    requests: BTreeMap<u64, bool>,
    some_of_several: u64,
    /// Number of calls of `MPI_Alltoallw`.
    without_types: u64,
    out: RankCalls,
}

impl<'a> LiballprofSection<'a> {
    fn new(input: ScanInput<'a>, ranks: usize) -> LiballprofSection<'a> {
        LiballprofSection {
            input,
            ranks,
            rank: None,
            constants: Constants::new(0),
            ahead: 0.0,
            communicators: BTreeMap::new(),
            places: Vec::new(),
            unseen: BTreeSet::new(),
            requests: BTreeMap::new(),
            some_of_several: 0,
            without_types: 0,
            out: RankCalls::default(),
        }
    }

    fn read(&mut self, start: usize, end: usize) -> Result<(), TraceError> {
        self.ahead = clock_difference(&self.input.text[..start]);
        for range in lines(&self.input.text[..end], start) {
            let line = self.input.text[range.clone()].trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            self.line(line)
                .map_err(|fault| self.input.refuse(range.start, fault))?;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Fault> {
        const WRONG: Fault = Fault::malformed("MPI_NAME:BEGIN:ARGUMENT:...:END");
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let name = fields[0]
            .strip_prefix(b"MPI_")
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or(WRONG)?;
        let [begin, .., end] = fields[1..] else {
            return Err(WRONG);
        };
        let times = (self.time(begin).ok_or(WRONG)?, self.time(end).ok_or(WRONG)?);
        // Calls that are not in the table do not concern other ranks; their time counts as computation.
        let Some(function) = MpiFunction::named(name) else {
            return Ok(());
        };
        let arguments = LiballprofArguments {
            fields: &fields[2..fields.len() - 1],
            function,
        };
        let mut call = self.call(&arguments)?;
        call.function = &function.name;
        (call.begin, call.end) = match times {
            (None, Some(end)) => (end, end),
            (Some(begin), None) => (begin, begin),
            (Some(begin), Some(end)) => (begin, end.max(begin)),
            (None, None) => return Err(WRONG),
        };
        self.out.calls.push(call);
        Ok(())
    }

    /// Returns a time in nanoseconds. The inner `None` means `-`; the outer `None` means that the field is not a time.
    #[allow(clippy::option_option)]
    fn time(&self, field: &[u8]) -> Option<Option<u64>> {
        if field == b"-" {
            return Some(None);
        }
        let micros: f64 = parsed(field)?;
        let nanos = (micros - self.ahead) * 1e3;
        (micros.is_finite() && micros.abs() < 1e16).then_some(Some(nanos.max(0.0) as u64))
    }

    fn call(&mut self, arguments: &LiballprofArguments<'_>) -> Result<TracedCall, Fault> {
        let function = arguments.function;
        let mut call = TracedCall::default();
        match function.kind.as_str() {
            "send" | "ssend" | "isend" | "issend" | "send-init" | "ssend-init" => {
                call.words = self.send_words(arguments)?.to_vec();
            }
            "recv" | "irecv" | "recv-init" => {
                let communicator = self.communicator(arguments, 'c')?;
                arguments.bytes('n', 't')?;
                call.words = vec![communicator];
                call.words.extend(self.received(arguments, 'd', 'g')?);
            }
            "sendrecv" => {
                call.words = self.send_words(arguments)?.to_vec();
                call.words.extend(self.received(arguments, 'D', 'G')?);
            }
            "wait" | "waitall" | "waitany" | "waitsome" => {
                call.completes = self.waited_for(arguments)?
            }
            "test" | "testall" | "testany" | "testsome" => {
                call.tests = self.named_requests(arguments)?
            }
            "start" | "startall" => call.starts = self.named_requests(arguments)?,
            "request-free" => {
                call.frees = Some(arguments.address('q')?);
                self.requests.remove(&arguments.address('q')?);
            }
            "comm" | "icomm" => self.new_communicator(arguments)?,
            _ if operation(&function.name).is_some() => self.collective(arguments, &mut call)?,
            _ => {}
        }
        if function.makes_request() && !call.words.is_empty() {
            let request = arguments.address('q')?;
            call.makes = Some(request);
            call.persistent = function.kind.ends_with("-init");
            self.requests.insert(request, call.persistent);
        }
        Ok(call)
    }

    fn send_words(&mut self, arguments: &LiballprofArguments<'_>) -> Result<[i64; 4], Fault> {
        let communicator = self.communicator(arguments, 'c')?;
        let (peer, tag) = (arguments.int('d')?, arguments.int('g')?);
        let has_peer = peer != self.constants.no_rank;
        Ok([
            communicator,
            if has_peer { peer } else { NO_RANK },
            tag,
            arguments.bytes('n', 't')?,
        ])
    }

    /// Returns source, tag and flags.
    fn received(
        &self,
        arguments: &LiballprofArguments<'_>,
        source: char,
        tag: char,
    ) -> Result<[i64; 3], Fault> {
        let (source, tag) = (arguments.int(source)?, arguments.int(tag)?);
        let any_source = if source == self.constants.any_source {
            ANY_SOURCE
        } else {
            0
        };
        let any_tag = if tag == ANY_TAG_VALUE { ANY_TAG } else { 0 };
        if source == self.constants.no_rank {
            return Ok([NO_RANK, tag, 0]);
        }
        Ok([
            if any_source > 0 { NO_RANK } else { source },
            tag,
            any_source | any_tag,
        ])
    }

    /// Returns the number of a communicator. The first one with all ranks is the world.
    fn communicator(
        &mut self,
        arguments: &LiballprofArguments<'_>,
        letter: char,
    ) -> Result<i64, Fault> {
        self.communicator_at(arguments, arguments.place(letter)?)
    }

    /// Returns the number of the communicator in an argument, by its position in the prototype.
    fn communicator_at(
        &mut self,
        arguments: &LiballprofArguments<'_>,
        place: usize,
    ) -> Result<i64, Fault> {
        let [handle, rank, size] = arguments.triple_at(place)?;
        let place = (rank, size);
        // A new communicator may have the handle of one that was freed.
        if let Some(number) = self
            .communicators
            .get(&handle)
            .filter(|number| self.places[**number] == Some(place))
        {
            return Ok(*number as i64);
        }
        let number = match self.rank {
            None if size > 1 || self.ranks == 1 => self.world(handle, place)?,
            _ => match self.made(place) {
                Some(made) => made,
                None if size == 1 => self.add(CommunicatorOrigin::Own),
                None => self.add(CommunicatorOrigin::Unknown),
            },
        };
        self.places[number] = Some(place);
        self.unseen.remove(&number);
        self.communicators.insert(handle, number);
        Ok(number as i64)
    }

    fn world(&mut self, handle: u64, (rank, size): (u64, u64)) -> Result<usize, Fault> {
        if size != self.ranks as u64 {
            return Err(Fault::value(
                format!("rank {rank} of {size}"),
                format!("one of {} ranks, one for each file", self.ranks),
            ));
        }
        let place = usize::try_from(rank).ok().filter(|rank| *rank < self.ranks);
        self.rank = Some(place.ok_or_else(|| {
            Fault::value(
                format!("rank {rank} of {size}"),
                format!("a rank below {size}"),
            )
        })?);
        self.constants = Constants::new(handle);
        Ok(self.add(CommunicatorOrigin::World))
    }

    /// Adds a communicator and returns its number.
    fn add(&mut self, origin: CommunicatorOrigin) -> usize {
        let number = self.places.len();
        self.out.communicators.push(origin);
        self.places.push(None);
        self.unseen.insert(number);
        number
    }

    /// Returns the communicator for a handle that appears for the first time. The call that made a communicator contains the
    /// address of the variable for its handle, not the handle. Therefore, the first matching communicator without a handle
    /// is chosen.
    fn made(&self, place: (u64, u64)) -> Option<usize> {
        use CommunicatorOrigin::*;
        let mut open = self.unseen.iter().copied();
        open.clone()
            .find(|number| match &self.out.communicators[*number] {
                Same(parent) => self.places[*parent] == Some(place),
                Between(leaders) => self.places[leaders.local] == Some(place),
                _ => false,
            })
            .or_else(|| {
                open.find(|number| match self.out.communicators[*number] {
                    Split(parent, colour, _) => {
                        colour >= 0 && self.places[parent].is_some_and(|(_, size)| place.1 <= size)
                    }
                    Merge(parent, _) => self.places[parent].is_some_and(|(_, size)| place.1 > size),
                    Unknown => true,
                    _ => false,
                })
            })
    }

    fn new_communicator(&mut self, arguments: &LiballprofArguments<'_>) -> Result<(), Fault> {
        use CommunicatorOrigin::*;
        let parent = self.communicator(arguments, 'c')? as usize;
        let origin = match arguments.function.name.as_str() {
            "Comm_dup" | "Comm_dup_with_info" | "Comm_idup" => Same(parent),
            "Comm_split" => Split(parent, arguments.int_at(1)?, arguments.int_at(2)?),
            "Intercomm_merge" => Merge(parent, arguments.int_at(1)? != 0),
            "Intercomm_create" => {
                let local_leader = arguments.int_at(1)?;
                let own = self.places[parent].map(|(rank, _)| rank as i64);
                // Ranks other than the leader may pass anything for the peer.
                let peer = if own == Some(local_leader) {
                    self.communicator_at(arguments, 2)? as usize
                } else {
                    parent
                };
                Between(Leaders {
                    local: parent,
                    local_leader,
                    peer,
                    remote_leader: arguments.int_at(3)?,
                    tag: arguments.int_at(4)?,
                })
            }
            _ => Unknown,
        };
        self.add(origin);
        Ok(())
    }

    /// Returns the requests in flight that a call names: one address, or an array of requests.
    fn named_requests(&self, arguments: &LiballprofArguments<'_>) -> Result<Vec<u64>, Fault> {
        let first = arguments.address('q')?;
        let count = if arguments.has('l') {
            arguments.int('l')?
        } else {
            1
        };
        let count = u64::try_from(count)
            .map_err(|_| Fault::value(format!("{count} requests"), "at least 0"))?;
        let end = first.saturating_add(count.saturating_mul(self.constants.request));
        Ok(self
            .requests
            .range(first..end)
            .map(|(request, _)| *request)
            .collect())
    }

    fn waited_for(
        &mut self,
        arguments: &LiballprofArguments<'_>,
    ) -> Result<Vec<CompletedRequest>, Fault> {
        let mut named = self.named_requests(arguments)?;
        if arguments.function.kind == "waitany" {
            self.some_of_several += u64::from(named.len() > 1);
            named.truncate(1);
        }
        for request in &named {
            if self.requests.get(request) == Some(&false) {
                self.requests.remove(request);
            }
        }
        Ok(named.into_iter().map(CompletedRequest::new).collect())
    }

    fn collective(
        &mut self,
        arguments: &LiballprofArguments<'_>,
        call: &mut TracedCall,
    ) -> Result<(), Fault> {
        let communicator = self.communicator(arguments, 'c')?;
        let root = if arguments.has('r') {
            arguments.int('r')?
        } else {
            -1
        };
        call.words = vec![communicator, root];
        call.sizes = Some(arguments.sizes()?);
        self.without_types += u64::from(arguments.function.name.ends_with("lltoallw"));
        Ok(())
    }
}

/// Reads `# clockdiff: SECONDS s` from the comments before the first call; the result is in microseconds.
fn clock_difference(before: &[u8]) -> f64 {
    const NAME: &[u8] = b"# clockdiff:";
    let comments = lines(before, 0).filter_map(|range| before[range].strip_prefix(NAME));
    comments
        .last()
        .and_then(|rest| words_of(rest).next())
        .and_then(parsed::<f64>)
        .filter(|seconds| seconds.abs() < 1e6)
        .map_or(0.0, |seconds| seconds * 1e6)
}

/// Arguments between the two times of a line.
struct LiballprofArguments<'a> {
    fields: &'a [&'a [u8]],
    function: &'a MpiFunction,
}

impl<'a> LiballprofArguments<'a> {
    /// Returns the field of an argument, by its position in the prototype. A vector of counts takes two fields, and so does
    /// a vector of displacements after it.
    fn field(&self, place: usize) -> Result<&'a [u8], Fault> {
        let behind = usize::from(!self.function.kind.contains("reduce"));
        let vectors = ['v', 'V']
            .into_iter()
            .filter_map(|letter| self.function.position(letter));
        let extra: usize = if self.fields.len() > self.function.arity {
            vectors
                .map(|vector| {
                    usize::from(vector < place) + behind * usize::from(vector + 1 < place)
                })
                .sum()
        } else {
            0
        };
        self.fields
            .get(place + extra)
            .copied()
            .ok_or_else(|| self.missing())
    }

    fn missing(&self) -> Fault {
        let found = format!(
            "MPI_{} with {} fields",
            self.function.name,
            self.fields.len()
        );
        Fault::value(found, format!("its {} arguments", self.function.arity))
    }

    fn place(&self, letter: char) -> Result<usize, Fault> {
        self.function.position(letter).ok_or_else(|| self.missing())
    }

    fn int_at(&self, place: usize) -> Result<i64, Fault> {
        let field = self.field(place)?;
        parsed(field.trim_ascii()).ok_or_else(|| {
            Fault::value(
                shown(field),
                format!("a whole number in MPI_{}", self.function.name),
            )
        })
    }

    fn int(&self, letter: char) -> Result<i64, Fault> {
        self.int_at(self.place(letter)?)
    }

    fn address(&self, letter: char) -> Result<u64, Fault> {
        let field = self.field(self.place(letter)?)?;
        address(field).ok_or_else(|| {
            Fault::value(
                shown(field),
                format!("an address in MPI_{}", self.function.name),
            )
        })
    }

    /// Reads a datatype or communicator: a handle and two numbers.
    fn triple(&self, letter: char) -> Result<[u64; 3], Fault> {
        self.triple_at(self.place(letter)?)
    }

    fn triple_at(&self, place: usize) -> Result<[u64; 3], Fault> {
        let field = self.field(place)?;
        let mut numbers = field.split(|byte| *byte == b',').map(address);
        match std::array::from_fn(|_| numbers.next().flatten()) {
            [Some(handle), Some(second), Some(third)] => Ok([handle, second, third]),
            _ => Err(Fault::value(
                shown(field),
                "HANDLE,SIZE,EXTENT of a datatype or HANDLE,RANK,SIZE of a communicator",
            )),
        }
    }

    fn bytes(&self, count: char, datatype: char) -> Result<i64, Fault> {
        let count = self.int(count)?.max(0);
        // A count of 0 is valid with any datatype.
        if count == 0 {
            Ok(0)
        } else {
            Ok(count.saturating_mul(self.type_size(datatype)?))
        }
    }

    fn type_size(&self, letter: char) -> Result<i64, Fault> {
        Ok(i64::try_from(self.triple(letter)?[1]).unwrap_or(0))
    }

    /// Returns the bytes of a vector of counts.
    fn vector(&self, letter: char, datatype: char) -> Result<Option<Vec<i64>>, Fault> {
        let Some(place) = self.function.position(letter) else {
            return Ok(None);
        };
        let is_doubled = self.fields.len() > self.function.arity;
        let field = if is_doubled {
            let before = self.field(place)?;
            let at = self
                .fields
                .iter()
                .position(|field| std::ptr::eq(field.as_ptr(), before.as_ptr()));
            at.and_then(|at| self.fields.get(at + 1))
                .copied()
                .ok_or_else(|| self.missing())?
        } else {
            self.field(place)?
        };
        let list = field.strip_prefix(b"[").unwrap_or(field);
        let list = list.strip_suffix(b"]").unwrap_or(list);
        // The types of MPI_Alltoallw are given as an address, so their sizes are unknown.
        let unit = self.type_size(datatype).unwrap_or(1);
        Ok(Some(
            list.split(|byte| *byte == b',')
                .map(|field| {
                    parsed(field.trim_ascii())
                        .map(|count: i64| count.max(0).saturating_mul(unit))
                        .ok_or_else(|| Fault::value(shown(field), "counts separated by commas"))
                })
                .collect::<Result<_, _>>()?,
        ))
    }

    fn sizes(&self) -> Result<Sizes, Fault> {
        let (datatype, recv_type) = ('t', 'T');
        let [send_in_place, recv_in_place] = ['b', 'B']
            .map(|letter| self.has(letter) && matches!(self.address(letter), Ok(1 | u64::MAX)));
        Ok(Sizes {
            out: if self.has('n') {
                self.bytes('n', datatype)?
            } else {
                0
            },
            into: if self.has('N') {
                self.bytes('N', recv_type)?
            } else {
                0
            },
            outs: self.vector('v', datatype)?,
            ins: self.vector('V', recv_type)?,
            send_in_place,
            recv_in_place,
        })
    }

    fn has(&self, letter: char) -> bool {
        self.function.position(letter).is_some()
    }
}

/// Reads a handle or an address. Handles of 32 bits are sign-extended to 64 bits.
fn address(field: &[u8]) -> Option<u64> {
    let field = field.trim_ascii();
    parsed(field).or_else(|| parsed(field).map(|number: i64| number as u64))
}

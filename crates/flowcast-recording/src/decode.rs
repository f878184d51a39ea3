//! Reader of a rank's file: its header, its definitions and its calls.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    RecordingError,
    format::{self, control, time_of, unzigzag, varint},
};
use flowcast_units::{Rank, Time};

/// Communicator as seen by one rank: world ranks, in the order of the communicator.
///
/// ```
/// use flowcast_recording::decode::Members;
/// use flowcast_units::Rank;
///
/// let communicator = Members { own: vec![4, 6], remote: Vec::new() };
/// assert_eq!(communicator.world_rank(1), Some(Rank(6)));
/// assert_eq!(communicator.world_rank(-1), None, "no process");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Members {
    /// World ranks of the group, or of the local group of an intercommunicator.
    pub own: Vec<u32>,
    /// World ranks of the remote group; empty unless this is an intercommunicator.
    pub remote: Vec<u32>,
}

impl Members {
    /// Returns the world rank of a peer, which is given by its rank in the communicator.
    pub fn world_rank(&self, peer: i64) -> Option<Rank> {
        let peers = if self.remote.is_empty() {
            &self.own
        } else {
            &self.remote
        };
        peers.get(usize::try_from(peer).ok()?).copied().map(Rank)
    }
}

/// Header of a rank's file.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// All lines of the header, as keys and values.
    pub fields: BTreeMap<String, String>,
    /// Rank in `MPI_COMM_WORLD`, from 0.
    pub rank: Rank,
    /// Number of ranks in the world.
    pub ranks: u32,
    /// Shortest computation with a recorded thread CPU time, in nanoseconds.
    pub cpu_threshold: u64,
    /// Time that the recorder adds to each computation, in ns.
    pub overhead: u64,
}

/// One call of an MPI function, with the computation before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedCall {
    /// Thread that made the call.
    pub thread: u32,
    /// Index of the signature in [`RankFile::signatures`].
    pub signature: u32,
    /// Start of the call, in ns after the recorder's start.
    pub begin: u64,
    /// Computation before the call, in ns.
    pub burst: u64,
    /// Thread CPU time of this computation, in ns.
    pub cpu: u64,
    /// Time from the start of the call to its return, in ns.
    pub time: u64,
}

/// Consecutive tests and probes that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polls {
    /// Thread that made all the calls.
    pub thread: u32,
    /// Function of the first call.
    pub function: u32,
    /// Number of consecutive polls in this item.
    pub count: u64,
    /// Computation between the polls, in ns.
    pub burst: u64,
    /// Time in the polls, in ns.
    pub time: u64,
}

/// Clocks at one reading of a rank's time count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockReading {
    /// Time counted by the rank's file since its start.
    pub counted: Time,
    /// Monotonic clock of the rank's host.
    pub own: Time,
    /// Rank 0's clock, if the clocks were synchronised.
    pub reference: Option<Reference>,
}

/// Rank 0's clock relative to a rank's own clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Lead of rank 0's clock; negative if it is behind.
    pub ahead: Time,
    /// Error bound of the lead: half the round trips that measured it.
    pub known_to: Time,
}

/// One item of a rank's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Call that did something.
    Call(RecordedCall),
    /// Consecutive tests and probes that found nothing.
    Polls(Polls),
    /// Interval without recording, in ns: nothing is known about it.
    Off(u64),
}

/// Decoded file of a rank.
#[derive(Debug, Clone, Default)]
pub struct RankFile {
    /// Header of the file.
    pub header: Header,
    /// Names of the functions, without `MPI_`.
    pub functions: Vec<String>,
    /// Words of each signature.
    pub signatures: Vec<Vec<i64>>,
    /// Communicators, indexed by their number at this rank; ranks may share them.
    pub communicators: Vec<Arc<Members>>,
    /// Communicator of each window.
    pub windows: Vec<u64>,
    /// Communicator of each file.
    pub files: Vec<u64>,
    /// Names of the program's regions, indexed by number.
    pub names: Vec<String>,
    /// Calls, ordered by their end.
    pub items: Vec<Item>,
    /// Clock readings, ordered by time.
    pub clocks: Vec<ClockReading>,
    /// `true` if the program finished.
    pub ended: bool,
    /// `true` if the size budget ended the recording.
    pub stopped: bool,
    /// Size of the file, in bytes.
    pub bytes: u64,
}

/// Limit for the members of all communicators of a rank's file; a larger number means damage.
const MOST_MEMBERS: usize = 1 << 24;

/// Limit for the size of a header, in bytes; a larger one means damage.
const MOST_HEADER: usize = 1 << 16;

/// Limit for the calls in a fold, larger than the recorder's own limit; a larger number means damage.
const MOST_FOLDED: usize = 1 << 16;

/// Reads a rank's file. Ignores everything after the last complete block.
///
/// # Errors
/// The header or an item is malformed.
pub fn read(name: &str, bytes: &[u8]) -> Result<RankFile, RecordingError> {
    let (header, mut at) = header(name, bytes)?;
    let head = if bytes.starts_with(format::OLD_MAGIC.as_bytes()) {
        format::OLD_HEAD
    } else {
        format::HEAD
    };
    let mut decoder = Decoder {
        file: RankFile {
            header,
            bytes: bytes.len() as u64,
            ..RankFile::default()
        },
        ..Decoder::default()
    };
    while let Some(block) = block(bytes, at, head) {
        if head == format::HEAD && bytes[at..at + head] != format::head(block) {
            return Err(damaged_block(name, at));
        }
        (decoder.bytes, decoder.at) = (block, 0);
        while decoder.at < block.len() {
            let start = decoder.at;
            decoder
                .item()
                .ok_or_else(|| damaged(name, at + head + start))?;
        }
        at += head + block.len();
    }
    if bytes
        .get(at..at + 4)
        .is_some_and(|mark| mark != format::BLOCK)
    {
        return Err(damaged_block(name, at));
    }
    Ok(decoder.file)
}

fn damaged(name: &str, at: usize) -> RecordingError {
    RecordingError::Damaged {
        name: name.to_owned(),
        problem: format!(
            "found unknown content at byte {at}, expected a call or a definition of a recording"
        ),
    }
}

fn damaged_block(name: &str, at: usize) -> RecordingError {
    RecordingError::Damaged {
        name: name.to_owned(),
        problem: format!("found a wrong checksum or no block at byte {at}: the file is damaged"),
    }
}

fn header(name: &str, bytes: &[u8]) -> Result<(Header, usize), RecordingError> {
    let fault = |line: usize, found: &str, expected: &str| RecordingError::At {
        place: format!("{name}:{line}"),
        found: format!("`{}`", found.escape_default()),
        expected: expected.to_owned(),
    };
    let end = bytes
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end.min(MOST_HEADER)]).into_owned();
    let first = text.lines().next().unwrap_or_default();
    if ![format::MAGIC, format::OLD_MAGIC].contains(&first) {
        let shown: String = first.chars().take(40).collect();
        return Err(fault(1, &shown, format::MAGIC));
    }
    if end > MOST_HEADER {
        let found = format!("{end} bytes");
        let expected = format!("an empty line after at most {MOST_HEADER} header bytes");
        return Err(fault(1, &found, &expected));
    }
    let mut header = Header::default();
    for line in text.lines().skip(1) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        header.fields.insert(key.to_owned(), value.to_owned());
    }
    if let Some(stated) = header.fields.get(format::CHECKSUM) {
        let behind = text.rfind(format::CHECKSUM).unwrap_or(text.len());
        if u32::from_str_radix(stated, 16) != Ok(crc32fast::hash(&text.as_bytes()[..behind])) {
            return Err(fault(
                1,
                stated,
                "the checksum of the header: the file is damaged",
            ));
        }
    }
    let number = |key: &str, most: u64| {
        let value = header.fields.get(key).map_or("", String::as_str);
        let read = value.parse::<u64>().ok().filter(|number| *number <= most);
        read.ok_or_else(|| {
            fault(
                1,
                value,
                &format!("a number from 0 to {most} after `{key}` in the header"),
            )
        })
    };
    let (rank, ranks) = (number("rank", 1 << 24)?, number("ranks", 1 << 24)?);
    let (cpu_threshold, overhead) = (
        number("cpu-threshold-ns", u64::MAX)?,
        number("overhead-ns", 1 << 20)?,
    );
    if rank >= ranks {
        return Err(fault(
            1,
            &rank.to_string(),
            &format!("a rank below {ranks}"),
        ));
    }
    (header.rank, header.ranks) = (Rank(rank as u32), ranks as u32);
    (header.cpu_threshold, header.overhead) = (cpu_threshold, overhead);
    Ok((header, (end + 2).min(bytes.len())))
}

/// Returns the block at `at`, which begins with `head` bytes of header, if all of it is there.
fn block(bytes: &[u8], at: usize, head: usize) -> Option<&[u8]> {
    let begin = at + head;
    let head = bytes.get(at..begin)?;
    let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
    if head[..4] != *format::BLOCK {
        return None;
    }
    bytes.get(begin..begin.checked_add(length)?)
}

#[derive(Default)]
struct Decoder<'a> {
    /// Block that is being decoded, and the position in it.
    bytes: &'a [u8],
    at: usize,
    file: RankFile,
    thread: u32,
    /// End of each thread's last call.
    clocks: Vec<u64>,
    /// Time at which recording started or resumed. A thread's first computation starts there.
    began: u64,
    /// Index of the first signature since the last reset.
    base: u32,
    /// Number of members of all communicators together.
    members: usize,
}

impl Decoder<'_> {
    fn varint(&mut self) -> Option<u64> {
        varint(self.bytes, &mut self.at)
    }

    fn byte(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }

    fn item(&mut self) -> Option<()> {
        let code = self.varint()?;
        if code > 0 {
            let signature = self.signature(code)?;
            let times = self.times()?;
            self.call(signature, times);
            return Some(());
        }
        match self.byte()? {
            control::FUNCTION => {
                let name = self.text()?;
                self.file.functions.push(name);
            }
            control::NAME => {
                let name = self.text()?;
                self.file.names.push(name);
            }
            control::SIGNATURE => self.define_signature()?,
            control::COMMUNICATOR => self.define_communicator()?,
            control::WINDOW => {
                let communicator = self.varint()?;
                self.file.windows.push(communicator);
            }
            control::FILE => {
                let communicator = self.varint()?;
                self.file.files.push(communicator);
            }
            control::THREAD => {
                self.thread = u32::try_from(self.varint()?)
                    .ok()
                    .filter(|thread| *thread < 1 << 16)?
            }
            control::PAUSE => {
                let lost = self.varint()?;
                self.advance(lost);
            }
            control::OFF => {
                let off = self.varint()?;
                self.advance(off);
                self.began = *self.clock();
                self.clocks.fill(self.began);
                self.file.items.push(Item::Off(off));
            }
            control::POLLS => self.polls()?,
            control::FOLD => self.fold()?,
            control::RESET => self.base = self.file.signatures.len() as u32,
            control::CLOCK => self.read_clock()?,
            control::END => self.file.ended = true,
            control::STOPPED => self.file.stopped = true,
            _ => return None,
        }
        Some(())
    }

    fn signature(&self, code: u64) -> Option<u32> {
        let signature = u32::try_from(code - 1).ok()?.checked_add(self.base)?;
        ((signature as usize) < self.file.signatures.len()).then_some(signature)
    }

    fn define_signature(&mut self) -> Option<()> {
        let words = usize::try_from(self.varint()?)
            .ok()
            .filter(|words| (1..=self.bytes.len()).contains(words))?;
        let signature: Option<Vec<i64>> = (0..words).map(|_| self.varint().map(unzigzag)).collect();
        let signature = signature?;
        usize::try_from(signature[0])
            .ok()
            .filter(|function| *function < self.file.functions.len())?;
        self.file.signatures.push(signature);
        Some(())
    }

    fn define_communicator(&mut self) -> Option<()> {
        let flags = self.varint()?;
        let ranks = self.file.header.ranks;
        let most = (ranks as usize).min(MOST_MEMBERS.checked_sub(self.members)?);
        let own = self.members(ranks, most)?;
        let between = flags & format::COMMUNICATOR_BETWEEN_GROUPS != 0;
        let remote = if between {
            self.members(ranks, most)?
        } else {
            Vec::new()
        };
        self.members += own.len() + remote.len();
        let members = Arc::new(Members { own, remote });
        self.file.communicators.push(members);
        Some(())
    }

    /// Reads the computation, its thread CPU time and the time in the call.
    fn times(&mut self) -> Option<(u64, u64, u64)> {
        let burst = self.code()?;
        let mut cpu = burst;
        if burst >= self.file.header.cpu_threshold {
            cpu = scaled(burst, self.byte()?);
        }
        Some((burst, cpu, self.code()?))
    }

    fn clock(&mut self) -> &mut u64 {
        let thread = self.thread as usize;
        if self.clocks.len() <= thread {
            self.clocks.resize(thread + 1, self.began);
        }
        &mut self.clocks[thread]
    }

    fn advance(&mut self, nanos: u64) {
        let clock = self.clock();
        *clock = clock.saturating_add(nanos);
    }

    fn read_clock(&mut self) -> Option<()> {
        let (own, is_read) = (self.varint()?, self.varint()?);
        let (ahead, known_to) = (unzigzag(self.varint()?), self.varint()?);
        let reference = (is_read != 0).then(|| Reference {
            ahead: Time::from_nanos(ahead as f64),
            known_to: nanos(known_to),
        });
        let counted = nanos(*self.clock());
        self.file.clocks.push(ClockReading {
            counted,
            own: nanos(own),
            reference,
        });
        Some(())
    }

    fn call(&mut self, signature: u32, (burst, cpu, time): (u64, u64, u64)) {
        let thread = self.thread;
        let begin = self.clock().saturating_add(burst);
        *self.clock() = begin.saturating_add(time);
        if self.file.items.is_empty() {
            self.began = *self.clock();
        }
        self.file.items.push(Item::Call(RecordedCall {
            thread,
            signature,
            begin,
            burst,
            cpu,
            time,
        }));
    }

    fn polls(&mut self) -> Option<()> {
        let (function, count) = (self.varint()?, self.varint()?);
        let (burst, time) = (self.varint()?, self.varint()?);
        let function = u32::try_from(function)
            .ok()
            .filter(|known| (*known as usize) < self.file.functions.len())?;
        self.advance(burst.saturating_add(time));
        self.file.items.push(Item::Polls(Polls {
            thread: self.thread,
            function,
            count,
            burst,
            time,
        }));
        Some(())
    }

    fn fold(&mut self) -> Option<()> {
        let mut next = || usize::try_from(self.varint()?).ok();
        let (period, repeats, stride) = (next()?, next()?, next()?);
        let calls = period.checked_mul(repeats)?;
        if period == 0 || period > self.bytes.len() || stride == 0 || calls > MOST_FOLDED {
            return None;
        }
        let signatures: Option<Vec<u32>> = (0..period)
            .map(|_| {
                let code = self.varint()?.max(1);
                self.signature(code)
            })
            .collect();
        let signatures = signatures?;
        let mut kept = Vec::new();
        for _ in (0..repeats).step_by(stride) {
            for _ in 0..period {
                kept.push(self.times()?);
            }
        }
        let mut between = Vec::new();
        for _ in 0..if stride > 1 { period } else { 0 } {
            between.push(self.times()?);
        }
        for repeat in 0..repeats {
            let from = if repeat % stride == 0 {
                &kept[repeat / stride * period..][..period]
            } else {
                &between[..]
            };
            let times: Vec<(u64, u64, u64)> = from.to_vec();
            signatures
                .iter()
                .zip(times)
                .for_each(|(signature, times)| self.call(*signature, times));
        }
        Some(())
    }

    fn code(&mut self) -> Option<u64> {
        let code = self.bytes.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(time_of(u16::from_le_bytes(
            code.try_into().expect("two bytes"),
        )))
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.varint()?).ok()?;
        let text = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Reads a list of world ranks (below `ranks`) with at most `most` members.
    fn members(&mut self, ranks: u32, most: usize) -> Option<Vec<u32>> {
        let runs = self.varint()?;
        let mut members = Vec::new();
        for _ in 0..runs {
            let (first, step, count) = (self.varint()?, unzigzag(self.varint()?), self.varint()?);
            if count > (most - members.len()) as u64 {
                return None;
            }
            let mut member = i64::try_from(first).ok()?;
            for _ in 0..count {
                members.push(
                    u32::try_from(member)
                        .ok()
                        .filter(|member| *member < ranks)?,
                );
                member = member.checked_add(step)?;
            }
        }
        Some(members)
    }
}

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos as f64)
}

/// Scales a time by `share` / 255.
pub fn scaled(burst: u64, share: u8) -> u64 {
    (u128::from(burst) * u128::from(share) / 255) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_without_an_end_is_refused_with_its_length() {
        let lines = "rank 0\nranks 1\n".to_owned() + &"note x\n".repeat(10_000);
        let file = format!("{}\n{lines}\n", format::MAGIC);
        let error = read("rank-00000", file.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "rank-00000:1: found `70031 bytes`, expected an empty line after at most 65536 header bytes"
        );
    }
}

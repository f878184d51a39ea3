//! Reads a rank's file: its header, its definitions, its calls one after the other.

use std::collections::BTreeMap;

use super::{
    RecordingError,
    format::{self, control, time_of, unzigzag, varint},
};
use flowcast_units::{Rank, Time};

/// A communicator as one rank knows it: ranks of the world in its own order.
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
    /// The group, or the own group of a communicator between two.
    pub own: Vec<u32>,
    /// The other group, if there is one.
    pub remote: Vec<u32>,
}

impl Members {
    /// The rank in the world that a peer's number means.
    pub fn world_rank(&self, peer: i64) -> Option<Rank> {
        let peers = if self.remote.is_empty() {
            &self.own
        } else {
            &self.remote
        };
        peers.get(usize::try_from(peer).ok()?).copied().map(Rank)
    }
}

/// What a rank's file says about itself.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// All lines of the header, by key.
    pub fields: BTreeMap<String, String>,
    /// The rank in `MPI_COMM_WORLD`, from 0.
    pub rank: Rank,
    /// Ranks of the world.
    pub ranks: u32,
    /// Computation of at least so many nanoseconds has its thread CPU time beside it.
    pub cpu_threshold: u64,
    /// What the recorder adds to each computation, in ns.
    pub overhead: u64,
}

/// One call of an MPI function, with the computation before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedCall {
    /// The thread that called.
    pub thread: u32,
    /// Number of the signature in [`RankFile::signatures`].
    pub signature: u32,
    /// When it began, in ns after the recorder's start.
    pub begin: u64,
    /// Computation before it, in ns.
    pub burst: u64,
    /// Thread CPU time of that.
    pub cpu: u64,
    /// From its begin to its return, in ns.
    pub time: u64,
}

/// Tests and probes that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polls {
    /// Thread that called them all.
    pub thread: u32,
    /// Function of the first of them.
    pub function: u32,
    /// Polls in a row that this item stands for.
    pub count: u64,
    /// Computation between them, in ns.
    pub burst: u64,
    /// Time in them, in ns.
    pub time: u64,
}

/// What clocks showed at one reading of a rank's count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockReading {
    /// Time that the rank's file counts, from its begin on.
    pub counted: Time,
    /// The monotonic clock of the rank's host.
    pub own: Time,
    /// Rank 0's, where the clocks were synchronised.
    pub reference: Option<Reference>,
}

/// Rank 0's clock in terms of a rank's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// By how much it is ahead; below 0 if it is behind.
    pub ahead: Time,
    /// What that may be wrong by: half the round trips by which it was read.
    pub known_to: Time,
}

/// One item of a rank's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// One call that did something.
    Call(RecordedCall),
    /// Tests and probes in a row that found nothing.
    Polls(Polls),
    /// Recording was off: nothing is known of so many ns.
    Off(u64),
}

/// A rank's file, decoded.
#[derive(Debug, Clone, Default)]
pub struct RankFile {
    /// What the file says about itself.
    pub header: Header,
    /// Names of functions, without `MPI_`.
    pub functions: Vec<String>,
    /// Words of each signature.
    pub signatures: Vec<Vec<i64>>,
    /// The communicators, by their number at this rank.
    pub communicators: Vec<Members>,
    /// Communicator of each window.
    pub windows: Vec<u64>,
    /// Communicator of each file.
    pub files: Vec<u64>,
    /// Names of the program's regions, by number.
    pub names: Vec<String>,
    /// Calls in the order in which they ended.
    pub items: Vec<Item>,
    /// What clocks showed, in the order of time.
    pub clocks: Vec<ClockReading>,
    /// Whether the program came to its end.
    pub ended: bool,
    /// Whether the size budget ended the recording.
    pub stopped: bool,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Members of all communicators of a rank's file; more come from damage.
const MOST_MEMBERS: usize = 1 << 24;

/// Bytes of a header; more come from damage.
const MOST_HEADER: usize = 1 << 16;

/// More calls than the recorder folds at a time; larger numbers come from damage.
const MOST_FOLDED: usize = 1 << 16;

/// Reads a rank's file. What stands behind the last whole block is left out.
///
/// # Errors
/// The header or an item is not what it must be.
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
            return Err(spoilt(name, at));
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
        return Err(spoilt(name, at));
    }
    Ok(decoder.file)
}

fn damaged(name: &str, at: usize) -> RecordingError {
    RecordingError::Damaged {
        name: name.to_owned(),
        problem: format!("found at byte {at} what is no call and no definition of a recording"),
    }
}

fn spoilt(name: &str, at: usize) -> RecordingError {
    RecordingError::Damaged {
        name: name.to_owned(),
        problem: format!(
            "found another checksum than that of the block at byte {at}, or no block: the file is damaged"
        ),
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
        let expected = format!("an empty line after at most {MOST_HEADER} bytes of header");
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
                &format!("a number from 0 to {most} behind `{key}` in the header"),
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

/// The block at `at`, if all of it is there, with a head of so many bytes.
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
    /// The block that is decoded, and how far.
    bytes: &'a [u8],
    at: usize,
    file: RankFile,
    thread: u32,
    /// Where each thread's last call ended.
    clocks: Vec<u64>,
    /// Where recording began, or began again: a thread's first computation counts from there.
    began: u64,
    /// The first signature since the last reset.
    base: u32,
    /// Members of all communicators together.
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
        self.file.communicators.push(Members { own, remote });
        Some(())
    }

    /// Computation, thread CPU time and time in the call.
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

    /// Ranks of the world, at most so many.
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

/// A share of 255 parts.
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
            "rank-00000:1: found `70031 bytes`, expected an empty line after at most 65536 bytes of header"
        );
    }
}

//! The bytes of a rank's file.
//!
//! Header: the line [`MAGIC`], lines `key value`, the last of them [`CHECKSUM`] and the CRC-32 of those before it, an empty
//! line. Then blocks: [`BLOCK`], the number of bytes (u32,
//! little endian), their CRC-32 (u32; not in files that begin with [`OLD_MAGIC`]), the bytes. A block holds whole
//! items; an item begins with a number of variable length: 0 is followed by one of [`control`], anything else is a call
//! of the signature with that number less one. Behind a call stand its times: the computation before it as a time code,
//! the share of it that the thread had the processor (one byte, only where the computation is at least as long as the
//! header's `cpu-threshold-ns`), the call as a time code.
//!
//! A time code is 16 bits, five of exponent and eleven of mantissa, exact to one part in 1024. The writer adds what it
//! rounded off to the next time of the same kind, so that sums stay exact to a code's error.
//!
//! # Signatures
//! The first word is the function, by its number in the file. Then, by the function's kind in the table:
//!
//! | kind | words |
//! |---|---|
//! | sends, also non-blocking and persistent | communicator, peer, tag, bytes |
//! | receives, probes | communicator, source, tag, flags ([`ANY_SOURCE`], [`ANY_TAG`]) |
//! | sendrecv | the words of the send, then source, tag, flags |
//! | start, request-free, cancel | slots |
//! | waits and tests | for each request completed: `4 slot + flags` ([`MATCHED`], [`CANCELLED`]); then source and tag if matched |
//! | collectives | communicator, root or -1, bytes sent, bytes received |
//! | collectives between neighbours | communicator, number of destinations, for each its rank and the bytes sent to it; the sources' ranks |
//! | new communicators | the old one, the new one's number plus one or 0 |
//! | one-sided | window, target or -1, bytes; of a lock its type ([`LOCK_EXCLUSIVE`], [`LOCK_SHARED`]) where it is known; of a group's epoch the number of its ranks, and each as a rank of the world |
//! | files | file, bytes |
//! | pcontrol | level, the name's number plus one or 0 |
//!
//! Peers are ranks of the communicator. A request has the lowest slot that is free when it is made; a completion frees
//! it unless it is persistent. A kind that makes a request does so whatever its peer is.

/// First line of a rank's file.
pub const MAGIC: &str = "#FLOWCAST-RANK 2";
/// The same of files whose blocks have no checksum.
pub const OLD_MAGIC: &str = "#FLOWCAST-RANK 1";
/// First line of the file that stands for the whole recording.
pub const RECORDING_MAGIC: &str = "#FLOWCAST-RECORDING 1";
/// How its line begins that says how a program ended that failed.
pub const FAILED: &str = "failed ";
/// Name of that file.
pub const RECORDING: &str = "recording";
/// The file beside it in which a rank leaves why its recording ended, while the program runs: a text up to the first zero.
pub const REASON: &str = "reason";
/// The size of that file.
pub const REASON_BYTES: usize = 1024;
/// Key of the header's last line: the CRC-32 of what stands before it, as eight hexadecimal digits.
pub const CHECKSUM: &str = "checksum";
/// How each block begins.
pub const BLOCK: &[u8; 4] = b"FBLK";

/// Bytes before those of a block.
pub const HEAD: usize = 12;
/// The same where blocks have no checksum.
pub(crate) const OLD_HEAD: usize = 8;

/// The header of a rank's file, of the lines `key value` that it begins with.
pub fn header(lines: &str) -> String {
    let text = format!("{MAGIC}\n{lines}");
    let checksum = crc32fast::hash(text.as_bytes());
    format!("{text}{CHECKSUM} {checksum:08x}\n\n")
}

/// What stands before the bytes of a block.
pub fn head(block: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(BLOCK);
    head[4..8].copy_from_slice(&(block.len() as u32).to_le_bytes());
    head[8..].copy_from_slice(&crc32fast::hash(block).to_le_bytes());
    head
}

/// The receive named any source.
pub const ANY_SOURCE: i64 = 1;
/// The receive named any tag.
pub const ANY_TAG: i64 = 2;
/// Source and tag follow.
pub const MATCHED: i64 = 1;
/// The operation was cancelled.
pub const CANCELLED: i64 = 2;
/// The peer of an operation that does nothing.
pub const NO_RANK: i64 = -1;

/// A lock that one rank alone may have.
pub const LOCK_EXCLUSIVE: i64 = 1;
/// A lock that several ranks may have.
pub const LOCK_SHARED: i64 = 2;

/// The flags of a communicator's definition.
pub const COMMUNICATOR_BETWEEN_GROUPS: u64 = 1;

/// What follows a 0.
pub mod control {
    /// The next function's name: length, bytes.
    pub const FUNCTION: u8 = 1;
    /// The next signature: number of words, words.
    pub const SIGNATURE: u8 = 2;
    /// The next communicator: flags, runs of members (number of runs; of each the first, the step, the count), and for
    /// one between groups the remote group's runs.
    pub const COMMUNICATOR: u8 = 3;
    /// The next window: its communicator.
    pub const WINDOW: u8 = 4;
    /// The next file: its communicator.
    pub const FILE: u8 = 5;
    /// Calls that follow are this thread's.
    pub const THREAD: u8 = 6;
    /// The thread was busy with recording for this long (ns); left out where calls are folded.
    pub const PAUSE: u8 = 7;
    /// The next name: length, bytes.
    pub const NAME: u8 = 8;
    /// Tests and probes that found nothing: function, how many, computation between them (ns), time in them (ns).
    pub const POLLS: u8 = 9;
    /// A repeated sequence; see [`crate::fold`].
    pub const FOLD: u8 = 10;
    /// All signatures are forgotten.
    pub const RESET: u8 = 11;
    /// The program has ended as it should.
    pub const END: u8 = 12;
    /// The size budget is used up; nothing more is recorded.
    pub const STOPPED: u8 = 13;
    /// Recording was switched off for this long (ns).
    pub const OFF: u8 = 14;
    /// What the host's monotonic clock shows where the thread's count stands (ns), whether rank 0's was read with it (0 or
    /// 1), by how much that is ahead (ns, zigzag), and half the round trips by which it was read (ns).
    pub const CLOCK: u8 = 15;
}

/// A time as 16 bits: exact below 2048 ns, then rounded down to 11 significant bits.
#[inline]
pub fn time_code(nanos: u64) -> u16 {
    let bits = 64 - nanos.leading_zeros();
    let exponent = bits.saturating_sub(11);
    if exponent > 31 {
        return u16::MAX;
    }
    ((exponent as u16) << 11) | ((nanos >> exponent) as u16 & 0x7FF)
}

/// The time of a code, in nanoseconds.
#[inline]
pub fn time_of(code: u16) -> u64 {
    u64::from(code & 0x7FF) << (code >> 11)
}

/// Writes a number in as few bytes as it needs; gives how many. Ten bytes are enough for any.
#[inline]
pub fn put_varint(out: &mut [u8], mut value: u64) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Reads a number and moves `at` behind it.
///
/// ```
/// use flowcast_recording::format::{put_varint, varint};
///
/// let mut bytes = [0; 10];
/// let length = put_varint(&mut bytes, 300);
/// let mut at = 0;
/// assert_eq!((varint(&bytes, &mut at), at), (Some(300), length));
/// ```
#[inline]
pub fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Small numbers of either sign as small numbers.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The reverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_code_is_one_part_in_1024_below_the_time_at_most(nanos in 0u64..1 << 42) {
            let back = time_of(time_code(nanos));
            prop_assert!(back <= nanos && (nanos - back) * 1024 <= nanos, "{nanos} became {back}");
            prop_assert_eq!(time_of(time_code(back)), back);
        }

        #[test]
        fn numbers_come_back(value in any::<u64>(), signed in any::<i64>()) {
            let mut bytes = [0; 10];
            let length = put_varint(&mut bytes, value);
            let mut at = 0;
            prop_assert_eq!(varint(&bytes[..length], &mut at), Some(value));
            prop_assert_eq!(at, length);
            prop_assert_eq!(unzigzag(zigzag(signed)), signed);
        }
    }

    #[test]
    fn times_below_two_microseconds_are_exact() {
        assert!((0..2048).all(|nanos| time_of(time_code(nanos)) == nanos));
    }
}

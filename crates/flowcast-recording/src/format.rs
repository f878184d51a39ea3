//! Byte format of a rank's file.
//!
//! A file begins with a header: the line [`MAGIC`], lines `key value`, a line of [`CHECKSUM`] with the CRC-32 of the lines
//! before it, and an empty line. The header is followed by blocks. A block consists of [`BLOCK`], the number of its bytes
//! (u32, little endian), their CRC-32 (u32; missing in files that begin with [`OLD_MAGIC`]) and the bytes. A block contains
//! whole items. An item begins with a number of variable length. A 0 is followed by one of [`control`]; any other number is
//! a call, and its signature is that number minus one. A call is followed by its times: the computation before it as a time
//! code, the share of the computation in which the thread had the processor (one byte, present only if the computation is at
//! least as long as the header's `cpu-threshold-ns`), and the time in the call as a time code.
//!
//! A time code has 16 bits: five of exponent and eleven of mantissa. It is exact to one part in 1024. The writer adds the
//! rounding error to the next time of the same kind, so sums are exact to the error of one code.
//!
//! # Signatures
//! The first word is the number of the function in the file. The other words depend on the function's kind in the table:
//!
//! | kind | words |
//! |---|---|
//! | sends, also non-blocking and persistent | communicator, peer, tag, bytes |
//! | receives, probes | communicator, source, tag, flags ([`ANY_SOURCE`], [`ANY_TAG`]) |
//! | sendrecv | words of the send; then source, tag, flags |
//! | start, request-free, cancel | slots |
//! | waits and tests | for each request completed: `4 slot + flags` ([`MATCHED`], [`CANCELLED`]); then source and tag if matched |
//! | collectives | communicator, root or -1, bytes sent, bytes received |
//! | neighbourhood collectives | communicator, number of destinations, rank and bytes of each; ranks of the sources |
//! | new communicators | old communicator; number of the new one plus one, or 0 |
//! | one-sided | window, target or -1, bytes; of a lock its type ([`LOCK_EXCLUSIVE`], [`LOCK_SHARED`]) where it is known; of a group's epoch the number of its ranks, and each as a rank of the world |
//! | files | file, bytes |
//! | pcontrol | level; number of the name plus one, or 0 if there is none |
//!
//! Peers are ranks of the communicator. A new request gets the lowest free slot. Its completion frees the slot unless the
//! request is persistent. A function of a kind that makes requests makes one for every peer, `MPI_PROC_NULL` included.

/// First line of a rank's file.
pub const MAGIC: &str = "#FLOWCAST-RANK 2";
/// First line of a rank's file whose blocks have no checksum.
pub const OLD_MAGIC: &str = "#FLOWCAST-RANK 1";
/// First line of the file that describes the whole recording.
pub const RECORDING_MAGIC: &str = "#FLOWCAST-RECORDING 1";
/// First characters of the line in the file `recording` that describes how a failed program ended.
pub const FAILED: &str = "failed ";
/// Name of the file that describes the whole recording.
pub const RECORDING: &str = "recording";
/// Name of the file beside `recording` in which a rank stores, while the program runs, the reason why its recording ended:
/// text up to the first zero byte.
pub const REASON: &str = "reason";
/// Size of the file with the reason, in bytes.
pub const REASON_BYTES: usize = 1024;
/// Key of the header's last line: the CRC-32 of the preceding lines, as eight hexadecimal digits.
pub const CHECKSUM: &str = "checksum";
/// First bytes of each block.
pub const BLOCK: &[u8; 4] = b"FBLK";

/// Length of a block's header, in bytes.
pub const HEAD: usize = 12;
/// Length of the header of a block without checksum, in bytes.
pub(crate) const OLD_HEAD: usize = 8;

/// Returns the header of a rank's file with these lines `key value`.
pub fn header(lines: &str) -> String {
    let text = format!("{MAGIC}\n{lines}");
    let checksum = crc32fast::hash(text.as_bytes());
    format!("{text}{CHECKSUM} {checksum:08x}\n\n")
}

/// Returns the header of a block with these bytes.
pub fn head(block: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(BLOCK);
    head[4..8].copy_from_slice(&(block.len() as u32).to_le_bytes());
    head[8..].copy_from_slice(&crc32fast::hash(block).to_le_bytes());
    head
}

/// Flag of a receive from any source.
pub const ANY_SOURCE: i64 = 1;
/// Flag of a receive with any tag.
pub const ANY_TAG: i64 = 2;
/// Flag of a completed request: source and tag follow.
pub const MATCHED: i64 = 1;
/// Flag of a completed request: the operation was cancelled.
pub const CANCELLED: i64 = 2;
/// Peer of an operation without effect.
pub const NO_RANK: i64 = -1;

/// Type of a lock that only one rank can hold.
pub const LOCK_EXCLUSIVE: i64 = 1;
/// Type of a lock that several ranks can hold.
pub const LOCK_SHARED: i64 = 2;

/// Flag in the definition of an intercommunicator.
pub const COMMUNICATOR_BETWEEN_GROUPS: u64 = 1;

/// Kinds of item after a 0.
pub mod control {
    /// Name of the next function: length, bytes.
    pub const FUNCTION: u8 = 1;
    /// Next signature: number of words, words.
    pub const SIGNATURE: u8 = 2;
    /// Next communicator: flags, then its members as runs (number of runs; first, step and count of each). For an
    /// intercommunicator, the runs of the remote group follow.
    pub const COMMUNICATOR: u8 = 3;
    /// Next window: its communicator.
    pub const WINDOW: u8 = 4;
    /// Next file: its communicator.
    pub const FILE: u8 = 5;
    /// Number of the thread that made the calls that follow.
    pub const THREAD: u8 = 6;
    /// Time that the thread spent on recording (ns); missing where calls are folded.
    pub const PAUSE: u8 = 7;
    /// Next name: length, bytes.
    pub const NAME: u8 = 8;
    /// Tests and probes that found nothing: function, number of calls, computation between them (ns), time in them (ns).
    pub const POLLS: u8 = 9;
    /// Repeated sequence; see [`crate::fold`].
    pub const FOLD: u8 = 10;
    /// Reset of the signatures: earlier ones are no longer valid.
    pub const RESET: u8 = 11;
    /// Normal end of the program.
    pub const END: u8 = 12;
    /// End of the recording because the size budget is used up.
    pub const STOPPED: u8 = 13;
    /// Time for which recording was switched off (ns).
    pub const OFF: u8 = 14;
    /// Clock reading: the host's monotonic clock at the current time of the thread (ns), 1 if rank 0's clock was read as
    /// well or else 0, the lead of rank 0's clock (ns, zigzag), and half the round trips that measured it (ns).
    pub const CLOCK: u8 = 15;
}

/// Encodes a time in 16 bits: exact below 2048 ns, then rounded down to 11 significant bits.
#[inline]
pub fn time_code(nanos: u64) -> u16 {
    let bits = 64 - nanos.leading_zeros();
    let exponent = bits.saturating_sub(11);
    if exponent > 31 {
        return u16::MAX;
    }
    ((exponent as u16) << 11) | ((nanos >> exponent) as u16 & 0x7FF)
}

/// Decodes a time, in nanoseconds.
#[inline]
pub fn time_of(code: u16) -> u64 {
    u64::from(code & 0x7FF) << (code >> 11)
}

/// Writes a number in as few bytes as possible and returns their number. Ten bytes are enough for any number.
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

/// Reads a number and moves `at` past it. Returns `None` if the bytes end first or the number has too many bits.
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

/// Maps numbers of small magnitude, of either sign, to small unsigned numbers.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Returns the signed number of a code: the inverse of [`zigzag`].
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
        fn a_time_code_is_at_most_one_part_in_1024_below_the_time(nanos in 0u64..1 << 42) {
            let back = time_of(time_code(nanos));
            prop_assert!(back <= nanos && (nanos - back) * 1024 <= nanos, "{nanos} became {back}");
            prop_assert_eq!(time_of(time_code(back)), back);
        }

        #[test]
        fn encoded_numbers_are_read_back_unchanged(value in any::<u64>(), signed in any::<i64>()) {
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

//! Output of the encoder, which must be read as the recorded program, without MPI. Damaged files must be refused.

use std::{io, sync::Arc};

use flowcast_formats::read::CUT;
use flowcast_program::{Program, ReadOptions, SharedBytes, Trace, TraceError, opcodes::Op};
use flowcast_record::encoder::{Encoder, Rest, Times};
use flowcast_recording::format::{self, control};
use flowcast_units::{Rank, Time};
use proptest::prelude::*;

const TABLE: [&str; 6] = ["Irecv", "Send", "Wait", "Allreduce", "Recv", "Init"];
const WORLD: i64 = 0;

struct Writer {
    rank: u32,
    encoder: Encoder,
    rest: Rest,
}

impl Writer {
    fn new(rank: u32) -> Writer {
        let mut encoder = Encoder::new(TABLE.len(), 50_000, 1 << 12, None);
        encoder.communicator(&[0, 1], None);
        Writer {
            rank,
            encoder,
            rest: Rest::default(),
        }
    }

    fn call(&mut self, name: &str, words: &[i64], burst: u64) {
        let number = TABLE.iter().position(|known| *known == name).unwrap() as u16;
        let mut signature = vec![self.encoder.function(number, name)];
        signature.extend_from_slice(words);
        let times = Times {
            burst,
            cpu: burst,
            call: 100,
        };
        self.encoder.call(&signature, 0, times, &mut self.rest);
    }

    fn bytes(mut self) -> Vec<u8> {
        self.encoder.control(control::END, &[]);
        let rank = self.rank;
        let lines = format!(
            "rank {rank}\nranks 2\nhost a\ncores 8\nprogram ring\ncpu-threshold-ns 50000\noverhead-ns 0\n"
        );
        let mut bytes = format::header(&lines).into_bytes();
        self.encoder.drain(|block| {
            bytes.extend_from_slice(&format::head(block));
            bytes.extend_from_slice(block);
        });
        bytes
    }
}

/// Returns a recording in which rank 0 posts two receives from any source, computes, and waits for them in the opposite
/// order; rank 1 sends twice.
fn recording() -> [Vec<u8>; 2] {
    let mut first = Writer::new(0);
    first.call("Init", &[], 0);
    first.call("Irecv", &[WORLD, -1, 7, format::ANY_SOURCE], 0);
    first.call(
        "Irecv",
        &[WORLD, -1, -1, format::ANY_SOURCE | format::ANY_TAG],
        0,
    );
    first.call("Wait", &[4 + format::MATCHED, 1, 9], 1500);
    first.call("Wait", &[format::MATCHED, 1, 7], 0);
    first.call("Allreduce", &[WORLD, -1, 8, 8], 0);
    let mut second = Writer::new(1);
    second.call("Init", &[], 0);
    second.call("Send", &[WORLD, 0, 7, 100], 300);
    second.call("Send", &[WORLD, 0, 9, 200], 0);
    second.call("Allreduce", &[WORLD, -1, 8, 8], 0);
    [first.bytes(), second.bytes()]
}

fn read(files: &[Vec<u8>; 2]) -> Result<Program, TraceError> {
    let text = format!("{}\nranks 2\n", format::RECORDING_MAGIC);
    let mut open = |name: &str| -> io::Result<SharedBytes> {
        let rank: usize = name
            .trim_start_matches("rank-")
            .parse()
            .map_err(io::Error::other)?;
        Ok(Arc::new(
            files
                .get(rank)
                .ok_or_else(|| io::Error::other("no such rank"))?
                .clone(),
        ))
    };
    match flowcast_formats::read(
        "recording",
        Arc::new(text.into_bytes()),
        &mut open,
        ReadOptions::default(),
    )? {
        Trace::Program(program) => Ok(program),
        _ => panic!("a recording is a program"),
    }
}

#[test]
fn wildcards_are_matched_as_recorded_and_waits_name_their_receives() {
    let program = read(&recording()).unwrap();
    assert_eq!(
        (program.ranks(), program.messages(), program.bytes().0),
        (2, 2, 300)
    );
    let ops: Vec<Op> = program.ops(Rank(0)).map(|(_, op)| op).collect();
    let nanos = |nanos| Op::Compute(Time::from_nanos(nanos));
    let Op::Collective { .. } = ops[6] else {
        panic!("{ops:?}")
    };
    assert_eq!(
        ops[..6],
        [
            Op::Nothing,
            Op::Irecv,
            Op::Irecv,
            nanos(1500.0),
            Op::WaitRecv(1),
            Op::WaitRecv(0)
        ]
    );
    let slots: Vec<u32> = program
        .ops(Rank(1))
        .filter_map(|(_, op)| match op {
            Op::Send { slot, .. } => Some(slot.0),
            _ => None,
        })
        .collect();
    assert_eq!(slots, [0, 1]);
    assert!(program.ignored().is_empty(), "{:?}", program.ignored());
}

#[test]
fn a_send_without_a_receive_is_removed_and_counted() {
    let [first, _] = recording();
    let mut second = Writer::new(1);
    for tag in [7, 9, 7] {
        second.call("Send", &[WORLD, 0, tag, 100], 0);
    }
    second.call("Allreduce", &[WORLD, -1, 8, 8], 0);
    let program = read(&[first, second.bytes()]).unwrap();
    assert_eq!(program.messages(), 2);
    assert_eq!(
        program.ignored()[0].kind,
        "sends without a matching receive"
    );
    assert_eq!(program.ignored()[0].count, 1);
}

#[test]
fn another_recording_s_file_is_refused() {
    let [first, second] = recording();
    let error = read(&[second, first]).unwrap_err().to_string();
    assert!(
        error.contains("rank 1 of 2") && error.contains("expected rank 0 of 2"),
        "{error}"
    );
}

#[test]
fn a_file_that_ends_early_is_read_up_to_its_last_block() {
    let [first, second] = recording();
    for length in 0..first.len() {
        match read(&[first[..length].to_vec(), second.clone()]) {
            Ok(program) => assert_eq!(program.messages(), 0),
            Err(error) => assert!(error.to_string().contains("expected"), "{error}"),
        }
    }
}

#[test]
fn no_flipped_bit_gives_a_different_program() {
    let [first, second] = recording();
    let whole = compiled(read(&[first.clone(), second.clone()]).unwrap());
    let blocks = first
        .windows(4)
        .position(|bytes| bytes == format::BLOCK)
        .unwrap();
    for bit in 0..first.len() * 8 {
        let mut flipped = first.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match read(&[flipped, second.clone()]) {
            Err(error) => assert!(!error.to_string().is_empty()),
            // The replay of an incomplete program requires explicit consent.
            Ok(program) if program.ignored().iter().any(|ignored| ignored.kind == CUT) => {
                assert!(bit / 8 >= blocks - 2, "bit {bit}");
            }
            // The key of the checksum line may have become an unknown one, and one of its digits a capital letter.
            Ok(program) => assert_eq!(compiled(program), whole, "bit {bit}"),
        }
    }
}

fn compiled(program: Program) -> Vec<u8> {
    flowcast_program::compiled::parts(&Trace::Program(program)).concat()
}

#[test]
fn a_header_that_was_changed_is_refused() {
    let [first, second] = recording();
    let text = String::from_utf8_lossy(&first).into_owned();
    let at = text.find("cpu-threshold-ns 5").unwrap() + "cpu-threshold-ns ".len();
    let mut changed = first;
    changed[at] = b'6';
    let error = read(&[changed, second]).unwrap_err().to_string();
    assert!(
        error.contains("expected the checksum of the header"),
        "{error}"
    );
}

#[test]
fn small_files_do_not_describe_large_communicators() {
    let lines = "rank 0\nranks 16777216\nhost a\ncores 8\ncpu-threshold-ns 50000\noverhead-ns 0\n";
    let world = [0, control::COMMUNICATOR, 0, 1, 0, 2, 0x80, 0x80, 0x80, 0x08];
    let file = |communicators: usize| {
        let block = world.repeat(communicators);
        [
            format::header(lines).as_bytes(),
            &format::head(&block),
            &block,
        ]
        .concat()
    };
    assert_eq!(
        flowcast_recording::decode::read("r", &file(1))
            .unwrap()
            .communicators[0]
            .own
            .len(),
        1 << 24
    );
    assert!(flowcast_recording::decode::read("r", &file(2)).is_err());
}

#[test]
fn a_file_without_checksums_is_read() {
    let old = |file: Vec<u8>| {
        let head = file
            .windows(4)
            .position(|bytes| bytes == format::BLOCK)
            .unwrap();
        let mut old = file;
        old.drain(head + 8..head + 12);
        let line = "checksum 01234567\n".len();
        old.drain(head - 1 - line..head - 1);
        let magic = old.iter().position(|byte| *byte == b'2').unwrap();
        old[magic] = b'1';
        old
    };
    let [first, second] = recording().map(old);
    assert_eq!(read(&[first, second]).unwrap().messages(), 2);
}

proptest! {
    #[test]
    fn damaged_files_give_a_message_or_a_program(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let [mut first, second] = recording();
        for (at, byte) in changes {
            let at = at.index(first.len());
            first[at] = byte;
        }
        if let Err(error) = read(&[first, second]) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

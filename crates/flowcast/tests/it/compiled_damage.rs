//! Compiled traces with a valid checksum and invalid content: they are rejected, or read as a valid program.

use std::{path::Path, sync::Arc};

use crate::random_programs::any_records;
use flowcast::{
    Collectives, Options, Outputs, Prepared,
    convert::{self, Dialect, Losses, WriterTables},
    model::{
        algorithm::{AlgorithmTable, Base},
        builtin,
    },
    trace::{
        Program, ReadOptions, Trace, compiled,
        expand::{NonBlocking, expand},
    },
    units::Rank,
};
use proptest::prelude::*;

const HEADER: usize = 32;

/// CRC-32 as in zip files, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// The file with a valid checksum.
fn with_checksum(mut file: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&file[HEADER..]);
    file[12..16].copy_from_slice(&sum.to_le_bytes());
    file
}

/// Uses a program in all supported ways; errors are valid results.
fn use_of(program: &Program) {
    let network = builtin::network("gige-tcp").unwrap();
    for collectives in [
        Collectives::Formula,
        Collectives::OpenMpi,
        Collectives::Mpich,
    ] {
        let options = Options {
            collectives,
            ..Options::default()
        };
        let trace = Trace::Program(program.clone());
        let outputs = Outputs {
            view: true,
            explanation: true,
            journal: None,
        };
        let _ = Prepared::new(&trace, Some(&network), &options)
            .and_then(|ready| ready.predict(outputs, &[]));
    }
    convert_all(program);
    for base in [Base::OpenMpi, Base::Mpich] {
        let table = AlgorithmTable::from_base(base);
        if let Ok(expanded) = expand(
            program,
            &table,
            NonBlocking::Expanded,
            ReadOptions::default(),
        ) {
            convert_all(&expanded.program);
        }
    }
}

fn convert_all(program: &Program) {
    let mut out = Vec::new();
    let _ = convert::goal(program, &mut out);
    let _ = convert::dim(program, Dialect::Own, &mut out);
    let blocking = convert::with_blocking_collectives(program);
    let program = blocking.as_ref().map_or(program, |(program, _)| program);
    let _ = convert::needs_messages(program);
    let tables = WriterTables::new(program);
    for rank in (0..program.ranks() as u32).map(Rank) {
        let _ = convert::ti_rank(&tables, rank, &mut Losses::default(), &mut out);
    }
}

fn read(file: Vec<u8>) -> Result<Program, String> {
    match compiled::read("t", Arc::new(file)) {
        Ok(Trace::Program(program)) => Ok(program),
        Ok(_) => Err("no program".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn inconsistent_files_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/damaged-fct");
    for name in ["02f72a1b", "302915e6", "91849065", "c03321dc"] {
        let file = std::fs::read(folder.join(format!("panic-{name}.fct"))).unwrap();
        assert_eq!(with_checksum(file.clone()), file, "{name}");
        let refused = read(file).map(|program| use_of(&program)).unwrap_err();
        assert!(
            refused.starts_with("t: ") && refused.contains("found "),
            "{name}: {refused}"
        );
    }
}

#[test]
fn no_flipped_bit_makes_another_trace() {
    let text = "#DIMEMAS:\"c\":0:3(1,1,1),2\nd:1:1:3:0:1:2\nd:1:2:2:0:2\n10:0:0:7:1:0:0:8:8:1\n2:0:0:1:-1:80:7:1:2\n\
        1:0:0:0.000001\n10:1:0:7:1:0:0:8:8:1\n3:1:0:0:-1:80:7:1:1\n10:2:0:7:1:0:0:8:8:1\n";
    let schedule = "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 8b to 1 tag 3\nl2 requires l1\n}\n\
        rank 1 {\nl1: recv 8b from 0 tag 3\n}\n";
    for text in [text, schedule] {
        let parts = compiled::parts(&flowcast::read_text("c", text).unwrap()).concat();
        for bit in 0..8 * parts.len() {
            let mut flipped = parts.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(trace) = compiled::read("c", Arc::new(flipped)) {
                assert_eq!(compiled::parts(&trace).concat(), parts, "bit {bit}");
            }
        }
    }
}

/// A change that keeps the length; positions are fractions.
#[derive(Debug, Clone)]
enum Change {
    /// Changes a bit of any byte.
    Bit(f64, u8),
    /// Replaces the number in a word of the streams by a small one; the kind of instruction stays.
    Payload(f64, u8),
    /// Replaces a word of the streams by another one.
    Copy(f64, f64),
    /// Changes a digit of the tables.
    Digit(f64, u8),
}

fn any_change() -> impl Strategy<Value = Change> {
    let place = || 0.0..1.0f64;
    prop_oneof![
        (place(), 0u8..8).prop_map(|(at, bit)| Change::Bit(at, bit)),
        (place(), 0u8..4).prop_map(|(at, number)| Change::Payload(at, number)),
        (place(), place()).prop_map(|(from, to)| Change::Copy(from, to)),
        (place(), 0u8..10).prop_map(|(at, digit)| Change::Digit(at, digit)),
    ]
}

fn change(file: &mut [u8], change: &Change) {
    let tables = HEADER + u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
    let words = (file.len() - tables) / 4;
    let word = |at: f64| tables + (at * words as f64) as usize * 4;
    match *change {
        Change::Bit(at, bit) => {
            file[HEADER + (at * (file.len() - HEADER) as f64) as usize] ^= 1 << bit
        }
        Change::Payload(at, number) if words > 0 => file[word(at)] = number,
        Change::Copy(from, to) if words > 0 => {
            file.copy_within(word(from)..word(from) + 4, word(to))
        }
        Change::Digit(at, digit) => {
            let digits: Vec<usize> = (HEADER..tables)
                .filter(|at| file[*at].is_ascii_digit())
                .collect();
            file[digits[(at * digits.len() as f64) as usize]] = b'0' + digit;
        }
        Change::Payload(..) | Change::Copy(..) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_change_makes_anything_panic(
        records in any_records(),
        changes in proptest::collection::vec(any_change(), 1..4),
    ) {
        let mut file = compiled::parts(&Trace::Program(records.program())).concat();
        changes.iter().for_each(|one| change(&mut file, one));
        if let Ok(program) = read(with_checksum(file)) {
            use_of(&program);
        }
    }

    #[test]
    fn a_compiled_trace_is_read(records in any_records()) {
        let program = records.program();
        let file = compiled::parts(&Trace::Program(program.clone())).concat();
        let again = read(file).map_err(TestCaseError::fail)?;
        prop_assert_eq!((again.bytes(), again.has_self_messages()), (program.bytes(), program.has_self_messages()));
        let table = AlgorithmTable::from_base(Base::OpenMpi);
        let expanded = expand(&again, &table, NonBlocking::Expanded, ReadOptions::default()).unwrap().program;
        prop_assert!(read(compiled::parts(&Trace::Program(expanded)).concat()).is_ok());
    }
}

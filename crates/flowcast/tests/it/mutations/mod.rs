//! Small changes to a text or file, as from damage and mistakes.

use proptest::prelude::*;

/// A change to a text; positions are fractions of its length.
#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    Replace(f64, u8),
    Insert(f64, Vec<u8>),
    Remove(f64, usize),
    CopyLine(f64, f64),
    RemoveLine(f64),
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let byte = || {
        prop_oneof![
            proptest::sample::select(&b"0123456789:-.,()\n \"{}abdsrecv#/*"[..]),
            any::<u8>()
        ]
    };
    const NUMBERS: [&str; 8] = [
        "-1",
        "99999999999999999999",
        "4294967296",
        "16777215",
        "1e308",
        "nan",
        "2147483648",
        "0",
    ];
    let inserted = prop_oneof![
        proptest::collection::vec(byte(), 1..4),
        proptest::sample::select(&NUMBERS[..]).prop_map(|text| text.as_bytes().to_vec()),
    ];
    let place = || 0.0..1.0f64;
    prop_oneof![
        (place(), byte()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (place(), inserted).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (place(), 1usize..12).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (place(), place()).prop_map(|(from, to)| Mutation::CopyLine(from, to)),
        place().prop_map(Mutation::RemoveLine),
    ]
}

fn line_at(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = text[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let end = text[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |length| at + length + 1);
    start..end
}

/// Changes a text.
pub(crate) fn mutate(text: &mut Vec<u8>, mutation: &Mutation) {
    let length = text.len();
    let place = |at: f64| (at * length as f64) as usize;
    if text.is_empty() {
        return;
    }
    match mutation {
        Mutation::Replace(at, byte) => text[place(*at)] = *byte,
        Mutation::Insert(at, bytes) => {
            drop(text.splice(place(*at)..place(*at), bytes.iter().copied()))
        }
        Mutation::Remove(at, count) => {
            drop(text.drain(place(*at)..(place(*at) + count).min(length)))
        }
        Mutation::RemoveLine(at) => drop(text.drain(line_at(text, place(*at)))),
        Mutation::CopyLine(from, to) => {
            let line = text[line_at(text, place(*from))].to_vec();
            let start = line_at(text, place(*to)).start;
            drop(text.splice(start..start, line));
        }
    }
}

/// A few changes.
pub(crate) fn any_mutations() -> impl Strategy<Value = Vec<Mutation>> {
    proptest::collection::vec(any_mutation(), 1..5)
}

#![no_main]

#[allow(dead_code)]
mod predict;

use std::sync::Arc;

use flowcast::trace::SharedBytes;
use flowcast::formats::read::{is_part, listed, read_parts};
use flowcast::formats::read;
use flowcast::trace::ReadOptions;

const BETWEEN: &[u8] = b"\n%%\n";

// A trace of several files, separated by a line of two percent signs: a list or deployment that names its files by number,
// or a file for each rank.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut files: Vec<&[u8]> = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        files.push(&rest[..at]);
        rest = &rest[at + BETWEEN.len()..];
    }
    files.push(rest);
    if files.len() > 8 {
        return;
    }
    let shared = |file: &[u8]| -> SharedBytes { Arc::new(file.to_vec()) };
    let _ = listed(files[0]);
    let trace = if is_part(files[0]) {
        let parts = files.iter().enumerate().map(|(rank, file)| (format!("{rank}.txt"), shared(file)));
        read_parts("t", parts.collect(), ReadOptions::default())
    } else {
        let mut open = |name: &str| {
            let number: Option<usize> = name.trim_end_matches(".txt").parse().ok();
            let file = number.and_then(|number| files.get(number));
            file.map(|file| shared(file)).ok_or_else(|| std::io::ErrorKind::NotFound.into())
        };
        read("t", shared(files[0]), &mut open, ReadOptions::default())
    };
    if let Ok(trace) = trace {
        predict::replay(&trace);
    }
});

#![no_main]

// The other targets add a header to a single text.
#[allow(dead_code)]
mod predict;

use std::sync::Arc;

use flowcast::recording::format::{MAGIC, RECORDING_MAGIC};

// The halves of the bytes are the files of two ranks, after the rank numbers.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let halves = bytes.split_at(bytes.len() / 2);
    let recording = format!("{RECORDING_MAGIC}\nranks 2\n");
    predict::predict_with(recording.into_bytes(), &mut |file: &str| {
        let (rank, half) = if file.ends_with('1') { (1, halves.1) } else { (0, halves.0) };
        Ok(Arc::new([format!("{MAGIC}\nrank {rank}\nranks 2\n").as_bytes(), half].concat()))
    });
});

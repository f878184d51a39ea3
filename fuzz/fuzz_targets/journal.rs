#![no_main]

#[allow(dead_code)]
#[path = "../../crates/flowcast-cli/src/terminal/growing/blocks.rs"]
mod blocks;

// What is read is what was written, or told as spoilt; what is written reads back.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let read = blocks::read(bytes);
    let again: String = read.whole.iter().map(|text| blocks::sealed(text)).collect();
    assert!(again.len() <= bytes.len() + 10 * read.whole.len());
    let again = blocks::read(again.as_bytes());
    assert_eq!((again.whole, again.spoilt), (read.whole, 0));
    let _ = blocks::are_in(bytes);
});

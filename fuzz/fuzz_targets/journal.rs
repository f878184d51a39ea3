#![no_main]

#[allow(dead_code)]
#[path = "../../crates/flowcast-terminal/src/growing/blocks.rs"]
mod blocks;

// Trusted texts are the written ones, in order. Written again, they read back equal.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let read = blocks::read(bytes);
    let mut chain = blocks::Chain::default();
    let again: String = read.texts.iter().map(|text| chain.seal(text)).collect();
    let again = blocks::read(again.as_bytes());
    assert_eq!((again.texts, again.chain), (read.texts, read.chain));
    let _ = blocks::beginnings(bytes);
});

#![no_main]

mod predict;

libfuzzer_sys::fuzz_target!(|rest: &[u8]| predict::predict(b"\x07\x0a\x050.0.4", rest));

#![no_main]

mod predict;

libfuzzer_sys::fuzz_target!(|rest: &[u8]| predict::predict(b"0 init\n", rest));

#![no_main]

mod predict;

libfuzzer_sys::fuzz_target!(|rest: &[u8]| predict::predict(b"MPI_Init:-:0:0:1\n", rest));

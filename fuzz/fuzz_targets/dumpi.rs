#![no_main]

mod predict;

libfuzzer_sys::fuzz_target!(|rest: &[u8]| predict::predict(b"MPI_Init entering at walltime 1.000000000, ", rest));

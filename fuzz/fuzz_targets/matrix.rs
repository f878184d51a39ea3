#![no_main]

use flowcast_place::matrix::CommunicationMatrix;
use flowcast_place::matrix_file::{MatrixFile, is_matrix};

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let _ = is_matrix(text);
    let Ok(file) = MatrixFile::read("t", text) else { return };
    // More ranks only take more time.
    if file.ranks > 1000 {
        return;
    }
    let _ = CommunicationMatrix::from_messages(file.ranks, file.messages);
});

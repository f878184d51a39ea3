#![no_main]

mod predict;

// A wrong checksum would end the reader early, so the target adds the correct one.
libfuzzer_sys::fuzz_target!(|body: &[u8]| {
    let Some((head, rest)) = body.split_at_checked(16) else { return };
    // Programs with loops are of kind 3 and version 2.
    let version = if head[8..12] == [3, 0, 0, 0] { 2u32 } else { 1 }.to_le_bytes();
    let file = [&b"FLOWCAST"[..], &version, &crc32fast::hash(rest).to_le_bytes(), head].concat();
    predict::predict(&file, rest);
});

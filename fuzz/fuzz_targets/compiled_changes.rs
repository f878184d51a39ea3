#![no_main]

mod predict;

use std::sync::Arc;

use flowcast::trace::folded::{Folded, FoldedPart};
use flowcast::trace::{Trace, compiled};

/// Blocking and non-blocking collectives, messages of both kinds, a file and a window.
const PROGRAM: &[u8] = b"#DIMEMAS:\"c\":0:3(1,1,1),2\nd:1:1:3:0:1:2\nd:1:2:2:0:2\n\
10:0:0:7:1:0:0:8:8:1\n10:0:0:7:2:0:0:8:8:0\n2:0:0:1:-1:80:7:1:2\n32:0:0:0\n1:0:0:0.000001\n10:0:0:7:2:0:0:0:0:2\n31:0:0:3:5:0:4096\n\
10:1:0:7:1:0:0:8:8:1\n3:1:0:0:-1:80:7:1:1\n3:1:0:0:-1:80:7:1:2\n\
10:2:0:7:1:0:0:8:8:1\n10:2:0:7:2:0:0:8:8:0\n10:2:0:7:2:0:0:0:0:2\n";

/// The program, or a loop over it.
fn trace(is_loop: bool) -> Trace {
    match flowcast::read_text("c", PROGRAM).expect("the program is well formed") {
        Trace::Program(program) if is_loop => {
            let parts = vec![FoldedPart::Once(program.clone()), FoldedPart::Loop(5, vec![FoldedPart::Once(program)])];
            Trace::Folded(Folded::new(parts).expect("the parts match"))
        }
        program => program,
    }
}

// The first byte decides whether the program has a loop. Each three bytes change one byte of a valid file: two are its
// position, and the third is XORed to it. The checksum is computed again.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((first, changes)) = input.split_first() else { return };
    let trace = trace(first & 1 == 1);
    let mut file = compiled::parts(&trace).concat();
    let behind = file.len() - 32;
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % behind;
        file[32 + at] ^= change[2];
    }
    let checksum = crc32fast::hash(&file[32..]);
    file[12..16].copy_from_slice(&checksum.to_le_bytes());
    predict::predict(&file, &[]);
    if let Ok(Trace::Program(program)) = compiled::read("c", Arc::new(file)) {
        predict::convert(&program);
    }
});

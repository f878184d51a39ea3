#![no_main]

mod predict;

use std::sync::Arc;

use flowcast::convert::{self, Dialect, Losses, WriterTables};
use flowcast::formats::read;
use flowcast::trace::{ReadOptions, Trace};
use flowcast::units::Rank;

fn read_back(written: Vec<u8>) -> Trace {
    let mut alone = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    read("t", Arc::new(written), &mut alone, ReadOptions::default()).expect("what is written reads back")
}

// Programs are written in the formats of other tools, and these files read back.
libfuzzer_sys::fuzz_target!(|rest: &[u8]| {
    let Ok(Trace::Program(program)) = flowcast::read_text("t", [&b"#DIMEMAS:"[..], rest].concat()) else { return };
    let mut text = Vec::new();
    convert::dim(&program, Dialect::Own, &mut text).expect("writing to memory succeeds");
    let Trace::Program(again) = read_back(text) else { panic!("a program remains a program") };
    assert_eq!((again.ranks(), again.messages()), (program.ranks(), program.messages()));
    let mut text = Vec::new();
    if convert::goal(&program, &mut text).is_ok() {
        read_back(text);
    }
    if convert::needs_messages(&program) {
        return;
    }
    let blocking = convert::with_blocking_collectives(&program);
    let program = blocking.as_ref().map_or(&program, |(program, _)| program);
    let (tables, mut text) = (WriterTables::new(program), Vec::new());
    let ranks = Rank::all(program.ranks());
    let written = ranks.map(|rank| convert::ti_rank(&tables, rank, &mut Losses::default(), &mut text));
    if written.collect::<Result<Vec<_>, _>>().is_ok() {
        read_back(text);
    }
});

#![no_main]

use flowcast::model::algorithm::AlgorithmTable;
use flowcast::model::builtin;
use flowcast::model::sharing::model::Model;
use flowcast::trace::expand::{NonBlocking, expand};
use flowcast::trace::{Program, ReadOptions, Trace};
use flowcast::units::CollectiveOp;
use flowcast::{Contention, Options};

/// Every collective, blocking on five ranks and non-blocking on three of them.
fn program() -> Program {
    let mut text = "#DIMEMAS:\"c\":0:5(1,1,1,1,1),2\nd:1:1:5:0:1:2:3:4\nd:1:2:3:1:3:4\n".to_owned();
    for rank in 0..5 {
        for operation in 0..CollectiveOp::ALL.len() {
            text += &format!("10:{rank}:0:{operation}:1:0:0:800:400:1\n");
            if [1, 3, 4].contains(&rank) {
                text += &format!("10:{rank}:0:{operation}:2:1:0:96:96:0\n10:{rank}:0:{operation}:2:1:0:0:0:2\n");
            }
        }
    }
    match flowcast::read_text("c", text) {
        Ok(Trace::Program(program)) => program,
        other => panic!("{other:?}"),
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(table) = AlgorithmTable::from_toml(text) else { return };
    let (program, network) = (program(), builtin::network("gige-tcp").expect("the network is built in"));
    let options = Options { contention: Contention::Shared(Model::Independent), ..Options::default() };
    for non_blocking in [NonBlocking::Expanded, NonBlocking::Kept] {
        if let Ok(expanded) = expand(&program, &table, non_blocking, ReadOptions::default()) {
            // Ranks may wait for each other, but nothing may panic.
            let _ = flowcast::predict(&Trace::Program(expanded.program), &network, &options);
        }
    }
});

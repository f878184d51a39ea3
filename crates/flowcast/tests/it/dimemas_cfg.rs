//! A Dimemas trace on a Dimemas configuration, read and replayed.

use std::sync::Arc;

use flowcast::{
    model::dimemas_cfg::DimemasConfig,
    replay::{costs::Rendezvous, placement::Placement, walk::Replay},
    trace::{ReadOptions, Trace},
};

/// One rank computes 10 us and sends 1000 bytes to another, which computes 4 us and receives.
const TRACE: &str = "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n1:0:0:0.000010000\n2:0:0:1:-1:1000:0:1:0\n\
                     1:1:0:0.000004000\n3:1:0:0:-1:1000:0:1:0\n";

fn makespan_ns(node_of_rank_1: &str) -> f64 {
    let cfg = format!(
        "#DIMEMAS_CONFIGURATION\n\"environment information\" {{\"\", 0, \"\", 2, 953.67431640625, 0, 3}};;\n\
         \"multi node information\" {{0, 1, \"\", 1, 1.0, 0.0, 0.0, 0, 0, 0, 0.000002, 0, 0, 0.0}};;\n\
         \"node information\" {node_of_rank_1};;\n\"predefined mapping information\" {{\"1 TASKS_PER_NODE\"}};;\n\
         \"configuration files\" {{\"\", \"\", \"\", \"\"}};;\n"
    );
    let network = DimemasConfig::read(cfg.as_bytes(), &mut |_| unreachable!("no file is named"))
        .unwrap()
        .network;
    let bytes = Arc::new(TRACE.as_bytes().to_vec());
    let trace = flowcast::formats::read(
        "t.dim",
        bytes,
        &mut |_| unreachable!("one file"),
        ReadOptions::default(),
    )
    .unwrap();
    let Trace::Program(program) = trace else {
        panic!("a .dim trace is a program")
    };
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let replay = Replay::new(
        &program,
        &network,
        placement,
        Rendezvous::from_network(&network, None),
    )
    .unwrap();
    replay.run().unwrap().makespan().as_nanos()
}

#[test]
fn a_message_takes_the_time_that_the_configuration_says() {
    let equal = "{0, \"\", 1, 1.0, 0.0, 0.0, 0, 0, 0, 0.000002, 0, 0, 0.0}";
    assert_eq!(makespan_ns(equal), 10_000.0 + 2000.0 + 1000.0);
}

#[test]
fn a_slow_receiver_delays_the_end_and_one_without_speed_computes_in_no_time() {
    let with_speed =
        |speed: &str| format!("{{0, \"\", 1, {speed}, 0.0, 0.0, 0, 0, 0, 0.000002, 0, 0, 0.0}}");
    assert_eq!(makespan_ns(&with_speed("0.25")), 16_000.0 + 2000.0);
    assert_eq!(makespan_ns(&with_speed("0")), 10_000.0 + 2000.0 + 1000.0);
}

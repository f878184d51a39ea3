//! Overheads of sender and receiver by size, in replays without and with contention, under every rule.

use flowcast::{
    Contention, Options,
    model::{network::Network, sharing::model::Model},
    predict, read_text, sweep,
    trace::Trace,
    units::Time,
};

/// Rank 0 sends 100 and 1000 bytes to rank 1, which computes for a millisecond first: both messages have then arrived.
const TWO_MESSAGES: &str = "#DIMEMAS:\"two\":1,0:2(1,1),1\nd:1:1:2:0:1\n2:0:0:1:-1:100:7:1:0\n2:0:0:1:-1:1000:7:1:0\n\
                            1:1:0:0.001\n3:1:0:0:-1:100:7:1:0\n3:1:0:0:-1:1000:7:1:0\n";

/// Sender: 1 us below 500 bytes, from there on 2 us and 1 ns for each byte. Receiver: 4 us, from there on 5 us and 2 ns for
/// each byte.
const OVERHEADS: &str = "[overheads]\nsend = [{ from = \"0B\", fixed = \"1us\", per_byte = \"0ns/B\" }, \
                         { from = \"500B\", fixed = \"2us\", per_byte = \"1ns/B\" }]\n\
                         receive = [{ from = \"0B\", fixed = \"4us\", per_byte = \"0ns/B\" }, \
                         { from = \"500B\", fixed = \"5us\", per_byte = \"2ns/B\" }]\n";

fn network(rule: &str, more: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"{rule}\"\n\
         [nic]\nlatency = \"10us\"\nbandwidth = \"1GB/s\"\noverhead = \"9us\"\n{more}"
    );
    Network::from_toml(&text, &[]).unwrap()
}

/// Ends of the two ranks.
fn ends(network: &Network, contention: Contention) -> [Time; 2] {
    let trace = read_text("two.dim", TWO_MESSAGES).unwrap();
    let options = Options {
        contention,
        ..Options::default()
    };
    let outcome = predict(&trace, network, &options).unwrap().outcome;
    [0, 1].map(|rank| outcome.ranks[rank].end)
}

#[test]
fn both_sides_take_their_time_by_size_under_every_rule_and_engine() {
    // 1 + (2 + 1) us, and 1 ms + 4 + (5 + 2) us.
    let expected = [4.0, 1011.0].map(Time::from_micros);
    for rule in ["hockney", "dimemas", "loggops"] {
        for contention in [
            Contention::Limits,
            Contention::Shared(Model::Independent),
            Contention::Shared(Model::Fair),
        ] {
            assert_eq!(
                ends(&network(rule, OVERHEADS), contention),
                expected,
                "{rule} {contention:?}"
            );
        }
    }
}

#[test]
fn a_side_without_overheads_by_size_keeps_the_overhead_of_the_rule() {
    let send_alone = OVERHEADS.split("receive").next().unwrap();
    let found = ends(&network("loggops", send_alone), Contention::Limits);
    assert_eq!(found, [4.0, 1018.0].map(Time::from_micros));
}

/// A single message of 1000 bytes whose receiver waits for it. It arrives 7 us later than with latency and bandwidth only,
/// without occupying a processor or link in that time.
#[test]
fn latency_by_size_is_added_under_every_rule_and_engine() {
    let trace = "#DIMEMAS:\"one\":1,0:2(1,1),1\nd:1:1:2:0:1\n2:0:0:1:-1:1000:7:1:0\n3:1:0:0:-1:1000:7:1:0\n";
    let trace = read_text("one.dim", trace).unwrap();
    let by_size = "[overheads]\nlatency = [{ from = \"0B\", fixed = \"3us\", per_byte = \"0ns/B\" }, \
                   { from = \"500B\", fixed = \"5us\", per_byte = \"2ns/B\" }]\n";
    let links = "[machine]\nbuses = 1\n";
    for rule in ["hockney", "dimemas", "loggops"] {
        for (machine, contention) in [
            ("", Contention::Limits),
            (links, Contention::Limits),
            ("", Contention::Shared(Model::Independent)),
            ("", Contention::Shared(Model::Fair)),
            (links, Contention::Shared(Model::Fair)),
            ("", Contention::Shared(Model::Packet)),
        ] {
            let options = Options {
                contention,
                ..Options::default()
            };
            let ends = ["", by_size].map(|overheads| {
                let network = network(rule, &format!("{overheads}{machine}"));
                let outcome = predict(&trace, &network, &options).unwrap().outcome;
                [0, 1].map(|rank| outcome.ranks[rank].end)
            });
            assert_eq!(ends[0][0], ends[1][0], "{rule} {contention:?}");
            let later = (ends[1][1] - ends[0][1]).as_micros();
            assert!(
                (later - 7.0).abs() < 1e-6,
                "{rule} {machine} {contention:?}: {later}"
            );
        }
    }
}

#[test]
fn sweeps_mix_networks_with_and_without_overheads_by_size() {
    let Trace::Program(program) = read_text("two.dim", TWO_MESSAGES).unwrap() else {
        panic!("a program")
    };
    let networks = [network("loggops", ""), network("loggops", OVERHEADS)];
    let options = Options {
        contention: Contention::Limits,
        ..Options::default()
    };
    let outcomes = sweep(&program, &networks, &options).unwrap();
    let ends: Vec<Time> = outcomes.iter().map(|outcome| outcome.makespan()).collect();
    assert_eq!(ends, [1018.0, 1011.0].map(Time::from_micros));
}

/// Table 3.5.3.1 of Lichei, Gigabit Ethernet: the overhead of 6.1 us is above the gap of 0.897 us, so the processor and not the
/// interface spaces sixteen small messages, `(n-1)·o`.
#[test]
fn an_overhead_above_the_gap_spaces_the_messages() {
    let sends = "2:0:0:1:-1:1:7:1:0\n".repeat(16) + &"3:1:0:0:-1:1:7:1:0\n".repeat(16);
    let trace = read_text(
        "n.dim",
        "#DIMEMAS:\"n\":1,0:2(1,1),1\nd:1:1:2:0:1\n".to_owned() + &sends,
    )
    .unwrap();
    let by_size = "[overheads]\nsend = [{ from = \"0B\", fixed = \"6.1us\", per_byte = \"0ns/B\" }]\n\
                   receive = [{ from = \"0B\", fixed = \"6.1us\", per_byte = \"0ns/B\" }]\n";
    for (overhead, more) in [("6.1us", ""), ("0us", by_size)] {
        let text = format!(
            "schema = \"flowcast/network/2\"\nname = \"gige\"\n[point_to_point]\nrule = \"loggops\"\n[nic]\nlatency = \"65.4us\"\n\
             gap_per_byte = \"8.49ns/B\"\ngap = \"0.897us\"\noverhead = \"{overhead}\"\n{more}"
        );
        let network = Network::from_toml(&text, &[]).unwrap();
        let options = Options {
            contention: Contention::Limits,
            ..Options::default()
        };
        let makespan = predict(&trace, &network, &options)
            .unwrap()
            .outcome
            .makespan();
        // PRTT_{16,0}(1) less the answer: 15 o, and 2o + L.
        assert!(
            (makespan.as_micros() - (15.0 * 6.1 + 2.0 * 6.1 + 65.4)).abs() < 1e-9,
            "{makespan}"
        );
    }
}

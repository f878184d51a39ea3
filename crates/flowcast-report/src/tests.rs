use super::*;
use flowcast_network::builtin;
use flowcast_observers::journal::call_tallies::CallTally;
use flowcast_program::slot::Slot;
use flowcast_replay::{
    outcome::RankOutcome,
    time_part::TimePart,
    timeline::{Activity, MessageSpan, Segment},
};
use flowcast_units::Node;
use serde_json::Value;

fn micros(value: f64) -> Time {
    Time::from_micros(value)
}

/// Rank 0 computes 2 us and sends; rank 1 computes 1 us, waits for the sender and then for the message.
fn page() -> Page {
    let segment = |start, end, activity| Segment {
        start: micros(start),
        end: micros(end),
        activity,
    };
    let ranks = [
        vec![
            segment(0.0, 2.0, Activity::Compute),
            segment(2.0, 2.5, Activity::Overhead),
        ],
        vec![
            segment(0.0, 1.0, Activity::Compute),
            segment(1.0, 2.0, Activity::LateSender),
            segment(2.0, 6.0, Activity::Transfer),
        ],
    ];
    let message = MessageSpan {
        src: Rank(0),
        dst: Rank(1),
        size: Bytes(3000),
        tag: 7,
        sent: micros(2.0),
        arrived: micros(5.5),
        received: micros(6.0),
    };
    let rank =
        |end, compute, overhead| RankOutcome::new(micros(end), micros(compute), micros(overhead));
    let outcome = Outcome {
        ranks: vec![rank(2.5, 2.0, 0.5), rank(6.0, 1.0, 0.0)],
        messages: 1,
        bytes: Bytes(3000),
        ..Outcome::default()
    };
    let mut drawn = Drawing::assemble(
        &outcome,
        vec![Node(0), Node(4)],
        |rank: Rank| ranks[rank].clone(),
        |visit| visit(Slot(0), message),
    );
    drawn.traffic.name_calls(|_| "MPI_Send".into());
    let mut sends = CallTally {
        bytes: Bytes(3000),
        ..CallTally::default()
    };
    sends.times.add(micros(0.5));
    drawn.calls = vec![("MPI_Send".into(), sends)];
    let parts = vec![
        LimitPart {
            label: "compute".into(),
            share: 0.3333,
        },
        LimitPart {
            label: "bandwidth".into(),
            share: 0.6667,
        },
    ];
    let step = |rank, start, end, limit| PathStep {
        rank: Rank(rank),
        start: micros(start),
        end: micros(end),
        limit,
    };
    let path = vec![
        step(0, 0.0, 2.0, TimePart::Compute),
        step(1, 2.0, 6.0, TimePart::Bandwidth),
    ];
    let view = NetworkView {
        name: "two-nodes".into(),
        title: "Two nodes and a wire".into(),
        parameters: "latency 1 us".into(),
        has_stand_ins: false,
        interval: None,
        outcome,
        drawn,
        limits: Limits {
            parts,
            sentence: "A faster link helps most.".into(),
            path,
        },
    };
    let slow = NetworkView {
        name: "slower".into(),
        ..view.clone()
    };
    let provenance = BTreeMap::from([("date".into(), "2026-01-01T00:00:00Z".into())]);
    let notes = vec!["2 calls of MPI_Comm_spawn left out of the replay".into()];
    Page {
        title: "Ping".into(),
        subtitle: "one message".into(),
        notes,
        networks: vec![view, slow],
        provenance,
    }
}

fn data_block(html: &str) -> &str {
    let (_, after) = html
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    after.split_once("</script>").unwrap().0
}

fn data_of(html: &str) -> Value {
    serde_json::from_str(data_block(html)).unwrap()
}

#[test]
fn the_data_block_contains_the_input() {
    let data = data_of(&page().to_html().unwrap());
    assert_eq!(data["schema"], "flowcast/report/2");
    let network = &data["networks"][0];
    assert_eq!(network["name"], "two-nodes");
    assert_eq!(network["makespan_ns"], 6000);
    assert_eq!(
        network["ranks"][1],
        serde_json::json!({"codes": "023", "nanos": [1000, 1000, 4000]})
    );
    assert_eq!(
        (&network["ends"], &network["nodes"]),
        (&serde_json::json!([2500, 6000]), &serde_json::json!([0, 4]))
    );
    assert_eq!(
        network["times"][1],
        serde_json::json!([1000, 0, 1000, 4000, 0, 0, 0, 0, 0])
    );
    assert_eq!(network["shares"], Value::Null);
    assert_eq!(network["kinds"], serde_json::json!([[0, 1, 3000, 7, 0]]));
    assert_eq!(network["call_names"], serde_json::json!(["MPI_Send"]));
    let call = &network["calls"][0];
    assert_eq!(
        (&call["name"], &call["number"], &call["bytes"]),
        (&"MPI_Send".into(), &1.into(), &3000.into())
    );
    assert_eq!(
        (&call["total_ns"], &call["median_ns"]),
        (&500.into(), &500.into())
    );
    assert_eq!(
        network["flights"]["classes"],
        serde_json::json!([[2048, 1]])
    );
    assert_eq!(network["rate"]["width_ns"], 12);
    assert_eq!(network["rate"]["bytes"][166], 3000);
    let messages =
        serde_json::json!({"kind": [0], "sent": [2000], "flight": [3500], "wait": [500]});
    assert_eq!(network["messages"], messages);
    assert_eq!(
        network["path"],
        serde_json::json!({"limits": "04", "ranks": [0, 1], "nanos": [2000, 4000]})
    );
    assert_eq!(data["limits"][4], "bandwidth");
    assert_eq!(
        network["matrix"]["cells"],
        serde_json::json!([[0, 1, 1, 3000]])
    );
    assert_eq!(
        network["sizes"],
        serde_json::json!([{"from": 2048, "messages": 1, "bytes": 3000}])
    );
    assert_eq!(data["provenance"]["date"], "2026-01-01T00:00:00Z");
}

#[test]
fn the_table_contains_times_slowest_ranks_and_causes() {
    let html = page().to_html().unwrap();
    for expected in [
        "<th scope=\"row\">two-nodes</th><td class=\"n\"><span>6.000 us</span></td>",
        // In a total of 2.5 + 6 us the ranks compute for 3, handle messages for 0.5 and are blocked for 5.
        "<td class=\"n\">35.3 %</td><td class=\"n\">5.9 %</td><td class=\"n\">58.8 %</td><td class=\"n\">1</td>",
        "<p>A faster link helps most.</p><ul><li><b>bandwidth</b><span>66.7 %</span>",
        "transfer 2.000 us, 33.3 %",
        "<li>2 calls of MPI_Comm_spawn left out of the replay</li>",
        "<dt>date</dt><dd>2026-01-01T00:00:00Z</dd>",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
}

#[test]
fn the_slowest_of_ranks_with_equal_ends_is_the_one_that_waited_least() {
    let mut view = page().networks.remove(0);
    assert_eq!(view.slowest_rank(), Some(Rank(1)));
    view.outcome.ranks[0].end = micros(6.0);
    assert_eq!(view.slowest_rank(), Some(Rank(0)));
    view.outcome.ranks.clear();
    assert_eq!(view.slowest_rank(), None);
    assert_eq!(view.communication_share(), 0.0);
}

#[test]
fn the_page_loads_nothing() {
    let html = page().to_html().unwrap();
    for reference in [
        "http:",
        "https:",
        "src=",
        "href=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(
        !html.contains("{{"),
        "a place in the template was left unfilled"
    );
}

#[test]
fn equal_pages_are_equal_to_the_byte() {
    assert_eq!(page().to_html(), page().to_html());
}

#[test]
fn names_are_escaped() {
    let odd = "</script><script>alert('1')</script><!-- \"{{data}}\" & <b>";
    let mut page = page();
    let ordinary = page.to_html().unwrap();
    page.title = odd.into();
    page.subtitle = odd.into();
    page.notes = vec![odd.into()];
    page.provenance.insert(odd.into(), odd.into());
    let network = &mut page.networks[0];
    (network.name, network.title, network.parameters) = (odd.into(), odd.into(), odd.into());
    let parts = vec![LimitPart {
        label: odd.into(),
        share: 1.0,
    }];
    network.limits = Limits {
        parts,
        sentence: odd.into(),
        path: Vec::new(),
    };
    let html = page.to_html().unwrap();
    let count = |html: &str, tag: &str| html.matches(tag).count();
    assert!(html.contains("{{data}}"));
    for tag in ["<script", "</script", "<!--"] {
        assert_eq!(count(&html, tag), count(&ordinary, tag), "{tag}");
    }
    assert!(!data_block(&html).contains('<'));
    assert_eq!(data_of(&html)["title"], odd);
    assert_eq!(data_of(&html)["networks"][0]["name"], odd);
}

#[test]
fn a_critical_path_becomes_parts_a_sentence_and_a_line() {
    let steps = page().networks.remove(0).limits.path;
    let path = CriticalPath {
        makespan: micros(6.0),
        steps: steps.clone(),
        counts: Default::default(),
    };
    let limits = Limits::from(&path);
    assert_eq!(limits.path, steps);
    assert_eq!(
        limits.parts[0],
        LimitPart {
            label: "bandwidth".into(),
            share: 4.0 / 6.0
        }
    );
    assert!(
        limits.sentence.starts_with("bandwidth-bound"),
        "{}",
        limits.sentence
    );
}

#[test]
fn a_path_of_too_many_steps_is_left_out_and_counted() {
    let mut page = page();
    let step = page.networks[0].limits.path[0];
    page.networks[0].limits.path = vec![step; MAX_STEPS + 1];
    let data = data_of(&page.to_html().unwrap());
    assert_eq!(data["networks"][0]["steps_left_out"], MAX_STEPS + 1);
    assert_eq!(data["networks"][0]["path"]["limits"], "");
}

#[test]
fn an_empty_report_is_a_page() {
    let empty = Page::default().to_html().unwrap();
    assert_eq!(data_of(&empty)["networks"], serde_json::json!([]));
    let bare = Page {
        networks: vec![NetworkView::default()],
        ..Page::default()
    }
    .to_html()
    .unwrap();
    assert_eq!(data_of(&bare)["networks"][0]["makespan_ns"], 0);
    assert!(bare.contains("not computed"));
    let (shown, _) = bare.split_once(data_block(&bare)).unwrap();
    assert!(!shown.contains("NaN") && !shown.contains("inf"));
}

#[test]
fn a_network_is_described_in_one_line() {
    let line = parameter_line(&builtin::network("gige-tcp").unwrap());
    assert_eq!(
        line,
        "latency 65.40 us, bandwidth 117.8 MB/s, overhead 6.100 us, gap 897.0 ns"
    );
    let fast = parameter_line(&builtin::network("infiniband-ndr").unwrap());
    assert_eq!(fast, "latency 1.570 us, bandwidth 47 GB/s");
}

#[test]
fn a_replay_of_many_intervals_shows_the_shares_of_all_of_them() {
    let segments: Vec<Segment> = (0..MAX_INTERVALS as u32 + 1)
        .map(|i: u32| Segment {
            start: micros(f64::from(i) * 3.0),
            end: micros(f64::from(i) * 3.0 + 3.0),
            activity: Activity::ALL[i as usize % 2],
        })
        .collect();
    let end = segments[MAX_INTERVALS].end;
    let outcome = Outcome {
        ranks: vec![RankOutcome::new(end, end * 0.5, end * 0.5)],
        ..Outcome::default()
    };
    let drawn = Drawing::assemble(&outcome, vec![Node(0)], |_| segments.clone(), |_| {});
    let view = NetworkView {
        outcome,
        drawn,
        ..NetworkView::default()
    };
    let html = Page {
        networks: vec![view],
        ..Page::default()
    }
    .to_html()
    .unwrap();
    let network = &data_of(&html)["networks"][0];
    assert_eq!(
        (&network["ranks"], &network["intervals"]),
        (&Value::Null, &(MAX_INTERVALS + 1).into())
    );
    let shares = &network["shares"];
    let run = shares["buckets"].as_u64().unwrap() * shares["bucket_ns"].as_u64().unwrap();
    assert!(run as f64 >= end.as_nanos());
    assert!(shares["cells"].as_str().unwrap().len() < MAX_CELLS * 10);
}

use super::*;
use flowcast_model::builtin;
use flowcast_replay::critical_path::Limit;
use flowcast_replay::outcome::RankOutcome;
use flowcast_replay::timeline::{Activity, MessageSpan, Segment};
use serde_json::Value;

fn micros(value: f64) -> Time {
    Time::from_micros(value)
}

/// Rank 0 computes 2 us and sends; rank 1 computes 1 us, waits for the sender and then for the message.
fn page() -> Page {
    let segment = |start, end, activity| Segment { start: micros(start), end: micros(end), activity };
    let timeline = Timeline {
        ranks: vec![
            vec![segment(0.0, 2.0, Activity::Compute), segment(2.0, 2.5, Activity::Overhead)],
            vec![
                segment(0.0, 1.0, Activity::Compute),
                segment(1.0, 2.0, Activity::LateSender),
                segment(2.0, 6.0, Activity::Transfer),
            ],
        ],
        messages: vec![MessageSpan {
            src: Rank(0),
            dst: Rank(1),
            size: Bytes(3000),
            tag: 7,
            sent: micros(2.0),
            arrived: micros(5.5),
            received: micros(6.0),
        }],
    };
    let rank = |end, compute, blocked, overhead| RankOutcome {
        end: micros(end),
        compute: micros(compute),
        blocked: micros(blocked),
        overhead: micros(overhead),
    };
    let outcome = Outcome {
        ranks: vec![rank(2.5, 2.0, 0.0, 0.5), rank(6.0, 1.0, 5.0, 0.0)],
        messages: 1,
        bytes: Bytes(3000),
        ..Outcome::default()
    };
    let parts = vec![
        LimitPart { label: "compute".into(), share: 0.3333 },
        LimitPart { label: "bandwidth".into(), share: 0.6667 },
    ];
    let step = |rank, start, end, limit| Step { rank: Rank(rank), start: micros(start), end: micros(end), limit };
    let path = vec![step(0, 0.0, 2.0, Limit::Compute), step(1, 2.0, 6.0, Limit::Bandwidth)];
    let view = NetworkView {
        name: "two-nodes".into(),
        title: "Two nodes and a wire".into(),
        parameters: "latency 1 µs".into(),
        outcome,
        timeline,
        limits: Limits { parts, sentence: "A faster link helps most.".into(), path },
    };
    let slow = NetworkView { name: "slower".into(), ..view.clone() };
    let provenance = BTreeMap::from([("date".into(), "2026-01-01T00:00:00Z".into())]);
    Page { title: "Ping".into(), subtitle: "one message".into(), networks: vec![view, slow], provenance }
}

fn data_block(html: &str) -> &str {
    let (_, after) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    after.split_once("</script>").unwrap().0
}

fn data_of(html: &str) -> Value {
    serde_json::from_str(data_block(html)).unwrap()
}

#[test]
fn the_data_block_carries_what_was_put_in() {
    let data = data_of(&page().to_html());
    assert_eq!(data["schema"], "flowcast/report/1");
    let network = &data["networks"][0];
    assert_eq!(network["name"], "two-nodes");
    assert_eq!(network["makespan_ns"], 6000);
    assert_eq!(network["ranks"][1], serde_json::json!({"codes": "023", "nanos": [1000, 1000, 4000]}));
    assert_eq!(network["kinds"], serde_json::json!([[0, 1, 3000, 7]]));
    let messages = serde_json::json!({"kind": [0], "sent": [2000], "flight": [3500], "wait": [500]});
    assert_eq!(network["messages"], messages);
    assert_eq!(network["path"], serde_json::json!({"limits": "04", "ranks": [0, 1], "nanos": [2000, 4000]}));
    assert_eq!(data["limits"][4], "bandwidth");
    assert_eq!(network["matrix"]["cells"], serde_json::json!([[0, 1, 1, 3000]]));
    assert_eq!(network["sizes"], serde_json::json!([{"from": 2048, "messages": 1, "bytes": 3000}]));
    assert_eq!(data["provenance"]["date"], "2026-01-01T00:00:00Z");
}

#[test]
fn the_table_says_how_long_who_and_why() {
    let html = page().to_html();
    for expected in [
        "<th scope=\"row\">two-nodes</th><td class=\"n\">6.000 µs</td>",
        // Communication: 1 - (2 + 1) / (2.5 + 6).
        "<td class=\"n\">64.7 %</td><td class=\"n\">1</td>",
        "<p>A faster link helps most.</p><ul><li><b>bandwidth</b><span>66.7 %</span>",
        "transfer 2.000 µs, 33.3 %",
        "<dt>date</dt><dd>2026-01-01T00:00:00Z</dd>",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
}

#[test]
fn of_ranks_that_end_together_the_one_that_waited_least_is_the_slowest() {
    let mut view = page().networks.remove(0);
    assert_eq!(view.slowest_rank(), Some(Rank(1)));
    view.outcome.ranks[0].end = micros(6.0);
    assert_eq!(view.slowest_rank(), Some(Rank(0)));
    view.outcome.ranks.clear();
    assert_eq!(view.slowest_rank(), None);
    assert_eq!(view.communication_share(), 0.0);
}

#[test]
fn a_browser_finds_nothing_to_load() {
    let html = page().to_html();
    for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(!html.contains("{{"), "a place in the template was left unfilled");
}

#[test]
fn equal_pages_are_equal_to_the_byte() {
    assert_eq!(page().to_html(), page().to_html());
}

#[test]
fn names_cannot_break_out_of_their_place() {
    let odd = "</script><script>alert('1')</script><!-- \"{{data}}\" & <b>";
    let mut page = page();
    let ordinary = page.to_html();
    page.title = odd.into();
    page.subtitle = odd.into();
    page.provenance.insert(odd.into(), odd.into());
    let network = &mut page.networks[0];
    (network.name, network.title, network.parameters) = (odd.into(), odd.into(), odd.into());
    let parts = vec![LimitPart { label: odd.into(), share: 1.0 }];
    network.limits = Limits { parts, sentence: odd.into(), path: Vec::new() };
    let html = page.to_html();
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
    let path = CriticalPath { makespan: micros(6.0), steps: steps.clone(), counts: Default::default() };
    let limits = Limits::from(&path);
    assert_eq!(limits.path, steps);
    assert_eq!(limits.parts[0], LimitPart { label: "bandwidth".into(), share: 4.0 / 6.0 });
    assert!(limits.sentence.starts_with("bandwidth-bound"), "{}", limits.sentence);
}

#[test]
fn a_path_of_too_many_steps_is_left_out_and_counted() {
    let mut page = page();
    let step = page.networks[0].limits.path[0];
    page.networks[0].limits.path = vec![step; MAX_STEPS + 1];
    let data = data_of(&page.to_html());
    assert_eq!(data["networks"][0]["left_out"]["steps"], MAX_STEPS + 1);
    assert_eq!(data["networks"][0]["path"]["limits"], "");
}

#[test]
fn nothing_to_show_still_makes_a_page() {
    let empty = Page::default().to_html();
    assert_eq!(data_of(&empty)["networks"], serde_json::json!([]));
    let bare = Page { networks: vec![NetworkView::default()], ..Page::default() }.to_html();
    assert_eq!(data_of(&bare)["networks"][0]["makespan_ns"], 0);
    assert!(bare.contains("not looked at"));
    let (shown, _) = bare.split_once(data_block(&bare)).unwrap();
    assert!(!shown.contains("NaN") && !shown.contains("inf"));
}

#[test]
fn many_ranks_share_the_cells_of_the_matrix() {
    let mut page = page();
    page.networks[0].timeline.ranks.resize(300, Vec::new());
    page.networks[0].timeline.messages[0].dst = Rank(299);
    let matrix = &data_of(&page.to_html())["networks"][0]["matrix"];
    assert_eq!(*matrix, serde_json::json!({"ranks_per_cell": 3, "side": 100, "cells": [[0, 99, 1, 3000]]}));
}

#[test]
fn a_network_is_told_in_one_line() {
    let line = parameter_line(&builtin::network("gige-tcp").unwrap());
    assert_eq!(line, "latency 65.40 µs, bandwidth 117.8 MB/s, overhead 6.100 µs, gap 897.0 ns");
}

#[test]
fn the_data_of_many_segments_stays_compact() {
    let mut page = page();
    let segment = |i: u32| Segment {
        start: micros(f64::from(i) * 3.0),
        end: micros(f64::from(i) * 3.0 + 3.0),
        activity: Activity::ALL[i as usize % 7],
    };
    page.networks.truncate(1);
    page.networks[0].timeline.ranks = vec![(0..200_000).map(segment).collect()];
    let without = Page { networks: vec![], ..page.clone() }.to_html().len();
    assert!(page.to_html().len() - without < 200_000 * 8);
}

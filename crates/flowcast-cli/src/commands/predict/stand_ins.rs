//! What tables of predictions say of values that have no source of their own, and of values that were measured differently.

use std::collections::BTreeMap;

use flowcast::{
    model::{
        network::Network,
        origin::{Origin, OriginKind},
    },
    table::{Value, rows},
};

/// The name of a network, with an asterisk where values stand in.
pub(in crate::commands) fn marked_name(network: &Network) -> String {
    let mark = if network.stand_ins().next().is_some() {
        "*"
    } else {
        ""
    };
    format!("{}{mark}", network.name)
}

/// What the asterisks stand for, and where the latencies of several networks come from.
pub(in crate::commands) fn stand_in_sentences(networks: &[Network]) -> Vec<String> {
    // Networks whose values stand in for the same reason share a sentence.
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for network in networks {
        for (field, origin) in network.stand_ins() {
            reasons
                .entry((field, &origin.text))
                .or_default()
                .push(&network.name);
        }
    }
    let mut sentences = Vec::new();
    for ((field, reason), names) in reasons {
        sentences.push(format!("* {field} of {}: {reason}", names.join(", ")));
    }
    let latencies = networks
        .iter()
        .filter_map(|network| network.origins.get("nic.latency"));
    let known = latencies.filter(|origin| origin.kind != OriginKind::Unknown);
    let mut sources: Vec<&str> = known.map(Origin::short).collect();
    sources.sort();
    sources.dedup();
    if sources.len() > 1 {
        sentences.push(format!(
            "latencies come from different machines and methods: {}",
            sources.join("; ")
        ));
    }
    sentences
}

/// Fields whose values stand in, and why.
pub(in crate::commands) fn stand_ins(network: &Network) -> Value {
    rows(network.stand_ins())
        .field("parameter", |(field, _)| field)
        .field("reason", |(_, origin)| &origin.text)
        .into()
}

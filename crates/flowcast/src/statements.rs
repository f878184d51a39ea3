//! Sentences that accompany predictions, the same in the command, JSON, pages, tables and Python.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::{self, Display, Formatter},
};

use flowcast_network::{
    network::Network,
    origin::{Origin, OriginKind},
};
use flowcast_program::{Program, Trace, program::IgnoredRecords};
use flowcast_report::standing::Interval;
use flowcast_table::{Document, Grouped, Value, rows};
use flowcast_units::{Rounded, Time};

/// Name of a network, with an asterisk if values are stand-ins.
pub fn marked_name(network: &Network) -> String {
    let mark = if network.stand_ins().next().is_some() {
        "*"
    } else {
        ""
    };
    format!("{}{mark}", network.name)
}

/// Fields with stand-in values, and the reasons.
pub fn stand_ins(network: &Network) -> Value {
    rows(network.stand_ins())
        .field("parameter", |(field, _)| field)
        .field("reason", |(_, origin)| &origin.text)
        .into()
}

/// Sentences on the reliability of the values of networks: meaning of asterisks, warnings of fits, disturbed measurements,
/// sources of latencies.
pub fn of_networks<'a>(networks: impl IntoIterator<Item = &'a Network>) -> Vec<String> {
    let networks: Vec<&Network> = networks.into_iter().collect();
    // Networks with stand-in values for the same reason share a sentence.
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for network in &networks {
        for (field, origin) in network.stand_ins() {
            let names = reasons.entry((field, &origin.text)).or_default();
            if !names.contains(&&*network.name) {
                names.push(&network.name);
            }
        }
    }
    let mut sentences = Vec::new();
    for ((field, reason), names) in reasons {
        sentences.push(format!("* {field} of {}: {reason}", names.join(", ")));
    }
    for Network {
        name,
        fit,
        accuracy,
        provenance,
        ..
    } in &networks
    {
        let disturbed = provenance.iter().find(|(key, _)| {
            let behind = key.strip_suffix(DISTURBED_BY);
            behind.is_some_and(|key| key.is_empty() || key.ends_with('.'))
        });
        sentences.extend(disturbed.map(|(_, found)| {
            format!(
                "the measurement of {name} was disturbed ({found}): its values may be inaccurate"
            )
        }));
        let disturbed = accuracy
            .iter()
            .filter_map(|entry| entry.disturbed_by.as_ref());
        sentences.extend(disturbed.map(|found| {
            format!(
                "the accuracy record of {name} contains errors of a disturbed measurement ({found}): intervals may be \
                 inaccurate"
            )
        }));
        let warnings = fit.warnings.iter();
        sentences.extend(warnings.map(|warning| format!("the fit of {name}: {warning}")));
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
    once(sentences)
}

/// Field of a provenance that names the disturbance of a measurement.
pub const DISTURBED_BY: &str = "disturbed_by";

/// Sentence on runs that were disturbed, according to their provenance; `None` if they were not.
pub fn of_runs(provenance: &BTreeMap<String, String>) -> Option<String> {
    let found = provenance.get(DISTURBED_BY)?;
    Some(format!(
        "the runs were made on a busy machine ({found}): their times may be too long"
    ))
}

/// Sentences of several predictions: those on all their networks, then the notes of each that do not concern a network.
pub fn of_predictions<'a>(
    predictions: impl IntoIterator<Item = (Option<&'a Network>, &'a [String])> + Clone,
) -> Vec<String> {
    let networks = predictions.clone().into_iter();
    let networks: Vec<&Network> = networks.filter_map(|(network, _)| network).collect();
    let alone: Vec<String> = networks
        .iter()
        .copied()
        .flat_map(|network| of_networks([network]))
        .collect();
    let notes = predictions.into_iter().flat_map(|(_, notes)| notes);
    let others = notes.filter(|note| !alone.contains(note)).cloned();
    once(of_networks(networks).into_iter().chain(others))
}

/// Sentences on ignored records of a trace, on the reliability of the networks' values, and on assumptions of the trace's
/// reader.
pub fn of_trace<'a>(trace: &Trace, networks: impl IntoIterator<Item = &'a Network>) -> Vec<String> {
    let mut sentences = of_networks(networks);
    if let Trace::Program(program) = trace {
        sentences.extend_from_slice(program.assumed());
    }
    notes(&trace.ignored(), sentences)
}

/// Notes of a prediction: ignored records, then assumptions.
pub(crate) fn notes(ignored: &[IgnoredRecords], assumptions: Vec<String>) -> Vec<String> {
    ignored
        .iter()
        .map(IgnoredRecords::to_string)
        .chain(assumptions)
        .collect()
}

/// Sentence on what the interval of a prediction on these networks covers, or on the reason why there is none. `is_asked` is
/// `false` if the caller leaves intervals out.
pub fn margin<'a>(
    networks: impl IntoIterator<Item = &'a Network>,
    interval: Option<&Interval>,
    is_asked: bool,
) -> String {
    if let Some(interval) = interval {
        return format!("margin: {}", interval.covers);
    }
    let mut networks = networks.into_iter();
    let reason = match (networks.next(), networks.next()) {
        _ if !is_asked => "margin: left out, as requested",
        (None, _) => "no margin known: the parameters were given as numbers",
        (Some(network), None) => missing_margin_reason(network),
        _ => "no margin known: margins are predicted for one network, not for several rails",
    };
    reason.to_owned()
}

/// Sentence of [`margin`] for a pattern in one or more steps.
pub fn margin_of_steps(
    steps: usize,
    network: &Network,
    interval: Option<&Interval>,
    is_asked: bool,
) -> String {
    match steps {
        1 => margin([network], interval, is_asked),
        _ => "no margin known: margins are not predicted for patterns in several steps".to_owned(),
    }
}

/// A predicted time, with its interval if one is known.
pub fn shown_time(makespan: Time, interval: Option<&Interval>) -> String {
    interval.map_or_else(|| Rounded(makespan).to_string(), Interval::to_string)
}

/// Sentence for a prediction without an interval.
pub fn missing_margin_reason(network: &Network) -> &'static str {
    if !network.has_margins() {
        return "no margin known: the network file has neither intervals nor an accuracy record";
    }
    "no margin known: the network file has no intervals or errors that apply to this model"
}

/// Assumption of advice on several rails, and the difference from several interfaces of one network.
pub const DIVIDED: &str = "long messages are divided over the networks, as with flowcast predict --rail; with \
    nic.count=N in one network, each message uses one of a node's interfaces and is not divided";

/// Sentences about several named subjects, each sentence once. A sentence that does not apply to all subjects begins with
/// the names to which it applies.
pub fn by_name(all: &[(String, String)]) -> Vec<String> {
    let known = once(all.iter().map(|(name, _)| name.clone()));
    let sentences = once(all.iter().map(|(_, sentence)| sentence.clone()));
    sentences
        .into_iter()
        .map(|sentence| {
            let names = all.iter().filter(|(_, of)| *of == sentence);
            let names = once(names.map(|(name, _)| name.clone()));
            match names.len() == known.len() {
                true => sentence,
                false => format!("{}: {sentence}", names.join(", ")),
            }
        })
        .collect()
}

/// Each sentence once, at its first position.
pub fn once(sentences: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut told = HashSet::new();
    let sentences = sentences.into_iter();
    sentences
        .filter(|sentence| told.insert(sentence.clone()))
        .collect()
}

/// Contents of a trace, for people.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Ranks that have a stream of their own.
    pub ranks: usize,
    /// Point-to-point messages of all ranks.
    pub messages: u64,
    /// Collectives that are not messages; not mentioned if there are none.
    pub collectives: u64,
}

impl Counts {
    /// Counts the contents of any trace.
    pub fn from_trace(trace: &Trace) -> Counts {
        Counts {
            ranks: trace.ranks(),
            messages: trace.messages(),
            collectives: trace.collectives(),
        }
    }

    /// Document of the counts, for programs.
    pub fn document(self, kind: &'static str) -> Document {
        Document::new(kind)
            .field("ranks", self.ranks)
            .field("messages", self.messages)
            .field("collectives", self.collectives)
    }

    /// Counts the contents of a program.
    pub fn from_program(program: &Program) -> Counts {
        let (ranks, messages) = (program.ranks(), u64::from(program.messages()));
        Counts {
            ranks,
            messages,
            collectives: program.collectives(),
        }
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ranks, {} messages",
            Grouped(self.ranks as u64),
            Grouped(self.messages)
        )?;
        match self.collectives {
            0 => Ok(()),
            1 => write!(f, ", 1 collective"),
            several => write!(f, ", {} collectives", Grouped(several)),
        }
    }
}

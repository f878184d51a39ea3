//! What people look at: one self-contained HTML page of a trace replayed on one or more networks, drawings of patterns,
//! pages of validations, and the files of other programs ([`export`]).
//!
//! [`Page::to_html`] turns plain results into a page that loads nothing from anywhere: styles, program and data stand
//! in the one file. Equal input gives equal bytes; a date comes in through the provenance or not at all. Headline,
//! table and bars are plain HTML and need no script; the script draws timelines and messages from a JSON block
//! (`flowcast/report/2`, see `docs/reference/report.md`).
//!
//! ```
//! use flowcast_replay::outcome::{Outcome, RankOutcome};
//! use flowcast_report::{NetworkView, Page};
//! use flowcast_units::{Rank, Time};
//!
//! // What `NetworkView::new` makes of a replay; here of two ranks and without a timeline.
//! let end = |end| RankOutcome::new(Time::from_micros(end), Time::ZERO, Time::ZERO);
//! let outcome = Outcome { ranks: vec![end(800.0), end(1600.0)], ..Outcome::default() };
//! let view = NetworkView { name: "gige-tcp".into(), outcome, ..NetworkView::default() };
//! assert_eq!(view.slowest_rank(), Some(Rank(1)));
//! let page = Page { title: "A pair".into(), networks: vec![view], ..Page::default() };
//! assert!(page.to_html()?.contains("1.600<span> ms</span>"));
//! # Ok::<(), flowcast_replay::outcome::Uncounted>(())
//! ```

pub mod chart_page;
pub mod chart_svg;
pub mod charts;
mod data;
mod drawing;
pub mod export;
mod html;
pub mod pairs_page;
pub mod pattern_page;
pub mod pattern_plot;
pub mod sites;
pub mod standing;
pub mod sweep_page;
pub mod topology_plot;
pub mod validation;
mod varint;

use std::collections::BTreeMap;

use flowcast_graph::critical_path::{CriticalPath, PathStep};
use flowcast_network::{network::Network, quantity::Quantity};
use flowcast_replay::outcome::{Outcome, Uncounted};
use flowcast_table::Document;
use flowcast_units::{Bytes, Rank, Time};

use export::Replayed;
use standing::Interval;

pub use data::MAX_STEPS;
pub use drawing::{Drawing, MAX_CELLS, MAX_INTERVALS, MAX_MESSAGES};

/// All that the page shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// What was replayed, such as `NAS CG, class S, 4 ranks`.
    pub title: String,
    /// One more line on it; may be empty.
    pub subtitle: String,
    /// What the replays leave out or assume, a sentence each; may be empty.
    pub notes: Vec<String>,
    /// The replays, in the order in which they are shown.
    pub networks: Vec<NetworkView>,
    /// Where the results come from: version, command, host, date.
    pub provenance: BTreeMap<String, String>,
}

/// The replay on one network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetworkView {
    /// Short name, as given to `--network`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Its parameters in one line; [`parameter_line`] writes it.
    pub parameters: String,
    /// Whether some of its values stand in for unknown ones.
    pub has_stand_ins: bool,
    /// The times of the ranks.
    pub outcome: Outcome,
    /// Between which times the predicted one lies, if that is known.
    pub interval: Option<Interval>,
    /// What each rank did when, and the messages.
    pub drawn: Drawing,
    /// What the predicted time is made of.
    pub limits: Limits,
}

/// What limits a program on a network: the parts of its critical path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// The parts; the page shows the largest first. Empty if nobody looked.
    pub parts: Vec<LimitPart>,
    /// The same in one line; may be empty.
    pub sentence: String,
    /// The path itself, from time 0 on without gaps, to be drawn over the timeline; may be empty.
    pub path: Vec<PathStep>,
}

impl From<&CriticalPath> for Limits {
    fn from(path: &CriticalPath) -> Limits {
        let parts = path
            .shares()
            .iter()
            .map(|share| LimitPart {
                label: share.limit.name().into(),
                share: share.fraction,
            })
            .collect();
        Limits {
            parts,
            sentence: path.reason(),
            path: path.steps.clone(),
        }
    }
}

/// One part of the critical path.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitPart {
    /// What it is, such as `latency`.
    pub label: String,
    /// Its share of the path, 0 to 1.
    pub share: f64,
}

impl Page {
    /// Of a result: its title, its first sentence below that, and its other sentences above the networks.
    pub fn about(
        document: &Document,
        networks: Vec<NetworkView>,
        provenance: BTreeMap<String, String>,
    ) -> Page {
        let words = document.words().map(|words| words.trim().to_owned());
        let mut words = words.filter(|words| !words.is_empty());
        Page {
            title: document.title.clone(),
            subtitle: words.next().unwrap_or_default(),
            notes: words.collect(),
            networks,
            provenance,
        }
    }

    /// The page as one HTML document.
    ///
    /// # Errors
    /// A replay of 2^61 nanoseconds or 2^63 bytes.
    pub fn to_html(&self) -> Result<String, Uncounted> {
        let mut networks = self.networks.iter();
        networks.try_for_each(|network| network.outcome.in_nanos())?;
        Ok(html::document(self))
    }
}

impl NetworkView {
    /// What a replay on a network gave, of which a journal kept a timeline; `path` is `None` if nobody looked.
    pub fn new(
        network: &Network,
        replayed: Replayed<'_>,
        path: Option<&CriticalPath>,
    ) -> NetworkView {
        NetworkView {
            name: network.name.clone(),
            title: network.title.clone(),
            parameters: parameter_line(network),
            has_stand_ins: network.stand_ins().next().is_some(),
            outcome: replayed.outcome.clone(),
            interval: None,
            drawn: Drawing::new(replayed),
            limits: path.map(Limits::from).unwrap_or_default(),
        }
    }

    /// The name, with an asterisk where values stand in.
    pub fn marked_name(&self) -> String {
        let mark = if self.has_stand_ins { "*" } else { "" };
        format!("{}{mark}", self.name)
    }

    /// The predicted time, with its interval if one is known.
    fn time(&self) -> String {
        self.interval
            .as_ref()
            .map_or_else(|| html::shown(self.outcome.makespan()), |of| of.to_string())
    }

    /// Time in communication: the part of the ranks' time that is not the program's own computation, 0 to 1.
    pub fn communication_share(&self) -> f64 {
        let ranks = &self.outcome.ranks;
        let total: Time = ranks.iter().map(|rank| rank.end).sum();
        let compute: Time = ranks.iter().map(|rank| rank.compute).sum();
        if total == Time::ZERO {
            0.0
        } else {
            (1.0 - compute.as_nanos() / total.as_nanos()).clamp(0.0, 1.0)
        }
    }

    /// The rank that ends last. Of several that end together (after a barrier, say) it is the one that was blocked
    /// least, for whom the others waited; then the lowest.
    pub fn slowest_rank(&self) -> Option<Rank> {
        let ranks = &self.outcome.ranks;
        let slowest = (0..ranks.len()).min_by(|&a, &b| {
            ranks[b]
                .end
                .cmp(&ranks[a].end)
                .then(ranks[a].blocked.cmp(&ranks[b].blocked))
                .then(a.cmp(&b))
        })?;
        u32::try_from(slowest).ok().map(Rank)
    }
}

/// The parameters of a network that say most about it, in one line.
pub fn parameter_line(network: &Network) -> String {
    let nic = &network.nic;
    let mut parts = vec![format!("latency {}", html::shown(nic.latency))];
    let rate = nic.rate();
    let unlimited = rate.as_bytes_per_second() == 0.0;
    parts.push(format!(
        "bandwidth {}",
        if unlimited {
            "unlimited".into()
        } else {
            Quantity::Rate(rate).rounded()
        }
    ));
    let optional = [("overhead", nic.overhead), ("gap", nic.gap)];
    parts.extend(
        optional
            .iter()
            .filter(|(_, t)| *t != Time::ZERO)
            .map(|(n, t)| format!("{n} {}", html::shown(*t))),
    );
    if let Some(from) = network.point_to_point.rendezvous_from {
        parts.push(if from == Bytes(0) {
            "rendezvous always".into()
        } else {
            format!("rendezvous from {from}")
        });
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests;

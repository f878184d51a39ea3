//! Reports: a self-contained HTML page of a trace replayed on one or more networks, drawings of patterns, pages of
//! validations, and the files of other programs ([`export`]).
//!
//! [`Page::to_html`] turns plain results into a page that loads nothing: styles, program and data are in one file. Equal
//! input gives equal bytes; a date can only be part of the provenance. Headline, table and bars are plain HTML and need no
//! script. The script draws timelines and messages from a JSON block (`flowcast/report/2`, see `docs/reference/report.md`).
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
//! # Ok::<(), flowcast_replay::outcome::ValueTooLarge>(())
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
use flowcast_replay::{
    outcome::{Outcome, ValueTooLarge},
    sweep::SetOutcome,
};
use flowcast_table::Document;
use flowcast_units::{Bytes, Rank, Rounded, Time};

use export::Replayed;
use standing::Interval;

pub use data::MAX_STEPS;
pub use drawing::{Drawing, MAX_CELLS, MAX_INTERVALS, MAX_MESSAGES};

/// Content of the page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Title of the page: the replayed program, such as `NAS CG, class S, 4 ranks`.
    pub title: String,
    /// Additional line about the program; may be empty.
    pub subtitle: String,
    /// Assumptions and omissions of the replays, a sentence each; may be empty.
    pub notes: Vec<String>,
    /// The replays, in the order of display.
    pub networks: Vec<NetworkView>,
    /// Provenance of the results: version, command, host, date.
    pub provenance: BTreeMap<String, String>,
}

/// The replay on one network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetworkView {
    /// Short name, as given to `--network`.
    pub name: String,
    /// One line for display.
    pub title: String,
    /// Parameters of the network in one line, as written by [`parameter_line`].
    pub parameters: String,
    /// `true` if some values of the network replace unknown ones.
    pub has_stand_ins: bool,
    /// The times of the ranks.
    pub outcome: Outcome,
    /// Interval of the predicted time, if it is known.
    pub interval: Option<Interval>,
    /// Activities of each rank over time, and the messages.
    pub drawn: Drawing,
    /// Parts of the predicted time.
    pub limits: Limits,
}

/// Limits of a program on a network: the parts of its critical path.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// The parts; the page shows the largest first. Empty if the path was not computed.
    pub parts: Vec<LimitPart>,
    /// Summary of the parts in one line; may be empty.
    pub sentence: String,
    /// The path itself, from time 0 on without gaps, for display over the timeline; may be empty.
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
    /// Name of the part, such as `latency`.
    pub label: String,
    /// Fraction of the path, from 0 to 1.
    pub share: f64,
}

impl Page {
    /// Builds a page for a result: its title, its first sentence below that, and its other sentences above the networks.
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

    /// Returns the page as one HTML document.
    ///
    /// # Errors
    /// A replay of 2^61 nanoseconds or 2^63 bytes.
    pub fn to_html(&self) -> Result<String, ValueTooLarge> {
        let mut networks = self.networks.iter();
        networks.try_for_each(|network| network.outcome.in_nanos())?;
        Ok(html::document(self))
    }
}

impl NetworkView {
    /// Builds the view of a replay whose journal kept a timeline; `path` is `None` if it was not computed.
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

    /// Name of the network, with an asterisk if some values replace unknown ones.
    pub fn marked_name(&self) -> String {
        let mark = if self.has_stand_ins { "*" } else { "" };
        format!("{}{mark}", self.name)
    }

    /// Predicted time, with its interval if that is known.
    fn time(&self) -> String {
        self.interval.as_ref().map_or_else(
            || Rounded(self.outcome.makespan()).to_string(),
            Interval::to_string,
        )
    }

    /// Fraction of the ranks' time that is not the program's own computation, from 0 to 1.
    pub fn communication_share(&self) -> f64 {
        SetOutcome::from(&self.outcome).communication_share()
    }

    /// The rank that ends last. If several ranks end at the same time (after a barrier, for example), it is the one with the
    /// least blocked time, for which the others waited; then the one with the lowest number.
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

/// The most informative parameters of a network, in one line.
pub fn parameter_line(network: &Network) -> String {
    let nic = &network.nic;
    let mut parts = vec![format!("latency {}", Rounded(nic.latency))];
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
            .map(|(n, t)| format!("{n} {}", Rounded(*t))),
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

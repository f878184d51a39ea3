//! Subjects of `flowcast rails bench`: schedulers over all rails, and each rail alone.

use flowcast::scheduler::{
    RailId, RailSet, RailsError,
    discipline::{Discipline, SchedulerName},
    split::SplitRule,
};
use flowcast_rails::exchange::RailChoices;

use super::live::LiveRail;

/// Scheduler that `--scheduler` of `flowcast rails bench` names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Chosen {
    /// Scheduler with the given parameters. Earliest delivery divides long messages.
    Fixed(SchedulerName),
    /// Earliest delivery without division of messages.
    WholeMessages,
    /// Earliest delivery with parameters that follow the rails.
    Adaptive,
    /// Earliest delivery with parameters that follow the rails; the best rail alone if measurements show that it is faster.
    Guarded,
}

/// A scheduler over all rails, or a single rail.
pub(super) struct Subject {
    /// Name in tables and plots.
    pub name: String,
    /// Scheduler, even if there is only one rail.
    pub chosen: Chosen,
    /// Rails that it may use.
    pub rails: RailSet,
}

impl std::str::FromStr for Chosen {
    type Err = RailsError;

    fn from_str(text: &str) -> Result<Chosen, RailsError> {
        Ok(match text {
            "adaptive" => Chosen::Adaptive,
            "guarded" => Chosen::Guarded,
            "whole-messages" => Chosen::WholeMessages,
            name => Chosen::Fixed(name.parse()?),
        })
    }
}

impl Chosen {
    /// Scheduler, division of messages, and rails of a test.
    pub(super) fn course(self, rails: RailSet, split: SplitRule) -> RailChoices {
        let scheduler = match self {
            Chosen::Fixed(name) => name,
            _ => SchedulerName::new(Discipline::EarliestDelivery),
        };
        let split = (self != Chosen::WholeMessages).then_some(split);
        RailChoices {
            scheduler,
            adapts: self == Chosen::Adaptive,
            split,
            rails,
        }
    }

    /// Name in tables and plots, such as `adaptive`.
    pub(super) fn name(self) -> String {
        match self {
            Chosen::Fixed(name) => name.to_string(),
            Chosen::WholeMessages => "whole-messages".into(),
            Chosen::Adaptive => "adaptive".into(),
            Chosen::Guarded => "guarded".into(),
        }
    }
}

/// Each scheduler over all rails, followed by each rail alone.
pub(super) fn subjects(schedulers: &[Chosen], rails: &[LiveRail]) -> Vec<Subject> {
    let all = RailSet::first(rails.len());
    let together = schedulers.iter().map(|chosen| Subject {
        name: chosen.name(),
        chosen: *chosen,
        rails: all,
    });
    let alone = (0u8..).zip(rails).map(|(rail, live)| Subject {
        name: format!("{} alone", live.name),
        chosen: Chosen::WholeMessages,
        rails: RailSet::NONE.with(RailId(rail)),
    });
    together.chain(alone).collect()
}

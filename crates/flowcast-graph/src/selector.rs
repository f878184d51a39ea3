//! Selection of costs: a quantity, restricted to ranks, pairs, links, sizes, collectives or functions.
//!
//! A selector is a name and, in brackets, conditions that must all hold: `compute[rank=7]`, `latency[pair=0-3]`,
//! `gap_per_byte[size>=64KiB,link=between]`.

use std::fmt;

use flowcast_network::quantity::Quantity;
use flowcast_replay::time_part::TimePart;
use flowcast_units::{Bytes, CollectiveOp, Rank, Time, TimePerByte};
use thiserror::Error;

pub use crate::parts::{GraphMessage, MessageRoute};
use crate::{graph::EventGraph, parts::CostPart};

/// Error for a text that is not a valid selector.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("found `{found}`, expected {expected}")]
pub struct SelectorError {
    /// The invalid part of the text.
    pub found: String,
    /// Description of valid text.
    pub expected: &'static str,
}

/// A quantity and the conditions that restrict it.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    /// The kind of cost.
    pub quantity: TimePart,
    /// Conditions that must all hold.
    pub conditions: Vec<CostCondition>,
    /// `true` if its values are rates: `bandwidth` instead of `gap_per_byte`.
    is_rate: bool,
}

/// Condition that a cost must meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CostCondition {
    /// The rank that computes or whose processor works, the sender or receiver of a message, a member of a collective.
    Rank(Rank),
    /// Any rank of this node: it computes, its processor works, or it sends or receives a message.
    Node(u32),
    /// Messages between these ranks, in either direction.
    Pair(Rank, Rank),
    /// Messages on this kind of link.
    Link(MessageRoute),
    /// Messages that are part of a collective, or collectives by formula.
    Collective(CollectiveOp),
    /// Computations and sends of a user function, given by the value of the trace's event 60000019.
    Function(i64),
    /// Messages of at least the first size and less than the second.
    Size(Bytes, Bytes),
}

/// Selectable costs and their names.
const QUANTITIES: [(&str, TimePart); 7] = [
    ("compute", TimePart::Compute),
    ("overhead", TimePart::Overhead),
    ("latency", TimePart::Latency),
    ("gap", TimePart::Gap),
    ("gap_per_byte", TimePart::Bandwidth),
    (RATE, TimePart::Bandwidth),
    ("collective", TimePart::Collective),
];
const RATE: &str = "bandwidth";
const NAMES: &str = "compute, collective, latency, bandwidth, gap_per_byte, overhead or gap, and then optional \
    conditions in brackets";
const CONDITIONS: &str = "rank=7, node=2, pair=0-3, link=inside|between|sites, collective=alltoall, function=12, size>=64KiB or size<64KiB";

impl Selector {
    /// Returns `true` if a text is meant as a selector and not as a field of a network.
    pub fn is_selector(text: &str) -> bool {
        text.contains('[') || matches!(text.trim(), "compute" | "collective")
    }

    /// Reads `quantity[condition,condition]`. A prefix `nic.` of the quantity is ignored.
    ///
    /// # Errors
    /// Unknown quantities, unknown conditions, and conditions that the quantity does not have.
    pub fn parse(text: &str) -> Result<Selector, SelectorError> {
        let text = text.trim();
        let (name, rest) = text
            .split_once('[')
            .map_or((text, None), |(name, rest)| (name, Some(rest)));
        let name = name.trim().trim_start_matches("nic.");
        let is_rate = name == RATE;
        let quantity = QUANTITIES.iter().find(|(own, _)| *own == name);
        let quantity = quantity.ok_or_else(|| wrong(name, NAMES))?.1;
        let inner = match rest {
            None => "",
            Some(rest) => rest
                .strip_suffix(']')
                .ok_or_else(|| wrong(text, "a ] after the conditions"))?,
        };
        let parts = inner
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let conditions = parts
            .map(|part| CostCondition::parse(part).ok_or_else(|| wrong(part, CONDITIONS)))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(condition) = conditions
            .iter()
            .find(|condition| !condition.suits(quantity))
        {
            let found = format!("{condition} for {}", name_of(quantity));
            return Err(wrong(
                &found,
                "pair, link and size only for messages, and collective only for messages and collectives",
            ));
        }
        Ok(Selector {
            quantity,
            conditions,
            is_rate,
        })
    }

    /// Selects all costs of a quantity.
    pub fn all(quantity: TimePart) -> Selector {
        Selector {
            quantity,
            conditions: Vec::new(),
            is_rate: false,
        }
    }

    /// Selects the costs of all messages between nodes of a site.
    pub fn between_nodes(quantity: TimePart) -> Selector {
        Selector {
            conditions: vec![CostCondition::Link(MessageRoute::Between)],
            ..Selector::all(quantity)
        }
    }

    /// Returns `true` if its values are rates.
    pub fn is_rate(&self) -> bool {
        self.is_rate
    }

    /// Converts a value to the unit of the graph: nanoseconds, nanoseconds per byte, or a factor. `None` if the value is of
    /// another kind.
    pub fn number(&self, value: Quantity) -> Option<f64> {
        match (self.quantity, value) {
            (TimePart::Compute | TimePart::Collective, Quantity::Number(factor)) => Some(factor),
            (TimePart::Overhead | TimePart::Latency | TimePart::Gap, Quantity::Time(time)) => {
                Some(time.as_nanos())
            }
            (TimePart::Bandwidth, Quantity::TimePerByte(time)) => Some(time.as_nanos()),
            (TimePart::Bandwidth, Quantity::Rate(rate)) => {
                Some(TimePerByte::from_rate(rate).as_nanos())
            }
            _ => None,
        }
    }

    /// Converts a number of the graph to a value with its unit.
    pub fn value(&self, number: f64) -> Quantity {
        match self.quantity {
            TimePart::Compute | TimePart::Collective => Quantity::Number(number),
            TimePart::Bandwidth if self.is_rate => {
                Quantity::Rate(TimePerByte::from_nanos(number).rate())
            }
            TimePart::Bandwidth => Quantity::TimePerByte(TimePerByte::from_nanos(number)),
            _ => Quantity::Time(Time::from_nanos(number)),
        }
    }

    /// Returns `true` if the selector matches a part of a cost.
    pub(crate) fn takes(&self, graph: &EventGraph<'_>, part: &CostPart) -> bool {
        part.quantity == self.quantity
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(graph, part))
    }
}

fn wrong(found: &str, expected: &'static str) -> SelectorError {
    SelectorError {
        found: found.to_owned(),
        expected,
    }
}

/// Name of a quantity, never the name for rates.
fn name_of(quantity: TimePart) -> &'static str {
    let named = QUANTITIES.iter().find(|(_, own)| *own == quantity);
    named.map_or(quantity.name(), |(name, _)| name)
}

impl CostCondition {
    fn parse(text: &str) -> Option<CostCondition> {
        if let Some(least) = text.strip_prefix("size>=") {
            return Some(CostCondition::Size(
                Bytes::parse(least.trim()).ok()?,
                Bytes(u64::MAX),
            ));
        }
        if let Some(most) = text.strip_prefix("size<") {
            return Some(CostCondition::Size(
                Bytes(0),
                Bytes::parse(most.trim()).ok()?,
            ));
        }
        let (key, value) = text
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))?;
        Some(match key {
            "rank" => CostCondition::Rank(rank(value)?),
            "node" => CostCondition::Node(value.parse().ok()?),
            "pair" => value
                .split_once('-')
                .and_then(|(a, b)| Some(CostCondition::Pair(rank(a)?, rank(b)?)))?,
            "link" => CostCondition::Link(MessageRoute::from_name(value)?),
            "collective" => CostCondition::Collective(
                CollectiveOp::ALL
                    .into_iter()
                    .find(|op| op.name().eq_ignore_ascii_case(value))?,
            ),
            "function" => CostCondition::Function(value.parse().ok()?),
            _ => return None,
        })
    }

    fn suits(&self, quantity: TimePart) -> bool {
        match (self, quantity) {
            (CostCondition::Pair(..) | CostCondition::Link(_) | CostCondition::Size(..), kind) => {
                !matches!(kind, TimePart::Compute | TimePart::Collective)
            }
            (CostCondition::Collective(_), kind) => kind != TimePart::Compute,
            (
                CostCondition::Rank(_) | CostCondition::Node(_) | CostCondition::Function(_),
                kind,
            ) => kind != TimePart::Collective,
        }
    }

    fn holds(&self, graph: &EventGraph<'_>, part: &CostPart) -> bool {
        let owner = graph.owner(part.rank);
        let works = matches!(part.quantity, TimePart::Compute | TimePart::Overhead);
        let message = || graph.message(part.slot());
        match *self {
            CostCondition::Rank(rank) if works => owner == rank,
            CostCondition::Rank(rank) => [message().from, message().to].contains(&rank),
            CostCondition::Node(number) if works => graph.node(owner).0 == number,
            CostCondition::Node(number) => [message().from, message().to]
                .into_iter()
                .any(|rank| graph.node(rank).0 == number),
            CostCondition::Pair(a, b) => {
                matches!((message().from, message().to), ends if ends == (a, b) || ends == (b, a))
            }
            CostCondition::Link(link) => message().link == link,
            CostCondition::Collective(op) if part.quantity == TimePart::Collective => {
                graph.ops[part.item as usize] == op
            }
            CostCondition::Collective(op) => message().collective == Some(op),
            CostCondition::Function(function) => graph.function(part) == function,
            CostCondition::Size(least, below) => (least..below).contains(&message().size),
        }
    }
}

fn rank(text: &str) -> Option<Rank> {
    text.trim().parse().ok().map(Rank)
}

impl fmt::Display for CostCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CostCondition::Rank(rank) => write!(f, "rank={rank}"),
            CostCondition::Node(node) => write!(f, "node={node}"),
            CostCondition::Pair(a, b) => write!(f, "pair={a}-{b}"),
            CostCondition::Link(link) => write!(f, "link={}", link.name()),
            CostCondition::Collective(op) => write!(f, "collective={}", op.name()),
            CostCondition::Function(function) => write!(f, "function={function}"),
            CostCondition::Size(least, Bytes(u64::MAX)) => write!(f, "size>={least}"),
            CostCondition::Size(_, below) => write!(f, "size<{below}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<String> = self
            .conditions
            .iter()
            .map(CostCondition::to_string)
            .collect();
        let name = if self.is_rate {
            RATE
        } else {
            name_of(self.quantity)
        };
        if conditions.is_empty() {
            f.write_str(name)
        } else {
            write!(f, "{name}[{}]", conditions.join(","))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written_as_they_are_read() {
        for text in [
            "compute[rank=7]",
            "latency[pair=0-3,link=between]",
            "collective",
            "bandwidth[size>=64KiB]",
        ] {
            assert_eq!(Selector::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Selector::parse("nic.overhead[rank=1]").unwrap().to_string(),
            "overhead[rank=1]"
        );
    }

    #[test]
    fn an_invalid_selector_lists_the_valid_ones() {
        for (text, found) in [
            ("speed[rank=1]", "speed"),
            ("compute[rank=x]", "rank=x"),
            ("compute[pair=0-1]", "pair=0-1 for compute"),
            ("collective[rank=1]", "rank=1 for collective"),
            ("latency[rank=1", "latency[rank=1"),
        ] {
            assert_eq!(Selector::parse(text).unwrap_err().found, found);
        }
    }
}

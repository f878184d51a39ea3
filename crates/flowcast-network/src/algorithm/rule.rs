//! One line of a table of algorithms: `ranks < 8, bytes >= 12KiB: binomial segment 64KiB`.

use std::{fmt, str::FromStr};

use super::{Algorithm, Choice};
use flowcast_units::{Bytes, CollectiveOp, named};

/// Quantities that the conditions of a rule refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleExtent {
    /// Number of ranks of the communicator.
    pub ranks: u32,
    /// Message size of an operation on one vector; in an alltoall, the average size from one rank to another; otherwise the
    /// average block size of a rank.
    pub bytes: Bytes,
    /// Size of all blocks together. The same as `bytes` for an operation on one vector.
    pub total: Bytes,
}

impl RuleExtent {
    /// Extent of an operation whose buffers have equal blocks. `buffer` is the size of the vector for an operation on one
    /// vector, of all blocks together for a gather, scatter, allgather or reduce-scatter, and of the data that one rank
    /// sends to all ranks for an alltoall.
    pub fn from_buffer(op: CollectiveOp, ranks: u32, buffer: Bytes) -> RuleExtent {
        use CollectiveOp::*;
        let each = Bytes(buffer.0 / u64::from(ranks.max(1)));
        let (bytes, total) = match op {
            Barrier | Bcast | Reduce | Allreduce | Scan => (buffer, buffer),
            Alltoall | Alltoallv | Alltoallw => {
                (each, Bytes(buffer.0.saturating_mul(u64::from(ranks))))
            }
            _ => (each, buffer),
        };
        RuleExtent {
            ranks,
            bytes,
            total,
        }
    }

    fn value(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Ranks => u64::from(self.ranks),
            Measure::Bytes => self.bytes.0,
            Measure::Total => self.total.0,
            Measure::Each => self.bytes.0 / u64::from(self.ranks.max(1)),
            Measure::Share => self.bytes.0 >> self.ranks.max(1).ilog2(),
        }
    }
}

named! {
    /// A quantity of an [`RuleExtent`].
    pub enum Measure {
        /// Number of ranks of the communicator.
        Ranks = "ranks",
        /// The size in [`RuleExtent::bytes`].
        Bytes = "bytes",
        /// Size of all blocks together, [`RuleExtent::total`].
        Total = "total",
        /// The size in bytes divided by the number of ranks.
        Each = "each",
        /// The size in bytes divided by the largest power of two that is not above the number of ranks.
        Share = "share",
    }
}

named! {
    /// Comparison of a quantity with a value.
    pub enum Relation {
        /// Strictly below the value.
        Below = "<",
        /// Below or equal to the value.
        AtMost = "<=",
        /// Strictly above the value.
        Above = ">",
        /// Above or equal to the value.
        AtLeast = ">=",
        /// Equal to the value.
        Equal = "=",
    }
}

/// One condition of a rule, such as `bytes >= 12KiB` or `ranks power-of-two`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleCondition {
    /// A quantity compared with a number.
    Compare(Measure, Relation, u64),
    /// The number of ranks is a power of two.
    PowerOfTwo,
}

impl RuleCondition {
    fn holds(self, extent: &RuleExtent) -> bool {
        match self {
            RuleCondition::PowerOfTwo => extent.ranks.is_power_of_two(),
            RuleCondition::Compare(measure, relation, bound) => {
                let value = extent.value(measure);
                match relation {
                    Relation::Below => value < bound,
                    Relation::AtMost => value <= bound,
                    Relation::Above => value > bound,
                    Relation::AtLeast => value >= bound,
                    Relation::Equal => value == bound,
                }
            }
        }
    }
}

/// An algorithm and the conditions under which it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmRule {
    /// Conditions that must all hold; a rule without conditions always applies.
    pub conditions: Vec<RuleCondition>,
    /// Algorithm that the rule selects.
    pub choice: Choice,
}

impl AlgorithmRule {
    /// `true` if all conditions hold.
    pub fn holds(&self, extent: &RuleExtent) -> bool {
        self.conditions
            .iter()
            .all(|condition| condition.holds(extent))
    }
}

const FORM: &str = "`ranks < 8, bytes >= 12KiB: binomial` (conditions on ranks, bytes, total, each and share with < <= > >= =, or \
     `ranks power-of-two`; `segment SIZE` and `width N` may follow the algorithm)";

impl FromStr for AlgorithmRule {
    type Err = String;

    fn from_str(text: &str) -> Result<AlgorithmRule, String> {
        let fail = |part: &str| format!("found `{}` in `{text}`, expected {FORM}", part.trim());
        let (conditions, choice) = text
            .rsplit_once(':')
            .map_or((None, text), |(left, right)| (Some(left), right));
        let conditions = conditions.into_iter().flat_map(|all| all.split(','));
        Ok(AlgorithmRule {
            conditions: conditions
                .map(|part| condition(part).ok_or_else(|| fail(part)))
                .collect::<Result<_, _>>()?,
            choice: read_choice(choice).ok_or_else(|| fail(choice))?,
        })
    }
}

fn condition(text: &str) -> Option<RuleCondition> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["ranks", "power-of-two"] => Some(RuleCondition::PowerOfTwo),
        [measure, relation, bound] => {
            let measure = Measure::from_name(measure)?;
            let bound = if measure == Measure::Ranks {
                bound.parse().ok()?
            } else {
                bound.parse::<Bytes>().ok()?.0
            };
            Some(RuleCondition::Compare(
                measure,
                Relation::from_name(relation)?,
                bound,
            ))
        }
        _ => None,
    }
}

fn read_choice(text: &str) -> Option<Choice> {
    let mut words = text.split_whitespace();
    let mut choice = Choice::plain(Algorithm::from_name(words.next()?)?);
    while let Some(option) = words.next() {
        match option {
            "segment" => {
                choice.segment = Some(
                    words
                        .next()?
                        .parse()
                        .ok()
                        .filter(|size: &Bytes| size.0 > 0)?,
                )
            }
            "width" => choice.width = Some(words.next()?.parse().ok().filter(|width| *width > 0)?),
            _ => return None,
        }
    }
    Some(choice)
}

impl fmt::Display for RuleCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleCondition::PowerOfTwo => f.write_str("ranks power-of-two"),
            RuleCondition::Compare(Measure::Ranks, relation, bound) => {
                write!(f, "ranks {} {bound}", relation.name())
            }
            RuleCondition::Compare(measure, relation, bound) => {
                write!(
                    f,
                    "{} {} {}",
                    measure.name(),
                    relation.name(),
                    Bytes(*bound)
                )
            }
        }
    }
}

impl fmt::Display for AlgorithmRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, condition) in self.conditions.iter().enumerate() {
            write!(f, "{}{condition}", if index == 0 { "" } else { ", " })?;
        }
        write!(
            f,
            "{}{}",
            if self.conditions.is_empty() { "" } else { ": " },
            self.choice
        )
    }
}

flowcast_units::serde_as_text!(AlgorithmRule);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_as_it_is_printed() {
        for text in [
            "binomial",
            "ranks < 8, bytes >= 12288B: chain width 4 segment 65536B",
            "ranks power-of-two, total <= 512KiB: recursive-doubling",
            "share < 8B: ring",
        ] {
            let rule: AlgorithmRule = text.parse().unwrap();
            assert_eq!(rule.to_string().parse::<AlgorithmRule>().unwrap(), rule);
        }
    }

    #[test]
    fn errors_name_the_wrong_part_of_a_rule() {
        for (text, part) in [
            ("ranks < x: ring", "`ranks < x`"),
            ("bytes < 5: ring", "`bytes < 5`"),
            ("ranks < 5 ring", "`ranks < 5 ring`"),
            ("wheel", "`wheel`"),
            ("ring segment 0B", "`ring segment 0B`"),
        ] {
            let error = text.parse::<AlgorithmRule>().unwrap_err();
            assert!(
                error.starts_with(&format!("found {part} in `{text}`, expected `ranks < 8")),
                "{error}"
            );
        }
    }

    #[test]
    fn the_share_of_a_rank_results_from_repeated_halving() {
        let extent = |ranks, bytes| RuleExtent {
            ranks,
            bytes: Bytes(bytes),
            total: Bytes(bytes),
        };
        let rule: AlgorithmRule = "share < 8B: binomial".parse().unwrap();
        assert!(rule.holds(&extent(8, 63)) && !rule.holds(&extent(8, 64)));
        assert!(rule.holds(&extent(15, 63)) && !rule.holds(&extent(15, 64)));
    }
}

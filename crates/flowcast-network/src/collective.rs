//! Time of a collective operation, by Dimemas' formula (Girona, Labarta, Badia).
//!
//! After all ranks have arrived, a fan-in and a fan-out phase follow. Each takes `(L + size/BW) · factor`. The factor is 0
//! (`NULL`), 1 (`CT`), `P - 1` (`LIN`) or `Nsteps` (`LOG`). For `B` buses `Nsteps = Σ ceil(C_i/B)`, where
//! `C_i = ceil((P - 2^i) / 2^(i+1))` is the number of messages in stage `i` of a binomial tree. Without a limit on buses
//! each stage takes one step, `ceil(log2 P)` in total. A slide on the model prints `P` for `LIN`; Dimemas and this module
//! compute `P - 1`.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{algorithm::AlgorithmTable, measured_collectives::MeasuredCollectives};
use flowcast_units::{Bytes, CollectiveOp, Rate, Time, TimePerByte, named};

named! {
    /// Number of times that a phase repeats its message.
    pub enum Repeats {
        /// No message: the phase does not occur.
        Null = "NULL",
        /// Once, for any number of processes.
        Constant = "CT",
        /// One time less than the number of processes.
        Linear = "LIN",
        /// Once for each step of a binomial tree.
        Logarithmic = "LOG",
    }
}

named! {
    /// Message size of a phase, derived from the bytes that a process sends and receives.
    pub enum PhaseSize {
        /// The smaller of the sent and received sizes.
        Min = "MIN",
        /// The larger of the sent and received sizes.
        Max = "MAX",
        /// Half the sum of both sizes, rounded down.
        Mean = "MEAN",
        /// Twice the larger of the sent and received sizes.
        TwiceMax = "2MAX",
        /// Sum of the sent and received sizes.
        Sum = "S+R",
        /// Bytes that the process sends.
        Send = "SEND",
        /// Bytes that the process receives.
        Recv = "RECV",
    }
}

impl Repeats {
    /// Parses Dimemas' name. Dimemas has two names for some values.
    pub(crate) fn parse(name: &str) -> Option<Repeats> {
        match name {
            "0" => Some(Repeats::Null),
            "CTE" => Some(Repeats::Constant),
            name => Repeats::from_name(name),
        }
    }
}

impl PhaseSize {
    /// Size in bytes. Computed in 64 bits; the original tool wraps at 32 bits.
    pub fn bytes(self, send: Bytes, recv: Bytes) -> Bytes {
        Bytes(match self {
            PhaseSize::Min => send.0.min(recv.0),
            PhaseSize::Max => send.0.max(recv.0),
            PhaseSize::Mean => send.0.saturating_add(recv.0) / 2,
            PhaseSize::TwiceMax => send.0.max(recv.0).saturating_mul(2),
            PhaseSize::Sum => send.0.saturating_add(recv.0),
            PhaseSize::Send => send.0,
            PhaseSize::Recv => recv.0,
        })
    }
}

/// One phase of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Number of times that the phase repeats its message.
    pub repeats: Repeats,
    /// Size of each message.
    pub size: PhaseSize,
}

impl Phase {
    /// `(latency + size/bandwidth) · factor` for `processes` and `buses` (0 is no limit).
    pub fn time(self, message: PhaseMessage, processes: u32, buses: u32) -> Time {
        let factor = match self.repeats {
            Repeats::Null => return Time::ZERO,
            Repeats::Constant => 1,
            Repeats::Linear => processes.saturating_sub(1),
            Repeats::Logarithmic => steps(processes, buses),
        };
        (message.latency
            + message
                .bandwidth
                .time_for(self.size.bytes(message.send, message.recv)))
            * f64::from(factor)
    }
}

/// Network and data sizes of a phase.
#[derive(Debug, Clone, Copy)]
pub struct PhaseMessage {
    /// Start-up time of each repetition.
    pub latency: Time,
    /// Bandwidth in bytes per second; 0 is infinite.
    pub bandwidth: Rate,
    /// Bytes that a process sends.
    pub send: Bytes,
    /// Bytes that a process receives.
    pub recv: Bytes,
}

/// Fan-in and fan-out of one operation, written `LOG 2MAX | LOG MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Phase in which data go towards the root.
    pub fan_in: Phase,
    /// Phase in which data go away from the root.
    pub fan_out: Phase,
}

impl Row {
    /// Creates a row with the same phase for fan-in and fan-out.
    pub const fn both(repeats: Repeats, size: PhaseSize) -> Row {
        Row {
            fan_in: Phase { repeats, size },
            fan_out: Phase { repeats, size },
        }
    }

    /// Time of fan-in followed by fan-out, computed as in [`Phase::time`].
    pub fn time(&self, message: PhaseMessage, processes: u32, buses: u32) -> Time {
        self.fan_in.time(message, processes, buses) + self.fan_out.time(message, processes, buses)
    }
}

/// `Nsteps`: steps of a binomial tree of `processes` if `buses` messages are possible at the same time (0: no limit).
pub fn steps(processes: u32, buses: u32) -> u32 {
    stage_messages(processes)
        .map(|messages| {
            if buses == 0 {
                1
            } else {
                messages.div_ceil(buses)
            }
        })
        .sum()
}

/// `C_i`: number of messages in each stage of the tree.
pub fn stage_messages(processes: u32) -> impl Iterator<Item = u32> {
    (0..32u32)
        .map(|stage| 1u64 << stage)
        .take_while(move |have| *have < u64::from(processes))
        .map(move |have| {
            let messages = (u64::from(processes) - have).div_ceil(2 * have);
            u32::try_from(messages).expect("fewer messages than processes")
        })
}

/// The rows of all operations: the `[collectives]` section of a network file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "CollectivesSection")]
pub struct Collectives {
    /// Row for operations without their own row.
    pub default: Row,
    /// Rows of single operations, which replace `default`.
    pub rows: BTreeMap<CollectiveOp, Row>,
    /// Algorithms for replays that expand operations into messages.
    pub algorithms: Option<AlgorithmTable>,
    /// Time per byte for combining two vectors on a rank, if messages carry out the operations.
    pub reduction: Option<TimePerByte>,
    /// Costs derived from measured operations on the machine.
    pub measured: Option<Box<MeasuredCollectives>>,
}

section! {
    /// The section as it appears in a file. If it has no formula, the one of [`Collectives::default`] applies.
    pub(crate) struct CollectivesSection {
        /// Row of all operations without an entry in `rows`.
        /// Default: required with `rows`. Example: `"LOG MAX | LOG MAX"`.
        default: Option<Row>,
        /// Rows by operation: `Barrier`, `Bcast`, `Gather`, `Gatherv`, `Scatter`, `Scatterv`, `Allgather`, `Allgatherv`, `Alltoall`,
        /// `Alltoallv`, `Alltoallw`, `Reduce`, `Allreduce`, `Reduce_scatter`, `Reduce_scatter_block`, `Scan`.
        /// Default: none. Example: `{ Bcast = "LOG MAX | NULL" }`.
        rows: BTreeMap<CollectiveOp, Row> [default],
        algorithms: Option<AlgorithmTable>,
        /// Time per byte in which a rank combines a message with its own data, where
        /// [messages](../explanation/collectives.md) carry operations out. The time counts as computation, so that the speed
        /// of the node scales it. The formula does not use it.
        /// Default: 0. Example: `"0.1ns/B"`.
        reduction: Option<TimePerByte>,
        measured: Option<Box<MeasuredCollectives>>,
    }
}

impl TryFrom<CollectivesSection> for Collectives {
    type Error = String;

    fn try_from(section: CollectivesSection) -> Result<Collectives, String> {
        let CollectivesSection {
            default,
            rows,
            algorithms,
            reduction,
            measured,
        } = section;
        let formula = match default {
            Some(default) => Collectives {
                default,
                rows,
                ..Collectives::default()
            },
            None if rows.is_empty() => Collectives::default(),
            None => return Err("missing field `default` beside `rows`".to_owned()),
        };
        Ok(Collectives {
            algorithms,
            reduction,
            measured,
            ..formula
        })
    }
}

impl Collectives {
    /// Row of an operation.
    pub fn row(&self, op: CollectiveOp) -> Row {
        self.rows.get(&op).copied().unwrap_or(self.default)
    }

    /// `true` if the network has its own values for the formula, regardless of any algorithms.
    pub fn has_own_formula(&self) -> bool {
        Collectives {
            algorithms: None,
            reduction: None,
            measured: None,
            ..self.clone()
        } != Collectives::default()
    }

    /// Creates a table with the same row for all operations.
    pub fn uniform(repeats: Repeats) -> Collectives {
        Collectives {
            default: Row::both(repeats, PhaseSize::Max),
            rows: BTreeMap::new(),
            algorithms: None,
            reduction: None,
            measured: None,
        }
    }
}

impl Default for Collectives {
    /// The table found for the SGI Origin by Girona, Labarta and Badia. It is the only published table for all operations.
    fn default() -> Collectives {
        use CollectiveOp::*;
        const TABLE: [(CollectiveOp, &str); 16] = [
            (Barrier, "LIN MAX | LIN MAX"),
            (Bcast, "LOG MAX | NULL"),
            (Gather, "LOG MEAN | NULL"),
            (Gatherv, "LOG MEAN | NULL"),
            (Scatter, "NULL | LOG MEAN"),
            (Scatterv, "NULL | LOG MEAN"),
            (Allgather, "LOG MEAN | LOG MEAN"),
            (Allgatherv, "LOG MEAN | LOG MEAN"),
            (Alltoall, "LOG MEAN | LOG MAX"),
            (Alltoallv, "LOG MEAN | LOG MAX"),
            (Reduce, "LOG 2MAX | NULL"),
            (Allreduce, "LOG 2MAX | LOG MAX"),
            (ReduceScatter, "LOG 2MAX | LOG MIN"),
            (ReduceScatterBlock, "LOG 2MAX | LOG MIN"),
            (Scan, "LOG MAX | LOG MAX"),
            (Alltoallw, "LOG MEAN | LOG MAX"),
        ];
        Collectives {
            default: Row::both(Repeats::Logarithmic, PhaseSize::Max),
            rows: TABLE
                .iter()
                .map(|(op, row)| (*op, row.parse().expect("the table is well formed")))
                .collect(),
            algorithms: None,
            reduction: None,
            measured: None,
        }
    }
}

const ROW_FORM: &str = "a fan-in and a fan-out phase such as `LOG 2MAX | LOG MAX`: models NULL CT LIN LOG, sizes MIN MAX MEAN 2MAX S+R \
     SEND RECV";

impl FromStr for Row {
    type Err = String;

    fn from_str(text: &str) -> Result<Row, String> {
        row(text).ok_or_else(|| format!("found `{text}`, expected {ROW_FORM}"))
    }
}

fn row(text: &str) -> Option<Row> {
    let (fan_in, fan_out) = text.split_once('|')?;
    Some(Row {
        fan_in: phase(fan_in)?,
        fan_out: phase(fan_out)?,
    })
}

fn phase(text: &str) -> Option<Phase> {
    let mut words = text.split_whitespace();
    let repeats = Repeats::parse(words.next()?)?;
    let size = match words.next() {
        Some(name) => PhaseSize::from_name(name)?,
        None if repeats == Repeats::Null => PhaseSize::Max,
        None => return None,
    };
    words.next().is_none().then_some(Phase { repeats, size })
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Phase { repeats, size } = self;
        if *repeats == Repeats::Null {
            return repeats.fmt(f);
        }
        write!(f, "{repeats} {size}")
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", self.fan_in, self.fan_out)
    }
}

flowcast_units::serde_as_text!(Row);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn eight_processes_over_two_buses_take_four_steps() {
        assert_eq!(stage_messages(8).collect::<Vec<_>>(), [4, 2, 1]);
        assert_eq!((steps(8, 0), steps(8, 1), steps(8, 2)), (3, 7, 4));
        assert_eq!((steps(1, 0), steps(1, 3)), (0, 0));
    }

    #[test]
    fn a_single_process_pays_only_for_a_constant_phase() {
        let message = PhaseMessage {
            latency: Time::from_nanos(2000.0),
            bandwidth: Rate::from_bytes_per_second(1e9),
            send: Bytes(8),
            recv: Bytes(16),
        };
        let time = |row: &str, processes| {
            row.parse::<Row>()
                .unwrap()
                .time(message, processes, 0)
                .as_nanos()
        };
        assert_eq!(time("CT SEND | CT RECV", 1), 2008.0 + 2016.0);
        assert_eq!(
            (
                time("LIN SEND | LIN RECV", 1),
                time("LOG SEND | LOG RECV", 1)
            ),
            (0.0, 0.0)
        );
        assert_eq!(time("LOG SEND | NULL", 8), 3.0 * 2008.0);
    }

    #[test]
    fn the_default_table_survives_its_own_text() {
        let text = toml::to_string(&Collectives::default()).unwrap();
        assert_eq!(
            toml::from_str::<Collectives>(&text).unwrap(),
            Collectives::default()
        );
    }

    #[test]
    fn a_section_without_a_formula_keeps_the_default_one() {
        let read = |text| toml::from_str::<Collectives>(text).map_err(|error| error.to_string());
        let section = read("reduction = '0.1ns/B'").unwrap();
        assert_eq!(section.reduction, Some(TimePerByte::from_nanos(0.1)));
        assert!(!section.has_own_formula());
        let error = read("[rows]\nBcast = 'LOG MAX | NULL'").unwrap_err();
        assert!(
            error.contains("missing field `default` beside `rows`"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn one_bus_serialises_the_tree_and_more_buses_never_cost_steps(p in 1u32..5000, buses in 1u32..64) {
            prop_assert_eq!(steps(p, 1), p - 1);
            prop_assert!(steps(p, buses + 1) <= steps(p, buses));
            prop_assert!(steps(p, 0) <= steps(p, buses));
            prop_assert!(p < 2 || 1 <= steps(p, 0));
        }
    }
}

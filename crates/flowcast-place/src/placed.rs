//! Result of a search for a mapping, as a document. It starts with the verdict on the gain.

use flowcast_table::{Document, Grouped, Record, Table, figure, percent, rows};
use flowcast_units::{Bytes, Node, Rounded, Time, named};

use super::{
    cartesian::GridBlocks,
    exhaustive::Ranking,
    gain::{MappingGain, SMALLEST_GAIN},
    job::ranks_of_nodes,
    matrix::RankMessage,
    reordered::joined,
    traffic::MappingTraffic,
};

/// Maximum number of ranks whose mapping is written out in text.
const SHOWN_RANKS: usize = 32;

named! {
    /// Quantity that the search minimizes.
    #[derive(Default)]
    pub enum PlacementObjective {
        /// The predicted time of the program, of the steps, or of all messages of a matrix sent at the same time.
        #[default]
        Time = "time",
        /// The sum of bytes times the number of links between the nodes.
        Hops = "hops",
    }
}

/// A mapping with its value of the objective.
#[derive(Debug, Clone, PartialEq)]
pub struct ValuedMapping {
    /// The node of each rank.
    pub node_of_rank: Vec<Node>,
    /// Value in seconds, or in bytes times links.
    pub value: f64,
    /// Distribution of the mapping's bytes over the network.
    pub traffic: MappingTraffic,
}

/// The best mapping found, and the default mappings of launchers for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Quantity that the search minimized.
    pub objective: PlacementObjective,
    /// Mapping that fills node after node, the default of launchers.
    pub fill: ValuedMapping,
    /// Mapping that deals the ranks to the nodes in turn.
    pub round_robin: ValuedMapping,
    /// The best mapping found.
    pub best: ValuedMapping,
    /// Gain of the best mapping over `fill`.
    pub gain: MappingGain,
    /// Number of mappings, or changes of one, that were tried.
    pub moves: u64,
    /// Statistics of all mappings, if all were tried.
    pub ranking: Option<Ranking>,
    /// Grid of the ranks and its blocks, if the best mapping cuts a grid into blocks.
    pub blocks: Option<GridBlocks>,
    /// Pairs of ranks that only the best mapping has on one node, those with the most bytes first.
    pub moved_inside: Vec<RankMessage>,
    /// Bytes from ranks to themselves, which cost nothing.
    pub own: Bytes,
}

impl ValuedMapping {
    fn shown(&self, objective: PlacementObjective) -> String {
        match objective {
            PlacementObjective::Time => Rounded(Time::from_seconds(self.value)).to_string(),
            PlacementObjective::Hops => format!("{} byte-links", Grouped(self.value as u64)),
        }
    }
}

impl Placed {
    /// Returns `gain` if the best mapping is worth using instead of `fill`, and otherwise `no gain`.
    pub fn verdict(&self) -> &'static str {
        if self.gain.is_any() {
            "gain"
        } else {
            "no gain"
        }
    }

    /// Returns the verdict as a sentence.
    pub fn sentence(&self) -> String {
        let what = match self.objective {
            PlacementObjective::Time => "time",
            PlacementObjective::Hops => "bytes times links",
        };
        let interval = self.gain.interval.map_or(String::new(), |(low, high)| {
            format!(" ({:.0} to {:.0} %)", 100.0 * low, 100.0 * high)
        });
        let share = format!("{:.0} %", 100.0 * self.gain.share);
        let name = if self.best.node_of_rank == self.round_robin.node_of_rank {
            "round-robin"
        } else {
            "the best mapping"
        };
        if !self.gain.is_any() {
            return format!(
                "no mapping gains more than {:.0} % over fill: keep fill",
                100.0 * SMALLEST_GAIN
            );
        }
        let unsure = if self.gain.is_unsure() {
            ", possibly no gain at all"
        } else {
            ""
        };
        format!("{name} takes {share} less {what} than fill{interval}{unsure}")
    }

    /// Returns the document, without the parts that only the caller knows.
    pub fn document(&self) -> Document {
        let baselines = Record::new()
            .field("fill", self.fill.value)
            .field("round-robin", self.round_robin.value);
        let best = Record::new()
            .field("value", self.best.value)
            .field("node_of_rank", &self.best.node_of_rank);
        let gain = Record::new()
            .field("share", self.gain.share)
            .field("interval", self.gain.interval);
        let mut document = Document::new("placement")
            .schema("flowcast/placement/2")
            .field("objective", self.objective.name())
            .field("verdict", self.verdict())
            .field("baselines", baselines)
            .field("best", best)
            .field("gain", gain)
            .field("moves", self.moves)
            .field("own_bytes", self.own)
            .line(self.sentence())
            .table("mappings", self.mappings())
            .table("levels", self.levels());
        document = match &self.ranking {
            Some(ranking) => all_tried(document, ranking),
            None => document.line(format!("{} moves were tried", Grouped(self.moves))),
        };
        let ranks = self.best.node_of_rank.len();
        if ranks <= SHOWN_RANKS {
            document = document.line(format!(
                "best mapping, ranks by node: {}",
                groups(&self.best.node_of_rank)
            ));
        }
        if let Some(blocks) = &self.blocks {
            document = document
                .field("grid", &blocks.dims)
                .field("block", &blocks.block)
                .line(format!(
                    "ranks form a grid of {}, and each node has a block of {}",
                    joined(&blocks.dims, "x"),
                    joined(&blocks.block, "x")
                ));
        }
        let moved = self.moved_inside.iter().map(|pair| pair.bytes.0);
        let moved = moved.fold(0, u64::saturating_add);
        if let Some(most) = self.moved_inside.first()
            && self.best.traffic.inside > self.fill.traffic.inside
        {
            document = document.line(format!(
                "{} of messages that fill sends between nodes stay inside nodes, most of them ({}) between ranks {} and {}",
                Rounded(Bytes(moved)),
                Rounded(most.bytes),
                most.from,
                most.to
            ));
        }
        if self.own > Bytes(0) {
            document = document.line(format!(
                "{} that ranks send to themselves cost nothing",
                Rounded(self.own)
            ));
        }
        document
    }

    fn mappings(&self) -> Table {
        let mappings = [
            ("fill", &self.fill),
            ("round-robin", &self.round_robin),
            ("best", &self.best),
        ];
        let all = self.best.traffic.inside.0 + self.best.traffic.between.0;
        rows(&mappings)
            .column("mapping", "mapping", |(name, _)| *name)
            .field("value", |(_, mapping)| mapping.value)
            .cell(self.objective.name(), |(_, mapping)| {
                figure(mapping.shown(self.objective))
            })
            .column("inside_share", "inside nodes", |(_, mapping)| {
                percent(mapping.traffic.inside.0 as f64 / all.max(1) as f64, 1)
            })
            .into()
    }

    /// Table of the bytes that the links of each class carry.
    fn levels(&self) -> Table {
        let names: Vec<usize> = (0..self.best.traffic.levels.len()).collect();
        rows(&names)
            .column("links", "bytes on links", |level| {
                self.best.traffic.levels[*level].0.clone()
            })
            .column("fill_bytes", "fill", |level| bytes_on(&self.fill, *level))
            .column("round_robin_bytes", "round-robin", |level| {
                bytes_on(&self.round_robin, *level)
            })
            .column("best_bytes", "best", |level| bytes_on(&self.best, *level))
            .into()
    }
}

fn bytes_on(mapping: &ValuedMapping, level: usize) -> Bytes {
    Bytes(mapping.traffic.levels[level].1)
}

/// Lists the ranks of each node in use, such as `0 1 | 2 3`.
fn groups(node_of_rank: &[Node]) -> String {
    let nodes = node_of_rank.iter().map(|node| node.index() + 1).max();
    let mut groups = ranks_of_nodes(node_of_rank, nodes.unwrap_or(0));
    groups.retain(|ranks| !ranks.is_empty());
    let groups = groups.iter().map(|ranks| joined(ranks, " "));
    groups.collect::<Vec<_>>().join(" | ")
}

/// Adds the histogram of the times of all mappings.
fn all_tried(document: Document, ranking: &Ranking) -> Document {
    const WIDEST: u64 = 40;
    let best = ranking.histogram[0].0;
    let counts = ranking.histogram.iter().map(|(_, mappings)| *mappings);
    let most = counts.max().unwrap_or(1);
    let histogram = rows(&ranking.histogram)
        .column("time_s", "time", |(time, _)| time)
        .cell("ratio", |(time, _)| {
            let slower = match best {
                Time::ZERO => 1.0,
                best => time.as_nanos() / best.as_nanos(),
            };
            figure(format!("{slower:.2}x"))
        })
        .column("mappings", "mappings", |(_, mappings)| Grouped(*mappings))
        .cell("", |(_, mappings)| {
            "▇".repeat((mappings * WIDEST).div_ceil(most) as usize)
        });
    let also = match ranking.best.len() {
        1 => "one mapping".to_owned(),
        several => format!("{} mappings", Grouped(several as u64)),
    };
    document.table("histogram", histogram).line(format!(
        "all {} mappings were tried: best time {} ({also})",
        Grouped(ranking.mappings),
        Rounded(best)
    ))
}

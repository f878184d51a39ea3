//! What a search for a mapping found, as a document: first whether it is worth anything.

use flowcast_table::{Document, Grouped, Record, Table, figure, percent, rows};
use flowcast_units::{Bytes, Node, Rounded, Time, named};

use super::{
    cartesian::GridBlocks,
    exhaustive::Ranking,
    gain::{MappingGain, SMALLEST_GAIN},
    job::ranks_of_nodes,
    matrix::RankMessage,
    traffic::MappingTraffic,
};

/// Mappings of more ranks are not written out for people.
const SHOWN_RANKS: usize = 32;

named! {
    /// What is to be least.
    #[derive(Default)]
    pub enum PlacementObjective {
        /// The predicted time of the program, of the steps, or of all messages of a matrix sent at once.
        #[default]
        Time = "time",
        /// The sum of bytes times the number of links between the nodes.
        Hops = "hops",
    }
}

/// A mapping and what the objective says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ValuedMapping {
    /// The node of each rank.
    pub node_of_rank: Vec<Node>,
    /// Seconds, or bytes times links.
    pub value: f64,
    /// Where its bytes go.
    pub traffic: MappingTraffic,
}

/// The mapping that was found, beside those that launchers make without being asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// What the search made as small as it could.
    pub objective: PlacementObjective,
    /// Node after node is filled, which is what launchers do.
    pub fill: ValuedMapping,
    /// The ranks are dealt to the nodes in turn.
    pub round_robin: ValuedMapping,
    /// The best that was found.
    pub best: ValuedMapping,
    /// What the best saves of the time of `fill`.
    pub gain: MappingGain,
    /// Mappings, or changes of one, that were tried.
    pub moves: u64,
    /// What all mappings take, if all were tried.
    pub ranking: Option<Ranking>,
    /// How the ranks form a grid, if the best mapping cuts one into blocks.
    pub blocks: Option<GridBlocks>,
    /// Pairs of ranks that only the best has on one node, those with most bytes first.
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
    /// `gain` or `no gain`: whether the best is worth leaving `fill` for.
    pub fn verdict(&self) -> &'static str {
        if self.gain.is_any() {
            "gain"
        } else {
            "no gain"
        }
    }

    /// The verdict as a sentence.
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
                "no mapping gains more than {:.0} % on fill: leave it",
                100.0 * SMALLEST_GAIN
            );
        }
        let unsure = if self.gain.is_unsure() {
            ", which may be nothing"
        } else {
            ""
        };
        format!("{name} takes {share} less {what} than fill{interval}{unsure}")
    }

    /// The document, without what only the caller knows.
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
        let document = Document::new("placement")
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
        let document = match &self.ranking {
            Some(ranking) => all_tried(document, ranking),
            None => document.line(format!("{} moves were tried", Grouped(self.moves))),
        };
        let ranks = self.best.node_of_rank.len();
        let document = if ranks <= SHOWN_RANKS {
            document.line(format!("best: ranks {}", groups(&self.best.node_of_rank)))
        } else {
            document
        };
        let document = match &self.blocks {
            Some(blocks) => document
                .field("grid", &blocks.dims)
                .field("block", &blocks.block)
                .line(format!(
                    "ranks form a grid of {}, of which each node has a block of {}",
                    by(&blocks.dims),
                    by(&blocks.block)
                )),
            None => document,
        };
        let moved = self.moved_inside.iter().map(|pair| pair.bytes.0);
        let moved = moved.fold(0, u64::saturating_add);
        let document = match self.moved_inside.first() {
            Some(most) if self.best.traffic.inside > self.fill.traffic.inside => document.line(format!(
                "{} of messages that fill has between nodes are inside them, most of these ({}) between ranks {} and {}",
                Rounded(Bytes(moved)),
                Rounded(most.bytes),
                most.from,
                most.to
            )),
            _ => document,
        };
        if self.own == Bytes(0) {
            document
        } else {
            document.line(format!(
                "{} from ranks to themselves cost nothing",
                Rounded(self.own)
            ))
        }
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

    /// What the links of each class carry.
    fn levels(&self) -> Table {
        let names: Vec<usize> = (0..self.best.traffic.levels.len()).collect();
        rows(&names)
            .column("links", "links", |level| {
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

/// Sides as `4x6`.
fn by(sides: &[u32]) -> String {
    let sides: Vec<String> = sides.iter().map(ToString::to_string).collect();
    sides.join("x")
}

/// The ranks of each node that has some, such as `0 1 | 2 3`.
fn groups(node_of_rank: &[Node]) -> String {
    let nodes = node_of_rank.iter().map(|node| node.index() + 1).max();
    let mut groups = ranks_of_nodes(node_of_rank, nodes.unwrap_or(0));
    groups.retain(|ranks| !ranks.is_empty());
    let groups = groups.iter().map(|ranks| {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        ranks.join(" ")
    });
    groups.collect::<Vec<_>>().join(" | ")
}

/// What all mappings take.
fn all_tried(document: Document, ranking: &Ranking) -> Document {
    const WIDEST: u64 = 40;
    let best = ranking.histogram[0].0;
    let counts = ranking.histogram.iter().map(|(_, mappings)| *mappings);
    let most = counts.max().unwrap_or(1);
    let histogram = rows(&ranking.histogram)
        .column("time_s", "time", |(time, _)| time)
        .cell("against the best", |(time, _)| {
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
        1 => "the only best".to_owned(),
        several => format!("one of {} best", Grouped(several as u64)),
    };
    document.table("histogram", histogram).line(format!(
        "all {} mappings were tried: {} ({also})",
        Grouped(ranking.mappings),
        Rounded(best)
    ))
}

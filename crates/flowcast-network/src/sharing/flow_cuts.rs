//! Flow cuts (Martinasso and Méhaut, RR-5910, sections 5.1 to 5.3): a flow in a conflict with the cut alpha gets
//! `1/(1+alpha)` of its rate without contention.
//!
//! 1. Flows that share an out link or an in link are dominant. They form zig-zags (each flow shares its source with
//!    one neighbour and its destination with the other). An open zig-zag of odd length cuts its ends by `odd_end` and
//!    the inner flows by `odd_inner`, `odd_end`, ... in turn; any other by 1. (The headings of Table 2 are swapped.)
//! 2. The other flows form directed paths, paired from the upstream end; the cuts of a pair are `0` and `io_out`.
//! 3. A remaining flow has the cut `include` between two active neighbours, and `start_end` elsewhere.
//!
//! The paper leaves two cases open. Directed rings are paired from the flow listed first, and an odd flow counts as a
//! remaining one. A zig-zag with more than two flows in one direction of a node (the paper's nodes have two processors) is
//! rejected in strict mode. Otherwise its flows share alpha-fairly, with the alpha that gives the profile's own cuts in a
//! zig-zag of three: `2^(1/alpha) = (1+odd_inner)/(1+odd_end)`, or max-min if that ratio is 1. Racks do not matter.
//!
//! At half-duplex ports, flows share a link regardless of their direction. A flow into a node and one out of it are then
//! neighbours in a zig-zag, and there are no income/outgo conflicts. If the shares exceed the capacity of a bus, all of its
//! flows are scaled down by the same factor.

use super::{
    Allocations, RateModel, SharingError, bus,
    closed_loop::{ClosedLoop, Feedback},
    fabric::{AllocatedFraction, Allocation, Fabric, Limit},
    fair,
};

/// The cuts of Table 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cuts {
    /// Cut of the two ends of an odd zig-zag, and of every second inner flow.
    pub odd_end: f64,
    /// Cut of the other inner flows.
    pub odd_inner: f64,
    /// Cut of the outgoing flow in an income/outgo conflict.
    pub io_out: f64,
    /// Cut of a remaining flow between two active neighbours.
    pub include: f64,
    /// Cut of a remaining flow elsewhere.
    pub start_end: f64,
}

/// Treatment of more than two flows in one direction of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// Rejects them: the paper does not define them.
    Strict,
    /// Lets them share alpha-fairly, which is not in the paper.
    #[default]
    Extended,
}

/// The flow-cut model, with the cuts of one kind of network.
#[derive(Debug, Clone)]
pub struct FlowCuts {
    cuts: Cuts,
    strictness: Strictness,
    /// Alpha-fair model for crowded zig-zags. `None`: they share max-min.
    crowded: Option<ClosedLoop>,
}

impl FlowCuts {
    /// Creates a model with these cuts. Crowded zig-zags share max-min unless the cuts give an alpha above 0 and up to 100.
    pub fn new(cuts: Cuts, strictness: Strictness) -> FlowCuts {
        let ratio = (1.0 + cuts.odd_inner) / (1.0 + cuts.odd_end);
        let alpha = std::f64::consts::LN_2 / ratio.ln();
        let crowded = (alpha > 0.0 && alpha <= 100.0)
            .then(|| ClosedLoop::new(Feedback { alpha, kappa: 0.0 }));
        FlowCuts {
            cuts,
            strictness,
            crowded,
        }
    }
}

impl RateModel for FlowCuts {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations {
        let mut pattern = ActivePattern::new(fabric, active);
        if self.strictness == Strictness::Strict {
            pattern.refuse_crowds()?;
        }
        for zigzag in pattern.zigzags() {
            if pattern.is_crowded(&zigzag) {
                self.share_crowded(&mut pattern, &zigzag)?;
            } else {
                self.cut_zigzag(&mut pattern, &zigzag);
            }
        }
        for path in pattern.directed_paths() {
            self.cut_path(&mut pattern, &path);
        }
        bus::fit_into_buses(fabric, active, &mut pattern.allocations);
        Ok(pattern.allocations)
    }
}

impl FlowCuts {
    fn cut_zigzag(&self, pattern: &mut ActivePattern<'_>, zigzag: &ZigZag) {
        let is_odd = !zigzag.is_closed && zigzag.flows.len() % 2 == 1;
        let limit = Limit::ZigZag {
            flows: zigzag.flows.len() as u32,
        };
        for (place, flow) in zigzag.flows.iter().enumerate() {
            let cut = match (is_odd, place % 2) {
                (false, _) => 1.0,
                (true, 0) => self.cuts.odd_end,
                (true, _) => self.cuts.odd_inner,
            };
            pattern.cut(*flow, cut, limit);
        }
    }

    fn share_crowded(
        &mut self,
        pattern: &mut ActivePattern<'_>,
        zigzag: &ZigZag,
    ) -> Result<(), SharingError> {
        let mut positions = zigzag.flows.clone();
        positions.sort_unstable();
        let flows: Vec<usize> = positions
            .iter()
            .map(|position| pattern.active[*position])
            .collect();
        let shares = match &mut self.crowded {
            Some(alpha_fair) => alpha_fair.shares(pattern.fabric, &flows)?,
            None => fair::max_min(pattern.fabric, &flows),
        };
        let limit = Limit::CrowdedZigZag {
            flows: flows.len() as u32,
        };
        for (position, allocation) in positions.iter().zip(shares) {
            pattern.allocations[*position] = Allocation {
                share: allocation.share,
                limit,
            };
        }
        Ok(())
    }

    fn cut_path(&self, pattern: &mut ActivePattern<'_>, path: &[usize]) {
        for pair in path.chunks(2) {
            if let [incoming, outgoing] = *pair {
                let of = |position: usize| pattern.active[position] as u32;
                let (first, second) = (of(incoming), of(outgoing));
                pattern.cut(incoming, 0.0, Limit::IncomingOfPair { partner: second });
                pattern.cut(
                    outgoing,
                    self.cuts.io_out,
                    Limit::OutgoingOfPair { partner: first },
                );
            } else if pattern.is_between_neighbours(pair[0]) {
                pattern.cut(pair[0], self.cuts.include, Limit::Between);
            } else {
                pattern.cut(pair[0], self.cuts.start_end, Limit::StartOrEnd);
            }
        }
    }
}

/// Connected flows in order, by their position in `active`.
struct ZigZag {
    flows: Vec<usize>,
    is_closed: bool,
}

struct ActivePattern<'a> {
    fabric: &'a Fabric,
    active: &'a [usize],
    counts: Vec<u32>,
    /// Positions of the flows on each link.
    members: Vec<Vec<usize>>,
    allocations: Vec<Allocation>,
}

impl<'a> ActivePattern<'a> {
    fn new(fabric: &'a Fabric, active: &'a [usize]) -> ActivePattern<'a> {
        let mut members = vec![Vec::new(); fabric.link_count()];
        for (position, flow) in active.iter().enumerate() {
            let path = &fabric.paths[*flow];
            members[path.out().index()].push(position);
            members[path.into().index()].push(position);
        }
        let counts = members.iter().map(|flows| flows.len() as u32).collect();
        let allocations = vec![
            Allocation {
                share: AllocatedFraction::WHOLE,
                limit: Limit::Alone
            };
            active.len()
        ];
        ActivePattern {
            fabric,
            active,
            counts,
            members,
            allocations,
        }
    }

    fn cut(&mut self, position: usize, cut: f64, limit: Limit) {
        self.allocations[position] = Allocation {
            share: AllocatedFraction(1.0 / (1.0 + cut)),
            limit,
        };
    }

    fn refuse_crowds(&self) -> Result<(), SharingError> {
        use super::fabric::{Link, LinkId};
        let Some(crowded) = self.counts.iter().position(|count| *count > 2) else {
            return Ok(());
        };
        let flows = self.counts[crowded];
        Err(match self.fabric.link(LinkId(crowded as u32)) {
            Link::Out { node, .. } => SharingError::Crowded {
                node,
                flows,
                direction: "out",
            },
            Link::In { node, .. } => SharingError::Crowded {
                node,
                flows,
                direction: "in",
            },
            Link::Port { node, .. } => SharingError::Crowded {
                node,
                flows,
                direction: "in and out",
            },
            _ => unreachable!("only links of nodes are counted here"),
        })
    }

    /// Out link and in link of the flow at this position.
    fn ends(&self, position: usize) -> [usize; 2] {
        let path = &self.fabric.paths[self.active[position]];
        [path.out().index(), path.into().index()]
    }

    fn is_dominant(&self, position: usize) -> bool {
        self.ends(position)
            .iter()
            .any(|link| self.counts[*link] > 1)
    }

    fn is_crowded(&self, zigzag: &ZigZag) -> bool {
        zigzag
            .flows
            .iter()
            .flat_map(|flow| self.ends(*flow))
            .any(|link| self.counts[link] > 2)
    }

    /// Connected groups of dominant flows: open zig-zags from one end to the other, then the rest.
    fn zigzags(&self) -> Vec<ZigZag> {
        let mut is_seen = vec![false; self.active.len()];
        let mut zigzags = Vec::new();
        let dominant: Vec<usize> = (0..self.active.len())
            .filter(|position| self.is_dominant(*position))
            .collect();
        let (ends, inner): (Vec<usize>, Vec<usize>) =
            dominant.into_iter().partition(|position: &usize| {
                self.ends(*position)
                    .iter()
                    .filter(|link| self.counts[**link] > 1)
                    .count()
                    == 1
            });
        for (starts, is_closed) in [(ends, false), (inner, true)] {
            for start in starts {
                if !is_seen[start] {
                    zigzags.push(ZigZag {
                        flows: self.connected(start, &mut is_seen),
                        is_closed,
                    });
                }
            }
        }
        zigzags
    }

    /// All dominant flows connected with this one; if it is an end of a zig-zag, they are in the zig-zag's order.
    fn connected(&self, start: usize, is_seen: &mut [bool]) -> Vec<usize> {
        let mut found = vec![start];
        is_seen[start] = true;
        let mut next = 0;
        while let Some(position) = found.get(next).copied() {
            next += 1;
            for neighbour in self
                .ends(position)
                .into_iter()
                .flat_map(|link| &self.members[link])
            {
                if !std::mem::replace(&mut is_seen[*neighbour], true) {
                    found.push(*neighbour);
                }
            }
        }
        found
    }

    /// The flow after (`end` 1) or before (`end` 0) this one on a directed path of flows that are not dominant.
    fn along(&self, position: usize, end: usize) -> Option<usize> {
        let shared_node = self.ends(position)[end] ^ 1;
        match self.members[shared_node][..] {
            [neighbour] if !self.is_dominant(neighbour) => Some(neighbour),
            _ => None,
        }
    }

    fn directed_paths(&self) -> Vec<Vec<usize>> {
        let mut is_seen = vec![false; self.active.len()];
        let others: Vec<usize> = (0..self.active.len())
            .filter(|position| !self.is_dominant(*position))
            .collect();
        let (starts, rings): (Vec<usize>, Vec<usize>) = others
            .into_iter()
            .partition(|position| self.along(*position, 0).is_none());
        let mut paths = Vec::new();
        for start in starts.into_iter().chain(rings) {
            if !is_seen[start] {
                paths.push(self.follow(start, &mut is_seen));
            }
        }
        paths
    }

    fn follow(&self, start: usize, is_seen: &mut [bool]) -> Vec<usize> {
        let mut path = Vec::new();
        let mut here = Some(start);
        while let Some(position) = here.filter(|position| !is_seen[*position]) {
            is_seen[position] = true;
            path.push(position);
            here = self.along(position, 1);
        }
        path
    }

    fn is_between_neighbours(&self, position: usize) -> bool {
        self.ends(position)
            .iter()
            .all(|link| self.counts[link ^ 1] > 0)
    }
}

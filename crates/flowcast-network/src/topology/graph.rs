//! Switches and cables from a list, with shortest routes.
//!
//! At each switch, the cables that lead closer to the destination are in the order of the list. From `n` such cables the
//! message takes the one with the number `destination mod n` (`d-mod-k`), or the one that a hash selects.

use super::wiring::{Cable, Hop, Routing, Switch, Trip, Wiring};
use flowcast_units::Node;

/// Maximum number of switches: the size of the table of distances is the square of this number.
pub(crate) const MOST_SWITCHES: u32 = 4096;

/// Cables of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct Edges {
    /// The switches at both ends of each cable.
    pub between: Vec<[u32; 2]>,
    /// Number of parallel cables for each pair of switches.
    pub count: u32,
}

/// Arbitrary switches and cables.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchGraph {
    /// Switch of each node.
    pub nodes: Vec<u32>,
    /// The cables, by class; classes are counted from 1.
    pub edges: Vec<Edges>,
}

impl SwitchGraph {
    /// Number of switches, up to the largest switch number.
    pub(crate) fn switches(&self) -> u32 {
        let of_cables = self
            .edges
            .iter()
            .flat_map(|edges| edges.between.iter().flatten());
        let largest = of_cables.chain(&self.nodes).max();
        largest.map_or(0, |switch| switch.saturating_add(1))
    }
}

/// A graph with its routing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoutedGraph {
    graph: SwitchGraph,
    classes: Vec<String>,
    routing: Routing,
    seed: u64,
    /// Indexed by switch: its cables in the outward direction, with the switch at the other end.
    around: Vec<Vec<(Hop, u32)>>,
    /// Number of cables to a destination, indexed by destination, then by switch.
    distances: Vec<Vec<u16>>,
}

/// Distance of switches that are not connected.
const FAR: u16 = u16::MAX;

impl RoutedGraph {
    /// Creates the graph with the names of its classes, counted from 1. If two nodes have no route between them, the error
    /// contains their numbers.
    pub(crate) fn new(
        graph: SwitchGraph,
        classes: Vec<String>,
        routing: Routing,
        seed: u64,
    ) -> Result<RoutedGraph, [usize; 2]> {
        let switches = graph.switches() as usize;
        let mut around = vec![Vec::new(); switches];
        for (edges, class) in graph.edges.iter().zip(1u8..) {
            for ([from, to], place) in edges.between.iter().zip(0..) {
                for port in 0..edges.count {
                    let hop = Hop::forward(Cable {
                        class,
                        plane: 0,
                        switch: place,
                        port,
                    });
                    around[*from as usize].push((hop, *to));
                    around[*to as usize].push((hop.back(), *from));
                }
            }
        }
        let distances: Vec<Vec<u16>> = (0..switches).map(|to| distances(&around, to)).collect();
        let first = graph.nodes.first().copied().unwrap_or(0) as usize;
        if let Some(node) = graph
            .nodes
            .iter()
            .position(|switch| distances[first][*switch as usize] == FAR)
        {
            return Err([0, node]);
        }
        Ok(RoutedGraph {
            graph,
            classes,
            routing,
            seed,
            around,
            distances,
        })
    }
}

fn distances(around: &[Vec<(Hop, u32)>], to: usize) -> Vec<u16> {
    let mut distances = vec![FAR; around.len()];
    distances[to] = 0;
    let mut next = std::collections::VecDeque::from([to]);
    while let Some(at) = next.pop_front() {
        for (_, other) in &around[at] {
            if distances[*other as usize] == FAR {
                distances[*other as usize] = distances[at] + 1;
                next.push_back(*other as usize);
            }
        }
    }
    distances
}

impl Wiring for RoutedGraph {
    fn nodes(&self) -> Option<u64> {
        Some(self.graph.nodes.len() as u64)
    }

    fn longest(&self) -> u32 {
        let all = self.distances.iter().flatten();
        all.filter(|far| **far != FAR)
            .max()
            .map_or(0, |far| u32::from(*far))
    }

    fn way(&self, trip: &Trip, way: &mut Vec<Hop>) {
        let to = self.switch_of(trip.dst).number as usize;
        let mut at = self.switch_of(trip.src).number as usize;
        while at != to {
            let far = self.distances[to][at];
            let mut nearer = self.around[at]
                .iter()
                .filter(|(_, switch)| self.distances[to][*switch as usize] < far);
            let choice = match self.routing {
                Routing::Ecmp => trip.pair_draw(self.seed, at as u64),
                Routing::Random => trip.own_draw(self.seed, at as u64),
                _ => u64::from(trip.dst.0),
            };
            let place = (choice % nearer.clone().count() as u64) as usize;
            let (mut hop, next) = *nearer.nth(place).expect("the place is below the count");
            hop.cable.plane = trip.plane;
            way.push(hop);
            at = next as usize;
        }
    }

    fn cables_to_switches(&self, from: Node, cables: &mut [u16]) {
        let distances = &self.distances[self.switch_of(from).number as usize];
        cables.copy_from_slice(&distances[..cables.len()]);
    }

    fn cables(&self, _nodes: &[Node]) -> Vec<Cable> {
        let all = self.around.iter().flatten();
        all.filter(|(hop, _)| !hop.is_backward)
            .map(|(hop, _): &(Hop, u32)| hop.cable)
            .collect()
    }

    fn switch_of(&self, node: Node) -> Switch {
        Switch {
            level: 1,
            number: self.graph.nodes[node.index()],
        }
    }

    fn ends(&self, cable: Cable) -> [Switch; 2] {
        let edges = &self.graph.edges[usize::from(cable.class) - 1];
        edges.between[cable.switch as usize].map(|number| Switch { level: 1, number })
    }

    fn meeting(&self, one: Node, other: Node) -> usize {
        let (one, other) = (self.switch_of(one).number, self.switch_of(other).number);
        usize::from(self.distances[one as usize][other as usize])
    }

    fn leaving(&self, _meeting: usize) -> Vec<(u8, u64)> {
        Vec::new()
    }

    fn name(&self, hop: Hop) -> String {
        let [from, to] = self.ends_of_hop(hop);
        let class = usize::from(hop.cable.class) - 1;
        let number = match self.graph.edges[class].count {
            1 => String::new(),
            _ => format!(", cable {}", hop.cable.port),
        };
        format!(
            "{} cable from switch {} to switch {}{number}",
            self.classes[class], from.number, to.number
        )
    }

    fn switch_name(&self, switch: Switch) -> String {
        format!("switch {}", switch.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{check_ways, hops};

    fn ring(routing: Routing) -> RoutedGraph {
        let edges = Edges {
            between: vec![[0, 1], [1, 2], [2, 3], [3, 0]],
            count: 2,
        };
        let graph = SwitchGraph {
            nodes: vec![0, 0, 1, 2, 3],
            edges: vec![edges],
        };
        RoutedGraph::new(graph, vec!["ring".to_owned()], routing, 3).unwrap()
    }

    #[test]
    fn routes_are_shortest_and_spread_by_destination() {
        for routing in [Routing::DModK, Routing::Ecmp, Routing::Random] {
            check_ways(&ring(routing), 5);
        }
        let ring = ring(Routing::DModK);
        // Switch 0 has four cables towards switch 2; 3 mod 4 selects the last one.
        assert_eq!(
            ring.name(hops(&ring, 0, 3)[0]),
            "ring cable from switch 0 to switch 3, cable 1"
        );
        assert_eq!(hops(&ring, 1, 3).len(), 2);
        assert_eq!(hops(&ring, 1, 4).len(), 1);
    }

    #[test]
    fn unconnected_nodes_are_named() {
        let edges = Edges {
            between: vec![[0, 1]],
            count: 1,
        };
        let graph = SwitchGraph {
            nodes: vec![0, 1, 2],
            edges: vec![edges],
        };
        let apart = RoutedGraph::new(graph, vec![String::new()], Routing::DModK, 0);
        assert_eq!(apart.unwrap_err(), [0, 2]);
    }
}

//! Tori and meshes: switches at the points of a grid, each connected with its neighbours in every dimension.
//!
//! Switch `s` has the coordinates `s mod d_0`, `s / d_0 mod d_1` and so on. A message crosses one dimension after the other,
//! starting with the first, in the shorter direction (dimension-order routing; Dally and Seitz, 1987). If both directions
//! are equally long, it goes upward unless the destination has the coordinate 0, as in SimGrid's torus zone.

use super::wiring::{Cable, Hop, Switch, Trip, Wiring};
use flowcast_units::Node;

/// A torus or a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchGrid {
    /// Number of switches along each dimension.
    pub sides: Vec<u32>,
    /// `true` if each row is closed to a ring.
    pub is_torus: bool,
    /// Number of nodes on each switch.
    pub nodes_per_switch: u32,
}

/// Names of the first dimensions.
const NAMES: [&str; 3] = ["x", "y", "z"];

impl SwitchGrid {
    /// Name of a dimension, counted from 0.
    pub(crate) fn dimension(at: usize) -> String {
        let name = NAMES.get(at).map(|name| (*name).to_owned());
        name.unwrap_or_else(|| format!("dimension {at}"))
    }

    /// Coordinates of the switch that a node is attached to, by dimension.
    pub fn coordinates(&self, node: Node) -> Vec<u32> {
        let switch = self.switch_of(node).number;
        let dimensions = 0..self.sides.len();
        dimensions
            .map(|dimension| self.coordinate(switch, dimension))
            .collect()
    }

    fn switches(&self) -> u32 {
        self.sides.iter().product()
    }

    /// Difference in number between two neighbours in a dimension.
    fn stride(&self, dimension: usize) -> u32 {
        self.sides[..dimension].iter().product()
    }

    fn coordinate(&self, switch: u32, dimension: usize) -> u32 {
        switch / self.stride(dimension) % self.sides[dimension]
    }

    /// Number of steps from one coordinate to another; `true` if the route goes upward.
    fn steps(&self, dimension: usize, from: u32, to: u32) -> (u32, bool) {
        let side = self.sides[dimension];
        if !self.is_torus {
            return (from.abs_diff(to), to > from);
        }
        let (up, down) = ((to + side - from) % side, (from + side - to) % side);
        (up.min(down), up < down || up == down && to != 0)
    }

    /// The next switch upward, and the cable to it.
    fn upward(&self, dimension: usize, switch: u32, plane: u32) -> (u32, Cable) {
        let (stride, side) = (self.stride(dimension), self.sides[dimension]);
        let is_last = self.coordinate(switch, dimension) == side - 1;
        let next = if is_last {
            switch - stride * (side - 1)
        } else {
            switch + stride
        };
        let cable = Cable {
            class: dimension as u8 + 1,
            plane,
            switch,
            port: 0,
        };
        (next, cable)
    }

    fn downward(&self, dimension: usize, switch: u32, plane: u32) -> (u32, Cable) {
        let (stride, side) = (self.stride(dimension), self.sides[dimension]);
        let before = if self.coordinate(switch, dimension) == 0 {
            switch + stride * (side - 1)
        } else {
            switch - stride
        };
        (before, self.upward(dimension, before, plane).1)
    }

    fn distance(&self, one: Node, other: Node) -> u32 {
        let (from, to) = (self.switch_of(one).number, self.switch_of(other).number);
        (0..self.sides.len())
            .map(|dimension| {
                let (from, to) = (
                    self.coordinate(from, dimension),
                    self.coordinate(to, dimension),
                );
                self.steps(dimension, from, to).0
            })
            .sum()
    }
}

impl Wiring for SwitchGrid {
    fn nodes(&self) -> Option<u64> {
        Some(u64::from(self.switches()) * u64::from(self.nodes_per_switch))
    }

    fn longest(&self) -> u32 {
        self.sides
            .iter()
            .map(|side| if self.is_torus { side / 2 } else { side - 1 })
            .sum()
    }

    fn way(&self, trip: &Trip, way: &mut Vec<Hop>) {
        let (mut at, to) = (
            self.switch_of(trip.src).number,
            self.switch_of(trip.dst).number,
        );
        for dimension in 0..self.sides.len() {
            let (from, target) = (
                self.coordinate(at, dimension),
                self.coordinate(to, dimension),
            );
            let (steps, is_upward) = self.steps(dimension, from, target);
            for _ in 0..steps {
                let (next, cable) = if is_upward {
                    self.upward(dimension, at, trip.plane)
                } else {
                    self.downward(dimension, at, trip.plane)
                };
                way.push(Hop::along(cable, is_upward));
                at = next;
            }
        }
    }

    fn cables_to_switches(&self, from: Node, cables: &mut [u16]) {
        let from = self.switch_of(from).number;
        let mut row = vec![0];
        // Starts with a row. The rows of a plane are copies that are some cables farther away, and so on.
        for (dimension, side) in self.sides.iter().enumerate() {
            let here = self.coordinate(from, dimension);
            let mut rows = Vec::with_capacity(row.len() * *side as usize);
            for to in 0..*side {
                let steps = self.steps(dimension, here, to).0 as u16;
                rows.extend(row.iter().map(|cables| cables + steps));
            }
            row = rows;
        }
        cables.copy_from_slice(&row);
    }

    fn cables(&self, _nodes: &[Node]) -> Vec<Cable> {
        let mut cables = Vec::new();
        for (dimension, side) in self.sides.iter().enumerate() {
            // A ring of two switches has one cable.
            let is_closed = self.is_torus && *side > 2;
            let switches = (0..self.switches())
                .filter(|switch| is_closed || self.coordinate(*switch, dimension) + 1 < *side);
            cables.extend(switches.map(|switch| self.upward(dimension, switch, 0).1));
        }
        cables
    }

    fn switch_of(&self, node: Node) -> Switch {
        Switch {
            level: 1,
            number: node.0 / self.nodes_per_switch,
        }
    }

    fn ends(&self, cable: Cable) -> [Switch; 2] {
        let (next, _) = self.upward(usize::from(cable.class) - 1, cable.switch, 0);
        [cable.switch, next].map(|number| Switch { level: 1, number })
    }

    fn meeting(&self, one: Node, other: Node) -> usize {
        self.distance(one, other) as usize
    }

    fn leaving(&self, meeting: usize) -> Vec<(u8, u64)> {
        if meeting > 0 {
            return Vec::new();
        }
        (1..)
            .zip(self.sides.iter().map(|side| match side {
                1 => 0,
                2 => 1,
                _ => 2,
            }))
            .collect()
    }

    fn name(&self, hop: Hop) -> String {
        let [from, to] = self.ends_of_hop(hop);
        format!(
            "{} cable from {} to {}",
            SwitchGrid::dimension(usize::from(hop.cable.class) - 1),
            self.switch_name(from),
            self.switch_name(to)
        )
    }

    fn switch_name(&self, switch: Switch) -> String {
        let places = (0..self.sides.len())
            .map(|dimension| self.coordinate(switch.number, dimension).to_string());
        format!("switch ({})", places.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{check_ways, hops};

    fn grid(sides: &[u32], is_torus: bool) -> SwitchGrid {
        SwitchGrid {
            sides: sides.to_vec(),
            is_torus,
            nodes_per_switch: 1,
        }
    }

    #[test]
    fn routes_are_as_long_as_the_distance() {
        for (sides, is_torus) in [
            (&[5, 4][..], true),
            (&[4, 3, 2], true),
            (&[2, 2, 2], true),
            (&[3, 4], false),
            (&[6], true),
            (&[1, 3], true),
        ] {
            let grid = grid(sides, is_torus);
            check_ways(&grid, grid.nodes().unwrap() as u32);
            for src in 0..grid.switches() {
                for dst in 0..grid.switches() {
                    let distance: u32 = (0..sides.len())
                        .map(|dimension| {
                            let (a, b) = (
                                grid.coordinate(src, dimension),
                                grid.coordinate(dst, dimension),
                            );
                            let around = sides[dimension] - a.abs_diff(b);
                            a.abs_diff(b).min(if is_torus { around } else { u32::MAX })
                        })
                        .sum();
                    assert_eq!(hops(&grid, src, dst).len() as u32, distance);
                }
            }
        }
    }

    #[test]
    fn of_two_equally_long_routes_the_upward_one_is_taken_except_to_coordinate_0() {
        let ring = grid(&[4], true);
        assert!(!hops(&ring, 0, 2)[0].is_backward);
        assert!(!hops(&ring, 3, 1)[0].is_backward);
        assert!(hops(&ring, 2, 0)[0].is_backward);
        let names: Vec<String> = hops(&ring, 3, 1)
            .into_iter()
            .map(|hop| ring.name(hop))
            .collect();
        assert_eq!(
            names,
            [
                "x cable from switch (3) to switch (0)",
                "x cable from switch (0) to switch (1)"
            ]
        );
    }
}

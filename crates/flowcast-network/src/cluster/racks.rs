//! Placement of nodes in racks.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use flowcast_units::Node;

/// A rack, counted from 0 in the order of first mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rack(pub u32);

/// A node was placed twice.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("node {node} is already in rack {rack}")]
pub struct PlacedTwice {
    /// The node that was placed again.
    pub node: Node,
    /// Name of the rack of its first placement.
    pub rack: String,
}

/// Placement of nodes in racks, stored as ranges so that `0..4000000000` takes no more memory than one node.
///
/// ```
/// use flowcast_network::cluster::racks::Racks;
/// use flowcast_units::Node;
///
/// let mut racks = Racks::default();
/// let first = racks.place(Node(0), Node(14), "A").unwrap();
/// assert_eq!(racks.rack_of(Node(7)), Some(first));
/// assert!(racks.place(Node(14), Node(20), "B").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Racks {
    names: Vec<String>,
    numbers: BTreeMap<String, Rack>,
    /// Ranges by first node: last node and rack. Ranges never overlap.
    ranges: BTreeMap<u32, (u32, Rack)>,
}

impl Racks {
    /// Places the nodes `first..=last` (in either order) in the rack with this name.
    ///
    /// # Errors
    /// [`PlacedTwice`] if one of the nodes already has a rack.
    pub fn place(&mut self, first: Node, last: Node, name: &str) -> Result<Rack, PlacedTwice> {
        let (first, last) = (first.0.min(last.0), first.0.max(last.0));
        if let Some((&start, &(end, rack))) = self.ranges.range(..=last).next_back()
            && end >= first
        {
            return Err(PlacedTwice {
                node: Node(start.max(first)),
                rack: self.names[rack.0 as usize].clone(),
            });
        }
        let rack = self.rack_named(name);
        self.ranges.insert(first, (last, rack));
        Ok(rack)
    }

    /// Creates racks of `nodes_per_rack` nodes each, in node order; no racks if it is 0.
    pub fn in_blocks(nodes: usize, nodes_per_rack: u32) -> Racks {
        let mut racks = Racks::default();
        if nodes_per_rack > 0 {
            for rack in 0..(nodes as u32).div_ceil(nodes_per_rack) {
                let first = rack * nodes_per_rack;
                let last = Node(first.saturating_add(nodes_per_rack - 1));
                racks
                    .place(Node(first), last, &rack.to_string())
                    .expect("blocks do not overlap");
            }
        }
        racks
    }

    /// Number of nodes per rack, if racks are filled one after the other in node order, starting at node 0.
    pub fn block(&self) -> Option<u32> {
        let placed: Vec<Rack> = (0..).map_while(|node| self.rack_of(Node(node))).collect();
        let size = placed.iter().position(|rack| *rack != placed[0])?;
        let is_filled = placed
            .iter()
            .enumerate()
            .all(|(node, rack)| *rack == placed[node / size * size])
            && placed.iter().step_by(size).collect::<BTreeSet<_>>().len()
                == placed.len().div_ceil(size);
        is_filled.then_some(size as u32)
    }

    /// Rack of a node.
    pub fn rack_of(&self, node: Node) -> Option<Rack> {
        let (_, &(last, rack)) = self.ranges.range(..=node.0).next_back()?;
        (node.0 <= last).then_some(rack)
    }

    /// Name of the rack in the pattern file; `?` for a rack of another placement.
    pub fn name(&self, rack: Rack) -> &str {
        self.names.get(rack.0 as usize).map_or("?", String::as_str)
    }

    /// Number of racks with a name, 0 if no node was placed.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// `true` if no node was placed; then all nodes share one switch.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn rack_named(&mut self, name: &str) -> Rack {
        if let Some(rack) = self.numbers.get(name) {
            return *rack;
        }
        let rack = Rack(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), rack);
        rack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_give_their_rack_and_never_overlap() {
        let mut racks = Racks::default();
        racks.place(Node(0), Node(14), "A").unwrap();
        racks.place(Node(29), Node(15), "B").unwrap();
        racks.place(Node(40), Node(u32::MAX), "A").unwrap();
        assert_eq!(racks.rack_of(Node(14)), Some(Rack(0)));
        assert_eq!(racks.rack_of(Node(15)), Some(Rack(1)));
        assert_eq!(racks.rack_of(Node(30)), None);
        assert_eq!(racks.rack_of(Node(1_000_000)), Some(Rack(0)));
        let twice = racks.place(Node(10), Node(16), "C").unwrap_err();
        assert_eq!((twice.node, twice.rack.as_str()), (Node(15), "B"));
        assert_eq!(racks.count(), 2);
    }
}

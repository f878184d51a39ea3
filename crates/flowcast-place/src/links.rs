//! Numbers of links between nodes, read from a table or computed from the places of nodes in a grid.

use flowcast_network::topology::grid::SwitchGrid;
use flowcast_units::Node;

/// Links between two nodes of the same switch: one of each node.
pub(super) const OWN_LINKS: u16 = 2;

/// Maximum number of dimensions of grids whose links are computed.
const DIMENSIONS: usize = 4;

/// Side of an unused dimension or of one that is not a ring.
const OPEN: i16 = i16::MAX;

/// Number of links between two nodes.
pub(super) trait Metric: Sync {
    /// Returns the number of links, which is 0 from a node to itself.
    fn between(&self, one: u32, other: u32) -> i64;
}

/// Numbers of links in a table with an entry for each pair of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table<T> {
    nodes: usize,
    links: Vec<T>,
}

impl<T: Copy + Default> Table<T> {
    /// Creates a table from its rows, one after the other.
    pub(super) fn new(nodes: usize, links: Vec<T>) -> Table<T> {
        assert_eq!(links.len(), nodes * nodes);
        Table { nodes, links }
    }

    /// Returns the table with 0 on its diagonal: no link lies between a node and itself.
    pub(super) fn off_diagonal(mut self) -> Table<T> {
        for node in 0..self.nodes {
            self.links[node * self.nodes + node] = T::default();
        }
        self
    }
}

impl<T: Copy + Into<i64> + Sync> Metric for Table<T> {
    #[inline]
    fn between(&self, one: u32, other: u32) -> i64 {
        self.links[one as usize * self.nodes + other as usize].into()
    }
}

/// Numbers of links in a torus or a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GridLinks {
    /// Coordinates of each node.
    coordinates: Vec<[i16; DIMENSIONS]>,
    sides: [i16; DIMENSIONS],
}

impl GridLinks {
    /// Creates the grid for nodes at these positions. `None` if it has more than four dimensions.
    pub(super) fn new(grid: &SwitchGrid, positions: &[Node]) -> Option<GridLinks> {
        if grid.sides.len() > DIMENSIONS {
            return None;
        }
        let mut sides = [OPEN; DIMENSIONS];
        for (side, given) in sides.iter_mut().zip(&grid.sides).filter(|_| grid.is_torus) {
            *side = *given as i16;
        }
        Some(GridLinks {
            coordinates: positions
                .iter()
                .map(|node| {
                    let mut coordinates = [0; DIMENSIONS];
                    for (own, given) in coordinates.iter_mut().zip(grid.coordinates(*node)) {
                        *own = given as i16;
                    }
                    coordinates
                })
                .collect(),
            sides,
        })
    }
}

impl Metric for GridLinks {
    #[inline]
    fn between(&self, one: u32, other: u32) -> i64 {
        let [from, to] = [one, other].map(|node| &self.coordinates[node as usize]);
        let mut links = if one == other { 0 } else { OWN_LINKS as i16 };
        for ((from, to), side) in from.iter().zip(to).zip(&self.sides) {
            let apart = (from - to).abs();
            links += apart.min(side - apart);
        }
        links.into()
    }
}

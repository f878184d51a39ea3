//! Bisection of a graph into sides of given sizes with few bytes between them: multilevel, with the moves of Fiduccia and
//! Mattheyses (1982).

use std::collections::BinaryHeap;

use rand::{RngExt, seq::SliceRandom};
use rand_pcg::Pcg64Mcg;

use super::super::lists::Lists;

/// Number of vertices up to which a graph is not coarsened further.
const COARSE: usize = 48;

/// Number of starts on the coarsest graph.
const STARTS: usize = 8;

/// Maximum number of passes over a graph.
const PASSES: usize = 6;

const NONE: u32 = u32::MAX;

/// A graph whose vertices are attracted to one side or the other.
pub(super) struct BisectionGraph {
    /// Edges of each vertex: the vertex at the other end, and the cost if it is on the other side.
    pub edges: Lists<(u32, i64)>,
    /// Additional cost of each vertex on the second side compared with the first.
    pub pulls: Vec<i64>,
    /// Number of ranks that each vertex represents.
    pub sizes: Vec<i64>,
}

/// Allowed number of ranks on the second side.
#[derive(Clone, Copy)]
pub(super) struct SideRoom {
    pub least: i64,
    pub most: i64,
}

impl SideRoom {
    fn excess(self, size: i64) -> i64 {
        (size - self.most).max(self.least - size).max(0)
    }
}

impl BisectionGraph {
    pub(super) fn new() -> BisectionGraph {
        BisectionGraph {
            edges: Lists::new(),
            pulls: Vec::new(),
            sizes: Vec::new(),
        }
    }

    fn edges(&self, vertex: u32) -> &[(u32, i64)] {
        self.edges.list(vertex)
    }

    fn vertices(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Cost saved by moving a vertex to the other side.
    fn gain(&self, vertex: u32, is_second: &[bool]) -> i64 {
        let own = is_second[vertex as usize];
        let edges = self.edges(vertex).iter();
        let cut: i64 = edges
            .map(|(other, weight)| {
                if is_second[*other as usize] == own {
                    -weight
                } else {
                    *weight
                }
            })
            .sum();
        let pull = self.pulls[vertex as usize];
        cut + if own { pull } else { -pull }
    }
}

/// Returns `true` for each vertex on the second side.
pub(super) fn bisected(graph: &BisectionGraph, room: SideRoom, random: &mut Pcg64Mcg) -> Vec<bool> {
    let coarser = (graph.vertices() as usize > COARSE)
        .then(|| coarsened(graph, random))
        .filter(|(coarse, _)| coarse.sizes.len() * 20 < graph.sizes.len() * 19);
    let mut is_second = match coarser {
        Some((coarse, groups)) => {
            let of_groups = bisected(&coarse, room, random);
            groups
                .iter()
                .map(|group| of_groups[*group as usize])
                .collect()
        }
        None => return started(graph, room, random),
    };
    Refinement::new(graph, room, &mut is_second, random).run();
    is_second
}

/// Coarsens a graph: pairs light vertices along heavy edges. Returns the coarse graph and the group of each vertex.
fn coarsened(graph: &BisectionGraph, random: &mut Pcg64Mcg) -> (BisectionGraph, Vec<u32>) {
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    order.shuffle(random);
    let all: i64 = graph.sizes.iter().sum();
    let most = (all / 16).max(2);
    let (mut groups, mut firsts) = (vec![NONE; order.len()], Vec::new());
    for vertex in order {
        if groups[vertex as usize] != NONE {
            continue;
        }
        let size = graph.sizes[vertex as usize];
        let free = graph.edges(vertex).iter().filter(|(other, _)| {
            let other = *other as usize;
            groups[other] == NONE && graph.sizes[other] + size <= most
        });
        let mate = free.max_by_key(|(other, weight)| {
            (
                *weight * 64 / graph.sizes[*other as usize],
                random.random::<u32>(),
            )
        });
        let group = firsts.len() as u32;
        groups[vertex as usize] = group;
        firsts.push([vertex, mate.map_or(NONE, |(other, _)| *other)]);
        if let Some((other, _)) = mate {
            groups[*other as usize] = group;
        }
    }
    (joined(graph, &groups, &firsts), groups)
}

fn joined(graph: &BisectionGraph, groups: &[u32], members: &[[u32; 2]]) -> BisectionGraph {
    let mut coarse = BisectionGraph::new();
    // For each group: the last group with an edge to it, and the place of that edge.
    let mut known = vec![(NONE, 0); members.len()];
    let mut edges: Vec<(u32, i64)> = Vec::new();
    for (group, both) in (0..).zip(members) {
        let (mut size, mut pull) = (0, 0);
        for vertex in both.iter().filter(|vertex| **vertex != NONE) {
            size += graph.sizes[*vertex as usize];
            pull += graph.pulls[*vertex as usize];
            for (other, weight) in graph.edges(*vertex) {
                let other = groups[*other as usize];
                if other == group {
                    continue;
                }
                let (owner, place) = &mut known[other as usize];
                if *owner != group {
                    (*owner, *place) = (group, edges.len());
                    edges.push((other, 0));
                }
                edges[*place].1 += weight;
            }
        }
        coarse.edges.push(edges.drain(..));
        coarse.sizes.push(size);
        coarse.pulls.push(pull);
    }
    coarse
}

/// Returns the best of several bisections, each grown from a vertex and refined.
fn started(graph: &BisectionGraph, room: SideRoom, random: &mut Pcg64Mcg) -> Vec<bool> {
    let mut best: Option<((i64, i64), Vec<bool>)> = None;
    for _ in 0..STARTS {
        let mut is_second = grown(graph, room, random);
        let rated = Refinement::new(graph, room, &mut is_second, random).run();
        if best.as_ref().is_none_or(|(least, _)| rated < *least) {
            best = Some((rated, is_second));
        }
    }
    best.map_or(Vec::new(), |(_, is_second)| is_second)
}

fn grown(graph: &BisectionGraph, room: SideRoom, random: &mut Pcg64Mcg) -> Vec<bool> {
    let mut is_second = vec![false; graph.sizes.len()];
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    order.shuffle(random);
    let goal = (room.least + room.most) / 2;
    let mut size = 0;
    let mut heap = BinaryHeap::new();
    for start in order {
        heap.push((graph.gain(start, &is_second), start));
        while let Some((gain, vertex)) = heap.pop() {
            if size >= goal {
                return is_second;
            }
            if is_second[vertex as usize] || gain != graph.gain(vertex, &is_second) {
                continue;
            }
            is_second[vertex as usize] = true;
            size += graph.sizes[vertex as usize];
            for (other, _) in graph
                .edges(vertex)
                .iter()
                .filter(|(other, _)| !is_second[*other as usize])
            {
                heap.push((graph.gain(*other, &is_second), *other));
            }
        }
    }
    is_second
}

/// Refinement in passes of moves. Each pass keeps its best prefix.
struct Refinement<'a> {
    graph: &'a BisectionGraph,
    room: SideRoom,
    is_second: &'a mut Vec<bool>,
    random: &'a mut Pcg64Mcg,
    gains: Vec<i64>,
    /// Possible moves of the vertices on the first and on the second side.
    heaps: [BinaryHeap<(i64, u32, u32)>; 2],
    is_moved: Vec<bool>,
    size: i64,
    cost: i64,
}

impl<'a> Refinement<'a> {
    fn new(
        graph: &'a BisectionGraph,
        room: SideRoom,
        is_second: &'a mut Vec<bool>,
        random: &'a mut Pcg64Mcg,
    ) -> Refinement<'a> {
        let size = (0..graph.vertices())
            .filter(|vertex| is_second[*vertex as usize])
            .map(|vertex| graph.sizes[vertex as usize])
            .sum();
        let mut twice = 0;
        let mut pulled = 0;
        for vertex in 0..graph.vertices() {
            let own = is_second[vertex as usize];
            let cut = graph
                .edges(vertex)
                .iter()
                .filter(|(other, _)| is_second[*other as usize] != own);
            twice += cut.map(|(_, weight)| weight).sum::<i64>();
            pulled += if own { graph.pulls[vertex as usize] } else { 0 };
        }
        Refinement {
            graph,
            room,
            gains: Vec::new(),
            heaps: Default::default(),
            is_moved: Vec::new(),
            size,
            cost: twice / 2 + pulled,
            is_second,
            random,
        }
    }

    /// Runs the passes. Returns the number of excess ranks and the cost.
    fn run(mut self) -> (i64, i64) {
        for _ in 0..PASSES {
            if !self.pass() {
                break;
            }
        }
        (self.room.excess(self.size), self.cost)
    }

    fn pass(&mut self) -> bool {
        let vertices = self.graph.vertices();
        self.gains = (0..vertices)
            .map(|vertex| self.graph.gain(vertex, self.is_second))
            .collect();
        self.is_moved = vec![false; vertices as usize];
        self.heaps = Default::default();
        for vertex in 0..vertices {
            self.push(vertex);
        }
        let before = (self.room.excess(self.size), self.cost);
        let (mut best, mut kept) = (before, 0);
        let mut moved = Vec::new();
        let moves_in_vain = 60 + vertices as usize / 8;
        while moved.len() < kept + moves_in_vain {
            let Some(vertex) = self.choice() else { break };
            self.shift(vertex);
            self.is_moved[vertex as usize] = true;
            moved.push(vertex);
            let now = (self.room.excess(self.size), self.cost);
            if now < best {
                (best, kept) = (now, moved.len());
            }
        }
        for vertex in moved.drain(kept..).rev() {
            self.shift(vertex);
        }
        best < before
    }

    fn push(&mut self, vertex: u32) {
        let side = usize::from(self.is_second[vertex as usize]);
        let draw = self.random.random::<u32>();
        self.heaps[side].push((self.gains[vertex as usize], draw, vertex));
    }

    /// Returns the best valid move of a side and removes outdated moves before it.
    fn top(&mut self, side: usize) -> Option<(i64, u32, u32)> {
        while let Some((gain, draw, vertex)) = self.heaps[side].peek().copied() {
            let place = vertex as usize;
            if !self.is_moved[place] && gain == self.gains[place] {
                return Some((gain, draw, vertex));
            }
            self.heaps[side].pop();
        }
        None
    }

    /// Returns the best move that keeps the sizes within one vertex of the allowed range, or that reduces the excess.
    fn choice(&mut self) -> Option<u32> {
        let tops = [self.top(0), self.top(1)];
        let excess = self.room.excess(self.size);
        let [one, other] = [0, 1].map(|side| {
            tops[side].filter(|(.., vertex)| {
                let size = self.graph.sizes[*vertex as usize];
                let after = self
                    .room
                    .excess(self.size + if side == 0 { size } else { -size });
                if excess > 0 {
                    after < excess
                } else {
                    after <= size
                }
            })
        });
        let best = one.max(other);
        best.map(|(.., vertex)| vertex)
    }

    fn shift(&mut self, vertex: u32) {
        let place = vertex as usize;
        let size = self.graph.sizes[place];
        self.size += if self.is_second[place] { -size } else { size };
        self.cost -= self.gains[place];
        self.is_second[place] = !self.is_second[place];
        self.gains[place] = -self.gains[place];
        let graph = self.graph;
        for (other, weight) in graph.edges(vertex) {
            let is_same = self.is_second[*other as usize] == self.is_second[place];
            self.gains[*other as usize] += if is_same { -2 * weight } else { 2 * weight };
            if !self.is_moved[*other as usize] {
                self.push(*other);
            }
        }
    }
}

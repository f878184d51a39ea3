//! The active flows, link by link, and the starts and ends since the last allocation of a model.
//!
//! Flows start and end one at a time, and most other flows are not affected. A model that considers only the flows that a
//! change can reach allocates in a time that does not grow with the number of flows. Flows on the same path are equal for
//! every model, so they may share one number: the tables contain them once, with their count.

use super::fabric::{Fabric, FlowPath, LinkId};

/// Set of flows that the start or end of one flow can affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// No other flow: rates are independent.
    Itself,
    /// Flows over the same links, and flows that these reach in turn.
    Links,
    /// Flows over the same nodes, and flows that these reach in turn.
    Nodes,
    /// Flows whose data or acknowledgements share a link with those of the flow, if the link carries any data, and flows
    /// that these reach in turn.
    Queues,
}

/// The active flows of each link, and the links whose flows have changed.
#[derive(Debug, Clone, Default)]
pub struct ActiveFlows {
    /// Flows indexed by link, in arbitrary order.
    members: Vec<Vec<u32>>,
    /// Flows whose acknowledgements cross a link, indexed by link; empty if acknowledgements do not matter.
    acknowledging: Vec<Vec<u32>>,
    /// Crossings indexed by link, in the order of `members`; empty if the model does not need them.
    crossings: Vec<Vec<Crossing>>,
    /// Number of flows with each flow number, and over each link.
    flows: Vec<u32>,
    flows_over: Vec<u32>,
    has_long_paths: bool,
    touched: Vec<LinkId>,
    is_touched: Vec<bool>,
    started: Vec<u32>,
    seen_flows: Vec<u32>,
    seen_links: Vec<u32>,
    search: u32,
    count: usize,
}

/// Flows with the same number on one of their links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    /// The other link of their path; [`Crossing::LONG`] if the path is not just one link out and another link in.
    pub other: LinkId,
    /// Number of these flows.
    pub flows: u32,
}

impl Crossing {
    /// Stands for several links.
    pub(super) const LONG: LinkId = LinkId(u32::MAX);
}

impl ActiveFlows {
    /// Creates an empty set of flows for this number of links.
    pub fn new(links: usize) -> ActiveFlows {
        ActiveFlows {
            members: vec![Vec::new(); links],
            flows_over: vec![0; links],
            acknowledging: vec![Vec::new(); links],
            is_touched: vec![false; links],
            seen_links: vec![0; links],
            ..ActiveFlows::default()
        }
    }

    /// Creates an empty set for models of this reach. Only [`Reach::Queues`] needs the links of acknowledgements.
    pub fn within(links: usize, reach: Reach) -> ActiveFlows {
        let mut active_flows = ActiveFlows::new(links);
        if reach != Reach::Queues {
            active_flows.acknowledging.clear();
        }
        active_flows
    }

    /// Creates an empty set for a model that names links ([`Changes`](super::Changes)).
    pub fn with_crossings(links: usize) -> ActiveFlows {
        let mut active_flows = ActiveFlows::new(links);
        active_flows.acknowledging.clear();
        active_flows.crossings = vec![Vec::new(); links];
        active_flows
    }

    /// Flows whose data cross a link.
    pub fn members(&self, link: LinkId) -> &[u32] {
        &self.members[link.index()]
    }

    /// Flows whose acknowledgements cross a link.
    pub fn acknowledging(&self, link: LinkId) -> &[u32] {
        &self.acknowledging[link.index()]
    }

    /// Links whose members have changed.
    pub fn touched(&self) -> &[LinkId] {
        &self.touched
    }

    /// Crossings of a link: its flows, with the other links of their paths.
    #[inline(always)]
    pub(super) fn crossings(&self, link: LinkId) -> &[Crossing] {
        &self.crossings[link.index()]
    }

    /// Number of flows with a flow number.
    pub(super) fn flows(&self, flow: u32) -> u32 {
        self.flows[flow as usize]
    }

    /// Number of flows over a link.
    pub fn flows_over(&self, link: LinkId) -> u32 {
        self.flows_over[link.index()]
    }

    /// `true` if there ever was a path over more than two links.
    pub(super) fn has_long_paths(&self) -> bool {
        self.has_long_paths
    }

    /// Flow numbers that got their first flow since the last allocation. Some of them may have lost it again.
    pub fn started(&self) -> &[u32] {
        &self.started
    }

    /// Number of active flows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a flow that starts and marks the links of its path as touched.
    pub fn insert(&mut self, flow: u32, path: &FlowPath) {
        if self.seen_flows.len() <= flow as usize {
            self.seen_flows.resize(flow as usize + 1, 0);
            self.flows.resize(flow as usize + 1, 0);
        }
        self.count += 1;
        self.touch(path);
        for link in path.data() {
            self.flows_over[link.index()] += 1;
        }
        self.flows[flow as usize] += 1;
        if self.flows[flow as usize] > 1 {
            return self.count_crossings(flow, path);
        }
        for link in path.data() {
            self.members[link.index()].push(flow);
        }
        if !self.crossings.is_empty() {
            self.insert_crossings(path);
        }
        if !self.acknowledging.is_empty() {
            path.acknowledgements()
                .iter()
                .for_each(|link| self.acknowledging[link.index()].push(flow));
        }
        self.started.push(flow);
    }

    /// Removes a flow that ends and marks the links of its path as touched.
    pub fn remove(&mut self, flow: u32, path: &FlowPath) {
        self.count -= 1;
        self.touch(path);
        for link in path.data() {
            self.flows_over[link.index()] -= 1;
        }
        self.flows[flow as usize] -= 1;
        if self.flows[flow as usize] > 0 {
            return self.count_crossings(flow, path);
        }
        for link in path.data() {
            let removed = remove_from(&mut self.members[link.index()], flow);
            if let Some(index) = removed.filter(|_| !self.crossings.is_empty()) {
                self.crossings[link.index()].swap_remove(index);
            }
        }
        if !self.acknowledging.is_empty() {
            for link in path.acknowledgements() {
                remove_from(&mut self.acknowledging[link.index()], flow);
            }
        }
    }

    fn insert_crossings(&mut self, path: &FlowPath) {
        let (out, into) = match path.data() {
            [out, into] if out != into => (*out, *into),
            _ => (Crossing::LONG, Crossing::LONG),
        };
        self.has_long_paths |= out == Crossing::LONG;
        for link in path.data() {
            let other = if *link == out { into } else { out };
            self.crossings[link.index()].push(Crossing { other, flows: 1 });
        }
    }

    fn count_crossings(&mut self, flow: u32, path: &FlowPath) {
        for link in path.data() {
            let index = place_of(&self.members[link.index()], flow);
            if let Some(index) = index.filter(|_| !self.crossings.is_empty()) {
                self.crossings[link.index()][index].flows = self.flows[flow as usize];
            }
        }
    }

    fn touch(&mut self, path: &FlowPath) {
        for link in path.data() {
            if !std::mem::replace(&mut self.is_touched[link.index()], true) {
                self.touched.push(*link);
            }
        }
    }

    /// Clears the changes after the model has allocated.
    pub fn settle(&mut self) {
        self.touched
            .drain(..)
            .for_each(|link| self.is_touched[link.index()] = false);
        self.started.clear();
    }

    /// Flows that the changes can reach, in groups that do not reach each other, each in ascending order.
    pub fn reached(&mut self, fabric: &Fabric, reach: Reach) -> Vec<Vec<usize>> {
        if reach == Reach::Itself {
            let mut started: Vec<usize> = self.started.iter().map(|flow| *flow as usize).collect();
            started.sort_unstable();
            started.dedup();
            // Drops flows that have already ended.
            started.retain(|flow| {
                self.members[fabric.paths[*flow].out().index()].contains(&(*flow as u32))
            });
            return if started.is_empty() {
                Vec::new()
            } else {
                vec![started]
            };
        }
        self.search += 1;
        let mut groups = Vec::new();
        for index in 0..self.touched.len() {
            let mut roots = vec![self.touched[index]];
            match reach {
                Reach::Nodes => roots.push(fabric.opposite(self.touched[index])),
                // ACKs that waited on a link without data stop waiting there, or start to wait.
                Reach::Queues => {
                    let acknowledging = &self.acknowledging[self.touched[index].index()];
                    roots.extend(
                        acknowledging
                            .iter()
                            .map(|flow| fabric.paths[*flow as usize].out()),
                    );
                }
                Reach::Itself | Reach::Links => {}
            }
            for root in roots {
                let mut group = self.connected(fabric, reach, root);
                if !group.is_empty() {
                    group.sort_unstable();
                    groups.push(group);
                }
            }
        }
        groups
    }

    /// Flows connected with a link that this search has not seen yet.
    fn connected(&mut self, fabric: &Fabric, reach: Reach, root: LinkId) -> Vec<usize> {
        let (mut links, mut found) = (vec![root], Vec::new());
        while let Some(link) = links.pop() {
            if std::mem::replace(&mut self.seen_links[link.index()], self.search) == self.search {
                continue;
            }
            let carries_data = !self.members[link.index()].is_empty();
            let acknowledging: &[u32] = if reach == Reach::Queues && carries_data {
                &self.acknowledging[link.index()]
            } else {
                &[]
            };
            for flow in self.members[link.index()].iter().chain(acknowledging) {
                if std::mem::replace(&mut self.seen_flows[*flow as usize], self.search)
                    == self.search
                {
                    continue;
                }
                found.push(*flow as usize);
                let path = &fabric.paths[*flow as usize];
                links.extend(path.data());
                match reach {
                    Reach::Nodes => {
                        links.extend(path.data().iter().map(|link| fabric.opposite(*link)))
                    }
                    Reach::Queues => {
                        let queues = path.acknowledgements().iter();
                        links.extend(queues.filter(|link| !self.members[link.index()].is_empty()));
                    }
                    Reach::Itself | Reach::Links => {}
                }
            }
        }
        found
    }
}

fn place_of(flows: &[u32], flow: u32) -> Option<usize> {
    flows.iter().position(|other| *other == flow)
}

/// Removes a flow from a list. Returns its former index, which another flow may now occupy.
fn remove_from(flows: &mut Vec<u32>, flow: u32) -> Option<usize> {
    let index = place_of(flows, flow)?;
    flows.swap_remove(index);
    Some(index)
}

//! The active flows, link by link, and the starts and ends since a model last allocated.
//!
//! Flows start and end one at a time, and most of the others are not affected. A model that looks only at what a change
//! can reach allocates in a time that does not grow with the number of flows. Flows that no model tells apart, since they
//! take the same path, may come and go under one number: they stand in the tables once, with their count.

use super::fabric::{Fabric, FlowPath, LinkId};

/// Which flows the start or end of one flow can affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// No other flow: rates do not depend on each other.
    Itself,
    /// Flows over the same links, and those that these reach.
    Links,
    /// Flows over the same nodes, and those that these reach.
    Nodes,
    /// Flows whose data or acknowledgements cross a link that carries data of the others, and those that these reach.
    Queues,
}

/// The active flows of each link, with the links whose flows have changed.
#[derive(Debug, Clone, Default)]
pub struct ActiveFlows {
    /// By link, in no order that matters.
    members: Vec<Vec<u32>>,
    /// By link: the flows whose acknowledgements cross it; empty where these do not matter.
    acknowledging: Vec<Vec<u32>>,
    /// By link, as `members`; empty where nobody asks for them.
    crossings: Vec<Vec<Crossing>>,
    /// How many flows go under each number, and over each link.
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

/// Flows of one number on one of their links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    /// The other link of their path; [`Crossing::LONG`] if that is not just one link out and another one in.
    pub other: LinkId,
    /// How many there are.
    pub flows: u32,
}

impl Crossing {
    /// Stands for several links.
    pub(super) const LONG: LinkId = LinkId(u32::MAX);
}

impl ActiveFlows {
    /// No flows, on so many links.
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

    /// The same for models of this reach: others than [`Reach::Queues`] need not know where acknowledgements go.
    pub fn within(links: usize, reach: Reach) -> ActiveFlows {
        let mut active_flows = ActiveFlows::new(links);
        if reach != Reach::Queues {
            active_flows.acknowledging.clear();
        }
        active_flows
    }

    /// The same for a model that names links ([`Changes`](super::Changes)).
    pub fn with_crossings(links: usize) -> ActiveFlows {
        let mut active_flows = ActiveFlows::new(links);
        active_flows.acknowledging.clear();
        active_flows.crossings = vec![Vec::new(); links];
        active_flows
    }

    /// The flows whose data cross a link.
    pub fn members(&self, link: LinkId) -> &[u32] {
        &self.members[link.index()]
    }

    /// The flows whose acknowledgements cross a link.
    pub fn acknowledging(&self, link: LinkId) -> &[u32] {
        &self.acknowledging[link.index()]
    }

    /// Links whose members have changed.
    pub fn touched(&self) -> &[LinkId] {
        &self.touched
    }

    /// The same flows with their other links.
    #[inline(always)]
    pub(super) fn crossings(&self, link: LinkId) -> &[Crossing] {
        &self.crossings[link.index()]
    }

    /// How many flows go under a number.
    pub(super) fn flows(&self, flow: u32) -> u32 {
        self.flows[flow as usize]
    }

    /// How many flows there are over a link.
    pub fn flows_over(&self, link: LinkId) -> u32 {
        self.flows_over[link.index()]
    }

    /// Whether there ever was a path over more than two links.
    pub(super) fn has_long_paths(&self) -> bool {
        self.has_long_paths
    }

    /// Numbers with a first flow since the model last allocated; some of them may have none again.
    pub fn started(&self) -> &[u32] {
        &self.started
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a flow that starts; the links of its path count as touched.
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

    /// Removes a flow that ends; the links of its path count as touched.
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

    /// The model has taken the changes into account.
    pub fn settle(&mut self) {
        self.touched
            .drain(..)
            .for_each(|link| self.is_touched[link.index()] = false);
        self.started.clear();
    }

    /// The flows that the changes can reach, in groups that do not reach each other, each in ascending order.
    pub fn reached(&mut self, fabric: &Fabric, reach: Reach) -> Vec<Vec<usize>> {
        if reach == Reach::Itself {
            let mut started: Vec<usize> = self.started.iter().map(|flow| *flow as usize).collect();
            started.sort_unstable();
            started.dedup();
            // None that has ended in between.
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
                // ACKs that waited on a link without data no longer wait there, or begin to.
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

    /// Flows not yet seen in this search that are connected with a link.
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

/// Removes a flow from a list; its index there, at which another one may be now.
fn remove_from(flows: &mut Vec<u32>, flow: u32) -> Option<usize> {
    let index = place_of(flows, flow)?;
    flows.swap_remove(index);
    Some(index)
}

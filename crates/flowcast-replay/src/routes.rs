//! Routes of messages, by the places of their ranks: inside a node, between nodes, to another site, over a dedicated
//! connection.

use super::{SimulateError, placement::Placement};
use flowcast_network::network::Network;
use flowcast_program::{opcodes::Op, program::Program};
use flowcast_units::{Bytes, Node, Rank};

/// Route numbers, the indices of [`Costs::paths`](super::costs::Costs::paths). Each group of nodes has two numbers: between
/// nodes of a site, and inside a node. Two numbers follow for each pair of a group and a destination site, then two for each
/// dedicated connection. The two numbers of these pairs have equal costs and exist so that odd numbers mean inside a node.
#[derive(Debug, Clone, Copy)]
pub struct RouteNumbers {
    groups: usize,
    sites: usize,
}

/// Route of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To another node of the site.
    Between,
    /// To the same node.
    Inside,
    /// To another site, with this index.
    ToSite(usize),
    /// To another site over the dedicated connection with this index.
    By(usize),
}

impl RouteNumbers {
    /// The numbers for the groups and sites of a placement.
    pub fn new(placement: &Placement) -> RouteNumbers {
        RouteNumbers {
            groups: placement.groups().len(),
            sites: placement.sites(),
        }
    }

    /// Number of the route of a message that leaves a node of this group.
    pub fn number(self, group: usize, route: Route) -> usize {
        match route {
            Route::Between => 2 * group,
            Route::Inside => 2 * group + 1,
            Route::ToSite(site) => 2 * (self.groups + group * self.sites + site),
            Route::By(connection) => 2 * (self.groups + self.groups * self.sites + connection),
        }
    }

    /// Route with this number.
    pub fn route(self, number: usize) -> Route {
        let pair = number / 2;
        match pair.checked_sub(self.groups) {
            None if number.is_multiple_of(2) => Route::Between,
            None => Route::Inside,
            Some(far) if far < self.groups * self.sites => Route::ToSite(far % self.sites),
            Some(far) => Route::By(far - self.groups * self.sites),
        }
    }
}

/// Route number of each message, as in [`RouteNumbers`], indexed by slot. Empty if all messages go from nodes of one group
/// to other nodes of the same site and overheads do not depend on the size: then one route has the costs of all messages.
pub(crate) fn route_of_messages(
    program: &Program,
    network: &Network,
    placement: &Placement,
) -> Result<Vec<u16>, SimulateError> {
    let numbers = RouteNumbers::new(placement);
    let connections = network.machine.wide_area.connections.len();
    if numbers.number(0, Route::By(connections)) > usize::from(u16::MAX) {
        let problem = "found more than 32,767 routes (node groups times sites, plus connections), expected fewer";
        return Err(SimulateError::Placement(problem.to_owned()));
    }
    let is_one =
        placement.groups().len() == 1 && !placement.is_shared() && !program.has_self_messages();
    if is_one && network.overheads.have_no_processor_time() {
        return Ok(Vec::new());
    }
    let mut routes = vec![0; program.messages() as usize];
    for rank in Rank::all(program.streams()) {
        let node = placement.node(rank);
        let group = placement.group_index(node);
        for (_, op) in program.ops(rank) {
            if let Op::Send { class, slot } = op {
                let class = program.class(class);
                let to = placement.node(program.receiver(slot));
                let route = route(network, placement, (node, to), (class.tag, class.size));
                routes[slot] = numbers.number(group, route) as u16;
            }
        }
    }
    Ok(routes)
}

/// Route of one-sided communication, and its number. Dedicated connections depend on tag and size; an access has no tag, and
/// no size yet.
pub(crate) fn route_to_memory(
    network: &Network,
    placement: &Placement,
    from: Rank,
    to: Rank,
) -> (Route, usize) {
    let (from, to) = (placement.node(from), placement.node(to));
    let route = route(network, placement, (from, to), (0, Bytes(0)));
    let group = placement.group_index(from);
    (route, RouteNumbers::new(placement).number(group, route))
}

/// Route of a message between two nodes, by its tag and size.
pub fn route(
    network: &Network,
    placement: &Placement,
    (from, to): (Node, Node),
    (tag, size): (i32, Bytes),
) -> Route {
    if from == to {
        return Route::Inside;
    }
    let site = |node: Node| placement.groups()[placement.group_index(node)].site;
    let (from, to) = (site(from), site(to));
    if from == to {
        return Route::Between;
    }
    match network.machine.wide_area.connection(from, to, tag, size) {
        Some(connection) => Route::By(connection),
        None => Route::ToSite(to as usize),
    }
}

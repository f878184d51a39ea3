//! What the cost between two events consists of.

use flowcast_model::network::Rule;
use flowcast_replay::{
    costs::PathCosts,
    routes::{Route, RouteNumbers},
    time_part::TimePart,
};
use flowcast_trace::{expand::operation_of, slot::Slot};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

use crate::graph::{Edge, EventGraph, Kind, NONE, Node};

/// Some units of a quantity in the cost between two events: `amount` times `unit` nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub quantity: TimePart,
    pub amount: f64,
    pub unit: f64,
    /// The rank whose processor works.
    pub rank: Rank,
    /// The message, the user function of a computation or the execution of a collective.
    pub item: u32,
}

impl Part {
    /// The message of a quantity that belongs to one.
    pub(crate) fn slot(&self) -> Slot {
        Slot(self.item)
    }

    pub(crate) fn nanos(&self) -> f64 {
        self.amount * self.unit
    }
}

/// Where a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// To the same node.
    Inside,
    /// To another node of the site.
    Between,
    /// To a node of another site.
    Sites,
}

impl Link {
    /// All of them, from the nearest to the farthest.
    pub const ALL: [Link; 3] = [Link::Inside, Link::Between, Link::Sites];

    /// As selectors name it.
    pub fn name(self) -> &'static str {
        match self {
            Link::Inside => "inside",
            Link::Between => "between",
            Link::Sites => "sites",
        }
    }
}

/// What a message is.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// The rank that sends it.
    pub from: Rank,
    /// The rank that receives it.
    pub to: Rank,
    /// Bytes of its data.
    pub size: Bytes,
    /// How far it goes.
    pub link: Link,
    /// The collective that it is a part of.
    pub collective: Option<CollectiveOp>,
}

pub(crate) fn send_overhead(path: &PathCosts, class: u32) -> Time {
    path.overheads
        .get(class as usize)
        .map_or(path.send_overhead, |own| own.send)
}

pub(crate) fn receive_overhead(path: &PathCosts, class: u32) -> Time {
    path.overheads
        .get(class as usize)
        .map_or(path.recv_after, |own| own.receive)
}

impl EventGraph<'_> {
    /// What a message is, by slot.
    pub fn message(&self, slot: Slot) -> Message {
        let program = self.program();
        let class = program.class(self.class_of[slot]);
        Message {
            from: program.owner(Rank(self.sender_of[slot])),
            to: program.owner(program.receiver(slot)),
            size: class.size,
            link: self.link(slot),
            collective: operation_of(class),
        }
    }

    fn route(&self, slot: Slot) -> Route {
        let number = self.replay.route_number(slot);
        RouteNumbers::new(self.replay.placement()).route(number)
    }

    fn link(&self, slot: Slot) -> Link {
        match self.route(slot) {
            Route::Inside => Link::Inside,
            Route::Between => Link::Between,
            Route::ToSite(_) | Route::By(_) => Link::Sites,
        }
    }

    fn rule(&self, slot: Slot) -> Rule {
        match self.link(slot) {
            Link::Sites => Rule::Dimemas,
            _ => self.replay.costs().network().point_to_point.rule,
        }
    }

    pub(crate) fn path(&self, slot: Slot) -> &PathCosts {
        &self.replay.costs().paths[self.replay.route_number(slot)]
    }

    /// Bytes that take time.
    fn counted(&self, slot: Slot) -> f64 {
        let size = self.program().class(self.class_of[slot]).size.0;
        if self.rule(slot) == Rule::Loggops {
            size.saturating_sub(1) as f64
        } else {
            size as f64
        }
    }

    /// Shows the parts of an edge's cost. Under contention they may be less than the cost.
    pub(crate) fn parts(&self, node: &Node, edge: Edge, mut show: impl FnMut(Part)) {
        let (rank, slot) = (node.rank(), node.slot());
        let own = |quantity| Part {
            quantity,
            amount: node.cost,
            unit: 1.0,
            rank,
            item: node.item,
        };
        match (node.kind(), edge) {
            (Kind::Compute, _) => show(own(TimePart::Compute)),
            (Kind::Collective, _) => show(own(TimePart::Collective)),
            (Kind::Send, Edge::First) => show(self.sending(slot, rank, 1.0)),
            (Kind::Send | Kind::Depart, Edge::Second) => {
                let before = self.nodes[node.second as usize].slot();
                let (unit, amount) = (self.path(before).gap.as_nanos(), self.outside(before));
                show(Part {
                    quantity: TimePart::Gap,
                    amount,
                    unit,
                    rank,
                    item: before.0,
                });
                self.bytes(before, rank).into_iter().for_each(&mut show);
                show(self.sending(before, rank, -1.0));
                show(self.sending(slot, rank, 1.0));
            }
            (Kind::Receive, Edge::First) => self.receiving(slot, rank).into_iter().for_each(show),
            (Kind::Receive, Edge::Second) => {
                if self.nodes[node.second as usize].kind() != Kind::Arrive {
                    self.flight(slot, &mut show);
                }
                show(self.receiving(slot, rank)[1]);
            }
            (Kind::MoveAtReceive, Edge::Second) => {
                let receiver = self.program().receiver(slot);
                show(self.receiving(slot, receiver)[0]);
            }
            (Kind::Release, Edge::Second) if self.rule(slot) != Rule::Dimemas => {
                self.bytes(slot, rank).into_iter().for_each(show);
            }
            (Kind::Arrive, _) => self.flight(slot, show),
            (
                Kind::Wait
                | Kind::Meet
                | Kind::Depart
                | Kind::Move
                | Kind::MoveAtReceive
                | Kind::Release,
                _,
            ) => {}
        }
    }

    fn sending(&self, slot: Slot, rank: Rank, amount: f64) -> Part {
        let unit = send_overhead(self.path(slot), self.class_of[slot]).as_nanos();
        let quantity = self.on_processors(slot);
        let amount = if quantity == TimePart::Overhead {
            amount * self.outside(slot)
        } else {
            amount
        };
        Part {
            quantity,
            amount,
            unit,
            rank,
            item: slot.0,
        }
    }

    /// Before a receiver looks for the message, and on the message that has come.
    fn receiving(&self, slot: Slot, rank: Rank) -> [Part; 2] {
        let (path, rule) = (self.path(slot), self.rule(slot));
        let part = |quantity, amount, unit: Time| Part {
            quantity,
            amount,
            unit: unit.as_nanos(),
            rank,
            item: slot.0,
        };
        let has_own = !path.overheads.is_empty();
        let before = f64::from(u8::from(rule == Rule::Dimemas && !has_own));
        let after = if rule == Rule::Loggops || has_own {
            self.outside(slot)
        } else {
            0.0
        };
        [
            part(self.on_processors(slot), before, path.recv_before),
            part(
                self.on_processors(slot),
                after,
                receive_overhead(path, self.class_of[slot]),
            ),
        ]
    }

    /// 1 of a message that leaves its node, 0 of others: these have neither overhead nor gap.
    fn outside(&self, slot: Slot) -> f64 {
        f64::from(u8::from(self.link(slot) != Link::Inside))
    }

    /// By Dimemas' rule the latency is spent on the processors.
    fn on_processors(&self, slot: Slot) -> TimePart {
        let is_latency = self.rule(slot) == Rule::Dimemas && self.path(slot).overheads.is_empty();
        if is_latency {
            TimePart::Latency
        } else {
            TimePart::Overhead
        }
    }

    fn flight(&self, slot: Slot, mut show: impl FnMut(Part)) {
        let rank = Rank(self.sender_of[slot]);
        let unit = self.path(slot).latency.as_nanos();
        if self.rule(slot) != Rule::Dimemas {
            show(Part {
                quantity: TimePart::Latency,
                amount: 1.0,
                unit,
                rank,
                item: slot.0,
            });
        }
        self.bytes(slot, rank).into_iter().for_each(show);
    }

    fn bytes(&self, slot: Slot, rank: Rank) -> Option<Part> {
        let amount = self.counted(slot);
        let takes = self.path(slot).classes[self.class_of[slot] as usize]
            .bytes
            .as_nanos();
        (amount > 0.0).then(|| Part {
            quantity: TimePart::Bandwidth,
            amount,
            unit: takes / amount,
            rank,
            item: slot.0,
        })
    }

    /// The user function that a message is sent by, or a computation belongs to; 0 for none.
    pub(crate) fn function(&self, part: &Part) -> i64 {
        let index = match part.quantity {
            TimePart::Compute => part.item,
            TimePart::Collective => return 0,
            _ => self
                .function_of
                .get(part.item as usize)
                .copied()
                .unwrap_or(0),
        };
        self.functions.get(index as usize).copied().unwrap_or(0)
    }

    /// Shows each event and edge with its parts, in the order of events.
    pub(crate) fn each_part(&self, mut show: impl FnMut(u32, Edge, Part)) {
        for (index, node) in (0u32..).zip(&self.nodes) {
            self.parts(node, Edge::First, |part| show(index, Edge::First, part));
            if node.second != NONE {
                self.parts(node, Edge::Second, |part| show(index, Edge::Second, part));
            }
        }
    }
}

//! What the cost between two events consists of.

use flowcast_model::network::Rule;
use flowcast_replay::{
    costs::PathCosts,
    loggops::costs::{Costs, Travel},
    routes::{Route, RouteNumbers},
    time_part::TimePart,
    walk::Replay,
};
use flowcast_trace::{expand::operation_of, slot::Slot};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time};

use crate::graph::{Edge, EventGraph, Kind, NONE, Node, Source};

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
    /// Whether a processor handles a message in it.
    pub handles: bool,
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

fn link(replay: &Replay<'_>, slot: Slot) -> Link {
    let number = replay.route_number(slot);
    match RouteNumbers::new(replay.placement()).route(number) {
        Route::Inside => Link::Inside,
        Route::Between => Link::Between,
        Route::ToSite(_) | Route::By(_) => Link::Sites,
    }
}

/// Of a program's message: its class and its sender.
#[derive(Debug, Clone, Copy)]
struct MessageSource {
    class: u32,
    sender: Rank,
}

/// What a message costs alone, as parts of one unit each and how many units there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageCosts {
    /// Of the sender's processor.
    sending: Part,
    /// Of the receiver's processor before it looks for the message.
    before: Part,
    /// Of the receiver's processor on the message that has come.
    after: Part,
    /// The same for its bytes.
    copied: Part,
    /// Of an interface, between two messages.
    gap: Part,
    latency: Part,
    bytes: Part,
    /// How many of the bytes take time in flight, at an interface, and while they hold their sender.
    in_flight: f64,
    at_interface: f64,
    held: f64,
    /// From the end of the sender's overhead to the last byte at the receiver.
    pub delay: f64,
    /// What of it is latency but spent on processors too, so that it is no unit of its own.
    pub far: Time,
}

impl Part {
    fn new(quantity: TimePart, rank: Rank, slot: Slot) -> Part {
        Part {
            quantity,
            amount: 1.0,
            unit: 0.0,
            rank,
            item: slot.0,
            handles: false,
        }
    }

    fn handling(self) -> Part {
        Part {
            handles: true,
            ..self
        }
    }

    fn scaled(self, amount: f64, unit: Time) -> Part {
        Part {
            amount,
            unit: unit.as_nanos(),
            ..self
        }
    }

    /// The same cost for another number of units.
    fn times(self, amount: f64) -> Part {
        Part { amount, ..self }
    }

    fn negative(self) -> Part {
        self.times(-self.amount)
    }
}

impl MessageCosts {
    /// How long an interface serves a message: it rests, then come the bytes.
    fn at_interface(&self) -> [Part; 2] {
        [self.gap, self.bytes.times(self.at_interface)]
    }

    fn new(quantity: TimePart, sender: Rank, receiver: Rank, slot: Slot) -> MessageCosts {
        let sending = Part::new(quantity, sender, slot).handling();
        let receiving = Part::new(quantity, receiver, slot).handling();
        MessageCosts {
            sending,
            before: receiving,
            after: receiving,
            copied: Part::new(TimePart::Bandwidth, receiver, slot).times(0.0),
            gap: Part::new(TimePart::Gap, sender, slot),
            latency: Part::new(TimePart::Latency, sender, slot),
            bytes: Part::new(TimePart::Bandwidth, sender, slot),
            in_flight: 0.0,
            at_interface: 0.0,
            held: 0.0,
            delay: 0.0,
            far: Time::ZERO,
        }
    }

    fn in_program(
        replay: &Replay<'_>,
        slot: Slot,
        sent: MessageSource,
        cables: Time,
    ) -> MessageCosts {
        let MessageSource { class, sender } = sent;
        let (program, path) = (
            replay.program(),
            &replay.costs().paths[replay.route_number(slot)],
        );
        let (cost, link) = (&path.classes[class as usize], link(replay, slot));
        let rule = match link {
            Link::Sites => Rule::Dimemas,
            _ => replay.costs().network().point_to_point.rule,
        };
        let (is_dimemas, has_own) = (rule == Rule::Dimemas, !path.overheads.is_empty());
        // Messages that stay inside their node have neither overhead nor gap.
        let outside = f64::from(u8::from(link != Link::Inside));
        // By Dimemas' rule the latency is spent on the processors.
        let (quantity, sends, before) = match is_dimemas && !has_own {
            true => (TimePart::Latency, 1.0, 1.0),
            false => (TimePart::Overhead, outside, 0.0),
        };
        let is_after = rule == Rule::Loggops || has_own;
        let Bytes(size) = program.class(class).size;
        let counted = size.saturating_sub(u64::from(rule == Rule::Loggops)) as f64;
        let none = MessageCosts::new(quantity, sender, program.receiver(slot), slot);
        MessageCosts {
            sending: none.sending.scaled(sends, send_overhead(path, class)),
            before: none.before.scaled(before, path.recv_before),
            after: none.after.scaled(
                if is_after { outside } else { 0.0 },
                receive_overhead(path, class),
            ),
            gap: none.gap.scaled(outside, path.gap),
            latency: none.latency.scaled(
                f64::from(u8::from(!is_dimemas)),
                path.latency + cost.added_latency + cables,
            ),
            bytes: none
                .bytes
                .scaled(counted, cost.bytes * (1.0 / counted.max(1.0))),
            in_flight: counted,
            at_interface: counted,
            held: if is_dimemas { 0.0 } else { counted },
            delay: (cost.delay + cables).as_nanos(),
            far: if is_dimemas { path.latency } else { Time::ZERO },
            ..none
        }
    }

    fn in_schedule(costs: Costs<'_>, slot: Slot, message: Message) -> MessageCosts {
        let travel = costs.travel(message.from, message.to, message.size);
        let Travel {
            latency,
            bytes,
            interface,
            on_receiver,
            ..
        } = travel;
        let counted = message.size.0.saturating_sub(1) as f64;
        let unit = bytes * (1.0 / counted.max(1.0));
        let part = |time: Time| if time > Time::ZERO { counted } else { 0.0 };
        let (gap, at_interface) = interface.unwrap_or_default();
        let none = MessageCosts::new(TimePart::Overhead, message.from, message.to, slot);
        let overhead = costs.parameters.overhead;
        MessageCosts {
            sending: none.sending.scaled(1.0, overhead),
            after: none.after.scaled(1.0, overhead),
            copied: none.copied.scaled(part(on_receiver), unit),
            gap: none
                .gap
                .scaled(f64::from(u8::from(interface.is_some())), gap),
            latency: none.latency.scaled(1.0, latency),
            bytes: none.bytes.scaled(counted, unit),
            in_flight: part(bytes - on_receiver),
            at_interface: part(at_interface),
            delay: (latency + bytes - on_receiver).as_nanos(),
            ..none
        }
    }
}

impl EventGraph<'_> {
    /// What a message is, by slot.
    pub fn message(&self, slot: Slot) -> Message {
        match self.source {
            Source::Program(replay) => {
                let program = replay.program();
                let class = program.class(self.class_of[slot]);
                Message {
                    from: program.owner(Rank(self.sender_of[slot])),
                    to: program.owner(program.receiver(slot)),
                    size: class.size,
                    link: link(replay, slot),
                    collective: operation_of(class),
                }
            }
            Source::Schedule(sends, costs) => {
                let from = sends.sender(slot);
                let message = sends.sent(from, slot);
                let travel = costs.travel(from, message.to, message.size);
                Message {
                    from,
                    to: message.to,
                    size: message.size,
                    link: match travel.interface {
                        Some(_) => Link::Between,
                        None => Link::Inside,
                    },
                    collective: None,
                }
            }
        }
    }

    /// What a message costs alone, by slot.
    pub(crate) fn costs(&self, slot: Slot) -> MessageCosts {
        match self.source {
            Source::Program(replay) => {
                let (class, sender) = (self.class_of[slot], Rank(self.sender_of[slot]));
                let cables = self.cables.get(slot.index()).copied().unwrap_or_default();
                MessageCosts::in_program(replay, slot, MessageSource { class, sender }, cables)
            }
            Source::Schedule(_, costs) => {
                MessageCosts::in_schedule(costs, slot, self.message(slot))
            }
        }
    }

    /// Shows the parts of an edge's cost, from the earlier event to the later one. Under contention they may be less than the
    /// cost.
    pub(crate) fn parts(&self, node: &Node, edge: Edge, mut show: impl FnMut(Part)) {
        let own = |quantity| Part {
            quantity,
            amount: node.cost,
            unit: 1.0,
            rank: node.rank(),
            item: node.item,
            handles: false,
        };
        let of = match node.kind() {
            Kind::Compute => return show(own(TimePart::Compute)),
            Kind::Collective => return show(own(TimePart::Collective)),
            Kind::Spent | Kind::Meet | Kind::Move => return,
            _ => self.costs(node.slot()),
        };
        let handled = [of.after, of.copied];
        let flight = [of.latency, of.bytes.times(of.in_flight)];
        let mut show_all = |parts: &[Part]| {
            let shown = parts.iter().filter(|part| part.amount != 0.0);
            shown.for_each(|part| show(*part));
        };
        // Of the edge's earlier event where that is not of the same rank.
        let other = (edge == Edge::Second).then(|| self.nodes[node.second as usize].kind());
        match (node.kind(), other) {
            (Kind::Send, None) => show_all(&[of.sending]),
            (Kind::Send | Kind::Depart, Some(_)) => {
                let before = self.costs(self.nodes[node.second as usize].slot());
                show_all(&[before.sending.negative()]);
                show_all(&before.at_interface());
                show_all(&[of.sending]);
            }
            (Kind::Arrive, Some(_)) => {
                let before = self.costs(self.nodes[node.second as usize].slot());
                show_all(&[before.after, before.copied].map(Part::negative));
                show_all(&before.at_interface());
            }
            (Kind::Arrive, None) => show_all(&flight),
            (Kind::Receive, None) => {
                show_all(&[of.before]);
                show_all(&handled);
            }
            (Kind::Receive, Some(kind)) => {
                if kind != Kind::Arrive {
                    show_all(&flight);
                }
                show_all(&handled);
            }
            (Kind::MoveAtReceive, Some(_)) => show_all(&[of.before]),
            // Of a schedule: the sender goes on when its receiver has taken the message.
            (Kind::Release, Some(Kind::Receive)) if node.more < 0.0 => {
                show_all(&handled.map(Part::negative));
            }
            (Kind::Release, Some(_)) => show_all(&[of.bytes.times(of.held)]),
            _ => {}
        }
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

//! Parts of the cost between two events.

use flowcast_network::network::MessageRule;
use flowcast_program::{expand::operation_of, slot::Slot};
use flowcast_replay::{
    loggops::costs::{LogGopsCosts, Travel},
    routes::{Route, RouteNumbers},
    time_part::TimePart,
    walk::Replay,
};
use flowcast_units::{Bytes, CollectiveOp, Rank, Time, named};

use crate::graph::{Edge, EventGraph, EventKind, EventNode, NONE, ReplayedInput};

/// A number of units of a quantity in the cost between two events: `amount` times `unit` nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostPart {
    pub quantity: TimePart,
    pub amount: f64,
    pub unit: f64,
    /// The rank whose processor works.
    pub rank: Rank,
    /// The message, the user function of a computation or the execution of a collective.
    pub item: u32,
    /// `true` if a processor handles a message in this part.
    pub handles: bool,
}

impl CostPart {
    /// Returns the message of a quantity that belongs to one.
    pub(crate) fn slot(&self) -> Slot {
        Slot(self.item)
    }

    pub(crate) fn nanos(&self) -> f64 {
        self.amount * self.unit
    }
}

named! {
    /// Kind of link that a message takes, from the nearest to the farthest.
    pub enum MessageRoute {
        /// To the same node.
        Inside = "inside",
        /// To another node of the site.
        Between = "between",
        /// To a node of another site.
        Sites = "sites",
    }
}

/// Properties of a message.
#[derive(Debug, Clone, Copy)]
pub struct GraphMessage {
    /// The rank that sends it.
    pub from: Rank,
    /// The rank that receives it.
    pub to: Rank,
    /// Size of its data.
    pub size: Bytes,
    /// Kind of link that it takes.
    pub link: MessageRoute,
    /// The collective that it is part of.
    pub collective: Option<CollectiveOp>,
}

fn link(replay: &Replay<'_>, slot: Slot) -> MessageRoute {
    let number = replay.route_number(slot);
    match RouteNumbers::new(replay.placement()).route(number) {
        Route::Inside => MessageRoute::Inside,
        Route::Between => MessageRoute::Between,
        Route::ToSite(_) | Route::By(_) => MessageRoute::Sites,
    }
}

/// Class and sender of a program's message.
#[derive(Debug, Clone, Copy)]
struct MessageSource {
    class: u32,
    sender: Rank,
}

/// Cost of a message alone, as parts of one unit each, and the number of units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageParts {
    /// Time of the sender's processor.
    sending: CostPart,
    /// Time of the receiver's processor before it looks for the message.
    before: CostPart,
    /// Time of the receiver's processor for the message after its arrival.
    after: CostPart,
    /// Time of the receiver's processor for the bytes of the message.
    copied: CostPart,
    /// Gap of an interface between two messages.
    gap: CostPart,
    latency: CostPart,
    bytes: CostPart,
    /// Number of bytes that take time in flight. `at_interface` is the number that takes time at an interface, `held` the
    /// number whose time holds the sender.
    in_flight: f64,
    at_interface: f64,
    held: f64,
    /// Time from the end of the sender's overhead until the last byte is at the receiver, in nanoseconds.
    pub delay: f64,
    /// Flight time between sites, a part of the delay. Under Dimemas' rule, the units of latency are spent on processors and
    /// do not contain it.
    pub far: Time,
}

impl CostPart {
    fn new(quantity: TimePart, rank: Rank, slot: Slot) -> CostPart {
        CostPart {
            quantity,
            amount: 1.0,
            unit: 0.0,
            rank,
            item: slot.0,
            handles: false,
        }
    }

    fn handling(self) -> CostPart {
        CostPart {
            handles: true,
            ..self
        }
    }

    fn scaled(self, amount: f64, unit: Time) -> CostPart {
        CostPart {
            amount,
            unit: unit.as_nanos(),
            ..self
        }
    }

    /// Returns the same cost with another number of units.
    fn times(self, amount: f64) -> CostPart {
        CostPart { amount, ..self }
    }

    fn negative(self) -> CostPart {
        self.times(-self.amount)
    }
}

impl MessageParts {
    /// Time that an interface serves a message: the gap, then the bytes.
    fn at_interface(&self) -> [CostPart; 2] {
        [self.gap, self.bytes.times(self.at_interface)]
    }

    fn new(quantity: TimePart, sender: Rank, receiver: Rank, slot: Slot) -> MessageParts {
        let sending = CostPart::new(quantity, sender, slot).handling();
        let receiving = CostPart::new(quantity, receiver, slot).handling();
        MessageParts {
            sending,
            before: receiving,
            after: receiving,
            copied: CostPart::new(TimePart::Bandwidth, receiver, slot).times(0.0),
            gap: CostPart::new(TimePart::Gap, sender, slot),
            latency: CostPart::new(TimePart::Latency, sender, slot),
            bytes: CostPart::new(TimePart::Bandwidth, sender, slot),
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
    ) -> MessageParts {
        let MessageSource { class, sender } = sent;
        let (program, path) = (replay.program(), replay.path(slot));
        let network = replay.costs().network();
        let (cost, link) = (&path.classes[class as usize], link(replay, slot));
        let rule = match link {
            MessageRoute::Sites => MessageRule::Dimemas,
            _ => network.point_to_point.rule,
        };
        let is_dimemas = rule == MessageRule::Dimemas;
        let has_own = link == MessageRoute::Between && !network.overheads.have_no_processor_time();
        // Messages that stay inside their node have neither overhead nor gap.
        let outside = f64::from(u8::from(link != MessageRoute::Inside));
        // Under Dimemas' rule, the processors spend the latency.
        let (quantity, sends, before) = match is_dimemas && !has_own {
            true => (TimePart::Latency, 1.0, 1.0),
            false => (TimePart::Overhead, outside, 0.0),
        };
        let is_after = rule == MessageRule::Loggops || has_own;
        let Bytes(size) = program.class(class).size;
        let counted = size.saturating_sub(u64::from(rule == MessageRule::Loggops)) as f64;
        let none = MessageParts::new(quantity, sender, program.receiver(slot), slot);
        MessageParts {
            sending: none.sending.scaled(sends, cost.send),
            before: none.before.scaled(before, path.recv_before),
            after: none
                .after
                .scaled(if is_after { outside } else { 0.0 }, cost.receive),
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

    fn in_schedule(costs: LogGopsCosts<'_>, slot: Slot, message: GraphMessage) -> MessageParts {
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
        let none = MessageParts::new(TimePart::Overhead, message.from, message.to, slot);
        let overhead = costs.parameters.overhead;
        MessageParts {
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
    /// Returns the properties of a message.
    pub fn message(&self, slot: Slot) -> GraphMessage {
        match self.source {
            ReplayedInput::Program(replay) => {
                let program = replay.program();
                let class = program.class(self.class_of[slot]);
                GraphMessage {
                    from: program.owner(Rank(self.sender_of[slot])),
                    to: program.owner(program.receiver(slot)),
                    size: class.size,
                    link: link(replay, slot),
                    collective: operation_of(class),
                }
            }
            ReplayedInput::Schedule(sends, costs) => {
                let from = sends.sender(slot);
                let message = sends.sent(from, slot);
                let travel = costs.travel(from, message.to, message.size);
                GraphMessage {
                    from,
                    to: message.to,
                    size: message.size,
                    link: match travel.interface {
                        Some(_) => MessageRoute::Between,
                        None => MessageRoute::Inside,
                    },
                    collective: None,
                }
            }
        }
    }

    /// Returns the cost of a message alone.
    pub(crate) fn costs(&self, slot: Slot) -> MessageParts {
        match self.source {
            ReplayedInput::Program(replay) => {
                let (class, sender) = (self.class_of[slot], Rank(self.sender_of[slot]));
                let cables = self.cables.get(slot.index()).copied().unwrap_or_default();
                MessageParts::in_program(replay, slot, MessageSource { class, sender }, cables)
            }
            ReplayedInput::Schedule(_, costs) => {
                MessageParts::in_schedule(costs, slot, self.message(slot))
            }
        }
    }

    /// Shows the parts of an edge's cost, from the earlier event to the later one. Under contention, their sum may be less
    /// than the cost.
    pub(crate) fn parts(&self, node: &EventNode, edge: Edge, mut show: impl FnMut(CostPart)) {
        let own = |quantity| CostPart {
            quantity,
            amount: node.cost,
            unit: 1.0,
            rank: node.rank(),
            item: node.item,
            handles: false,
        };
        let of = match node.kind() {
            EventKind::Compute => return show(own(TimePart::Compute)),
            EventKind::Collective => return show(own(TimePart::Collective)),
            EventKind::Spent | EventKind::Meet | EventKind::Move => return,
            _ => self.costs(node.slot()),
        };
        let handled = [of.after, of.copied];
        let flight = [of.latency, of.bytes.times(of.in_flight)];
        let mut show_all = |parts: &[CostPart]| {
            let shown = parts.iter().filter(|part| part.amount != 0.0);
            shown.for_each(|part| show(*part));
        };
        // Kind of the edge's earlier event if that event may belong to another rank.
        let other = (edge == Edge::Second).then(|| self.nodes[node.second as usize].kind());
        match (node.kind(), other) {
            (EventKind::Send, None) => show_all(&[of.sending]),
            (EventKind::Send | EventKind::Depart, Some(_)) => {
                let before = self.costs(self.nodes[node.second as usize].slot());
                show_all(&[before.sending.negative()]);
                show_all(&before.at_interface());
                show_all(&[of.sending]);
            }
            (EventKind::Arrive, Some(_)) => {
                let before = self.costs(self.nodes[node.second as usize].slot());
                show_all(&[before.after, before.copied].map(CostPart::negative));
                show_all(&before.at_interface());
            }
            (EventKind::Arrive, None) => show_all(&flight),
            (EventKind::Receive, None) => {
                show_all(&[of.before]);
                show_all(&handled);
            }
            (EventKind::Receive, Some(kind)) => {
                if kind != EventKind::Arrive {
                    show_all(&flight);
                }
                show_all(&handled);
            }
            (EventKind::MoveAtReceive, Some(_)) => show_all(&[of.before]),
            // In a schedule, the sender continues when its receiver has taken the message.
            (EventKind::Release, Some(EventKind::Receive)) if node.more < 0.0 => {
                show_all(&handled.map(CostPart::negative));
            }
            (EventKind::Release, Some(_)) => show_all(&[of.bytes.times(of.held)]),
            _ => {}
        }
    }

    /// Returns the user function that sends a message or that a computation belongs to. Returns 0 for none.
    pub(crate) fn function(&self, part: &CostPart) -> i64 {
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
    pub(crate) fn each_part(&self, mut show: impl FnMut(u32, Edge, CostPart)) {
        for (index, node) in (0u32..).zip(&self.nodes) {
            self.parts(node, Edge::First, |part| show(index, Edge::First, part));
            if node.second != NONE {
                self.parts(node, Edge::Second, |part| show(index, Edge::Second, part));
            }
        }
    }
}

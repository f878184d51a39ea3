//! Clocks of the ranks. Each advances until the rank waits for a message.

use super::{
    plan::{CollectivePlan, PlannedMessage, PlannedStep, StepKind::*},
    shared_ports::SharedPorts,
};
use flowcast_place::rank_place::RankPlace;

/// Costs of a message of one size, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct MessageCosts {
    /// Processor time of the sender.
    pub send: f64,
    /// Processor time of the receiver, after arrival.
    pub receive: f64,
    /// Time for which a message occupies both ports, indexed by level.
    pub wire: [f64; 4],
    /// Time from the end of the sender's port to the receiver, indexed by level.
    pub latency: [f64; 4],
    /// Extra time of a round trip to the receiver, beyond its latency. `None` if the sender sends without a handshake.
    pub handshake: Option<f64>,
}

/// Costs of the steps of an operation, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepCosts {
    /// Time before the first step of each rank.
    pub start: f64,
    /// Costs of messages, indexed by the sizes of the plan.
    pub messages: Vec<MessageCosts>,
    /// Mean of the exponentially distributed delay of each message.
    pub noise: f64,
}

/// Finish time of the last rank, in seconds. Random delays depend only on the number of the message. Equal plans therefore
/// have equal delays, and the time is a smooth function of the costs.
pub(crate) fn slowest_rank(
    plan: &CollectivePlan,
    costs: &StepCosts,
    places: &[RankPlace],
    ports: &SharedPorts,
) -> f64 {
    let mut clocks = PlaceClocks::new(plan, costs, places, ports);
    let mut ready: Vec<u32> = (0..plan.ranks()).rev().collect();
    while let Some(rank) = ready.pop() {
        clocks.advance(rank, &mut ready);
    }
    clocks.clock.iter().copied().fold(0.0, f64::max)
}

/// Marks a time that is not known yet.
const UNKNOWN: f64 = f64::NAN;
const NOTHING: u32 = u32::MAX;

struct PlaceClocks<'a> {
    plan: &'a CollectivePlan,
    costs: &'a StepCosts,
    places: &'a [RankPlace],
    ports: &'a SharedPorts,
    /// State of the ranks, indexed by rank.
    clock: Vec<f64>,
    next_step: Vec<usize>,
    awaited: Vec<u32>,
    out_free: Vec<f64>,
    in_free: Vec<f64>,
    /// Indexed by message: earliest start at the sender's port, and the time at which all messages that were started
    /// together have left it.
    sent: Vec<f64>,
    port_end: Vec<f64>,
    /// Time at which the receiver posts its receive, indexed by message.
    posted: Vec<f64>,
}

impl<'a> PlaceClocks<'a> {
    fn new(
        plan: &'a CollectivePlan,
        costs: &'a StepCosts,
        places: &'a [RankPlace],
        ports: &'a SharedPorts,
    ) -> PlaceClocks<'a> {
        let ranks = plan.ranks() as usize;
        PlaceClocks {
            plan,
            costs,
            places,
            ports,
            clock: vec![costs.start; ranks],
            next_step: vec![0; ranks],
            awaited: vec![NOTHING; ranks],
            out_free: vec![0.0; ranks],
            in_free: vec![0.0; ranks],
            sent: vec![UNKNOWN; plan.messages()],
            port_end: vec![0.0; plan.messages()],
            posted: vec![UNKNOWN; plan.messages()],
        }
    }

    /// Executes steps until the rank waits for another rank or has finished.
    fn advance(&mut self, rank: u32, ready: &mut Vec<u32>) {
        let own = rank as usize;
        let steps = self.plan.steps(rank);
        while let Some(step) = steps.get(self.next_step[own]) {
            let message = step.message();
            let is_done = match step.kind() {
                Start => self.start(message, ready),
                Post => self.post(message, ready),
                Send => {
                    if self.sent[message as usize].is_nan() {
                        self.start(message, ready);
                    }
                    self.complete_send(message)
                }
                Recv => {
                    if self.posted[message as usize].is_nan() {
                        self.post(message, ready);
                    }
                    self.complete_receive(message)
                }
                WaitRecv | WaitSend => {
                    self.share_port(own, steps);
                    match step.kind() {
                        WaitRecv => self.complete_receive(message),
                        _ => self.complete_send(message),
                    }
                }
            };
            if !is_done {
                return;
            }
            self.next_step[own] += 1;
        }
    }

    /// Long messages that were started together share the port until all of them have crossed it.
    fn share_port(&mut self, own: usize, steps: &[PlannedStep]) {
        let so_far = &steps[..self.next_step[own]];
        let together = so_far
            .iter()
            .rev()
            .take_while(|step| matches!(step.kind(), Start | Post));
        for step in together.filter(|step| step.kind() == Start) {
            self.port_end[step.message() as usize] = self.out_free[own];
        }
    }

    fn start(&mut self, message: u32, ready: &mut Vec<u32>) -> bool {
        let PlannedMessage { from, to, size, .. } = self.plan.messages[message as usize];
        let own = from as usize;
        self.clock[own] += self.costs.messages[size as usize].send;
        let begin = self.clock[own].max(self.out_free[own]);
        self.out_free[own] = begin + self.wire(message);
        self.sent[message as usize] = begin;
        self.wake(to, message, ready);
        true
    }

    fn post(&mut self, message: u32, ready: &mut Vec<u32>) -> bool {
        let PlannedMessage { from, to, .. } = self.plan.messages[message as usize];
        self.posted[message as usize] = self.clock[to as usize];
        self.wake(from, message, ready);
        true
    }

    fn wake(&mut self, rank: u32, message: u32, ready: &mut Vec<u32>) {
        if self.awaited[rank as usize] == message {
            self.awaited[rank as usize] = NOTHING;
            ready.push(rank);
        }
    }

    fn complete_receive(&mut self, message: u32) -> bool {
        let PlannedMessage { to, size, .. } = self.plan.messages[message as usize];
        let own = to as usize;
        if self.sent[message as usize].is_nan() {
            self.awaited[own] = message;
            return false;
        }
        let arrival = self.arrival(message);
        let done = arrival.max(self.in_free[own] + self.wire(message));
        self.in_free[own] = done;
        let receive = self.costs.messages[size as usize].receive;
        self.clock[own] = self.clock[own].max(done) + receive;
        true
    }

    fn complete_send(&mut self, message: u32) -> bool {
        let PlannedMessage { from, size, .. } = self.plan.messages[message as usize];
        if self.costs.messages[size as usize].handshake.is_some() {
            if self.posted[message as usize].is_nan() {
                self.awaited[from as usize] = message;
                return false;
            }
            let arrival = self.arrival(message);
            let clock = &mut self.clock[from as usize];
            *clock = clock.max(arrival);
        }
        true
    }

    fn level(&self, message: u32) -> usize {
        let PlannedMessage { from, to, .. } = self.plan.messages[message as usize];
        self.places[from as usize].level(self.places[to as usize]) as usize
    }

    fn wire(&self, message: u32) -> f64 {
        let size = self.plan.messages[message as usize].size as usize;
        self.costs.messages[size].wire[self.level(message)] * self.ports.stretch(message)
    }

    fn arrival(&self, message: u32) -> f64 {
        let size = self.plan.messages[message as usize].size as usize;
        let costs = &self.costs.messages[size];
        let latency = costs.latency[self.level(message)];
        let mut begin = self.sent[message as usize];
        let mut port_end = 0.0;
        if let Some(handshake) = costs.handshake {
            begin = (begin + latency).max(self.posted[message as usize]) + latency + handshake;
            port_end = self.port_end[message as usize];
        }
        let late = self.costs.noise * exponential_draw(message);
        (begin + self.wire(message)).max(port_end) + latency + late
    }
}

/// Exponentially distributed value with mean 1, from a hash of the number (splitmix64).
fn exponential_draw(number: u32) -> f64 {
    let mut bits = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    -(1.0 - (bits >> 11) as f64 / (1u64 << 53) as f64).ln()
}

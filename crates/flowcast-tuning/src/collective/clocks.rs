//! The clocks of the ranks, each as far as the messages that it waits for allow.

use super::{
    plan::{CollectivePlan, PlannedMessage, PlannedStep, StepKind},
    shared_ports::SharedPorts,
};
use flowcast_place::rank_place::RankPlace;

/// What a message of one size costs, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct MessageCosts {
    /// Processor time of its sender.
    pub send: f64,
    /// Processor time of its receiver, once it is there.
    pub receive: f64,
    /// For how long it occupies both ports, by level.
    pub wire: [f64; 4],
    /// From the end of the sender's port to the receiver, by level.
    pub latency: [f64; 4],
    /// By how much the way to the receiver and back takes longer than its latency, where the sender asks before it sends.
    pub handshake: Option<f64>,
}

/// What the steps of an operation cost, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepCosts {
    /// What each rank does before its first step.
    pub start: f64,
    /// By the sizes of the plan.
    pub messages: Vec<MessageCosts>,
    /// Mean of the exponential distribution by which each message is late.
    pub noise: f64,
}

/// The time of the last rank to end, in seconds. Late arrivals are drawn for the messages' numbers: equal plans have equal
/// draws, so that the time is a smooth function of the costs.
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

/// What is not known yet.
const UNKNOWN: f64 = f64::NAN;
const NOTHING: u32 = u32::MAX;

struct PlaceClocks<'a> {
    plan: &'a CollectivePlan,
    costs: &'a StepCosts,
    places: &'a [RankPlace],
    ports: &'a SharedPorts,
    /// By rank.
    clock: Vec<f64>,
    next_step: Vec<usize>,
    awaited: Vec<u32>,
    out_free: Vec<f64>,
    in_free: Vec<f64>,
    /// By message: when it could begin to cross its sender's port, and when all that were started with it have crossed it.
    sent: Vec<f64>,
    port_end: Vec<f64>,
    /// By message: when its receiver asked for it.
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

    /// Goes on until the rank waits for another or has ended.
    fn advance(&mut self, rank: u32, ready: &mut Vec<u32>) {
        let own = rank as usize;
        let steps = self.plan.steps(rank);
        while let Some(step) = steps.get(self.next_step[own]) {
            let message = step.message();
            let is_done = match step.kind() {
                StepKind::Start => self.start(message, ready),
                StepKind::Post => self.post(message, ready),
                StepKind::Send => {
                    if self.sent[message as usize].is_nan() {
                        self.start(message, ready);
                    }
                    self.complete_send(message)
                }
                StepKind::Recv => {
                    if self.posted[message as usize].is_nan() {
                        self.post(message, ready);
                    }
                    self.complete_receive(message)
                }
                StepKind::WaitRecv | StepKind::WaitSend => {
                    self.share_port(own, steps);
                    match step.kind() {
                        StepKind::WaitRecv => self.complete_receive(message),
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

    /// Long messages that were started together share the port until all have crossed it.
    fn share_port(&mut self, own: usize, steps: &[PlannedStep]) {
        let so_far = &steps[..self.next_step[own]];
        let together = so_far
            .iter()
            .rev()
            .take_while(|step| matches!(step.kind(), StepKind::Start | StepKind::Post));
        for step in together.filter(|step| step.kind() == StepKind::Start) {
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

/// Of mean 1, by a hash of the number (splitmix64).
fn exponential_draw(number: u32) -> f64 {
    let mut bits = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^= bits >> 31;
    -(1.0 - (bits >> 11) as f64 / (1u64 << 53) as f64).ln()
}

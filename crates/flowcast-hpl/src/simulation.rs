//! Event-driven simulation of HPL's processes: actions are executed in the order of their times, and messages are matched
//! when they are sent.
//!
//! The processes of a column factor a panel in one action ([`Factorization`]), which starts when the last of them arrives.
//! Long messages take turns at the interfaces of nodes and at their memory, in the order in which they start.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range, sync::Arc};

use crate::{
    ActionPurpose, CallSpread, Exchange, HplAction, HplSettings, Kernel, KernelRates, PanelSwaps,
    Pivots, Process, Swaps, Update,
};

use flowcast_network::collective_costs::MAPPED_FROM;

use super::{factor::Factorization, machine::Machine};

/// Mean time of the processes in each activity: in seconds during a simulation, as fractions of the simulated time in
/// results.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ActivityTimes {
    /// Matrix products, except those inside panels.
    pub multiply: f64,
    /// Triangular solutions, copies and swaps of rows.
    pub kernels: f64,
    /// Factorization of panels, the search for pivots included.
    pub factor: f64,
    /// Broadcasts of panels: sending, receiving and waiting.
    pub broadcast: f64,
    /// Exchanges of rows and of U.
    pub swap: f64,
    /// Triangular system at the end.
    pub solution: f64,
}

/// Simulated run, or some panels of it.
pub(super) struct HplOutcome {
    /// Time until the last process has ended, in seconds.
    pub seconds: f64,
    /// Time at which each panel was factored, in seconds.
    pub factored: Vec<f64>,
    /// Mean time of the processes in each activity, in seconds.
    pub spent: ActivityTimes,
}

/// Ordered time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Message whose receive has not been posted yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    from: u32,
    bytes: u64,
    /// Time at which the receiver can detect the message.
    arrival: f64,
    /// `true` if the sender waits.
    rendezvous: bool,
}

/// State of a waiting process.
#[derive(Debug, Clone, Copy)]
enum ProcessWait {
    /// Waits for the end of an action.
    Action(ActionPurpose),
    /// Continues with the answer to its probes.
    Answer(u64),
    /// Updates columns and probes for a message.
    Message { from: u32, update: Update },
    /// Waits for the end of a panel's factorization.
    Factor,
}

#[derive(Debug)]
struct HplRank {
    process: Process,
    waiting: ProcessWait,
    since: f64,
    /// Rank for which a receive is posted.
    posted: Option<u32>,
    /// Number of unfinished parts of an exchange, and the latest end of the finished ones.
    missing: u8,
    until: f64,
    inbox: Vec<Pending>,
    spent: ActivityTimes,
}

/// Swaps of the panels that are currently in use.
struct SwapCache {
    settings: HplSettings,
    pivots: Pivots,
    recent: Vec<Option<Arc<PanelSwaps>>>,
}

/// Messages of at least this size take turns, whatever their protocol.
const LONG_MESSAGE: u64 = 16384;

/// Number of panels whose swaps are kept. It exceeds the distance between the panels of the fastest and the slowest process.
const RECENT_PANELS: usize = 64;

impl Swaps for SwapCache {
    fn panel_swaps(&mut self, panel: u32) -> Arc<PanelSwaps> {
        let slot = panel as usize % RECENT_PANELS;
        if let Some(swaps) = &self.recent[slot]
            && swaps.panel == panel
        {
            return Arc::clone(swaps);
        }
        let pivots = self.pivots.rows(&self.settings, panel);
        let swaps = Arc::new(PanelSwaps::new(&self.settings, panel, &pivots));
        self.recent[slot] = Some(Arc::clone(&swaps));
        swaps
    }
}

/// Simulation of some panels of HPL on a machine.
pub(super) struct Simulation<'a> {
    settings: HplSettings,
    machine: &'a Machine,
    spread: CallSpread,
    panels: Range<u32>,
    ranks: Vec<HplRank>,
    swaps: SwapCache,
    queue: BinaryHeap<Reverse<(At, u32)>>,
    /// Times at which each node's interface can send and receive again, and its memory can copy again.
    sending: Vec<f64>,
    receiving: Vec<f64>,
    copying: Vec<f64>,
    /// Process rows that wait to factor a panel, with their start times, indexed by process column.
    factoring: Vec<Vec<(u32, f64)>>,
    factorization: Factorization,
    /// Costs of computations while all ranks of a node update.
    rates: KernelRates,
    outcome: HplOutcome,
}

impl<'a> Simulation<'a> {
    /// Places all processes at the first panel at time 0. The seed determines the variation of the products' times.
    pub(super) fn new(
        settings: HplSettings,
        machine: &'a Machine,
        pivots: Pivots,
        panels: Range<u32>,
        seed: u64,
    ) -> Simulation<'a> {
        let nodes = machine.nodes.iter().max().map_or(0, |node| node + 1) as usize;
        let process = |rank: u32| {
            let (row, column) = (rank / settings.columns, rank % settings.columns);
            Process::new(settings, row, column, panels.clone())
        };
        Simulation {
            settings,
            machine,
            spread: CallSpread {
                share: machine.call_spread,
                seed,
            },
            ranks: (0..settings.ranks())
                .map(|rank| HplRank::new(process(rank)))
                .collect(),
            swaps: SwapCache {
                settings,
                pivots,
                recent: vec![None; RECENT_PANELS],
            },
            queue: (0..settings.ranks())
                .map(|rank| Reverse((At(0.0), rank)))
                .collect(),
            sending: vec![0.0; nodes],
            receiving: vec![0.0; nodes],
            copying: vec![0.0; nodes],
            factoring: vec![Vec::new(); settings.columns as usize],
            factorization: Factorization::new(&settings, machine),
            rates: machine.rates_beside(machine.ranks_per_node),
            outcome: HplOutcome {
                seconds: 0.0,
                factored: vec![0.0; panels.len()],
                spent: ActivityTimes::default(),
            },
            panels,
        }
    }

    /// Runs the simulation to its end.
    pub(super) fn run(mut self) -> HplOutcome {
        while let Some(Reverse((At(now), rank))) = self.queue.pop() {
            self.resume(rank, now);
            self.advance(rank, now);
        }
        for rank in &self.ranks {
            self.outcome.spent.add(&rank.spent);
        }
        self.outcome.spent = self.outcome.spent.times(1.0 / self.ranks.len() as f64);
        self.outcome
    }

    /// Ends the wait of a process.
    fn resume(&mut self, rank: u32, now: f64) {
        use ProcessWait::*;
        let me = &mut self.ranks[rank as usize];
        match me.waiting {
            Action(purpose) => *me.spent.time_mut(purpose) += now - me.since,
            Answer(found) => me.process.answer(found),
            Message { .. } => {}
            Factor => me.spent.factor += now - me.since,
        }
        me.since = now;
    }

    /// Executes actions of a process until it waits, or until another process must act earlier.
    fn advance(&mut self, rank: u32, mut now: f64) {
        use HplAction::*;
        let me = rank as usize;
        loop {
            if self
                .queue
                .peek()
                .is_some_and(|Reverse(next)| *next < (At(now), rank))
            {
                self.wait(rank, ProcessWait::Action(ActionPurpose::Swap), now);
                self.queue.push(Reverse((At(now), rank)));
                return;
            }
            match self.ranks[me].process.next(&mut self.swaps) {
                Compute(kernel) => now += self.compute(rank, kernel),
                Update(update) => now += self.update(rank, update),
                Exchange(exchange) => {
                    self.wait(rank, ProcessWait::Action(exchange.purpose), now);
                    match self.exchange(rank, exchange, now) {
                        Some(end) => {
                            self.resume(rank, end);
                            now = end;
                        }
                        None => return,
                    }
                }
                Probe(from) => {
                    let found = self.ranks[me].sees(from, now);
                    self.ranks[me].process.answer(u64::from(found));
                }
                UpdateUntil { from, update } => {
                    self.wait(rank, ProcessWait::Message { from, update }, now);
                    if let Some(arrival) = self.ranks[me].pending(from) {
                        self.find(rank, arrival);
                    }
                    return;
                }
                Factor(panel) => {
                    self.wait(rank, ProcessWait::Factor, now);
                    self.factor(rank, panel, now);
                    return;
                }
                End => {
                    self.outcome.seconds = self.outcome.seconds.max(now);
                    return;
                }
            }
        }
    }

    fn wait(&mut self, rank: u32, waiting: ProcessWait, now: f64) {
        let me = &mut self.ranks[rank as usize];
        (me.waiting, me.since) = (waiting, now);
    }

    /// Continues the update of a process that probes after each block, up to the arrival of the message at this time.
    fn find(&mut self, rank: u32, arrival: f64) {
        let HplRank { waiting, since, .. } = self.ranks[rank as usize];
        let ProcessWait::Message { update, .. } = waiting else {
            return;
        };
        let block = u64::from(self.settings.block);
        let (mut now, mut columns) = (since, 0);
        while columns < update.columns && (columns == 0 || now < arrival) {
            let cut = block.min(update.columns - columns);
            let update = Update {
                columns: cut,
                ..update
            };
            now += self.update(rank, update);
            columns += cut;
        }
        let me = &mut self.ranks[rank as usize];
        me.spent.broadcast += (arrival - now).max(0.0);
        me.waiting = ProcessWait::Answer(columns);
        self.queue.push(Reverse((At(now.max(arrival)), rank)));
    }

    /// Time of a kernel, in seconds.
    fn compute(&mut self, rank: u32, kernel: Kernel) -> f64 {
        let time = self.machine.time(&self.rates, rank, kernel);
        self.ranks[rank as usize].spent.kernels += time;
        time
    }

    /// Time of an update, in seconds. The time of its product varies from panel to panel.
    fn update(&mut self, rank: u32, update: Update) -> f64 {
        let mut total = 0.0;
        for kernel in self.settings.update_kernels(update, rank) {
            if let Kernel::Multiply { .. } = kernel {
                let time = self.machine.time(&self.rates, rank, kernel);
                let processor = &self.machine.processors[rank as usize];
                let time = time * self.spread.factor(processor, rank, update.panel);
                self.ranks[rank as usize].spent.multiply += time;
                total += time;
            } else {
                total += self.compute(rank, kernel);
            }
        }
        total
    }

    fn factor(&mut self, rank: u32, panel: u32, now: f64) {
        let (row, column) = (rank / self.settings.columns, rank % self.settings.columns);
        let waiting = &mut self.factoring[column as usize];
        waiting.push((row, now));
        if waiting.len() < self.settings.rows as usize {
            return;
        }
        let mut times = vec![0.0; self.settings.rows as usize];
        for (row, begin) in waiting.drain(..) {
            times[row as usize] = begin;
        }
        self.factorization
            .advance(&self.settings, self.machine, panel, &mut times);
        let place = (panel - self.panels.start) as usize;
        for (row, end) in (0..).zip(times) {
            let factored = &mut self.outcome.factored[place];
            *factored = factored.max(end);
            let rank = self.settings.rank(row, column);
            self.queue.push(Reverse((At(end), rank)));
        }
    }

    /// End of an exchange that starts now. `None` if the process must wait for another process.
    fn exchange(&mut self, rank: u32, exchange: Exchange, now: f64) -> Option<f64> {
        let me = rank as usize;
        (self.ranks[me].until, self.ranks[me].missing) = (now, 0);
        if exchange.receive.is_some() {
            self.post(rank, exchange.partner, now);
        }
        if let Some(bytes) = exchange.send {
            self.send(rank, exchange, bytes, now);
        }
        let HplRank { missing, until, .. } = self.ranks[me];
        (missing == 0).then_some(until)
    }

    fn post(&mut self, rank: u32, from: u32, now: f64) {
        let machine = self.machine;
        let me = &mut self.ranks[rank as usize];
        let Some(place) = me.inbox.iter().position(|message| message.from == from) else {
            me.posted = Some(from);
            me.missing += 1;
            return;
        };
        let Pending {
            bytes,
            arrival,
            rendezvous,
            ..
        } = me.inbox.remove(place);
        let channel = machine.channel(from, rank);
        let mut end = now.max(arrival);
        if rendezvous {
            end = self.transfer(end + channel.latency, from, rank, bytes);
            self.complete(from, end);
        }
        self.arrive(rank, end + channel.receive(bytes));
    }

    fn send(&mut self, rank: u32, exchange: Exchange, bytes: u64, now: f64) {
        let (machine, to) = (self.machine, exchange.partner);
        let channel = machine.channel(rank, to);
        let ready = now + channel.send(bytes);
        let rendezvous = exchange.synchronous || bytes >= channel.rendezvous_from;
        let receiver = &mut self.ranks[to as usize];
        let posted = receiver.posted == Some(rank);
        if posted {
            receiver.posted = None;
        }
        if rendezvous && !posted {
            self.ranks[rank as usize].missing += 1;
            self.leave(
                to,
                Pending {
                    from: rank,
                    bytes,
                    arrival: ready + channel.latency,
                    rendezvous,
                },
            );
            return;
        }
        // Round trip of the handshake with the receiver.
        let asked = if rendezvous {
            2.0 * channel.latency
        } else {
            0.0
        };
        let arrival = self.transfer(ready + asked, rank, to, bytes);
        self.arrive(rank, if rendezvous { arrival } else { ready });
        if posted {
            self.complete(to, arrival + channel.receive(bytes));
        } else {
            self.leave(
                to,
                Pending {
                    from: rank,
                    bytes,
                    arrival,
                    rendezvous,
                },
            );
        }
    }

    /// Records the end of one part of an exchange.
    fn arrive(&mut self, rank: u32, time: f64) {
        let me = &mut self.ranks[rank as usize];
        me.until = me.until.max(time);
    }

    /// Records the end of a part for which the process waits. Resumes the process if it was the last.
    fn complete(&mut self, rank: u32, time: f64) {
        self.arrive(rank, time);
        let me = &mut self.ranks[rank as usize];
        me.missing -= 1;
        if me.missing == 0 {
            let until = me.until;
            self.queue.push(Reverse((At(until), rank)));
        }
    }

    fn leave(&mut self, to: u32, message: Pending) {
        let receiver = &mut self.ranks[to as usize];
        receiver.inbox.push(message);
        if let ProcessWait::Message { from, .. } = receiver.waiting
            && from == message.from
        {
            self.find(to, message.arrival);
        }
    }

    /// Arrival time of the last byte.
    fn transfer(&mut self, start: f64, from: u32, to: u32, bytes: u64) -> f64 {
        let machine = self.machine;
        let node = |rank: u32| machine.nodes[rank as usize] as usize;
        let (source, target) = (node(from), node(to));
        let channel = machine.channel(from, to);
        let latency = channel.latency(bytes);
        let fresh = if bytes as f64 > MAPPED_FROM {
            machine.collectives.mapped_memory
        } else {
            0.0
        };
        let alone = bytes as f64 * (channel.per_byte + fresh);
        let shared = bytes as f64 * channel.shared_per_byte;
        if source == target {
            // A copy beyond the caches reads its source from memory, and reads and writes its destination there.
            let beyond = (bytes as f64 - machine.collectives.long_from).max(0.0);
            let alone = alone + 3.0 * beyond / self.rates.memory_rate;
            let copied = start.max(self.copying[source]) + shared;
            self.copying[source] = copied;
            return (start + alone).max(copied) + latency;
        }
        // Short messages pass between the packets of long ones.
        if bytes < channel.rendezvous_from.min(LONG_MESSAGE) {
            return start + alone + latency;
        }
        let sent = start.max(self.sending[source]);
        self.sending[source] = sent + shared;
        let received = sent.max(self.receiving[target]);
        self.receiving[target] = received + shared;
        let together = f64::from(self.together(from, to)) * shared;
        (received + alone).max(start + together) + latency
    }

    /// Number of ranks of the sender's node that send at the same time: the rows of its process column whose partners are
    /// on other nodes.
    fn together(&self, from: u32, to: u32) -> u32 {
        let HplSettings { rows, columns, .. } = self.settings;
        let apart = (from / columns).abs_diff(to / columns);
        let rows_of_node = (self.machine.ranks_per_node / columns).max(1);
        apart.min(rows - apart).clamp(1, rows_of_node)
    }
}

impl HplRank {
    fn new(process: Process) -> HplRank {
        HplRank {
            process,
            waiting: ProcessWait::Action(ActionPurpose::Swap),
            since: 0.0,
            posted: None,
            missing: 0,
            until: 0.0,
            inbox: Vec::new(),
            spent: ActivityTimes::default(),
        }
    }

    /// Time at which the next message from a rank can be detected.
    fn pending(&self, from: u32) -> Option<f64> {
        let mut inbox = self.inbox.iter();
        inbox
            .find(|message| message.from == from)
            .map(|message| message.arrival)
    }

    fn sees(&self, from: u32, now: f64) -> bool {
        self.pending(from).is_some_and(|arrival| arrival <= now)
    }
}

impl ActivityTimes {
    fn time_mut(&mut self, purpose: ActionPurpose) -> &mut f64 {
        match purpose {
            ActionPurpose::Broadcast => &mut self.broadcast,
            ActionPurpose::Swap => &mut self.swap,
            ActionPurpose::Solution => &mut self.solution,
        }
    }

    fn parts(&mut self) -> [&mut f64; 6] {
        [
            &mut self.multiply,
            &mut self.kernels,
            &mut self.factor,
            &mut self.broadcast,
            &mut self.swap,
            &mut self.solution,
        ]
    }

    /// Adds the times of another process.
    pub(super) fn add(&mut self, other: &ActivityTimes) {
        for (own, others) in self.parts().into_iter().zip({ *other }.parts()) {
            *own += *others;
        }
    }

    /// All times, multiplied by a factor.
    pub(super) fn times(mut self, factor: f64) -> ActivityTimes {
        for part in self.parts() {
            *part *= factor;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Broadcast, Cluster, NodeProcessors, Swap};
    use flowcast_network::network::Network;

    #[test]
    fn long_messages_take_the_time_of_memory_inside_a_node_and_share_the_interface_between_nodes() {
        let text = "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"loggops\"\n\
            [nic]\nlatency = \"0us\"\nbandwidth = \"10GB/s\"\n";
        let network = Network::from_toml(text, &[]).unwrap();
        let table = "node,intercept_s,s_per_mnk,resid_per_mnk\n0,0,1e-10,0\n1,0,1e-10,0\n2,0,1e-10,0\n3,0,1e-10,0\n";
        let cluster = Cluster::new(network, NodeProcessors::parse(table).unwrap(), 4);
        let settings = HplSettings {
            order: 1000,
            block: 64,
            rows: 8,
            columns: 2,
            depth: 1,
            broadcast: Broadcast::Ring,
            swap: Swap::Binary,
        };
        let machine = cluster.machine(&settings, 0);
        let mut simulation =
            Simulation::new(settings, &machine, Pivots::Random { seed: 1 }, 0..1, 1);
        let mut micros = |from, to, bytes| simulation.transfer(0.0, from, to, bytes) * 1e6;
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        };
        near(micros(0, 1, 8_000_000), 0.5 + 1600.0);
        // Three accesses to memory for each byte beyond 8 MB.
        near(micros(4, 5, 9_000_000), 0.5 + 1800.0 + 240.0);
        // A node has two rows.
        near(micros(0, 8, 1_000_000), 200.0);
        near(micros(2, 10, 1_000_000), 200.0);
        near(micros(14, 0, 1_000_000), 100.0);
        // Memory of more than 32 MiB is new at each message.
        near(micros(10, 4, 40_000_000), 4000.0 + 8000.0);
    }
}

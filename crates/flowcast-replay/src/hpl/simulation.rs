//! When every process of HPL does what it does: actions in the order of their times, messages matched as they are sent.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use flowcast_trace::hpl::{
    Action, Exchange, Kernel, KernelRates, PanelSwaps, Pivots, Process, Settings, Swaps, Update,
};

use super::{factor::Factorization, machine::Machine};

/// A time in seconds that is ordered.
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

/// A message that its receiver has not asked for yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    from: u32,
    bytes: u64,
    /// When the receiver can see it.
    arrival: f64,
    /// Its sender waits.
    rendezvous: bool,
}

/// What a process waits for.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    Nothing,
    /// The answer to a probe, given when it goes on.
    Answer(u64),
    /// A message that it probes for behind each block of an update.
    Message {
        from: u32,
        since: f64,
        update: Update,
    },
}

#[derive(Debug)]
struct Rank {
    process: Process,
    waiting: Waiting,
    /// The rank that it has posted a receive for.
    posted: Option<u32>,
    /// Ends of an exchange that are missing, and when the latest of the others was.
    missing: u8,
    until: f64,
    inbox: Vec<Pending>,
    noise: Noise,
}

/// Numbers of a normal distribution, near enough: twelve even ones.
#[derive(Debug)]
struct Noise(u64);

impl Noise {
    fn normal(&mut self) -> f64 {
        let mut sum = -6.0;
        for _ in 0..12 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            sum += (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        }
        sum
    }
}

/// The swaps of the panels that processes are at.
struct SwapCache {
    settings: Settings,
    pivots: Pivots,
    recent: Vec<Option<(u32, Arc<PanelSwaps>)>>,
}

impl Swaps for SwapCache {
    fn of(&mut self, panel: u32) -> Arc<PanelSwaps> {
        let slot = panel as usize % self.recent.len();
        if let Some((known, swaps)) = &self.recent[slot]
            && *known == panel
        {
            return Arc::clone(swaps);
        }
        let pivots = self.pivots.of(&self.settings, panel);
        let swaps = Arc::new(PanelSwaps::new(&self.settings, panel, &pivots));
        self.recent[slot] = Some((panel, Arc::clone(&swaps)));
        swaps
    }
}

/// A run of some panels of HPL on a machine.
pub struct Simulation<'a> {
    settings: Settings,
    machine: &'a Machine,
    ranks: Vec<Rank>,
    swaps: SwapCache,
    queue: BinaryHeap<Reverse<(At, u32)>>,
    /// When each node's interface is free to send and to receive, and its memory to copy.
    sending: Vec<f64>,
    receiving: Vec<f64>,
    copying: Vec<f64>,
    /// When the processes of each column began to factor a panel.
    factoring: Vec<Vec<(u32, f64)>>,
    factorization: Factorization,
    /// What computations cost while all ranks update.
    rates: KernelRates,
    ended: f64,
    spread: f64,
    /// Actions carried out.
    pub actions: u64,
}

impl<'a> Simulation<'a> {
    /// All processes at the first panel at time 0.
    #[must_use]
    pub fn new(
        settings: Settings,
        machine: &'a Machine,
        pivots: Pivots,
        panels: std::ops::Range<u32>,
    ) -> Simulation<'a> {
        let nodes = machine.nodes.iter().max().map_or(0, |node| node + 1) as usize;
        let ranks = (0..settings.ranks())
            .map(|rank| Rank {
                process: Process::new(
                    settings,
                    rank / settings.columns,
                    rank % settings.columns,
                    panels.clone(),
                ),
                waiting: Waiting::Nothing,
                posted: None,
                missing: 0,
                until: 0.0,
                inbox: Vec::new(),
                noise: Noise((u64::from(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            })
            .collect();
        Simulation {
            settings,
            machine,
            ranks,
            swaps: SwapCache {
                settings,
                pivots,
                recent: vec![None; 64],
            },
            queue: (0..settings.ranks())
                .map(|rank| Reverse((At(0.0), rank)))
                .collect(),
            sending: vec![0.0; nodes],
            receiving: vec![0.0; nodes],
            copying: vec![0.0; nodes],
            factoring: vec![Vec::new(); settings.columns as usize],
            rates: machine.rates_beside(machine.ranks_per_node),
            factorization: Factorization::new(&settings, machine),
            ended: 0.0,
            spread: std::env::var("SPREAD").map_or(0.0, |v| v.parse().unwrap()),
            actions: 0,
        }
    }

    /// Seconds until the last process has ended.
    pub fn run(mut self) -> (f64, u64) {
        while let Some(Reverse((At(now), rank))) = self.queue.pop() {
            self.advance(rank, now);
        }
        (self.ended, self.actions)
    }

    /// Lets a process act until it waits, or another is to act before.
    fn advance(&mut self, rank: u32, mut now: f64) {
        let me = rank as usize;
        if let Waiting::Answer(found) = self.ranks[me].waiting {
            self.ranks[me].waiting = Waiting::Nothing;
            self.ranks[me].process.answer(found);
        }
        loop {
            if self
                .queue
                .peek()
                .is_some_and(|Reverse(next)| *next < (At(now), rank))
            {
                self.queue.push(Reverse((At(now), rank)));
                return;
            }
            self.actions += 1;
            match self.ranks[me].process.next(&mut self.swaps) {
                Action::Compute(kernel) => now += self.time(rank, kernel),
                Action::Exchange(exchange) => match self.exchange(rank, exchange, now) {
                    Some(end) => now = end,
                    None => return,
                },
                Action::Probe(from) => {
                    let inbox = &self.ranks[me].inbox;
                    let found = inbox
                        .iter()
                        .any(|message| message.from == from && message.arrival <= now);
                    self.ranks[me].process.answer(u64::from(found));
                }
                Action::UpdateUntil { from, update } => {
                    self.ranks[me].waiting = Waiting::Message {
                        from,
                        since: now,
                        update,
                    };
                    let inbox = &self.ranks[me].inbox;
                    if let Some(message) = inbox.iter().find(|message| message.from == from) {
                        self.find(rank, message.arrival);
                    }
                    return;
                }
                Action::Factor(panel) => {
                    self.factor(rank, panel, now);
                    return;
                }
                Action::End => {
                    self.ended = self.ended.max(now);
                    return;
                }
            }
        }
    }

    /// A process that probes behind each block finds the message that arrives at this time.
    fn find(&mut self, rank: u32, arrival: f64) {
        let Waiting::Message { since, update, .. } = self.ranks[rank as usize].waiting else {
            return;
        };
        let block = u64::from(self.settings.block);
        let (mut now, mut columns) = (since, 0);
        while columns < update.columns && (columns == 0 || now < arrival) {
            let cut = block.min(update.columns - columns);
            now += self.block_time(
                rank,
                Update {
                    columns: cut,
                    ..update
                },
            );
            columns += cut;
        }
        self.ranks[rank as usize].waiting = Waiting::Answer(columns);
        self.queue.push(Reverse((At(now.max(arrival)), rank)));
    }

    /// Seconds of a kernel; products vary from call to call.
    fn time(&mut self, rank: u32, kernel: Kernel) -> f64 {
        let time = self.machine.time(&self.rates, rank, kernel);
        match kernel {
            Kernel::Multiply { .. } if self.spread > 0.0 => {
                time * (1.0 + self.spread * self.ranks[rank as usize].noise.normal())
            }
            _ => time,
        }
    }

    fn block_time(&mut self, rank: u32, update: Update) -> f64 {
        let k = self.settings.width(update.panel);
        let n = update.columns;
        let m = self
            .settings
            .rows_below(update.panel, rank / self.settings.columns);
        let mut total = self.time(rank, Kernel::Solve { n, k });
        total += self.time(rank, Kernel::Multiply { m, n, k });
        if self.settings.rows == 1 {
            total += self.time(rank, Kernel::CopyRows(2 * u64::from(k) * n));
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
        for (row, end) in (0..).zip(times) {
            let rank = self.settings.rank(row, column);
            self.queue.push(Reverse((At(end), rank)));
        }
    }

    /// When an exchange ends that begins now, unless the process has to wait for another one.
    fn exchange(&mut self, rank: u32, exchange: Exchange, now: f64) -> Option<f64> {
        let me = rank as usize;
        self.ranks[me].until = now;
        self.ranks[me].missing = 0;
        if exchange.receive.is_some() {
            self.post(rank, exchange.partner, now);
        }
        if let Some(bytes) = exchange.send {
            self.send(rank, exchange, bytes, now);
        }
        let Rank { missing, until, .. } = self.ranks[me];
        (missing == 0).then_some(until)
    }

    fn post(&mut self, rank: u32, from: u32, now: f64) {
        let me = &mut self.ranks[rank as usize];
        let Some(place) = me.inbox.iter().position(|message| message.from == from) else {
            me.posted = Some(from);
            me.missing += 1;
            return;
        };
        let message = me.inbox.remove(place);
        let channel = *self.machine.channel(from, rank);
        if message.rendezvous {
            let start = now.max(message.arrival) + channel.latency;
            let end = self.transfer(start, from, rank, message.bytes);
            self.arrive(rank, end + channel.receive);
            self.complete(from, end);
        } else {
            self.arrive(rank, now.max(message.arrival) + channel.receive);
        }
    }

    fn arrive(&mut self, rank: u32, time: f64) {
        let me = &mut self.ranks[rank as usize];
        me.until = me.until.max(time);
    }

    /// One end of an exchange of a waiting process is there.
    fn complete(&mut self, rank: u32, time: f64) {
        self.arrive(rank, time);
        let me = &mut self.ranks[rank as usize];
        me.missing -= 1;
        if me.missing == 0 {
            let until = me.until;
            self.queue.push(Reverse((At(until), rank)));
        }
    }

    fn send(&mut self, rank: u32, exchange: Exchange, bytes: u64, now: f64) {
        let to = exchange.partner;
        let channel = *self.machine.channel(rank, to);
        let ready = now + self.machine.send(bytes.min(channel.rendezvous_from));
        let rendezvous = exchange.synchronous || bytes >= channel.rendezvous_from;
        let posted = self.ranks[to as usize].posted == Some(rank);
        if posted {
            self.ranks[to as usize].posted = None;
        }
        match (rendezvous, posted) {
            (true, true) => {
                let start = ready + 2.0 * channel.latency;
                let end = self.transfer(start, rank, to, bytes);
                self.arrive(rank, end);
                self.complete(to, end + channel.receive);
            }
            (true, false) => {
                self.ranks[rank as usize].missing += 1;
                self.leave(to, rank, bytes, ready + channel.latency, true);
            }
            (false, posted) => {
                let end = self.transfer(ready, rank, to, bytes);
                self.arrive(rank, ready);
                if posted {
                    self.complete(to, end + channel.receive);
                } else {
                    self.leave(to, rank, bytes, end, false);
                }
            }
        }
    }

    fn leave(&mut self, to: u32, from: u32, bytes: u64, arrival: f64, rendezvous: bool) {
        let receiver = &mut self.ranks[to as usize];
        receiver.inbox.push(Pending {
            from,
            bytes,
            arrival,
            rendezvous,
        });
        if let Waiting::Message { from: wanted, .. } = receiver.waiting
            && wanted == from
        {
            self.find(to, arrival);
        }
    }

    /// When the last byte is there. Long messages take turns at interfaces and memory.
    fn transfer(&mut self, start: f64, from: u32, to: u32, bytes: u64) -> f64 {
        let machine = self.machine;
        let (source, target) = (
            machine.nodes[from as usize] as usize,
            machine.nodes[to as usize] as usize,
        );
        let size = bytes as f64;
        if source == target {
            let channel = &machine.inside;
            let free = start.max(self.copying[source]) + size * channel.shared_per_byte;
            self.copying[source] = free;
            return (start + size * channel.per_byte).max(free) + channel.latency;
        }
        let channel = &machine.between;
        let alone = size * channel.per_byte;
        if bytes < channel.rendezvous_from {
            return start + alone + channel.latency;
        }
        let shared = size * channel.shared_per_byte;
        let sent = start.max(self.sending[source]);
        self.sending[source] = sent + shared;
        let received = sent.max(self.receiving[target]);
        self.receiving[target] = received + shared;
        received + alone + channel.latency
    }
}

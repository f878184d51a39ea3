//! Steady states: exact repetitions are skipped.
//!
//! Long flows at constant shares return to an earlier state: each link holds the same frames for the same times, and each
//! end waits for the same packets, with larger numbers and later times. Only this state determines what happens next, so the
//! same period follows again and again, until something happens from outside the state: a message begins, a message has only
//! its last packet to send, or a timer that was set before expires. All whole periods before that are skipped in one step.
//!
//! Connections in flight that share no link, directly or through other connections, belong to different parts, each with a
//! period of its own. The states of a part are compared when a packet of one chosen connection arrives. One state is saved,
//! and another one after half as many events as there were so far, so that any period is found once the phase before it is
//! over (as by Brent, BIT 20, 1980). A state that has returned is followed for one more period, in which arrivals are
//! recorded, so that the progress of messages is reported as if each packet had been carried.
//!
//! Frames with random times never repeat: with a seed, and therefore whenever `sharing.packet.queue` is set, nothing is
//! skipped.

use std::collections::BTreeMap;

use super::{
    connection::ConnectionEnds, engine::PacketEngine, link::PacketLink, picos::Picos, shift::Shift,
};

/// Minimum number of unsent packets of a message for the search to pay.
const LEAST_PACKETS: u32 = 256;
/// Number of consecutive parts without a period after which the search slows down.
const MOST_FRUITLESS: u32 = 16;
/// Value for no part.
const NONE: u32 = u32::MAX;

/// Looks for periods while an engine runs.
pub(super) struct Search {
    parts: BTreeMap<u32, SteadyPart>,
    next: u32,
    /// Part of each connection, and of each link.
    of_connection: Vec<u32>,
    of_link: Vec<u32>,
    /// Packets of each connection in the period under examination.
    packets: Vec<u32>,
    steps: u64,
    /// Step at which connections without a part are next divided into parts.
    divide_at: u64,
    /// Number of consecutive parts that ended without a period.
    fruitless: u32,
}

/// Connections that share links, directly or through other connections.
#[derive(Default)]
struct SteadyPart {
    connections: Vec<u32>,
    links: Vec<u32>,
    saved: Option<SteadyState>,
    /// Period of the saved state, which is followed once more.
    period: Option<Picos>,
    has_repeated: bool,
    begun: u64,
    /// Step at which the next state is saved.
    save_at: u64,
}

/// State of a part that determines what happens next.
struct SteadyState {
    now: Picos,
    links: Vec<PacketLink>,
    ends: Vec<ConnectionEnds>,
}

impl Search {
    pub(super) fn new(engine: &PacketEngine) -> Search {
        let (connections, links) = (engine.connections.len(), engine.links.len());
        Search {
            parts: BTreeMap::new(),
            next: 0,
            of_connection: vec![NONE; connections],
            of_link: vec![NONE; links],
            packets: vec![0; connections],
            steps: 0,
            divide_at: 0,
            fruitless: 0,
        }
    }

    /// Continues the search after the engine has executed an event.
    #[inline]
    pub(super) fn step(&mut self, engine: &mut PacketEngine) {
        self.steps += 1;
        if engine.has_news() {
            self.hear(engine);
        }
        if self.steps >= self.divide_at {
            self.divide(engine);
        }
    }

    /// Number of events so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    fn hear(&mut self, engine: &mut PacketEngine) {
        while let Some(changed) = engine.changed() {
            self.dissolve(engine, self.of_connection[changed]);
            let links: Vec<usize> = engine.links_of(changed).collect();
            for link in links {
                self.dissolve(engine, self.of_link[link]);
            }
            self.divide_at = self.divide_at.min(self.steps + self.pause());
        }
        if let Some((now, connection)) = engine.came() {
            self.look(engine, now, self.of_connection[connection]);
        }
    }

    /// Number of steps before the next division or the next saved state: they cost as much as an examination of all
    /// connections and links. It is at least an eighth of all steps so far if flows start and end before anything repeats.
    fn pause(&self) -> u64 {
        let all = 4 * (self.of_connection.len() + self.of_link.len()) as u64;
        if self.fruitless < MOST_FRUITLESS {
            all
        } else {
            all.max(self.steps / 8)
        }
    }

    /// Dissolves a part after one of its messages has begun or ended.
    fn dissolve(&mut self, engine: &mut PacketEngine, number: u32) {
        let Some(part) = self.parts.remove(&number) else {
            return;
        };
        self.fruitless += u32::from(!part.has_repeated);
        for connection in part.connections {
            self.of_connection[connection as usize] = NONE;
            engine.note_nothing(connection as usize);
        }
        part.links
            .iter()
            .for_each(|link| self.of_link[*link as usize] = NONE);
    }

    /// Divides all connections in flight without a part into parts.
    fn divide(&mut self, engine: &mut PacketEngine) {
        self.divide_at = u64::MAX;
        let mut groups = SteadyGroups::new(engine.links.len());
        let live: Vec<usize> = (0..engine.connections.len())
            .filter(|connection: &usize| {
                self.of_connection[*connection] == NONE && engine.connections[*connection].is_live()
            })
            .collect();
        for connection in &live {
            let mut links = engine.links_of(*connection);
            let first = links.next().expect("a way has links");
            links.for_each(|link| groups.join(first, link));
        }
        let mut parts: BTreeMap<usize, SteadyPart> = BTreeMap::new();
        for connection in live {
            let first = engine.links_of(connection).next().expect("a way has links");
            let part = parts.entry(groups.root(first)).or_default();
            part.connections.push(connection as u32);
            part.links
                .extend(engine.links_of(connection).map(|link| link as u32));
        }
        parts
            .into_values()
            .for_each(|part| self.watch(engine, part));
    }

    /// Begins to compare the states of a part, if one of its messages is long enough.
    fn watch(&mut self, engine: &mut PacketEngine, mut part: SteadyPart) {
        let room = |connection: &u32| engine.connections[*connection as usize].room();
        let longest = *part
            .connections
            .iter()
            .max_by_key(|connection| room(connection))
            .expect("a part is not empty");
        if room(&longest) < LEAST_PACKETS {
            return;
        }
        engine.note_anchor(longest as usize);
        part.links.sort_unstable();
        part.links.dedup();
        (part.begun, part.save_at) = (self.steps, self.steps + self.pause());
        part.connections
            .iter()
            .for_each(|connection| self.of_connection[*connection as usize] = self.next);
        part.links
            .iter()
            .for_each(|link| self.of_link[*link as usize] = self.next);
        self.parts.insert(self.next, part);
        self.next += 1;
    }

    /// Examines a part after a packet has arrived on its chosen connection.
    fn look(&mut self, engine: &mut PacketEngine, now: Picos, number: u32) {
        let pause = self.pause();
        let Some(part) = self.parts.get_mut(&number) else {
            return;
        };
        let found = part
            .saved
            .as_ref()
            .and_then(|saved| part.repeats(saved, engine, now, &mut self.packets));
        match (found, part.period) {
            (Some(period), Some(_)) => {
                let periods = self.periods(engine, now, number, period);
                self.skip(engine, number, period, periods);
            }
            (Some(period), None) => {
                part.period = Some(period);
                part.saved = Some(part.state(engine, now));
                part.connections
                    .iter()
                    .for_each(|connection| engine.note_arrivals(*connection as usize));
            }
            (None, _) if self.steps >= part.save_at => {
                if part
                    .connections
                    .iter()
                    .any(|connection| !engine.connections[*connection as usize].is_live())
                {
                    self.dissolve(engine, number);
                    self.divide_at = self.steps + 1;
                    return;
                }
                part.save_at = self.steps + pause.max((self.steps - part.begun) / 2);
                part.saved = Some(part.state(engine, now));
                part.period = None;
                part.connections
                    .iter()
                    .for_each(|connection| engine.note_no_arrivals(*connection as usize));
            }
            (None, _) => {}
        }
    }

    /// Number of periods that pass before something happens from outside the state.
    fn periods(&self, engine: &PacketEngine, now: Picos, number: u32, period: Picos) -> u32 {
        let until = |time: Picos| {
            (time.since(now).0.saturating_sub(1) / period.0).min(u64::from(u32::MAX)) as u32
        };
        self.of_connection
            .iter()
            .zip(&self.packets)
            .enumerate()
            .map(|(connection, (part, packets)): (usize, (&u32, &u32))| {
                let ends = &engine.connections[connection];
                if *part == number {
                    let timer = if *packets == 0 {
                        ends.deadline()
                    } else {
                        ends.next_write()
                    };
                    let room = ends.room().checked_div(*packets).unwrap_or(u32::MAX);
                    return room.min(until(timer));
                }
                let is_near = ends.next_write() < Picos::NEVER
                    && engine
                        .links_of(connection)
                        .any(|link| self.of_link[link] == number);
                if is_near {
                    until(ends.next_write())
                } else {
                    u32::MAX
                }
            })
            .min()
            .unwrap_or(0)
    }

    /// Skips `periods` periods of a part.
    fn skip(&mut self, engine: &mut PacketEngine, number: u32, period: Picos, periods: u32) {
        let pause = self.pause();
        let Some(part) = self.parts.get_mut(&number) else {
            return;
        };
        let saved = part.saved.take().expect("its period is known");
        for connection in &part.connections {
            let packets = self.packets[*connection as usize];
            engine.skip(
                *connection as usize,
                Shift {
                    time: period,
                    packets,
                },
                periods,
            );
        }
        for (link, then) in part.links.iter().zip(&saved.links) {
            engine.skip_link(*link as usize, then, periods, period, &self.packets);
        }
        part.period = None;
        if periods > 0 {
            (part.has_repeated, self.fruitless) = (true, 0);
        }
        part.connections
            .iter()
            .for_each(|connection| engine.note_no_arrivals(*connection as usize));
        (part.begun, part.save_at) = (self.steps, self.steps + pause);
    }
}

impl SteadyPart {
    fn state(&self, engine: &PacketEngine, now: Picos) -> SteadyState {
        SteadyState {
            now,
            links: self
                .links
                .iter()
                .map(|link| engine.links[*link as usize].clone())
                .collect(),
            ends: self
                .connections
                .iter()
                .map(|connection| engine.connections[*connection as usize].ends.clone())
                .collect(),
        }
    }

    /// Returns the time since the state `then`, if the part is in this state again except for times and numbers. Sets the
    /// number of packets that have arrived on each connection.
    fn repeats(
        &self,
        then: &SteadyState,
        engine: &PacketEngine,
        now: Picos,
        packets: &mut [u32],
    ) -> Option<Picos> {
        let time = now.since(then.now);
        let links = || {
            self.links
                .iter()
                .map(|link| &engine.links[*link as usize])
                .zip(&then.links)
        };
        if time == Picos::ZERO
            || !links().all(|(link, before)| link.is_alike(now, before, then.now))
        {
            return None;
        }
        let ends = || {
            self.connections
                .iter()
                .map(|connection| *connection as usize)
                .zip(&then.ends)
        };
        for (connection, before) in ends() {
            packets[connection] = engine.connections[connection].ends.moved(before);
        }
        let is_same = links().all(|(link, before)| link.repeats(before, time, packets))
            && ends().all(|(connection, before)| {
                let by = Shift {
                    time,
                    packets: packets[connection],
                };
                engine.connections[connection].ends.repeats(before, by)
            });
        is_same.then_some(time)
    }
}

/// Links that are joined by paths.
struct SteadyGroups(Vec<usize>);

impl SteadyGroups {
    fn new(links: usize) -> SteadyGroups {
        SteadyGroups((0..links).collect())
    }

    fn root(&mut self, mut link: usize) -> usize {
        while self.0[link] != link {
            self.0[link] = self.0[self.0[link]];
            link = self.0[link];
        }
        link
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{PacketMessage, Plan, Wire, simulate, simulate_each_packet, warm_up::Rounds},
        *,
    };
    use flowcast_network::{
        cluster::{flow::Flow, racks::Racks},
        network::Duplex,
        sharing::{
            PacketParameters,
            fabric::{AllocatedFraction, Cabling, Fabric},
            protocol::{Congestion, Protocol},
        },
    };
    use flowcast_units::{Bytes, Node, Rate, Time};

    /// Flows of 60 to 80 MB between these nodes over links of 1 Gbit/s. The first eight nodes are in one rack, the others in
    /// another. The flows start within a millisecond.
    fn bulk(ends: &[(u32, u32)]) -> (Vec<PacketMessage>, Fabric) {
        let flow = |(id, (src, dst)): (u64, &(u32, u32))| Flow {
            id: id as u32,
            src: Node(*src),
            dst: Node(*dst),
            size: Bytes(60_000_000 + id * 7_654_321 % 20_000_000),
            start: Time::from_nanos((id * 314_159 % 1_000_000) as f64),
        };
        let flows: Vec<Flow> = (0..).zip(ends).map(flow).collect();
        let mut racks = Racks::default();
        racks.place(Node(0), Node(7), "A").unwrap();
        racks.place(Node(8), Node(40), "B").unwrap();
        let backbone = Some(AllocatedFraction(4.0));
        let fabric = Fabric::cabled(
            &flows,
            &racks,
            Cabling {
                backbone,
                duplex: Duplex::Full,
                bus: None,
            },
        );
        (
            flows
                .iter()
                .map(|flow| PacketMessage {
                    start: flow.start,
                    size: flow.size,
                })
                .collect(),
            fabric,
        )
    }

    fn wire(given: PacketParameters) -> Wire {
        let protocol = Protocol::new(&given).unwrap();
        Wire {
            rate: Rate::from_bytes_per_second(125e6),
            latency: Time::from_micros(20.0),
            protocol,
            seed: None,
        }
    }

    /// Fraction of the events that are executed, after a check that the result is the same.
    fn part(ends: &[(u32, u32)], given: PacketParameters) -> f64 {
        let ((messages, fabric), wire) = (bulk(ends), wire(given));
        assert_eq!(
            simulate(&messages, &fabric, &wire).unwrap(),
            simulate_each_packet(&messages, &fabric, &wire).unwrap()
        );
        let plan = Plan::new(&messages, &fabric, &wire, Rounds::once()).unwrap();
        let mut engine = PacketEngine::new(
            plan.links(),
            plan.routes().unwrap(),
            plan.connections(),
            None,
        );
        let steps = engine.run_skipping();
        steps as f64 / engine.packet_hops() as f64
    }

    #[test]
    fn long_flows_at_constant_shares_cost_a_twentieth_of_their_events() {
        let incast: Vec<(u32, u32)> = (1..6).map(|node| (node, 0)).collect();
        let racks: Vec<(u32, u32)> = (0..6).map(|node| (node, 8 + 3 * node % 8)).collect();
        for ends in [incast, racks, vec![(0, 1), (2, 1), (0, 3)]] {
            let part = part(&ends, PacketParameters::default());
            assert!(part < 0.05, "{part} {ends:?}");
        }
    }

    #[test]
    fn flows_over_separate_links_have_separate_periods() {
        // A flow without others on its links sends two packets in 24.608 us; one whose links also carry acknowledgements
        // sends two in 25.328 us. Their states return together after 38.954464 ms.
        let part = part(&[(0, 1), (1, 2), (3, 4)], PacketParameters::default());
        assert!(part < 0.05, "{part}");
    }

    #[test]
    fn congestion_controls_with_open_windows_are_steady_too() {
        for congestion in [Congestion::Reno, Congestion::Cubic] {
            let given = PacketParameters {
                congestion: Some(congestion),
                window: Some(Bytes(100_000)),
                ..Default::default()
            };
            let part = part(&[(0, 1), (2, 3)], given);
            assert!(part < 0.05, "{part} {congestion:?}");
        }
    }

    #[test]
    fn a_restarted_connection_ends_the_steady_state() {
        let (mut messages, fabric) = bulk(&[(0, 1), (0, 1), (2, 1)]);
        messages[1].start = Time::from_seconds(0.2);
        let mut wire = wire(PacketParameters::default());
        wire.protocol.connections = flowcast_network::sharing::protocol::Connections::Pair;
        assert_eq!(
            simulate(&messages, &fabric, &wire).unwrap(),
            simulate_each_packet(&messages, &fabric, &wire).unwrap()
        );
    }
}

//! Messages that are written one by one, for programs whose next message depends on earlier arrivals.

use super::{
    LONGEST, Wire, connection::PacketConnection, engine::PacketEngine, jitter::Jitter, links_of,
    opening, picos::Picos, routes::Routes,
};
use flowcast_network::sharing::{SharingError, completion::FlowCompletion, fabric::Fabric};
use flowcast_units::{Bytes, Time};

/// A network whose connections stay open.
pub struct Live {
    engine: PacketEngine,
    wire: Wire,
    hosts: Option<Jitter>,
    /// Number of packets of all messages so far.
    packets: u64,
}

/// Number of a connection in a live network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId(pub u32);

impl Live {
    /// Creates a network with the links of a fabric, without connections. Host times are random if the wire has a seed.
    ///
    /// # Errors
    /// A path over more links than frames can count.
    pub fn new(fabric: &Fabric, wire: Wire) -> Result<Live, SharingError> {
        let jitter = wire.seed.map(Jitter::from_seed);
        // Hosts have a generator of their own, because frames draw many more numbers.
        let hosts = wire.seed.map(|seed| Jitter::from_seed(!seed));
        let routes = Routes::new(fabric)?;
        Ok(Live {
            engine: PacketEngine::new(links_of(fabric, &wire), routes, Vec::new(), jitter),
            wire,
            hosts,
            packets: 0,
        })
    }

    /// Opens a connection for a flow of the fabric, which takes the flow's path.
    pub fn connect(&mut self, fabric: &Fabric, flow: usize) -> ConnectionId {
        let number = self.engine.connections.len() as u32;
        let path = &fabric.paths[flow];
        let opening = opening(path, &self.engine.links, fabric, &self.wire);
        let connection =
            PacketConnection::open(number, &self.wire.protocol, self.wire.rate, opening);
        self.engine.connect(connection, fabric, flow);
        ConnectionId(number)
    }

    /// Number of the path in the fabric that a connection takes.
    pub fn path_of(&self, connection: ConnectionId) -> usize {
        self.engine.routes.path_of(connection.0 as usize)
    }

    /// Pairs two connections as the two directions of one: data in one direction acknowledge data of the other.
    pub fn pair(&mut self, there: ConnectionId, back: ConnectionId) {
        self.engine.pair(there.0 as usize, back.0 as usize);
    }

    /// Returns the delay until a host writes its next message; zero without a seed.
    pub fn host_delay(&mut self) -> Time {
        let most = Picos::from_time(self.wire.protocol.jitter);
        self.hosts
            .as_mut()
            .map_or(Time::ZERO, |hosts| hosts.of_start(most).to_time())
    }

    /// Writes a message to a connection. `now` must not be before the last event. A message without bytes is a frame without
    /// data.
    ///
    /// # Errors
    /// The message would end too late to be counted, or the packets exceed `sharing.packet.most_packets` or the numbers of a
    /// connection.
    pub fn write(
        &mut self,
        now: Time,
        connection: ConnectionId,
        message: usize,
        size: Bytes,
    ) -> Result<(), SharingError> {
        let seconds = now.as_seconds() + self.wire.rate.time_for(size).as_seconds();
        if seconds >= LONGEST {
            return Err(SharingError::TooLong {
                seconds,
                most: LONGEST,
            });
        }
        self.packets = self
            .packets
            .saturating_add(size.0.div_ceil(self.wire.protocol.segment.0));
        if self.packets > self.wire.protocol.most_packets {
            return Err(SharingError::TooMuchWork {
                found: self.packets,
                most: self.wire.protocol.most_packets,
            });
        }
        if self
            .engine
            .write(Picos::from_time(now), connection.0 as usize, message, size)
        {
            return Ok(());
        }
        Err(SharingError::TooManyPackets {
            found: 1 << 32,
            most: u64::from(u32::MAX),
        })
    }

    /// Time of the next event; `None` if there is none.
    pub fn next_event(&self) -> Option<Time> {
        let next = self.engine.next_event();
        (next < Picos::NEVER).then(|| next.to_time())
    }

    /// Executes the next event, at the time that [`Self::next_event`] returns.
    pub fn step(&mut self) {
        self.engine.step();
    }

    /// Returns the next message whose unacknowledged rest is in the send buffer (`sharing.packet.send_buffer`), and the time
    /// at which it fitted in.
    pub fn held(&mut self) -> Option<(usize, Time)> {
        self.engine
            .held
            .pop_front()
            .map(|(message, now)| (message, now.to_time()))
    }

    /// Returns the next message that has arrived.
    pub fn arrived(&mut self) -> Option<(usize, FlowCompletion)> {
        self.engine.arrived.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            PacketMessage,
            reference::{patterns, wires},
            simulate,
        },
        *,
    };
    use flowcast_network::{
        cluster::{flow::Flow, racks::Racks},
        sharing::{
            PacketParameters,
            protocol::{Connections, Protocol},
        },
    };
    use flowcast_units::{Node, Rate};

    /// Writes messages with distinct starts at their times, over one connection for each pair of nodes.
    fn one_by_one(messages: &[PacketMessage], fabric: &Fabric, wire: Wire) -> Vec<FlowCompletion> {
        let mut live = Live::new(fabric, wire).unwrap();
        let mut open = std::collections::BTreeMap::new();
        for (flow, path) in fabric.paths.iter().enumerate() {
            open.entry((path.src, path.dst)).or_insert(flow);
        }
        let open: std::collections::BTreeMap<_, _> = open
            .into_iter()
            .map(|(ends, flow)| (ends, live.connect(fabric, flow)))
            .collect();
        let mut order: Vec<usize> = (0..messages.len())
            .filter(|place| messages[*place].size.0 > 0)
            .collect();
        order.sort_by_key(|place| messages[*place].start);
        for place in order {
            let PacketMessage { start, size } = messages[place];
            while live.next_event().is_some_and(|event| event <= start) {
                live.step();
            }
            let path = &fabric.paths[place];
            live.write(start, open[&(path.src, path.dst)], place, size)
                .unwrap();
        }
        while live.next_event().is_some() {
            live.step();
        }
        let mut completions: Vec<FlowCompletion> = messages
            .iter()
            .map(|message| FlowCompletion {
                end: message.start,
                ..FlowCompletion::default()
            })
            .collect();
        while let Some((place, completion)) = live.arrived() {
            completions[place] = completion;
        }
        completions
    }

    /// Creates two nodes at 1 B/ns without latency, and the connections there and back.
    fn two_nodes(is_pair: bool) -> (Live, [ConnectionId; 2]) {
        two_nodes_over(is_pair, false)
    }

    fn two_nodes_over(is_pair: bool, small_queues: bool) -> (Live, [ConnectionId; 2]) {
        let flow = |id, src, dst| Flow {
            id,
            src: Node(src),
            dst: Node(dst),
            size: Bytes(1),
            start: Time::ZERO,
        };
        let fabric = Fabric::new(&[flow(0, 0, 1), flow(1, 1, 0)], &Racks::default(), None);
        let protocol = Protocol {
            small_queues,
            ..Protocol::new(&PacketParameters::default()).unwrap()
        };
        let wire = Wire {
            rate: Rate::from_bytes_per_second(1e9),
            latency: Time::ZERO,
            protocol,
            seed: None,
        };
        let mut live = Live::new(&fabric, wire).unwrap();
        let [there, back] = [0, 1].map(|flow| live.connect(&fabric, flow));
        if is_pair {
            live.pair(there, back);
        }
        (live, [there, back])
    }

    fn until_arrival(live: &mut Live) -> Time {
        loop {
            if let Some((_, completion)) = live.arrived() {
                return completion.end;
            }
            live.step();
        }
    }

    /// Number of link crossings by frames, once nothing is in flight except frames that wait for a timer.
    fn hops_at_rest(live: &mut Live, now: Time) -> u64 {
        while live
            .next_event()
            .is_some_and(|next| next < now + Time::from_micros(1.0))
        {
            live.step();
        }
        live.engine.packet_hops()
    }

    /// Sends messages of 10 bytes, each after the one before has arrived. Returns the arrival of the last.
    fn send(
        live: &mut Live,
        mut now: Time,
        count: usize,
        end: impl Fn(usize) -> ConnectionId,
    ) -> Time {
        for message in 0..count {
            live.write(now, end(message), message, Bytes(10)).unwrap();
            now = until_arrival(live);
        }
        now
    }

    #[test]
    fn messages_in_the_other_direction_carry_acknowledgements() {
        // A frame of 100 bytes crosses two links. Each end acknowledges the first message that arrives immediately, and its
        // ACK precedes its own message; the last message is acknowledged after 40 ms.
        let (mut live, ends) = two_nodes(true);
        let now = send(&mut live, Time::ZERO, 100, |message| ends[message % 2]);
        assert!(
            (now.as_nanos() - (100.0 * 200.0 + 2.0 * 90.0)).abs() < 1e-3,
            "{now:?}"
        );
        assert_eq!(hops_at_rest(&mut live, now), 2 * (100 + 2));
        assert_eq!(
            hops_at_rest(&mut live, now + Time::from_seconds(1.0)),
            2 * (100 + 3)
        );
        let (mut live, ends) = two_nodes(false);
        let now = send(&mut live, Time::ZERO, 100, |message| ends[message % 2]);
        assert_eq!(hops_at_rest(&mut live, now), 2 * (100 + 100));
    }

    #[test]
    fn without_messages_in_the_other_direction_every_second_message_is_acknowledged() {
        let (mut live, [there, back]) = two_nodes(true);
        let now = send(&mut live, Time::ZERO, 1, |_| back);
        let before = hops_at_rest(&mut live, now);
        // The receiver has not sent anything yet after a message that arrived.
        let now = send(&mut live, now, 10, |_| there);
        assert_eq!(hops_at_rest(&mut live, now) - before, 2 * (10 + 10));
        let now = send(&mut live, now, 1, |_| back);
        let before = hops_at_rest(&mut live, now);
        let now = send(&mut live, now, 10, |_| there);
        assert_eq!(hops_at_rest(&mut live, now) - before, 2 * (10 + 5));
    }

    proptest! {
        #[test]
        fn directions_that_acknowledge_each_other_carry_all_messages_with_fewer_frames(
            writes in prop::collection::vec((any::<bool>(), 0u32..300, 0u64..5000), 1..60),
            small_queues: bool,
        ) {
            let carried = |is_pair: bool| {
                let (mut live, ends) = two_nodes_over(is_pair, small_queues);
                let (mut now, mut came) = (Time::ZERO, Vec::new());
                for (message, (is_back, pause, size)) in writes.iter().enumerate() {
                    now += Time::from_micros(f64::from(*pause));
                    while live.next_event().is_some_and(|event| event <= now) {
                        live.step();
                    }
                    live.write(now, ends[usize::from(*is_back)], message, Bytes(*size)).unwrap();
                }
                while live.next_event().is_some() {
                    live.step();
                }
                came.extend(std::iter::from_fn(|| live.arrived()).map(|(message, _)| message));
                came.sort_unstable();
                (came, live.engine.packet_hops())
            };
            let (alone, paired) = (carried(false), carried(true));
            prop_assert_eq!(&alone.0, &(0..writes.len()).collect::<Vec<_>>());
            prop_assert_eq!(paired.0, alone.0);
            prop_assert!(paired.1 <= alone.1, "{} {}", paired.1, alone.1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn messages_submitted_one_by_one_arrive_as_if_known_in_advance(
            (mut messages, fabric) in patterns(),
            wire in wires(),
            copies in 1usize..40,
        ) {
            let protocol = Protocol { connections: Connections::Pair, jitter: Time::ZERO, ..wire.protocol };
            let wire = Wire { protocol, seed: None, ..wire };
            let (few, paths) = (messages.clone(), fabric.paths.clone());
            let mut fabric = fabric;
            for copy in 1..copies {
                let later = Time::from_micros(copy as f64 * 777.0);
                messages.extend(few.iter().map(|message| PacketMessage { start: message.start + later, ..*message }));
                fabric.paths.extend(paths.iter().cloned());
            }
            for (place, message) in messages.iter_mut().enumerate() {
                message.start += Time::from_nanos(place as f64 + 1.0);
            }
            let expected = simulate(&messages, &fabric, &wire).unwrap().completions;
            prop_assert_eq!(one_by_one(&messages, &fabric, wire), expected);
        }
    }
}

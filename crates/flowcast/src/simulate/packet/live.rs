//! Messages that come one by one, for programs whose next message depends on what has arrived.

use super::connection::Connection;
use super::engine::Engine;
use super::jitter::Jitter;
use super::picos::Picos;
use super::{LONGEST, Wire, links_of, opening, there_and_back};
use crate::model::sharing::SharingError;
use crate::model::sharing::fabric::{Fabric, Path};
use crate::simulate::fluid::Passage;
use crate::units::{Bytes, Time};

/// A network whose connections stay open.
pub struct Live {
    engine: Engine,
    wire: Wire,
    hosts: Option<Jitter>,
}

/// A connection of it, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionId(pub u32);

impl Live {
    /// The links of a fabric, without connections. Times of hosts are random if the wire has a seed.
    pub fn new(fabric: &Fabric, wire: Wire) -> Live {
        let jitter = wire.seed.map(Jitter::from_seed);
        // Of draws of its own: frames have many more.
        let hosts = wire.seed.map(|seed| Jitter::from_seed(!seed));
        Live { engine: Engine::new(links_of(fabric, &wire), Vec::new(), Vec::new(), jitter), wire, hosts }
    }

    /// Opens a connection along a path of the fabric.
    pub fn connect(&mut self, path: &Path) -> ConnectionId {
        let number = self.engine.connections.len() as u32;
        let opening = opening(path, &self.engine.links, &self.wire);
        let connection = Connection::open(number, &self.wire.protocol, self.wire.rate, opening);
        self.engine.connect(connection, there_and_back(path));
        ConnectionId(number)
    }

    /// How long a host takes until it writes what it has to; nothing without a seed.
    pub fn host_delay(&mut self) -> Time {
        let most = Picos::from_time(self.wire.protocol.jitter);
        self.hosts.as_mut().map_or(Time::ZERO, |hosts| hosts.of_start(most).to_time())
    }

    /// Writes a message to a connection, not before anything that has happened. One of no bytes is a frame without data.
    ///
    /// # Errors
    /// Times or packets that cannot be counted.
    pub fn write(
        &mut self,
        now: Time,
        connection: ConnectionId,
        message: usize,
        size: Bytes,
    ) -> Result<(), SharingError> {
        let seconds = now.as_seconds() + self.wire.rate.time_for(size).as_seconds();
        if seconds >= LONGEST {
            return Err(SharingError::TooLong { seconds, most: LONGEST });
        }
        if self.engine.write(Picos::from_time(now), connection.0 as usize, message, size) {
            return Ok(());
        }
        Err(SharingError::TooManyPackets { found: 1 << 32, most: u64::from(u32::MAX) })
    }

    /// When something happens next by itself.
    pub fn next_event(&self) -> Option<Time> {
        let next = self.engine.next_event();
        (next < Picos::NEVER).then(|| next.to_time())
    }

    /// Lets it happen.
    pub fn step(&mut self) {
        self.engine.step();
    }

    /// The next message of which the sender's system holds the rest (`sharing.send_buffer`), and since when.
    pub fn held(&mut self) -> Option<(usize, Time)> {
        self.engine.held.pop_front().map(|(message, now)| (message, now.to_time()))
    }

    /// The next message that has arrived.
    pub fn arrived(&mut self) -> Option<(usize, Passage)> {
        self.engine.arrived.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::twin::{patterns, wires};
    use super::super::{Message, simulate};
    use super::*;
    use crate::model::sharing::protocol::{Connections, Protocol};

    /// Messages with starts that no two share, over one connection for each pair of nodes, written when their time comes.
    fn one_by_one(messages: &[Message], fabric: &Fabric, wire: Wire) -> Vec<Passage> {
        let mut live = Live::new(fabric, wire);
        let mut open = std::collections::BTreeMap::new();
        for path in &fabric.paths {
            open.entry((path.src, path.dst)).or_insert_with(|| path);
        }
        let open: std::collections::BTreeMap<_, _> =
            open.into_iter().map(|(ends, path)| (ends, live.connect(path))).collect();
        let mut order: Vec<usize> = (0..messages.len()).filter(|place| messages[*place].size.0 > 0).collect();
        order.sort_by_key(|place| messages[*place].start);
        for place in order {
            let Message { start, size } = messages[place];
            while live.next_event().is_some_and(|event| event <= start) {
                live.step();
            }
            let path = &fabric.paths[place];
            live.write(start, open[&(path.src, path.dst)], place, size).unwrap();
        }
        while live.next_event().is_some() {
            live.step();
        }
        let mut passages: Vec<Passage> =
            messages.iter().map(|message| Passage { end: message.start, ..Passage::default() }).collect();
        while let Some((place, passage)) = live.arrived() {
            passages[place] = passage;
        }
        passages
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn what_comes_one_by_one_arrives_as_if_it_had_been_known(
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
                messages.extend(few.iter().map(|message| Message { start: message.start + later, ..*message }));
                fabric.paths.extend(&paths);
            }
            for (place, message) in messages.iter_mut().enumerate() {
                message.start += Time::from_nanos(place as f64 + 1.0);
            }
            let expected = simulate(&messages, &fabric, &wire).unwrap().passages;
            prop_assert_eq!(one_by_one(&messages, &fabric, wire), expected);
        }
    }
}

//! C3: set-up, latency and packets of a fixed size (Hambrusch and Khokhar, 1994; as Lichei has it in section 2.2.3). Packets
//! follow each other through the network (wormhole routing); those of several senders meet at the receiver's port.

use flowcast_units::{Bytes, Time};

use super::{Form, MessageCost, Model, of_packets, packets};

/// Set-up s, latency h and time t of a packet.
pub const MODEL: Model = Model {
    name: "c3",
    source: "Hambrusch and Khokhar 1994, by Lichei, section 2.2.3",
    instances: |observed| of_packets(&["s", "h", "t"], observed, |packet| Box::new(C3 { packet })),
    procedure: None,
};

struct C3 {
    packet: Bytes,
}

impl MessageCost for C3 {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([1.0, 1.0, packets(size, self.packet)])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![Form::new([1.0, 0.0, packets(size, self.packet)]).and(delay)]
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(vec![Form::new([0.0, 0.0, packets(size, self.packet)])])
    }
}

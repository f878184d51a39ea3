//! LMO: the fixed and the variable part of a message's time, each apart for the processors and for the network,
//! `2C + 2ts + L + s/β` between two equal nodes (Lastovetsky, Mkwawa and O'Flynn, "An accurate communication model of a
//! heterogeneous cluster based on a switch-enabled Ethernet network", 2006). The receiver's processor takes the messages of
//! several senders one after the other, the switch carries them at the same time.

use flowcast_units::{Bytes, Time};

use super::{Form, MessageCost, Model, alone};

/// Processing delay C and its part t for each byte, latency L, and 1/β for each byte on the wire.
pub const MODEL: Model = Model {
    name: "lmo",
    source: "Lastovetsky, Mkwawa and O'Flynn 2006",
    instances: |_| vec![alone(&["C", "t/B", "L", "1/β/B"], Lmo)],
    procedure: None,
};

struct Lmo;

impl MessageCost for Lmo {
    fn one_way(&self, size: Bytes) -> Form {
        let bytes = size.0 as f64;
        Form::new([2.0, 2.0 * bytes, 1.0, bytes])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        let bytes = size.0 as f64;
        vec![
            Form::new([1.0, bytes, 0.0, 0.0]).and(delay),
            Form::new([0.0, 0.0, 0.0, bytes]),
        ]
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(vec![Form::new([1.0, size.0 as f64, 0.0, 0.0])])
    }
}

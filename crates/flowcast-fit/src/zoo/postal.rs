//! The postal model: who sends an atomic message is free after a unit of time, it is received λ units after its sending began
//! (Bar-Noy and Kipnis, "Designing broadcasting algorithms in the postal model", 1992). Larger messages are several.

use flowcast_units::{Bytes, Time};

use super::{Form, MessageCost, Model, of_packets, packets};

/// Unit u, and λu, which is at least u: the parameter is `(λ-1)u`.
pub const MODEL: Model = Model {
    name: "postal",
    source: "Bar-Noy and Kipnis 1992",
    instances: |observed| {
        of_packets(&["u", "(λ-1)u"], observed, |packet| {
            Box::new(Postal { packet })
        })
    },
    procedure: None,
};

struct Postal {
    packet: Bytes,
}

impl MessageCost for Postal {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([packets(size, self.packet), 1.0])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![Form::new([packets(size, self.packet), 0.0]).and(delay)]
    }

    /// A node receives one message in a unit.
    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(self.spacing(size, Time::ZERO))
    }
}

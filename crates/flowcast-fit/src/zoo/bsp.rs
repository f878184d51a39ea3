//! Bulk synchronous parallelism: a superstep in which no node sends or receives more than `h` bytes takes `l + g·h` (Valiant, "A
//! bridging model for parallel computation", 1990; Lichei, section 2.2.4). Messages in a row are one superstep.

use flowcast_units::{Bytes, Time};

use super::{Form, MessageCost, Model, alone};

/// Barrier l and time per byte g.
pub const MODEL: Model = Model {
    name: "bsp",
    source: "Valiant 1990; Lichei, section 2.2.4",
    instances: |_| vec![alone(&["l", "g/B"], Bsp)],
    procedure: None,
};

struct Bsp;

impl MessageCost for Bsp {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([1.0, size.0 as f64])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![Form::new([0.0, size.0 as f64]).and(delay)]
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(self.spacing(size, Time::ZERO))
    }
}

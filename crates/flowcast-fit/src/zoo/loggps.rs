//! LogGPS: LogGP, and messages of at least S bytes wait for their receiver: a request goes there and an answer comes back before
//! the data, `2(2o + L)` more (Ino, Fujimoto and Hagihara, 2001; Lichei, section 2.2.9).

use flowcast_units::{Bytes, Time};

use super::{Form, Instance, MessageCost, Model, loggp::LogGpCost, parameters};

/// LogGP's parameters; the threshold S is one of the sizes.
pub const MODEL: Model = Model {
    name: "loggps",
    source: "Ino, Fujimoto and Hagihara 2001; Lichei, section 2.2.9",
    instances: |observed| observed.sizes().into_iter().map(instance).collect(),
    procedure: None,
};

struct LogGps {
    threshold: Bytes,
}

impl LogGps {
    fn handshake(&self, mut form: Form, size: Bytes) -> Form {
        if size >= self.threshold {
            form.add(&Form::new([1.0, 2.0, 0.0, 0.0]), 2.0);
        }
        form
    }
}

impl MessageCost for LogGps {
    fn one_way(&self, size: Bytes) -> Form {
        self.handshake(LogGpCost.one_way(size), size)
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        LogGpCost
            .spacing(size, delay)
            .into_iter()
            .map(|form| self.handshake(form, size))
            .collect()
    }

    /// The handshakes of several senders overlap.
    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        LogGpCost.arrival_spacing(size)
    }
}

fn instance(threshold: Bytes) -> Instance {
    Instance {
        choice: format!("S {threshold}"),
        parameters: parameters(&["L", "o", "g", "G/B"]),
        cost: Box::new(LogGps { threshold }),
    }
}

//! LogP with stalling: at most `c = ⌈L/g⌉` packets are in flight to a node; a sender of more stalls, and is told so after δ
//! (Bilardi, Herley, Pietracaprina and Pucci, "On stalling in LogP", 2005; Lichei, section 2.2.8).
//!
//! The papers bound whole programs. What δ costs a pattern is derived here: k packets to one node occupy its c places in
//! `⌈k/c⌉` rounds, and between two rounds a place stays empty until its next sender has been told, δ each time:
//!
//! `2o + L + (k-1)g + (⌈k/c⌉ - 1)δ`.
//!
//! One message between two nodes never stalls, because its packets are g apart and each stays L: it costs what LogP says.

use flowcast_units::{Bytes, Time};

use super::{Cost, Form, MessageCost, Model, logp::LogP, of_packets, packets, pattern::Pattern};

/// LogP's parameters, and the time δ until a sender knows that it stalls.
pub const MODEL: Model = Model {
    name: "logp-stalling",
    source: "Bilardi and others 2005, by Lichei, section 2.2.8; pattern derived",
    instances: |observed| {
        of_packets(&["L", "o", "g", "δ"], observed, |packet| {
            Box::new(Stalling {
                logp: LogP { packet },
            })
        })
    },
    procedure: None,
};

struct Stalling {
    logp: LogP,
}

/// LogP's form with a fourth parameter that does not count.
fn widened(mut form: Form) -> Form {
    form.coefficients.push(0.0);
    form
}

impl MessageCost for Stalling {
    fn one_way(&self, size: Bytes) -> Form {
        widened(self.logp.one_way(size))
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        self.logp
            .spacing(size, delay)
            .into_iter()
            .map(widened)
            .collect()
    }

    fn pattern(&self, pattern: &Pattern, near: &[f64]) -> Cost {
        let busiest = pattern.most_sends().max(pattern.most_receives());
        let mut once = self.one_way(pattern.size);
        let arriving = f64::from(pattern.most_receives()) * packets(pattern.size, self.logp.packet);
        // What a single sender has in flight fits, however long its messages are.
        if pattern.most_receives() > 1 {
            once.coefficients[3] = ((arriving / capacity(near[0], near[2])).ceil() - 1.0).max(0.0);
        }
        Cost {
            once,
            repeats: f64::from(busiest - 1),
            longest_of: self.spacing(pattern.size, Time::ZERO),
        }
    }
}

/// Packets in flight to a node, `⌈L/g⌉`, at least 1; without a gap any number.
pub fn capacity(latency: f64, gap: f64) -> f64 {
    if gap > 0.0 {
        (latency / gap).ceil().max(1.0)
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Node;

    /// L 6, g 4: two packets fit. L 6, o 2, g 4 are the values of the LogP paper's broadcast.
    #[test]
    fn stalled_rounds_cost_delta_each_by_hand() {
        let model = Stalling {
            logp: LogP { packet: Bytes(8) },
        };
        let parameters = [6.0, 2.0, 4.0, 10.0];
        assert_eq!(capacity(6.0, 4.0), 2.0);
        let to_one = |senders: u32| Pattern {
            name: String::new(),
            size: Bytes(8),
            messages: (1..=senders).map(|from| (Node(from), Node(0))).collect(),
        };
        let times = [1, 2, 3, 4, 5].map(|senders| {
            model
                .pattern(&to_one(senders), &parameters)
                .at(&parameters)
                .as_nanos()
        });
        assert_eq!(times, [10.0, 14.0, 28.0, 32.0, 46.0]);
    }

    #[test]
    fn one_sender_never_stalls() {
        let model = Stalling {
            logp: LogP { packet: Bytes(8) },
        };
        let alone = Pattern {
            name: String::new(),
            size: Bytes(800),
            messages: vec![(Node(0), Node(1))],
        };
        let parameters = [6.0, 2.0, 4.0, 10.0];
        assert_eq!(
            model
                .pattern(&alone, &parameters)
                .at(&parameters)
                .as_nanos(),
            10.0 + 99.0 * 4.0
        );
    }
}

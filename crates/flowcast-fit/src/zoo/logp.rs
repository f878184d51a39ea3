//! LogP: packets of one size; larger messages are several, of which the gap covers the overhead after the first (Culler and
//! others, 1993; Lichei, section 2.2.5).
//!
//! At most `⌈L/g⌉` packets are in flight to a node, and who would send more stalls. The node takes packets `g` apart
//! meanwhile, so that a gather lasts as long as its packets: stalling costs the senders' processors, not the receiver. What it
//! costs where senders have to be told is in [`logp_stalling`](super::logp_stalling).

use flowcast_units::{Bytes, Time};

use super::{Form, MessageCost, Model, of_packets, packets};

/// Latency L, overhead o, gap g.
pub const MODEL: Model = Model {
    name: "logp",
    source: "Culler and others 1993; Lichei, section 2.2.5",
    instances: |observed| {
        of_packets(&["L", "o", "g"], observed, |packet| {
            Box::new(LogP { packet })
        })
    },
    procedure: None,
};

/// LogP's equations; its parameters are L, o and g.
pub(super) struct LogP {
    pub packet: Bytes,
}

impl MessageCost for LogP {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([1.0, 2.0, packets(size, self.packet) - 1.0])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        let more = packets(size, self.packet) - 1.0;
        vec![
            Form::new([0.0, 1.0, more]).and(delay),
            Form::new([0.0, 0.0, more + 1.0]),
        ]
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        Some(self.spacing(size, Time::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pattern::Pattern, *};

    /// L 5, o 2, g 4 (the example of the LogP paper's broadcast), packets of 8 bytes.
    #[test]
    fn a_message_of_three_packets_by_hand() {
        let model = LogP { packet: Bytes(8) };
        let parameters = [5.0, 2.0, 4.0];
        assert_eq!(model.one_way(Bytes(8)).at(&parameters), 9.0);
        assert_eq!(model.one_way(Bytes(17)).at(&parameters), 17.0);
        assert_eq!(
            model
                .pattern(&Pattern::to_one(4, Bytes(1)), &parameters)
                .at(&parameters),
            Time::from_nanos(21.0)
        );
    }
}

//! LoPC: L and o are those of LogP, and what messages cost each other they cost at the processors, where handlers wait for each
//! other; the interface has no gap (Frank, Agarwal and Vernon, 1997; Lichei, section 2.2.10). Larger messages are several
//! packets, as under LogP. At a node that several send to at once the handlers follow each other; the paper's mean value
//! analysis of irregular patterns is not done here.

use flowcast_units::{Bytes, Time};

use super::{Cost, Form, MessageCost, Model, of_packets, packets};

/// Latency L and overhead o.
pub const MODEL: Model = Model {
    name: "lopc",
    source: "Frank, Agarwal and Vernon 1997; Lichei, section 2.2.10",
    instances: |sizes| of_packets(&["L", "o"], sizes, |packet| Box::new(LoPc { packet })),
    procedure: None,
};

struct LoPc {
    packet: Bytes,
}

impl MessageCost for LoPc {
    fn one_way(&self, size: Bytes) -> Form {
        Form::new([1.0, packets(size, self.packet) + 1.0])
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        vec![Form::new([0.0, packets(size, self.packet)]).and(delay)]
    }

    fn gather(&self, senders: u32, size: Bytes) -> Option<Cost> {
        let repeats = f64::from(senders.saturating_sub(1));
        Some(Cost { once: self.one_way(size), repeats, longest_of: self.spacing(size, Time::ZERO) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_of_four_senders_follow_each_other_at_the_receiver() {
        let model = LoPc { packet: Bytes(8) };
        assert_eq!(model.one_way(Bytes(8)).at(&[5.0, 2.0]), 9.0);
        assert_eq!(model.one_way(Bytes(17)).at(&[5.0, 2.0]), 13.0);
        assert_eq!(model.gather(4, Bytes(1)).unwrap().at(&[5.0, 2.0]), Time::from_nanos(15.0));
    }
}

//! LoPC: L and o are those of LogP, and what messages cost each other they cost at the processors, where handlers wait for each
//! other; the interface has no gap (Frank, Agarwal and Vernon, "LoPC: modeling contention in parallel algorithms", 1997; Lichei,
//! section 2.2.10). Larger messages are several packets, as under LogP. At a node that several send to at once the handlers
//! follow each other.
//!
//! Where all nodes ask others at random and compute for W between, the paper's contention is that of mean value analysis
//! (`homogeneous`): with handlers of the length o and the squared coefficient of variation c²,
//!
//! ```text
//! R = R_w + 2L + R_q + R_y              cycle: computing, two ways, request and reply with their queues
//! R_q = o (1 + Q_q + Q_y + (c²-1)/2 (U_q + U_y))     Bard's approximation: an arrival sees the mean queue
//! R_y = o (1 + Q_q + (c²-1)/2 U_q)                   a node waits for one reply at a time
//! R_w = (W + o Q_q) / (1 - U_q)                      handlers interrupt the computing
//! Q = R_q/R, U = o/R by Little's law
//! ```

use flowcast_units::{Bytes, Time};

use super::{Cost, Form, MessageCost, Model, of_packets, packets, pattern::Pattern};

/// Latency L and overhead o.
pub const MODEL: Model = Model {
    name: "lopc",
    source: "Frank, Agarwal and Vernon 1997; Lichei, section 2.2.10",
    instances: |observed| of_packets(&["L", "o"], observed, |packet| Box::new(LoPc { packet })),
    procedure: None,
};

/// Halvings of the interval in which the cycle lies.
const HALVINGS: u32 = 80;

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

    /// Where nodes send and receive, a handler waits beside as it does in homogeneous traffic without computing.
    fn pattern(&self, pattern: &Pattern, near: &[f64]) -> Cost {
        let busiest = pattern.most_sends().max(pattern.most_receives());
        let mut once = self.one_way(pattern.size);
        if pattern.is_two_way() && near[1] > 0.0 {
            let handler = near[1] * packets(pattern.size, self.packet);
            let waiting = homogeneous(0.0, near[0], handler, 1.0).request - handler;
            once.coefficients[1] += waiting / near[1];
        }
        Cost {
            once,
            repeats: f64::from(busiest - 1),
            longest_of: self.spacing(pattern.size, Time::ZERO),
        }
    }
}

/// The mean times of a cycle, in the unit of what it was made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cycle {
    /// R: from one request to the next of the same node.
    pub total: f64,
    /// R_q: a request at the other node, its handler included.
    pub request: f64,
    /// R_y: the reply, its handler included.
    pub reply: f64,
}

/// LoPC's mean value analysis of homogeneous requests: `work` W and `latency` L of 0 or more, `handler` o above 0, and the squared
/// coefficient of variation of handlers: 0 where all are alike, 1 where they are exponential. The same unit for all.
pub(crate) fn homogeneous(work: f64, latency: f64, handler: f64, variation: f64) -> Cycle {
    // The longer the cycle, the less waiting it explains, so that they meet once. The processor serves each cycle two handlers.
    let (mut low, mut high) = (2.0 * handler, work + 2.0 * latency + 100.0 * handler);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        let longer = explained(middle, work, latency, handler, variation)
            .is_none_or(|cycle| cycle.total > middle);
        *if longer { &mut low } else { &mut high } = middle;
    }
    explained(high, work, latency, handler, variation).expect("the upper end always has a solution")
}

/// The times where the cycle takes `total`; none where so many handlers cannot be served.
fn explained(total: f64, work: f64, latency: f64, handler: f64, variation: f64) -> Option<Cycle> {
    let used = handler / total;
    let spread = 0.5 * (variation - 1.0) * used;
    // Q_q = R_q/R and Q_y = R_y/R make two linear equations: R_y = o (1 + s + R_q/R), R_q = o (1 + 2s + R_q/R + R_y/R).
    let request =
        handler * (1.0 + 2.0 * spread + used * (1.0 + spread)) / (1.0 - used - used * used);
    let reply = handler * (1.0 + spread + request / total);
    let computing = (work + handler * request / total) / (1.0 - used);
    let solvable = used < 0.6 && request > 0.0;
    solvable.then_some(Cycle {
        total: computing + 2.0 * latency + request + reply,
        request,
        reply,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Node;

    #[test]
    fn handlers_of_four_senders_follow_each_other_at_the_receiver() {
        let model = LoPc { packet: Bytes(8) };
        assert_eq!(model.one_way(Bytes(8)).at(&[5.0, 2.0]), 9.0);
        assert_eq!(model.one_way(Bytes(17)).at(&[5.0, 2.0]), 13.0);
        assert_eq!(
            model
                .pattern(&Pattern::to_one(4, Bytes(1)), &[5.0, 2.0])
                .at(&[5.0, 2.0]),
            Time::from_nanos(15.0)
        );
    }

    /// The equations as they stand, iterated until nothing changes: the reference implementation.
    fn iterated(work: f64, latency: f64, handler: f64, variation: f64) -> f64 {
        let mut total = work + 2.0 * latency + 4.0 * handler;
        let (mut request, mut reply) = (handler, handler);
        for _ in 0..20_000 {
            let used = handler / total;
            let (waiting, replying) = (request / total, reply / total);
            request = handler * (1.0 + waiting + replying + 0.5 * (variation - 1.0) * 2.0 * used);
            reply = handler * (1.0 + waiting + 0.5 * (variation - 1.0) * used);
            let computing = (work + handler * waiting) / (1.0 - used);
            total = 0.9 * total + 0.1 * (computing + 2.0 * latency + request + reply);
        }
        total
    }

    #[test]
    fn the_cycle_solves_the_equations_and_contention_is_about_a_handler() {
        for (work, latency, variation) in [
            (0.0, 0.0, 0.0),
            (0.0, 10.0, 1.0),
            (100.0, 5.0, 0.0),
            (1000.0, 50.0, 1.0),
        ] {
            let cycle = homogeneous(work, latency, 20.0, variation);
            let truth = iterated(work, latency, 20.0, variation);
            assert!(
                (cycle.total / truth - 1.0).abs() < 1e-6,
                "{work} {latency} {variation}: {} {truth}",
                cycle.total
            );
            // The rule of thumb: contention costs about one handler more.
            // What waiting adds to the cycle without contention, `W + 2L + 2o`.
            let contention = (cycle.total - (work + 2.0 * latency + 2.0 * 20.0)) / 20.0;
            assert!(
                (0.8..1.8).contains(&contention),
                "{work} {latency} {variation}: {contention} handlers"
            );
        }
    }

    #[test]
    fn an_exchange_waits_for_handlers_and_one_message_does_not() {
        let model = LoPc { packet: Bytes(8) };
        let parameters = [5.0, 2.0];
        let of = |messages: &[(u32, u32)]| {
            let messages = messages
                .iter()
                .map(|(from, to)| (Node(*from), Node(*to)))
                .collect();
            let pattern = Pattern {
                name: String::new(),
                size: Bytes(8),
                messages,
            };
            model
                .pattern(&pattern, &parameters)
                .at(&parameters)
                .as_nanos()
        };
        assert_eq!(of(&[(0, 1)]), 9.0);
        let waiting = homogeneous(0.0, 5.0, 2.0, 1.0).request - 2.0;
        assert!((of(&[(0, 1), (1, 0)]) - 9.0 - waiting).abs() < 1e-12 && waiting > 0.2);
    }
}

//! LoGPC: LogGP, and messages of several senders wait for each other at the channels of a k-ary n-cube (Moritz and Frank, "LoGPC:
//! modeling network contention in message-passing programs", 1998 and 2001; Lichei, section 2.2.11).
//!
//! The wait is that of Agarwal's open network with wormhole routing ("Limits on interconnection network performance", 1991),
//! which LoGPC closes: nodes send the faster, the sooner their messages arrive. With the mean distance `k_d = k/4` in each of n
//! dimensions, messages that hold a channel for `B = (s-1)G`, and each node sending m messages in a unit of time,
//!
//! ```text
//! ρ = m B k_d / 2                                        use of a channel
//! C = n k_d · ρB/(1-ρ) · (k_d-1)/k_d² · (1 + 1/n)        wait of a message on its way
//! m = 1 / (2o + L + B + C)                               one message after the other
//! ```
//!
//! k is the n-th root of the number of nodes that the patterns show, n is chosen. Where `k_d` is 1 or less no message waits on its
//! way, and the model is LogGP. What the paper says of the interface's memory access and of pipelined long messages is that of
//! one machine, and left out.

use flowcast_units::{Bytes, Time};

use super::{
    Cost, Form, Instance, MessageCost, Model, loggp::LogGpCost, parameters, pattern::Pattern,
};

/// LogGP's parameters; the number of dimensions is chosen.
pub const MODEL: Model = Model {
    name: "logpc",
    source: "Moritz and Frank 2001, by Lichei, section 2.2.11; Agarwal 1991",
    instances: |observed| match observed.nodes() {
        0 => vec![instance(0.0, 1)],
        nodes => [1, 2, 3]
            .map(|dimensions| instance(f64::from(nodes), dimensions))
            .into(),
    },
    procedure: None,
};

/// Halvings of the interval in which the wait lies.
const HALVINGS: u32 = 80;

/// A torus of `radix` nodes in each of so many dimensions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cube {
    /// k, at least 1; of a number of nodes that is no power, the root.
    pub radix: f64,
    /// n, at least 1.
    pub dimensions: u32,
}

impl Cube {
    /// How long a message waits on its way, in nanoseconds, where a node has one in flight at a time that takes
    /// `alone` without waiting and holds a channel for `holds`; both in nanoseconds, `alone` at least `holds`.
    pub(crate) fn wait(self, alone: f64, holds: f64) -> f64 {
        let (distance, dimensions) = (self.radix / 4.0, f64::from(self.dimensions));
        if distance <= 1.0 || holds <= 0.0 {
            return 0.0;
        }
        let wait = |rate: f64| {
            let used = rate * holds * distance / 2.0;
            let each = used * holds / (1.0 - used) * (distance - 1.0) / distance.powi(2)
                * (1.0 + 1.0 / dimensions);
            if used < 1.0 {
                dimensions * distance * each
            } else {
                f64::INFINITY
            }
        };
        // The longer messages wait, the fewer are sent and the less they wait: one wait fits.
        let (mut low, mut high) = (0.0, alone + 100.0 * dimensions * distance * holds);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            *if wait(1.0 / (alone + middle)) > middle {
                &mut low
            } else {
                &mut high
            } = middle;
        }
        high
    }
}

struct LoGpc {
    cube: Cube,
}

impl MessageCost for LoGpc {
    fn one_way(&self, size: Bytes) -> Form {
        LogGpCost.one_way(size)
    }

    fn spacing(&self, size: Bytes, delay: Time) -> Vec<Form> {
        LogGpCost.spacing(size, delay)
    }

    fn arrival_spacing(&self, size: Bytes) -> Option<Vec<Form>> {
        LogGpCost.arrival_spacing(size)
    }

    fn pattern(&self, pattern: &Pattern, near: &[f64]) -> Cost {
        let mut cost = LogGpCost.pattern(pattern, near);
        let holds = pattern.size.0.saturating_sub(1) as f64 * near[3];
        // A message that is alone in the network meets none.
        if pattern.messages.len() > 1 && holds > 0.0 {
            let wait = self.cube.wait(self.one_way(pattern.size).at(near), holds);
            cost.once.coefficients[3] += wait / near[3];
        }
        cost
    }
}

fn instance(nodes: f64, dimensions: u32) -> Instance {
    let cube = Cube {
        radix: nodes.powf(1.0 / f64::from(dimensions)).max(1.0),
        dimensions,
    };
    Instance {
        choice: if nodes > 0.0 {
            format!("n {dimensions}, k {:.3}", cube.radix)
        } else {
            String::new()
        },
        parameters: parameters(&["L", "o", "g", "G/B"]),
        cost: Box::new(LoGpc { cube }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Node;

    #[test]
    fn the_wait_solves_the_equations() {
        // 16 nodes in a ring: k_d 4. 8 ns on the channel of 40 ns in all.
        let (alone, holds) = (40.0, 8.0);
        let wait = Cube {
            radix: 16.0,
            dimensions: 1,
        }
        .wait(alone, holds);
        let used = holds * 4.0 / 2.0 / (alone + wait);
        let by_hand = 4.0 * (used * holds / (1.0 - used)) * (3.0 / 16.0) * 2.0;
        assert!(
            (wait - by_hand).abs() < 1e-9 && wait > 4.0,
            "{wait} {by_hand}"
        );
        // A square of 16 has distances of 1 in each dimension.
        assert_eq!(
            Cube {
                radix: 4.0,
                dimensions: 2
            }
            .wait(alone, holds),
            0.0
        );
        // Eight in each of two dimensions wait less than 64 in a ring.
        let [ring, square] = [(64.0, 1), (8.0, 2)]
            .map(|(radix, dimensions)| Cube { radix, dimensions }.wait(alone, holds));
        assert!(square < ring / 3.0, "{square} {ring}");
    }

    #[test]
    fn messages_wait_in_patterns_alone() {
        let model = LoGpc {
            cube: Cube {
                radix: 16.0,
                dimensions: 1,
            },
        };
        let near = [20.0, 6.0, 1.0, 1.0];
        let of = |messages: Vec<(Node, Node)>| {
            model
                .pattern(
                    &Pattern {
                        name: String::new(),
                        size: Bytes(9),
                        messages,
                    },
                    &near,
                )
                .at(&near)
                .as_nanos()
        };
        assert_eq!(of(vec![(Node(0), Node(1))]), 40.0);
        let shift = of((0..16).map(|at| (Node(at), Node((at + 1) % 16))).collect());
        assert!(
            (shift - 40.0 - model.cube.wait(40.0, 8.0)).abs() < 1e-9,
            "{shift}"
        );
    }
}

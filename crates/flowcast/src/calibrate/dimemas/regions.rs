//! Time of a region under given parameters.

use super::{Exercise, MeasuredRegion, NodeLinks};
use flowcast_network::collective::{PhaseMessage, Row};
use flowcast_units::{Bytes, Rate, Time};

/// Parameters that all regions share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Parameters {
    pub latency: Time,
    pub bandwidth: Rate,
    pub links: NodeLinks,
    pub buses: u32,
}

/// Time of one repetition of an exercise of messages; `None` for collectives.
pub(super) fn once(region: &MeasuredRegion, parameters: &Parameters) -> Option<Time> {
    use Exercise::*;
    let others = region.ranks.saturating_sub(1);
    let latency = parameters.latency;
    let bytes = parameters.bandwidth.time_for(region.size);
    let NodeLinks { incoming, outgoing } = parameters.links;
    let out = if outgoing > 0 { outgoing } else { incoming };
    Some(match region.exercise {
        PingPong => (latency + bytes) * 2.0,
        Exchange => {
            let at_once =
                if (incoming > 0 && outgoing == 0 && incoming < 2) || parameters.buses == 1 {
                    1
                } else {
                    2
                };
            (latency + bytes * (2.0 / f64::from(at_once))).max(latency * 2.0)
        }
        FanOut => {
            let sent = (1..=others).map(|nth| latency * f64::from(nth));
            let came: Vec<Time> = transfers(sent, bytes, least([out, parameters.buses]))
                .map(|time| time + latency)
                .collect();
            collected(came, latency * f64::from(others), latency)
        }
        FanIn => {
            let came = transfers(
                (0..others).map(|_| latency),
                bytes,
                least([incoming, parameters.buses]),
            )
            .collect();
            collected(came, Time::ZERO, latency) + latency * f64::from(others)
        }
        Pairs => {
            let half = region.ranks / 2;
            let last = transfers((0..half).map(|_| latency), bytes, parameters.buses)
                .fold(Time::ZERO, Time::max);
            last + latency
        }
        Collective(..) => return None,
    })
}

/// Time of a collective that follows a row.
pub(super) fn by_row(
    region: &MeasuredRegion,
    send: Bytes,
    recv: Bytes,
    row: Row,
    parameters: &Parameters,
) -> Time {
    let Parameters {
        latency,
        bandwidth,
        buses,
        ..
    } = *parameters;
    row.time(
        PhaseMessage {
            latency,
            bandwidth,
            send,
            recv,
        },
        region.ranks,
        buses,
    )
}

/// The smaller of two limits, where 0 means no limit.
fn least(limits: [u32; 2]) -> u32 {
    limits
        .into_iter()
        .filter(|limit| *limit > 0)
        .min()
        .unwrap_or(0)
}

/// End of each transfer. The transfers request one of `links` links at the times `asked`, in this order; 0 means no limit.
fn transfers(
    asked: impl Iterator<Item = Time>,
    bytes: Time,
    links: u32,
) -> impl Iterator<Item = Time> {
    let mut free: Vec<Time> = vec![Time::ZERO; links as usize];
    asked.map(move |asked| {
        let Some(first) = free.iter_mut().min() else {
            return asked + bytes;
        };
        *first = (*first).max(asked) + bytes;
        *first
    })
}

/// Time at which a rank that starts at `begin` has received messages that arrive at these times, one after the other.
fn collected(came: Vec<Time>, begin: Time, latency: Time) -> Time {
    came.into_iter()
        .fold(begin, |now, came| (now + latency).max(came))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(exercise: Exercise, links: NodeLinks, buses: u32) -> f64 {
        let region = MeasuredRegion {
            name: String::new(),
            exercise,
            size: Bytes(1000),
            ranks: 5,
            once: Time::from_micros(1.0),
        };
        let bandwidth = Rate::from_bytes_per_second(1e7);
        once(
            &region,
            &Parameters {
                latency: Time::from_micros(10.0),
                bandwidth,
                links,
                buses,
            },
        )
        .unwrap()
        .as_micros()
    }

    #[test]
    fn regions_of_messages_take_the_time_of_a_hand_calculation() {
        // L is 10 us, the bytes take 100 us.
        let (full, half) = (
            NodeLinks {
                incoming: 1,
                outgoing: 1,
            },
            NodeLinks {
                incoming: 1,
                outgoing: 0,
            },
        );
        let free = NodeLinks {
            incoming: 0,
            outgoing: 0,
        };
        assert_eq!(time(Exercise::PingPong, full, 0), 220.0);
        assert_eq!(
            (
                time(Exercise::Exchange, full, 0),
                time(Exercise::Exchange, half, 0)
            ),
            (110.0, 210.0)
        );
        // The last of four leaves at 40 and takes 100. The answer has left and arrived at 150.
        assert_eq!(time(Exercise::FanOut, free, 0), 150.0);
        // One after the other: 10 + 4 * 100, and 10 for the answer.
        assert_eq!(
            (
                time(Exercise::FanOut, full, 0),
                time(Exercise::FanOut, half, 0)
            ),
            (420.0, 420.0)
        );
        assert_eq!(time(Exercise::FanIn, full, 0), 410.0 + 40.0);
        assert_eq!(
            (
                time(Exercise::Pairs, full, 0),
                time(Exercise::Pairs, full, 1)
            ),
            (120.0, 220.0)
        );
    }
}

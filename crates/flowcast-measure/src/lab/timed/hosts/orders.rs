//! What a driver and its ranks say to each other, as lines of text.

use std::fmt;
use std::str::{FromStr, SplitWhitespace};
use std::time::Duration;

use crate::clocks::{ClockPlan, Glance, Learned};
use flowcast_units::{ClockLine, Rank, Time};

/// What a rank is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Order {
    /// Send the time of the clock.
    Clock,
    /// Connect the flows of these ends.
    Open(Vec<Leg>),
    /// Carry those with these numbers, counted from this moment of its own clock on.
    Carry(Duration, Vec<u32>),
    /// Tell the next who connects the first rank's time, which this line gives in terms of the own clock.
    Guide(ClockLine),
    /// Learn the time of the rank there.
    Learn(String, ClockPlan),
    /// Look at the clock of the rank there, by so many exchanges.
    Look(String, u32),
}

/// A flow's end at a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leg {
    pub flow: u32,
    /// Where to send it; nothing if it comes in.
    pub to: Option<String>,
    pub size: u64,
    /// From the common start on.
    pub start: Duration,
}

/// What a rank answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    /// Which of how many it is, where it runs and where it listens.
    Hello {
        rank: Rank,
        size: u32,
        host: String,
        /// Where messages are to be sent.
        address: String,
    },
    /// The time of its clock, since it began.
    Clock(Duration),
    /// All flows are connected.
    Opened,
    /// Starts of flows sent and ends of flows taken, from the common start on.
    Carried {
        sent: Vec<(u32, Duration)>,
        taken: Vec<(u32, Duration)>,
    },
    /// The one who learns is done.
    Guided,
    /// The other rank's clock.
    Learned(Learned),
    /// The same at one moment.
    Looked(Glance),
    /// The order could not be carried out, and why.
    Failed(String),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Clock => f.write_str("clock"),
            Order::Open(legs) => {
                f.write_str("open")?;
                legs.iter().try_for_each(
                    |Leg {
                         flow,
                         to,
                         size,
                         start,
                     }| match to {
                        Some(to) => write!(f, " send {flow} {to} {size} {}", start.as_nanos()),
                        None => write!(f, " take {flow} {size} {}", start.as_nanos()),
                    },
                )
            }
            Order::Carry(zero, flows) => {
                write!(f, "carry {}", zero.as_nanos())?;
                flows.iter().try_for_each(|flow| write!(f, " {flow}"))
            }
            Order::Guide(line) => write!(f, "guide {}", line_text(line)),
            Order::Learn(
                address,
                ClockPlan {
                    bursts,
                    exchanges,
                    span,
                },
            ) => {
                write!(
                    f,
                    "learn {address} {bursts} {exchanges} {}",
                    span.as_nanos()
                )
            }
            Order::Look(address, exchanges) => write!(f, "look {address} {exchanges}"),
        }
    }
}

impl Order {
    /// Reads a line; `None` if it is no order.
    pub(super) fn parse(line: &str) -> Option<Order> {
        let mut words = line.split_whitespace();
        match words.next()? {
            "clock" => Some(Order::Clock),
            "open" => {
                let mut legs = Vec::new();
                while let Some(word) = words.next() {
                    legs.push(leg(word, &mut words)?);
                }
                Some(Order::Open(legs))
            }
            "carry" => {
                let zero = Duration::from_nanos(number(&mut words)?);
                words
                    .map(|word| word.parse().ok())
                    .collect::<Option<Vec<u32>>>()
                    .map(|flows| Order::Carry(zero, flows))
            }
            "guide" => Some(Order::Guide(clock_line(&mut words)?)),
            "learn" => {
                let address = words.next()?.to_owned();
                let (bursts, exchanges) = (number(&mut words)?, number(&mut words)?);
                Some(Order::Learn(
                    address,
                    ClockPlan {
                        bursts,
                        exchanges,
                        span: time(&mut words)?,
                    },
                ))
            }
            "look" => Some(Order::Look(words.next()?.to_owned(), number(&mut words)?)),
            _ => None,
        }
    }
}

fn leg(word: &str, words: &mut SplitWhitespace<'_>) -> Option<Leg> {
    let flow = number(words)?;
    let to = match word {
        "send" => Some(words.next()?.to_owned()),
        "take" => None,
        _ => return None,
    };
    Some(Leg {
        flow,
        to,
        size: number(words)?,
        start: Duration::from_nanos(number(words)?),
    })
}

fn number<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// Numbers that read back equal: moment and offset in nanoseconds, drift in seconds a second.
fn line_text(line: &ClockLine) -> String {
    format!(
        "{} {} {}",
        line.at.as_nanos(),
        line.offset.as_nanos(),
        line.drift
    )
}

fn clock_line(words: &mut SplitWhitespace<'_>) -> Option<ClockLine> {
    Some(ClockLine {
        at: time(words)?,
        offset: time(words)?,
        drift: finite(words)?,
    })
}

fn time(words: &mut SplitWhitespace<'_>) -> Option<Time> {
    finite(words).map(Time::from_nanos)
}

fn finite(words: &mut SplitWhitespace<'_>) -> Option<f64> {
    number(words).filter(|number: &f64| number.is_finite())
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Hello {
                rank,
                size,
                host,
                address,
            } => write!(f, "hello {rank} {size} {host} {address}"),
            Reply::Clock(time) => write!(f, "clock {}", time.as_nanos()),
            Reply::Opened => f.write_str("opened"),
            Reply::Carried { sent, taken } => {
                f.write_str("carried")?;
                sent.iter()
                    .try_for_each(|(flow, start)| write!(f, " send {flow} {}", start.as_nanos()))?;
                taken
                    .iter()
                    .try_for_each(|(flow, end)| write!(f, " take {flow} {}", end.as_nanos()))
            }
            Reply::Guided => f.write_str("guided"),
            Reply::Learned(Learned {
                line,
                deviation,
                drift_deviation,
                asymmetry,
                span,
            }) => {
                let [deviation, asymmetry, span] =
                    [deviation, asymmetry, span].map(|time| time.as_nanos());
                write!(
                    f,
                    "learned {} {deviation} {drift_deviation} {asymmetry} {span}",
                    line_text(line)
                )
            }
            Reply::Looked(Glance {
                own,
                ahead,
                round_trip,
            }) => {
                write!(
                    f,
                    "looked {} {} {}",
                    own.as_nanos(),
                    ahead.as_nanos(),
                    round_trip.as_nanos()
                )
            }
            // A line is a reply.
            Reply::Failed(why) => write!(f, "failed {}", why.replace(['\n', '\r'], " ")),
        }
    }
}

impl Reply {
    /// Reads a line; `None` if it is no reply.
    pub(super) fn parse(line: &str) -> Option<Reply> {
        let (word, rest) = line
            .trim_end()
            .split_once(' ')
            .unwrap_or((line.trim_end(), ""));
        let mut words = rest.split_whitespace();
        match word {
            "hello" => Some(Reply::Hello {
                rank: Rank(number(&mut words)?),
                size: number(&mut words)?,
                host: words.next()?.to_owned(),
                address: words.next()?.to_owned(),
            }),
            "clock" => Some(Reply::Clock(Duration::from_nanos(number(&mut words)?))),
            "opened" => Some(Reply::Opened),
            "carried" => {
                let (mut sent, mut taken) = (Vec::new(), Vec::new());
                while let Some(word) = words.next() {
                    let side = if word == "send" {
                        &mut sent
                    } else {
                        &mut taken
                    };
                    side.push((
                        number(&mut words)?,
                        Duration::from_nanos(number(&mut words)?),
                    ));
                }
                Some(Reply::Carried { sent, taken })
            }
            "guided" => Some(Reply::Guided),
            "learned" => Some(Reply::Learned(Learned {
                line: clock_line(&mut words)?,
                deviation: time(&mut words)?,
                drift_deviation: finite(&mut words)?,
                asymmetry: time(&mut words)?,
                span: time(&mut words)?,
            })),
            "looked" => {
                let (own, ahead) = (time(&mut words)?, time(&mut words)?);
                Some(Reply::Looked(Glance {
                    own,
                    ahead,
                    round_trip: time(&mut words)?,
                }))
            }
            "failed" => Some(Reply::Failed(rest.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn orders_and_replies_read_back_equal() {
        let nanos = Duration::from_nanos;
        let send = Leg {
            flow: 0,
            to: Some("node9:40777".into()),
            size: 4_000_000,
            start: nanos(0),
        };
        let take = Leg {
            flow: 1,
            to: None,
            size: 5,
            start: nanos(50_000),
        };
        let line = ClockLine {
            at: Time::from_nanos(7.25),
            offset: Time::from_nanos(-1.5e10),
            drift: -1e-4,
        };
        let learn = Order::Learn("node0:40321".into(), ClockPlan::default());
        let carry = Order::Carry(nanos(71_340_123), vec![0, 1]);
        let look = Order::Look("node0:1".into(), 200);
        for order in [
            Order::Clock,
            Order::Open(vec![send, take]),
            carry,
            Order::Guide(line),
            learn,
            look,
        ] {
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
        let hello = Reply::Hello {
            rank: Rank(1),
            size: 4,
            host: "node7".into(),
            address: "node7:40123".into(),
        };
        let carried = Reply::Carried {
            sent: vec![(0, nanos(1200))],
            taken: vec![(1, nanos(340_012_345))],
        };
        let learned = Reply::Learned(Learned {
            line,
            drift_deviation: 1e-9,
            ..Learned::itself()
        });
        let time = Time::from_nanos(1.0);
        let looked = Reply::Looked(Glance {
            own: time,
            ahead: time * -3.0,
            round_trip: time,
        });
        let failed = Reply::Failed("no way".into());
        for reply in [
            hello,
            carried,
            Reply::Clock(nanos(7)),
            Reply::Opened,
            Reply::Guided,
            learned,
            looked,
            failed,
        ] {
            assert_eq!(Reply::parse(&reply.to_string()), Some(reply));
        }
    }

    proptest! {
        #[test]
        fn no_text_is_more_than_no_order(
            line in "(hello|clock|open|opened|carry|carried|failed|send|take|guide|learned|look|[0-9]{1,21}|-1|NaN|inf| ){0,12}",
        ) {
            if let Some(order) = Order::parse(&line) {
                prop_assert_eq!(Order::parse(&order.to_string()), Some(order));
            }
            if let Some(reply) = Reply::parse(&line) {
                prop_assert_eq!(Reply::parse(&reply.to_string()), Some(reply));
            }
        }
    }
}

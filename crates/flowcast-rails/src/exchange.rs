//! The many-messages test of section 5.8.1: send N messages, receive N messages, and divide the time by two.
//!
//! The measuring end announces each experiment to the answering end with an ordered message; the answer uses the same
//! scheduler and the same rails.

use std::time::{Duration, Instant};

use flowcast_scheduler::{
    RailSet,
    adaptive::AdaptiveRule,
    discipline::{Discipline, SchedulerName},
    split::SplitRule,
};
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{
    link::{LinkError, RailLink},
    policy::Steering,
    session::{DeliveryOrder, Refused},
};

/// Timeout for each receive or send; the end gives the conversation up after it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for the last acknowledgement; a silent rail is given up earlier.
const LAST: Duration = Duration::from_secs(5);

/// Reason why a test ended early.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// A rail failed, and no other was left.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The link failed while numbered messages were counted.
    #[error("{source}: {arrived} of {messages} messages had arrived")]
    Interrupted {
        /// Fault that ended the link.
        source: LinkError,
        /// Lower bound of the messages acknowledged by the other end. At the receiving end, the number of messages that
        /// arrived.
        arrived: u64,
        /// Total number of messages in the count.
        messages: u64,
    },
    /// The other end sent an unexpected message.
    #[error("the other end sent `{found}`, expected {expected}")]
    Protocol {
        /// Text of the unexpected message.
        found: String,
        /// Description of the expected message.
        expected: &'static str,
    },
}

/// Choice of rails for the messages of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailChoices {
    /// The scheduler that picks the rail of each message.
    pub scheduler: SchedulerName,
    /// `true` if the scheduler's parameters follow the rails (earliest delivery only).
    pub adapts: bool,
    /// Rule for the division of long messages (earliest delivery only).
    pub split: Option<SplitRule>,
    /// Rails that messages may use.
    pub rails: RailSet,
}

/// One size of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeTest {
    /// N: messages in each direction of a repetition.
    pub messages: u32,
    /// Bytes of each message.
    pub size: Bytes,
    /// Number of repetitions, each timed separately.
    pub repetitions: u32,
}

/// Findings of the receiver of a stream of numbered messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Audit {
    /// Messages delivered to the receiver.
    pub received: u64,
    /// Messages whose number was not the successor of the previous one.
    pub out_of_order: u64,
    /// Messages whose content differed from the sent content.
    pub spoilt: u64,
    /// Messages that the transport received twice and delivered once.
    pub repeated: u64,
    /// Rails lost at the receiving end.
    pub rails_lost: u64,
}

impl RailChoices {
    fn steering(&self) -> Steering {
        match self.split {
            split if self.adapts => Steering::Adaptive(live_rule(), split),
            Some(rule) if self.scheduler == SchedulerName::new(Discipline::EarliestDelivery) => {
                Steering::Dividing(rule)
            }
            _ => Steering::Fixed(self.scheduler),
        }
    }

    fn text(&self) -> String {
        let how = if self.adapts { "adaptive" } else { "fixed" };
        let split = self.split.map_or("whole".into(), |rule| {
            format!("{}/{}", rule.from.0, rule.minimal_piece.0)
        });
        format!("{} {how} {split} {}", self.scheduler, self.rails.bits())
    }

    fn read<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<RailChoices> {
        let scheduler = words.next()?.parse().ok()?;
        let adapts = match words.next()? {
            "adaptive" => true,
            "fixed" => false,
            _ => return None,
        };
        let split = match words.next()? {
            "whole" => None,
            sizes => Some(read_split(sizes)?),
        };
        Some(RailChoices {
            scheduler,
            adapts,
            split,
            rails: RailSet::from_bits(words.next()?.parse().ok()?),
        })
    }
}

/// Parses `from/minimal piece`, both in bytes.
fn read_split(sizes: &str) -> Option<SplitRule> {
    let (from, piece) = sizes.split_once('/')?;
    let [from, minimal_piece] = [from, piece].map(|bytes| bytes.parse().ok().map(Bytes));
    Some(SplitRule {
        from: from?,
        minimal_piece: minimal_piece?,
        ..SplitRule::default()
    })
}

/// Rule for real processes. Messages wait for processors at both ends, so it requires more evidence than on an ideal rail.
pub(crate) fn live_rule() -> AdaptiveRule {
    let mut rule = AdaptiveRule {
        jitter: Time::from_micros(1000.0),
        ..AdaptiveRule::default()
    };
    rule.drift.evidence = Time::from_micros(10_000.0);
    rule.drift.tolerance = 0.5;
    rule
}

/// Task that the measuring end requests.
enum ExchangeTask {
    Exchange(RailChoices, ExchangeTest),
    Count(RailChoices, u64),
    End,
}

/// Runs an exchange and returns the time of each repetition.
///
/// # Errors
/// The link failed, or the other end does not follow the protocol.
pub fn exchange(
    link: &mut RailLink,
    course: RailChoices,
    exchange: ExchangeTest,
) -> Result<Vec<Time>, ExchangeError> {
    let ExchangeTest {
        messages,
        size,
        repetitions,
    } = exchange;
    check_size(link, size)?;
    notify(
        link,
        &format!(
            "exchange {} {messages} {} {repetitions}",
            course.text(),
            size.0
        ),
    )?;
    link.steer(course.steering(), course.rails)?;
    let message = vec![0x5a; size.0 as usize];
    (0..repetitions)
        .map(|_| -> Result<Time, ExchangeError> {
            let start = Instant::now();
            send_many(link, &message, messages)?;
            receive_many(link, messages)?;
            Ok(Time::from_seconds(start.elapsed().as_secs_f64()))
        })
        .collect()
}

/// Sends numbered messages and returns the other end's findings. Calls `observe` with the number of each message.
///
/// # Errors
/// The same as for [`exchange`]. [`ExchangeError::Interrupted`] contains the number of messages that had arrived.
pub fn count(
    link: &mut RailLink,
    course: RailChoices,
    messages: u64,
    size: Bytes,
    observe: &mut dyn FnMut(&mut RailLink, u64),
) -> Result<Audit, ExchangeError> {
    check_size(link, size)?;
    notify(link, &format!("count {} {messages}", course.text()))?;
    link.steer(course.steering(), course.rails)?;
    let mut message = vec![0; (size.0 as usize).max(8)];
    let interrupted = |link: &RailLink, source, sent: u64| {
        let arrived = sent.saturating_sub(link.session().outstanding());
        ExchangeError::Interrupted {
            source,
            arrived,
            messages,
        }
    };
    for number in 0..messages {
        fill(&mut message, number);
        link.send(&message, DeliveryOrder::Ordered, TIMEOUT)
            .map_err(|source| interrupted(link, source, number))?;
        observe(link, number);
    }
    let answer = link
        .receive(TIMEOUT)
        .map_err(|source| interrupted(link, source, messages))?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    Audit::read(&answer).ok_or(ExchangeError::Protocol {
        found: answer,
        expected: "the result of a count",
    })
}

/// Ends the conversation in good order.
///
/// # Errors
/// The same as for [`exchange`].
pub fn end(link: &mut RailLink) -> Result<(), ExchangeError> {
    link.send(b"end", DeliveryOrder::Ordered, TIMEOUT)?;
    // The other end may close its connection before we receive its last acknowledgement.
    match link.flush(LAST) {
        Ok(()) | Err(LinkError::Closed | LinkError::Silent(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Answers tasks until the other end sends `end` or stays silent for `idle` between two tasks.
///
/// # Errors
/// The same as for [`exchange`].
pub fn answer(link: &mut RailLink, idle: Duration) -> Result<(), ExchangeError> {
    loop {
        let text = String::from_utf8_lossy(&link.receive(idle)?).into_owned();
        match ExchangeTask::read(&text) {
            Some(ExchangeTask::Exchange(course, exchange)) => {
                answer_exchange(link, course, exchange)?
            }
            Some(ExchangeTask::Count(course, messages)) => answer_count(link, course, messages)?,
            Some(ExchangeTask::End) => {
                link.acknowledge();
                return Ok(());
            }
            None => {
                return Err(ExchangeError::Protocol {
                    found: text,
                    expected: "exchange, count or end",
                });
            }
        }
    }
}

fn answer_exchange(
    link: &mut RailLink,
    course: RailChoices,
    exchange: ExchangeTest,
) -> Result<(), ExchangeError> {
    check_size(link, exchange.size)?;
    link.steer(course.steering(), course.rails)?;
    let message = vec![0xa5; exchange.size.0 as usize];
    for _ in 0..exchange.repetitions {
        receive_many(link, exchange.messages)?;
        send_many(link, &message, exchange.messages)?;
    }
    Ok(())
}

fn answer_count(
    link: &mut RailLink,
    course: RailChoices,
    messages: u64,
) -> Result<(), ExchangeError> {
    link.steer(course.steering(), course.rails)?;
    let before = link.counts();
    let mut audit = Audit::default();
    let mut next = 0;
    for _ in 0..messages {
        let arrived = audit.received;
        let message = link
            .receive(TIMEOUT)
            .map_err(|source| ExchangeError::Interrupted {
                source,
                arrived,
                messages,
            })?;
        let number = message
            .first_chunk()
            .map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes));
        audit.received += 1;
        audit.out_of_order += u64::from(number != next);
        audit.spoilt += u64::from(!is_filled(&message, number));
        next = number.wrapping_add(1);
    }
    let counts = link.counts();
    audit.repeated = counts.repeated - before.repeated;
    audit.rails_lost = counts.rails_lost - before.rails_lost;
    Ok(link.send(audit.text().as_bytes(), DeliveryOrder::Ordered, TIMEOUT)?)
}

impl ExchangeTask {
    fn read(text: &str) -> Option<ExchangeTask> {
        let mut words = text.split(' ');
        match words.next()? {
            "end" => Some(ExchangeTask::End),
            "exchange" => {
                let course = RailChoices::read(&mut words)?;
                let (messages, size) = (
                    words.next()?.parse().ok()?,
                    Bytes(words.next()?.parse().ok()?),
                );
                Some(ExchangeTask::Exchange(
                    course,
                    ExchangeTest {
                        messages,
                        size,
                        repetitions: words.next()?.parse().ok()?,
                    },
                ))
            }
            "count" => Some(ExchangeTask::Count(
                RailChoices::read(&mut words)?,
                words.next()?.parse().ok()?,
            )),
            _ => None,
        }
    }
}

impl Audit {
    fn text(&self) -> String {
        let Audit {
            received,
            out_of_order,
            spoilt,
            repeated,
            rails_lost,
        } = self;
        format!("audit {received} {out_of_order} {spoilt} {repeated} {rails_lost}")
    }

    fn read(text: &str) -> Option<Audit> {
        let numbers: Option<Vec<u64>> = text
            .strip_prefix("audit ")?
            .split(' ')
            .map(|word| word.parse().ok())
            .collect();
        let [received, out_of_order, spoilt, repeated, rails_lost] = numbers?[..] else {
            return None;
        };
        Some(Audit {
            received,
            out_of_order,
            spoilt,
            repeated,
            rails_lost,
        })
    }
}

/// Fills a message: the first eight bytes are the number, the remaining bytes follow from it.
fn fill(message: &mut [u8], number: u64) {
    message[..8].copy_from_slice(&number.to_le_bytes());
    message[8..].fill(number as u8);
}

fn is_filled(message: &[u8], number: u64) -> bool {
    message
        .get(8..)
        .is_some_and(|rest| rest.iter().all(|byte| *byte == number as u8))
}

fn notify(link: &mut RailLink, text: &str) -> Result<(), LinkError> {
    link.send(text.as_bytes(), DeliveryOrder::Ordered, TIMEOUT)?;
    // The task message must not take part in the timing of the first messages.
    link.flush(TIMEOUT)
}

/// Checks the size before memory of that size is allocated.
fn check_size(link: &RailLink, size: Bytes) -> Result<(), LinkError> {
    let most = link.session().rule().longest;
    let found = usize::try_from(size.0).unwrap_or(usize::MAX);
    if found <= most {
        Ok(())
    } else {
        Err(Refused::TooLong { found, most }.into())
    }
}

fn send_many(link: &mut RailLink, message: &[u8], count: u32) -> Result<(), LinkError> {
    (0..count).try_for_each(|_| link.send(message, DeliveryOrder::Ordered, TIMEOUT))
}

fn receive_many(link: &mut RailLink, count: u32) -> Result<(), LinkError> {
    (0..count).try_for_each(|_| link.receive(TIMEOUT).map(drop))
}

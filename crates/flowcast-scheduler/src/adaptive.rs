//! Earliest delivery on rails whose speed is estimated while they are used.
//!
//! The measured parameters determine the expected cost of a message. Each rail has a factor, its slowdown, which multiplies
//! g and G and gives the current cost. Callers report their observations in one of three ways for each rail:
//!
//! - [`Adaptive::completed`]: a message is known to have arrived (an acknowledgement, a completion). Rails keep their order,
//!   so a message occupied its rail from its assignment, or the departure of the previous message, until its own departure.
//! - [`Adaptive::drained`]: the number of bytes in the rail's send queue. This needs no acknowledgement: the bytes that left
//!   while the queue was never empty give the rate. On TCP the kernel's queue (`SIOCOUTQ`) is such a number.
//! - [`Adaptive::late`]: the receiver observed an inversion (section 4.5).
//!
//! Every report also corrects the virtual finish time, so that errors of single predictions do not accumulate (section 4.6
//! relies on idle times for that). [`Adaptive::overdue`] counts the silence of a rail as an observation: a message that has
//! not arrived yet took at least that long. A rail that lost its share is occasionally probed with one short message, so
//! that its recovery is detected. `pick` uses no allocation, division or floating point.

use super::{
    MAX_RAILS, RailId, RailScheduler, RailSet, RailsError,
    clock::{ClockArithmetic, Ticks},
    drift::{Drift, DriftRule, DriftVerdict},
    remeasure::Remeasure,
    rules::EarliestDelivery,
    split::{Divider, Split, SplitRule},
    table::{Accounting, RailTable},
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time, TimePerByte};

/// Parameters of the observation of rails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptiveRule {
    /// Rule for the detection of a changed rail.
    pub drift: DriftRule,
    /// Time from a message's arrival until its completion is seen, beyond the rail's own latency.
    pub completion_delay: Time,
    /// Delay of a message on an idle rail by waiting for a processor; it does not count as a slowdown.
    pub jitter: Time,
    /// Time without use or report after which a rail that lost its share is probed.
    pub probe_after: Time,
    /// Longest expected duration of a message that probes.
    pub longest_probe: Time,
    /// Interval without an inversion after which a slowdown known from inversions alone shrinks by a fifth, repeatedly.
    pub forget_after: Time,
}

impl Default for AdaptiveRule {
    fn default() -> AdaptiveRule {
        AdaptiveRule {
            drift: DriftRule::default(),
            completion_delay: Time::ZERO,
            jitter: Time::from_micros(100.0),
            probe_after: Time::from_micros(10_000.0),
            longest_probe: Time::from_micros(5000.0),
            forget_after: Time::from_micros(20_000.0),
        }
    }
}

/// A message that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Length of the message.
    pub size: Bytes,
    /// Time at which the message was assigned to the rail.
    pub given: Ticks,
    /// Time at which the message was known to have arrived.
    pub seen: Ticks,
}

/// A message that arrived after one with a later expected arrival. Each message carries the instant at which its sender
/// expects it to arrive (section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inversion {
    /// Rail of the late message.
    pub rail: RailId,
    /// Rail of the message that arrived first. Unless this rail is faster than estimated, the other is slower.
    pub overtaken_by: RailId,
    /// Expected arrival of the late message.
    pub stamp: Ticks,
    /// Lower bound of the delay.
    pub by: Ticks,
}

/// Chooses the earliest delivery by the current estimates of the rails.
#[derive(Debug, Clone)]
pub struct Adaptive {
    believed: RailTable<Ticks>,
    measured: RailTable<Ticks>,
    watches: [AdaptiveWatch; MAX_RAILS],
    rule: AdaptiveRule,
    ticks: RuleTicks,
    degraded: RailSet,
    divider: Option<Divider>,
}

/// Times of the rule in the arithmetic of the message path.
#[derive(Debug, Clone, Copy)]
struct RuleTicks {
    jitter: Ticks,
    probe_after: Ticks,
    longest_probe: Ticks,
    evidence: Ticks,
    forget_after: Ticks,
}

/// Observations of one rail, beside its table entry.
#[derive(Debug, Clone, Copy)]
struct AdaptiveWatch {
    cost: LogGp,
    drift: Drift,
    remeasure: Remeasure,
    /// Expected time of the messages assigned and not completed, at slowdown 1.
    outstanding: Ticks,
    /// Longest expected time of one of these messages.
    longest: Ticks,
    /// Time at which the last completed message left, or the first outstanding one was assigned.
    busy_from: Ticks,
    /// Time from the departure of a message until its completion is seen.
    delay: Ticks,
    /// Time of the last use or report of the rail.
    heard: Ticks,
    /// Bytes assigned since the last report of the queue.
    given_bytes: u64,
    queue: Option<AdaptiveQueue>,
    /// Time of the last inversion that counted against the rail, largest stamp of the messages assigned before it, and
    /// lateness of the rail.
    inverted: Option<Ticks>,
    corrected: Ticks,
    late_by: Ticks,
}

/// A report of a send queue.
#[derive(Debug, Clone, Copy)]
struct AdaptiveQueue {
    at: Ticks,
    bytes: u64,
}

impl Adaptive {
    /// Creates a scheduler for idle rails that match their measured parameters.
    ///
    /// # Errors
    /// No rail, or more than [`MAX_RAILS`].
    pub fn new(rails: &[LogGp], rule: AdaptiveRule) -> Result<Adaptive, RailsError> {
        let measured = RailTable::new(rails, ())?;
        Ok(Adaptive {
            believed: measured.clone(),
            measured,
            watches: std::array::from_fn(|index: usize| {
                AdaptiveWatch::new(rails[index.min(rails.len() - 1)], &rule)
            }),
            rule,
            ticks: RuleTicks {
                jitter: ticks(rule.jitter),
                probe_after: ticks(rule.probe_after),
                longest_probe: ticks(rule.longest_probe),
                evidence: ticks(rule.drift.evidence),
                forget_after: ticks(rule.forget_after),
            },
            degraded: RailSet::NONE,
            divider: None,
        })
    }

    /// Makes the scheduler divide long messages by the current estimates.
    #[must_use]
    pub fn dividing(self, rule: SplitRule) -> Adaptive {
        let costs: Vec<LogGp> = self.watches[..self.measured.entries().len()]
            .iter()
            .map(|watch| watch.cost)
            .collect();
        Adaptive {
            divider: Some(Divider::new(&costs, rule)),
            ..self
        }
    }

    /// Returns the division of a message that is ready at `now` over rails of `usable`, or `None` if it should stay whole.
    /// Accounts for nothing.
    pub fn divide(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<Split> {
        let divider = self.divider.as_ref()?;
        divider
            .plan(&self.believed, now, size, usable)
            .filter(|split| split.rails() > 1)
    }

    /// Accounts for a piece of a divided message.
    pub fn give(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        self.believed.give(rail, now, size);
        self.book(rail, now, size);
    }

    /// Estimated slowdown of `rail` relative to its measured parameters.
    pub fn slowdown(&self, rail: RailId) -> f64 {
        self.watches[rail.index()].drift.slowdown()
    }

    /// Number of detected changes of `rail`.
    pub fn changes(&self, rail: RailId) -> u64 {
        self.watches[rail.index()].drift.changes()
    }

    /// Current parameters of `rail`, estimated from the messages that it carried. `None` unless the sequential test finds
    /// that they differ from the measured ones, and `None` if the traffic does not suffice for a verdict.
    pub fn remeasured(&self, rail: RailId) -> Option<LogGp> {
        self.watches[rail.index()].remeasure.found()
    }

    /// Reports that messages assigned to `rail` have arrived, in the order of their assignment. Messages reported at the
    /// same time count as one piece of work: their individual departures are unknown, and the first alone would seem to have
    /// taken all the time.
    pub fn completed(&mut self, rail: RailId, together: impl IntoIterator<Item = Completion>) {
        let (mut took, mut expected, mut idle) = (Ticks::ZERO, Ticks::ZERO, None);
        let (mut messages, mut bytes) = (0, 0u64);
        for completion in together {
            messages += 1;
            bytes = bytes.saturating_add(completion.size.0);
            let own = self.expected(rail, completion.size);
            let watch = &mut self.watches[rail.index()];
            idle.get_or_insert(watch.busy_from <= completion.given);
            took = took.plus(watch.complete(completion, own));
            expected = expected.plus(own).bounded();
        }
        if idle == Some(true) {
            // Latencies vary by more than the duration of short messages. A delay that may be due to them does not count
            // against an idle rail.
            let jitter = self.ticks.jitter;
            took = if took < expected {
                took.plus(jitter).min(expected)
            } else {
                took.since(jitter).later(expected)
            };
        }
        if idle.is_none() {
            return;
        }
        let watch = &mut self.watches[rail.index()];
        let left = watch.busy_from;
        watch
            .remeasure
            .observe(messages, Bytes(bytes), took.time(()));
        let verdict = watch.drift.observe(took.time(()), expected.time(()));
        self.believe(rail, verdict);
        self.correct(rail, left);
    }

    /// Reports that `rail` carried something until `seen`, perhaps messages of another scheduler. The following messages
    /// started later.
    pub fn was_busy(&mut self, rail: RailId, seen: Ticks) {
        let watch = &mut self.watches[rail.index()];
        watch.busy_from = watch.busy_from.later(seen.since(watch.delay));
    }

    /// Reports that `bytes` bytes wait in the send queue of `rail` at `now`.
    pub fn drained(&mut self, rail: RailId, now: Ticks, bytes: Bytes) {
        let watch = &mut self.watches[rail.index()];
        let before = watch.queue.replace(AdaptiveQueue {
            at: now,
            bytes: bytes.0,
        });
        let given = std::mem::take(&mut watch.given_bytes);
        watch.outstanding = Ticks::ZERO;
        let busy_from = match before {
            Some(before) if before.bytes > 0 => before.at,
            _ if given > 0 => watch
                .busy_from
                .later(before.map_or(Ticks::ZERO, |before| before.at)),
            _ => return,
        };
        let drained = (before.map_or(0, |before| before.bytes) + given).saturating_sub(bytes.0);
        let elapsed = now.since(busy_from);
        let expected =
            self.measured.entries()[rail.index()].transfer(self.measured.tail(Bytes(drained + 1)));
        let watch = &mut self.watches[rail.index()];
        // A queue that ran empty was idle for part of the time. That may prove speed, but never slowness.
        let at_most = Ticks::from_time(expected.time(()) * watch.drift.slowdown(), ());
        let observed = if bytes.0 > 0 {
            elapsed
        } else {
            elapsed.min(at_most)
        };
        watch.heard = now;
        let verdict = watch.drift.observe(observed.time(()), expected.time(()));
        self.believe(rail, verdict);
        let waiting = self.believed.entries()[rail.index()].transfer(self.believed.tail(bytes));
        self.believed.set_virtual_finish(rail, now.plus(waiting));
    }

    /// Reports an inversion that the receiver observed.
    ///
    /// If the rail of the first message is estimated to be slow, it may have recovered: its slowdown is divided by 1.5.
    /// Otherwise the other rail is late by `by`. This time is added to its virtual finish time, minus the corrections for
    /// messages sent before. Its slowdown is doubled if the late message was sent after the last such correction.
    pub fn late(&mut self, now: Ticks, inversion: Inversion) {
        let Inversion {
            rail,
            overtaken_by,
            stamp,
            by,
        } = inversion;
        let first = &mut self.watches[overtaken_by.index()];
        if first.inverted.is_some() && first.drift.slowdown() > 1.0 {
            first.drift.replace((first.drift.slowdown() / 1.5).max(1.0));
            self.believe(overtaken_by, DriftVerdict::Steady);
            let sooner = self.virtual_finish(overtaken_by).since(by);
            return self.believed.set_virtual_finish(overtaken_by, sooner);
        }
        let finish = self.virtual_finish(rail);
        let watch = &mut self.watches[rail.index()];
        (watch.inverted, watch.heard, watch.outstanding) = (Some(now), now, Ticks::ZERO);
        let known = if stamp > watch.corrected {
            watch.corrected = finish.plus(watch.delay);
            watch.drift.replace(watch.drift.slowdown() * 2.0);
            Ticks::ZERO
        } else {
            watch.late_by
        };
        watch.late_by = known.later(by);
        self.believe(rail, DriftVerdict::Steady);
        self.believed
            .set_virtual_finish(rail, finish.plus(by.since(known)));
    }

    /// Reports that a message assigned to `rail` will not be sent over it.
    pub fn taken_back(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        let expected = self.expected(rail, size);
        let watch = &mut self.watches[rail.index()];
        watch.outstanding = watch.outstanding.since(expected);
        if watch.outstanding == Ticks::ZERO {
            watch.longest = Ticks::ZERO;
        }
        self.correct(rail, self.watches[rail.index()].busy_from.later(now));
    }

    /// Accounts for the silence of rails. Call it occasionally, and at the latest before an important decision.
    pub fn overdue(&mut self, now: Ticks) {
        for rail in self.measured.all() {
            let watch = &mut self.watches[rail.index()];
            if watch
                .inverted
                .is_some_and(|last| self.ticks.forget_after < now.since(last))
            {
                let faded = watch.drift.slowdown() * 0.8;
                watch.inverted = (faded > 1.0).then_some(now);
                watch.drift.replace(faded.max(1.0));
                self.believe(rail, DriftVerdict::Changed);
            } else if watch.outstanding > Ticks::ZERO
                && watch.queue.is_none()
                && watch.inverted.is_none()
            {
                self.count_silence(rail, now);
            }
        }
    }

    /// Counts silence as an observation. The longest outstanding message stands for the next one to complete, which is
    /// unknown here.
    fn count_silence(&mut self, rail: RailId, now: Ticks) {
        let watch = &mut self.watches[rail.index()];
        let waited = now.since(watch.delay).since(watch.busy_from);
        let longest = watch.longest.time(());
        let allowed = Ticks::from_time(longest * (2.0 * watch.drift.slowdown()), ())
            .plus(self.ticks.evidence);
        if waited > allowed {
            let at_least = waited.time(()).as_nanos() / longest.as_nanos().max(1.0);
            watch.drift.replace(at_least.max(watch.drift.slowdown()));
            self.believe(rail, DriftVerdict::Changed);
            self.correct(rail, now.since(self.watches[rail.index()].delay));
        }
    }

    /// Expected time of a message at the measured parameters: `g + G(s-1)`.
    #[inline]
    fn expected(&self, rail: RailId, size: Bytes) -> Ticks {
        let entry = &self.measured.entries()[rail.index()];
        entry.gap.plus(entry.transfer(self.measured.tail(size)))
    }

    /// Updates the table to the estimated slowdown. Small steps accumulate first.
    fn believe(&mut self, rail: RailId, verdict: DriftVerdict) {
        let watch = &self.watches[rail.index()];
        let slowdown = watch.drift.slowdown();
        let per_byte = TimePerByte::from_nanos(watch.cost.gap_per_byte.as_nanos() * slowdown);
        let cost = LogGp {
            gap: watch.cost.gap * slowdown,
            gap_per_byte: per_byte,
            ..watch.cost
        };
        self.believed.set_cost(rail, &cost, ());
        if let Some(divider) = &mut self.divider {
            divider.set_cost(rail, &cost);
        }
        let degraded = slowdown > 1.0 + self.rule.drift.tolerance;
        self.degraded = if degraded {
            self.degraded.with(rail)
        } else {
            self.degraded.without(rail)
        };
        if verdict == DriftVerdict::Changed {
            self.correct(rail, self.watches[rail.index()].busy_from);
        }
    }

    /// Corrects the virtual finish time: the outstanding messages are sent from `left` on, at the estimated speed.
    fn correct(&mut self, rail: RailId, left: Ticks) {
        let watch = &self.watches[rail.index()];
        let until = left.plus(Ticks::from_time(
            watch.outstanding.time(()) * watch.drift.slowdown(),
            (),
        ));
        let believed = self.virtual_finish(rail);
        let corrected = if until < believed {
            until
        } else {
            believed.later(until.since(self.ticks.jitter))
        };
        self.believed.set_virtual_finish(rail, corrected);
    }

    /// Returns a slowed-down rail that is due for a probe.
    #[cold]
    fn probe(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        usable
            .and(self.degraded)
            .and(self.measured.all())
            .find(|rail: &RailId| {
                let watch = &self.watches[rail.index()];
                let entry = &self.believed.entries()[rail.index()];
                let takes = entry.gap.plus(entry.transfer(self.believed.tail(size)));
                self.ticks.probe_after < now.since(watch.heard)
                    && entry.virtual_finish <= now
                    && takes <= self.ticks.longest_probe
            })
    }

    #[inline]
    fn book(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        let expected = self.expected(rail, size);
        let watch = &mut self.watches[rail.index()];
        if watch.outstanding == Ticks::ZERO {
            watch.busy_from = watch.busy_from.later(now);
        }
        watch.outstanding = watch.outstanding.plus(expected).bounded();
        watch.longest = watch.longest.later(expected);
        watch.heard = now;
        watch.given_bytes = watch.given_bytes.wrapping_add(size.0);
    }
}

fn ticks(time: Time) -> Ticks {
    Ticks::from_time(time, ())
}

impl AdaptiveWatch {
    fn new(cost: LogGp, rule: &AdaptiveRule) -> AdaptiveWatch {
        AdaptiveWatch {
            cost,
            drift: Drift::new(rule.drift),
            remeasure: Remeasure::new(cost, rule.drift.tolerance),
            outstanding: Ticks::ZERO,
            longest: Ticks::ZERO,
            busy_from: Ticks::ZERO,
            delay: Ticks::from_time(
                cost.overhead * 2.0 + cost.latency + rule.completion_delay,
                (),
            ),
            heard: Ticks::ZERO,
            given_bytes: 0,
            queue: None,
            inverted: None,
            corrected: Ticks::ZERO,
            late_by: Ticks::ZERO,
        }
    }

    /// Records the arrival of a message with the expected time `expected`. Returns the time for which it occupied the rail.
    fn complete(&mut self, completion: Completion, expected: Ticks) -> Ticks {
        let left = completion.seen.since(self.delay);
        let took = left.since(self.busy_from.later(completion.given));
        self.busy_from = self.busy_from.later(left);
        self.heard = self.heard.later(completion.seen);
        self.outstanding = self.outstanding.since(expected);
        if self.outstanding == Ticks::ZERO {
            self.longest = Ticks::ZERO;
        }
        took
    }
}

impl RailScheduler<Ticks> for Adaptive {
    #[inline]
    fn pick(&mut self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        let asked = self
            .believed
            .timing_of_message(now, size, Accounting::FromTheClock);
        let due = if self.degraded.is_empty() {
            None
        } else {
            self.probe(now, size, usable)
        };
        let usable = due.map_or(usable, |rail| RailSet::NONE.with(rail));
        let rail = self.believed.take::<EarliestDelivery>(asked, usable)?;
        self.book(rail, now, size);
        Some(rail)
    }

    #[inline]
    fn virtual_finish(&self, rail: RailId) -> Ticks {
        self.believed.entries()[rail.index()].virtual_finish
    }

    fn restart_clock(&mut self, elapsed: Ticks) {
        self.believed.restart_clock(elapsed);
        for watch in &mut self.watches {
            watch.busy_from = watch.busy_from.since(elapsed);
            watch.heard = watch.heard.since(elapsed);
            watch.queue = watch.queue.map(|queue| AdaptiveQueue {
                at: queue.at.since(elapsed),
                ..queue
            });
            watch.inverted = watch.inverted.map(|at| at.since(elapsed));
            watch.corrected = watch.corrected.since(elapsed);
        }
    }
}

//! Overhead that depends on size, on a processor that all rails share.
//!
//! The thesis ends (section 5.8.6) with the finding that two fast rails are no faster than one if the processor takes longer
//! to prepare a message than the rail takes to send it. It names overhead that depends on size as future work. In this
//! module a message of `s` bytes occupies the processor of each side for `o(s) = o + O(s-1)`, and the sender prepares the
//! messages one after the other, independent of their rails:
//!
//! `begin = max(arrival, processor free)`, `processor free = begin + o(s)`, `start = max(rail free, begin)`,
//! `delivered = start + 2·o(s) + L + G(s-1)`, `rail free = start + g + G(s-1)`.
//!
//! Without overhead this is rule E0 of [`super::schedule`].

use super::{
    MAX_RAILS, Rail, RailId, RailScheduler, RailSet, RailsError,
    clock::{ClockArithmetic, Exact},
    discipline::{Discipline, SchedulerName},
    entry::RailEntry,
    schedule::{
        self, BelievedSchedule, RailMessage, RailSchedule, check_choices, check_order, run,
    },
    table::{Accounting, RailTable},
    turns::Shares,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time, TimePerByte};

/// A rail whose overhead depends on size.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SizedCost {
    /// LogGP parameters; the overhead applies to a message of one byte.
    pub cost: LogGp,
    /// `O`: overhead of each further byte.
    pub overhead_per_byte: TimePerByte,
}

impl SizedCost {
    /// Returns the cost of a rail.
    pub fn from_rail(rail: &Rail) -> SizedCost {
        SizedCost {
            cost: rail.cost,
            overhead_per_byte: rail.overhead_per_byte,
        }
    }

    /// Processor time of a message of this size, on each side: `o(s) = o + O(s-1)`.
    pub fn overhead(&self, size: Bytes) -> Time {
        self.cost.overhead
            + self
                .overhead_per_byte
                .time_for(Bytes(size.0.saturating_sub(1)))
    }

    /// Time of a message from start to delivery: `2·o(s) + L + G(s-1)`.
    pub fn one_way(&self, size: Bytes) -> Time {
        self.overhead(size) * 2.0 + self.cost.latency + self.cost.transfer(size)
    }
}

/// Chooses the earliest delivery, including the processor's time.
#[derive(Debug, Clone)]
pub struct ProcessorAware<M: ClockArithmetic> {
    table: RailTable<M>,
    overhead_per_byte: [M::PerByte; MAX_RAILS],
    longest_tail: u64,
    processor_free: M,
}

impl<M: ClockArithmetic> ProcessorAware<M> {
    /// Creates a scheduler for idle rails and an idle processor.
    ///
    /// # Errors
    /// No rail, or more than [`MAX_RAILS`].
    pub fn new(rails: &[SizedCost], scale: M::Scale) -> Result<ProcessorAware<M>, RailsError> {
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let table = RailTable::new(&costs, scale)?;
        let overhead_per_byte = std::array::from_fn(|index: usize| {
            M::per_byte(
                rails
                    .get(index)
                    .map_or(TimePerByte::from_nanos(0.0), |rail| rail.overhead_per_byte),
                scale,
            )
        });
        let longest_tail = overhead_per_byte
            .iter()
            .map(|rail| M::longest_tail(*rail))
            .min()
            .unwrap_or(0);
        Ok(ProcessorAware {
            table,
            overhead_per_byte,
            longest_tail,
            processor_free: M::ZERO,
        })
    }

    /// Overhead that depends on the size: `O(s-1)`.
    #[inline]
    fn extra(&self, rail: RailId, tail: u64) -> M {
        M::transfer(self.overhead_per_byte[rail.index()], tail)
    }

    #[inline]
    fn delivery(&self, rail: RailId, begin: M, tail: u64) -> M {
        let entry: &RailEntry<M> = &self.table.entries()[rail.index()];
        let extra = self.extra(rail, tail);
        entry
            .start(begin)
            .plus(entry.end_to_end)
            .plus(entry.transfer(tail))
            .plus(extra)
            .plus(extra)
    }
}

impl<M: ClockArithmetic> RailScheduler<M> for ProcessorAware<M> {
    #[inline]
    fn pick(&mut self, now: M, size: Bytes, usable: RailSet) -> Option<RailId> {
        let tail = self.table.tail(size).min(self.longest_tail);
        let begin = now.later(self.processor_free).bounded();
        let mut rails = usable.and(self.table.all());
        let mut best = rails.next()?;
        let mut earliest = self.delivery(best, begin, tail);
        for rail in rails {
            let delivery = self.delivery(rail, begin, tail);
            if delivery.is_before(earliest) {
                (best, earliest) = (rail, delivery);
            }
        }
        let entry = &self.table.entries()[best.index()];
        let (overhead, busy) = (
            entry.overhead.plus(self.extra(best, tail)),
            entry.gap.plus(entry.transfer(tail)),
        );
        self.processor_free = begin.plus(overhead).bounded();
        self.table
            .account(best, begin, busy, Accounting::FromTheClock);
        Some(best)
    }

    fn virtual_finish(&self, rail: RailId) -> M {
        self.table.entries()[rail.index()].virtual_finish
    }

    fn restart_clock(&mut self, elapsed: M) {
        self.table.restart_clock(elapsed);
        self.processor_free = self.processor_free.since(elapsed);
    }
}

/// Lets a scheduler choose for all messages, and includes the processor's time; `earliest-delivery` takes it into account in
/// its choices.
///
/// # Errors
/// The same as for [`super::schedule::simulate`].
pub fn simulate(
    name: SchedulerName,
    rails: &[SizedCost],
    shares: Shares,
    messages: &[RailMessage],
) -> Result<BelievedSchedule, RailsError> {
    check_order(messages)?;
    if name == SchedulerName::new(Discipline::EarliestDelivery) {
        let (choices, virtual_finish) =
            run(&mut ProcessorAware::<Exact>::new(rails, ())?, (), messages);
        return Ok(BelievedSchedule {
            schedule: evaluate(rails, messages, choices)?,
            virtual_finish,
        });
    }
    let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
    let BelievedSchedule {
        schedule,
        virtual_finish,
    } = schedule::simulate(name, &costs, shares, messages)?;
    Ok(BelievedSchedule {
        schedule: evaluate(rails, messages, schedule.choices)?,
        virtual_finish,
    })
}

/// Computes the arrival of each message on its chosen rail, including the processor's time.
///
/// # Errors
/// The same as for [`super::schedule::evaluate`].
pub fn evaluate(
    rails: &[SizedCost],
    messages: &[RailMessage],
    choices: Vec<RailId>,
) -> Result<RailSchedule, RailsError> {
    check_choices(rails.len(), messages, &choices)?;
    let mut free = [Time::ZERO; MAX_RAILS];
    let mut processor_free = Time::ZERO;
    let delivered = messages
        .iter()
        .zip(&choices)
        .map(|(message, rail): (&RailMessage, &RailId)| {
            let cost = &rails[rail.index()];
            let begin = message.arrival.max(processor_free);
            let start = begin.max(free[rail.index()]);
            processor_free = begin + cost.overhead(message.size);
            free[rail.index()] = start + cost.cost.spacing(message.size);
            start + cost.one_way(message.size)
        })
        .collect();
    Ok(RailSchedule::new(choices, delivered))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{rules::EarliestDelivery, virtual_time::VirtualTime},
        *,
    };
    use proptest::prelude::*;

    fn rail(
        gap: f64,
        per_byte: f64,
        overhead: f64,
        latency: f64,
        overhead_per_byte: f64,
    ) -> SizedCost {
        let cost = LogGp {
            gap: Time::from_micros(gap),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
            overhead: Time::from_micros(overhead),
            latency: Time::from_micros(latency),
        };
        SizedCost {
            cost,
            overhead_per_byte: TimePerByte::from_nanos(overhead_per_byte),
        }
    }

    fn burst(count: usize, size: u64) -> Vec<RailMessage> {
        vec![
            RailMessage {
                arrival: Time::ZERO,
                size: Bytes(size)
            };
            count
        ]
    }

    fn chosen(rails: &[SizedCost], messages: &[RailMessage]) -> Vec<RailId> {
        run(
            &mut ProcessorAware::<Exact>::new(rails, ()).unwrap(),
            (),
            messages,
        )
        .0
    }

    #[test]
    fn a_message_waits_for_the_processor_then_for_its_rail() {
        let rails = [
            rail(1.0, 100.0, 2.0, 10.0, 50.0),
            rail(1.0, 100.0, 2.0, 10.0, 50.0),
        ];
        let schedule =
            evaluate(&rails, &burst(3, 21), vec![RailId(0), RailId(1), RailId(0)]).unwrap();
        let micros: Vec<f64> = schedule
            .delivered
            .iter()
            .map(|time| time.as_micros())
            .collect();
        // o(21) = 3 us, busy 3 us, one way 2*3 + 10 + 2: the processor alone determines the pace.
        assert_eq!(micros, [18.0, 21.0, 24.0]);
    }

    #[test]
    fn a_rail_that_costs_more_processor_time_than_it_saves_is_not_used() {
        // Section 5.8.6: TCP occupies the processor for longer than InfiniBand needs for the whole message.
        let rails = [
            rail(1.4, 1.03, 1.4, 2.82, 0.0),
            rail(0.897, 8.49, 6.1, 20.0, 2.0),
        ];
        let burst = burst(64, 2048);
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let mut blind =
            VirtualTime::<EarliestDelivery, Exact>::new(&costs, Accounting::FromTheClock, ())
                .unwrap();
        let blind = run(&mut blind, (), &burst).0;
        let [aware, blind] = [chosen(&rails, &burst), blind]
            .map(|choices| evaluate(&rails, &burst, choices).unwrap());
        assert!(
            blind.choices.contains(&RailId(1)),
            "the blind scheduler uses the second rail"
        );
        assert!(
            aware.makespan < blind.makespan,
            "{} {}",
            aware.makespan,
            blind.makespan
        );
    }

    proptest! {
        #[test]
        fn without_overhead_choices_and_deliveries_equal_those_of_e0(
            numbers in prop::collection::vec((1u32..90, 1u32..20, 0u32..90), 1..=6),
            messages in prop::collection::vec((0u64..50, 1u64..100_000), 0..40),
        ) {
            let rails: Vec<SizedCost> = numbers.iter()
                .map(|(gap, per_byte, latency)| rail(f64::from(*gap), f64::from(*per_byte), 0.0, f64::from(*latency), 0.0))
                .collect();
            let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
            let mut now = 0;
            let messages: Vec<RailMessage> = messages.into_iter().map(|(pause, size)| {
                now += pause;
                RailMessage { arrival: Time::from_micros(now as f64), size: Bytes(size) }
            }).collect();
            let mut plain = VirtualTime::<EarliestDelivery, Exact>::new(&costs, Accounting::FromTheClock, ()).unwrap();
            let plain = run(&mut plain, (), &messages).0;
            let ours = chosen(&rails, &messages);
            prop_assert_eq!(&ours, &plain);
            prop_assert_eq!(
                evaluate(&rails, &messages, ours).unwrap(),
                schedule::evaluate(&costs, &messages, plain).unwrap()
            );
        }
    }
}

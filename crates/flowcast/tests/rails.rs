//! Properties of all schedulers, independent of their rules.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use flowcast::{
    model::loggp::LogGp,
    scheduler::{
        Accounting, RailId, RailScheduler, RailSet,
        adaptive::{Adaptive, AdaptiveRule},
        clock::{ClockArithmetic, Exact, Ticks},
        discipline::{BoxedScheduler, Discipline, SchedulerName},
        processor::{ProcessorAware, SizedCost},
        rules::EarliestDelivery,
        schedule::{RailMessage, run, simulate},
        shared::SharedVirtualTime,
        turns::Shares,
    },
    units::{Bytes, Time, TimePerByte},
};
use proptest::prelude::*;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged.
#[expect(unsafe_code, reason = "an allocator that counts")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn rail(gap: f64, per_byte: f64, overhead: f64, latency: f64) -> LogGp {
    LogGp {
        gap: Time::from_micros(gap),
        gap_per_byte: TimePerByte::from_micros(per_byte),
        overhead: Time::from_micros(overhead),
        latency: Time::from_micros(latency),
    }
}

fn thesis() -> Vec<LogGp> {
    vec![
        rail(1.4, 0.00103, 1.4, 2.82),
        rail(3.4, 0.00409, 1.9, 24.3),
        rail(0.897, 0.00849, 6.1, 65.4),
    ]
}

/// Parameters with up to seven decimals of a microsecond, the resolution of ticks.
fn any_rail() -> impl Strategy<Value = LogGp> {
    (
        0u32..50_000_000,
        0u32..200_000,
        0u32..90_000_000,
        0u32..900_000_000,
    )
        .prop_map(|(g, per_byte, o, l)| {
            let micros = |ten_millionths: u32| f64::from(ten_millionths) / 1e7;
            rail(micros(g), micros(per_byte), micros(o), micros(l))
        })
}

/// Messages with pauses in nanoseconds, and sizes.
fn any_messages() -> impl Strategy<Value = Vec<RailMessage>> {
    prop::collection::vec((0u64..20_000, 0u64..200_000), 0..60).prop_map(|pairs| {
        let mut now = 0;
        let message = |(pause, size)| {
            now += pause;
            RailMessage {
                arrival: Time::from_nanos(now as f64),
                size: Bytes(size),
            }
        };
        pairs.into_iter().map(message).collect()
    })
}

fn any_name() -> impl Strategy<Value = SchedulerName> {
    prop::sample::select(SchedulerName::every().collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn one_rail_takes_every_message(name in any_name(), rail in any_rail(), messages in any_messages()) {
        let rails = [rail];
        let found = simulate(name, &rails, Shares::by_bandwidth(&rails).unwrap(), &messages).unwrap();
        prop_assert!(found.schedule.choices.iter().all(|rail| *rail == RailId(0)));
    }

    #[test]
    fn equal_rails_and_sizes_are_served_in_turn(
        name in any_name(),
        rail in any_rail(),
        count in 1usize..=16,
        size in 1u64..100_000,
    ) {
        prop_assume!(rail.gap > Time::ZERO);
        // Rows of one message: with longer rows, weighted round robin differs from round robin.
        let (rails, shares) = (vec![rail; count], Shares::new(&vec![1; count]).unwrap());
        let messages = vec![RailMessage { arrival: Time::ZERO, size: Bytes(size) }; 3 * count];
        let found = simulate(name, &rails, shares, &messages).unwrap();
        // A gap below a step of the ten printed bits counts as no gap.
        let visible = name.binary_point().is_none_or(|point| point.stored_per_byte(TimePerByte::from_nanos(rail.gap.as_nanos())) > 0);
        // A scheduler that prepares messages while the interface is busy gains nothing from a change within an overhead.
        let indifferent = matches!(name.discipline, Discipline::Overlap | Discipline::EarliestOverlap);
        for (index, choice) in found.schedule.choices.iter().enumerate() {
            prop_assert!(!visible || indifferent || choice.index() == index % count, "{name}: {choice} at {index}");
        }
    }

    #[test]
    fn a_virtual_finish_time_never_decreases(
        name in any_name(),
        rails in prop::collection::vec(any_rail(), 1..=16),
        messages in any_messages(),
        usable in prop::collection::vec(any::<u16>(), 60),
    ) {
        let mut scheduler = name.exact(&rails, Shares::by_bandwidth(&rails).unwrap()).unwrap();
        let finish = |scheduler: &dyn RailScheduler<Exact>| {
            RailSet::first(rails.len()).map(|rail| scheduler.virtual_finish(rail)).collect::<Vec<_>>()
        };
        let mut before = finish(scheduler.as_ref());
        for (message, usable) in messages.iter().zip(usable) {
            let usable = RailSet::from_bits(usable);
            let picked = scheduler.pick(Exact::from_time(message.arrival, ()), message.size, usable);
            let after = finish(scheduler.as_ref());
            prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
            prop_assert_eq!(picked.is_none(), usable.and(RailSet::first(rails.len())).is_empty());
            prop_assert!(picked.is_none_or(|rail| usable.contains(rail)));
            before = after;
        }
    }

    #[test]
    fn ticks_decide_as_exact_arithmetic_does(
        name in any_name(),
        rails in prop::collection::vec(any_rail(), 1..=16),
        messages in any_messages(),
    ) {
        let shares = Shares::by_bandwidth(&rails).unwrap();
        let ticks = run(name.scheduler::<Ticks>(&rails, shares, ()).unwrap().as_mut(), (), &messages);
        let exact = run(name.exact(&rails, shares).unwrap().as_mut(), (), &messages);
        prop_assert_eq!(ticks.0, exact.0);
    }

    #[test]
    fn moving_the_clocks_zero_changes_no_decision(
        name in any_name().prop_filter("knows the clock", |name| {
            let timeless = matches!(name.discipline, Discipline::Gap | Discipline::Vft);
            name.accounting == Accounting::FromTheClock && !timeless
        }),
        rails in prop::collection::vec(any_rail(), 1..=8),
        messages in any_messages(),
        at in 0usize..60,
    ) {
        let shares = Shares::by_bandwidth(&rails).unwrap();
        let mut plain = name.exact(&rails, shares).unwrap();
        let mut moved = name.exact(&rails, shares).unwrap();
        let zero = messages.get(at).map_or(Exact::ZERO, |message| Exact::from_time(message.arrival, ()));
        for (index, message) in messages.iter().enumerate() {
            let now = Exact::from_time(message.arrival, ());
            if index == at {
                moved.restart_clock(zero);
            }
            let own = if index < at { now } else { now.since(zero) };
            prop_assert_eq!(moved.pick(own, message.size, RailSet::ALL), plain.pick(now, message.size, RailSet::ALL));
        }
    }
}

#[test]
fn no_scheduler_allocates_while_it_picks() {
    let rails = thesis();
    let shares = Shares::by_bandwidth(&rails).unwrap();
    let shared = SharedVirtualTime::<EarliestDelivery>::new(&rails).unwrap();
    let named = |name: SchedulerName| {
        (
            name.to_string(),
            name.scheduler::<Ticks>(&rails, shares, ()).unwrap(),
        )
    };
    let sized = rails
        .iter()
        .map(|cost| SizedCost {
            cost: *cost,
            ..SizedCost::default()
        })
        .collect::<Vec<_>>();
    let mut all: Vec<(String, BoxedScheduler<Ticks>)> = SchedulerName::every().map(named).collect();
    all.push((
        "adaptive".into(),
        Box::new(Adaptive::new(&rails, AdaptiveRule::default()).unwrap()),
    ));
    all.push((
        "processor".into(),
        Box::new(ProcessorAware::<Ticks>::new(&sized, ()).unwrap()),
    ));
    for (name, mut scheduler) in all {
        let before = ALLOCATIONS.with(Cell::get);
        for message in 0..2000u64 {
            let usable = RailSet::from_bits((message % 8) as u16);
            scheduler.pick(
                Ticks::from_nanos(message * 700),
                Bytes(message * 37 % 5000),
                usable,
            );
            shared.pick(
                Ticks::from_nanos(message * 700),
                Bytes(message * 37 % 5000),
                usable,
            );
        }
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{name}");
    }
    assert_ne!(ALLOCATIONS.with(Cell::get), 0, "allocations are counted");
}

//! Memory of a journal for each message. A global allocator counts, so this test is a binary of its own.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io::Write,
    sync::atomic::{AtomicUsize, Ordering},
};

use flowcast::{
    convert::{
        generate::{ProgramShape, Workload},
        write,
    },
    observers::journal::{JournalContents, ReplayJournal},
    read_text,
    replay::{
        ReplayEngine,
        costs::Rendezvous,
        loggops::{self, Loggops, costs::LogGopsCosts},
        placement::Placement,
    },
    trace::Trace,
    units::{Bytes, Time, TimePerByte},
};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// Sound: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const TABLES: JournalContents = JournalContents {
    slices: false,
    calls: false,
    receipts: false,
    timeline: false,
};

/// A halo of 16 ranks with 128,000 messages.
fn halo(write: fn(ProgramShape, &mut dyn Write) -> std::io::Result<()>) -> Trace {
    let (size, compute) = (Bytes(8192), Time::from_nanos(10_000.0));
    let shape = ProgramShape {
        workload: Workload::Halo,
        ranks: 16,
        iterations: 2000,
        size,
        compute,
        jitter: 0.2,
        seed: 1,
        period: 0,
    };
    let mut text = Vec::new();
    write(shape, &mut text).unwrap();
    read_text("halo", text).unwrap()
}

/// Bytes for each message that remain allocated after `journal` has created and filled a journal.
fn bytes_a_message<J>(messages: usize, journal: impl FnOnce() -> J) -> f64 {
    let before = LIVE.load(Ordering::Relaxed);
    let journal = journal();
    let bytes = LIVE.load(Ordering::Relaxed) - before;
    drop(journal);
    bytes as f64 / messages as f64
}

#[test]
fn a_journal_keeps_only_the_data_of_messages_that_the_files_need() {
    let Trace::Schedule(schedule) = halo(write::goal) else {
        panic!("expected a schedule")
    };
    let parameters = Loggops {
        latency: Time::from_nanos(2000.0),
        overhead: Time::from_nanos(500.0),
        gap: Time::from_nanos(700.0),
        gap_per_byte: TimePerByte::from_nanos(1.0),
        eager_up_to: None,
    };
    let costs = LogGopsCosts {
        parameters,
        placed: None,
    };
    let layout = loggops::Layout::new(schedule, costs);
    let sends = layout.sends();
    let of_schedule = |keeps| {
        bytes_a_message(sends.count(), || {
            let mut journal = ReplayJournal::of_schedule(&sends, keeps);
            layout.observed(costs, &mut journal).unwrap().unwrap();
            journal
        })
    };
    let (tables, all) = (of_schedule(TABLES), of_schedule(JournalContents::FILES));
    assert!(
        (32.0..38.0).contains(&tables) && (48.0..90.0).contains(&all),
        "{tables} {all}"
    );

    let Trace::Program(program) = halo(write::dim) else {
        panic!("expected a program")
    };
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let placement = Placement::of_program(&network.machine, None, &program).unwrap();
    let engine = ReplayEngine::new(&program, &network, placement, Rendezvous::AsRecorded).unwrap();
    let of_program = |keeps| {
        bytes_a_message(program.messages() as usize, || {
            let mut journal = ReplayJournal::new(&program, keeps);
            engine.observed(&mut journal).unwrap();
            journal
        })
    };
    let (tables, all) = (of_program(TABLES), of_program(JournalContents::FILES));
    assert!(
        (40.0..46.0).contains(&tables) && (56.0..98.0).contains(&all),
        "{tables} {all}"
    );
}

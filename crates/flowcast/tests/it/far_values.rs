//! Generated, converted and exported traces can be read back, even with extreme times, sizes and rates. Values that cannot
//! be written are rejected before anything is written.

use std::{collections::BTreeMap, io};

use crate::protobuf::{Value, fields, one};
use flowcast::{
    Conversion, Options, Outputs, Prepared, TraceForm,
    convert::{
        WriterTables,
        generate::{ProgramShape, Workload},
        ti_rank, write,
    },
    hpl::{Broadcast, CallSpread, HplSettings, KernelRates, NodeProcessors, Pivots, Script, Swap},
    model::{
        builtin,
        cluster::{
            pattern::{self, Pattern},
            streaming::Stream,
        },
    },
    observers::journal::JournalContents,
    read_files, read_text,
    report::export::{
        Replayed,
        paraver::{self, Stamp},
        parquet, perfetto, tables,
    },
    trace::{Trace, compiled},
    units::{Bytes, Rank, Rate, Time},
};
use proptest::{prelude::*, sample::select};

type Written<E> = Result<Vec<u8>, E>;

/// The written bytes, or nothing at all.
fn written<E: std::fmt::Debug>(fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Written<E> {
    let mut bytes = Vec::new();
    match fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => {
            assert!(bytes.is_empty(), "half-written: {error:?}");
            Err(error)
        }
    }
}

/// Ranks and messages of the written trace, if there is one.
fn read_back<E: std::fmt::Debug>(form: &str, written: Written<E>) -> Option<(usize, u64)> {
    let bytes = written.ok()?;
    let trace = read_text(form, bytes);
    let trace = trace.unwrap_or_else(|error| panic!("{form}: {error}"));
    Some((trace.ranks(), trace.messages()))
}

fn read_actions(
    ranks: u32,
    mut write: impl FnMut(Rank, &mut Vec<u8>) -> io::Result<()>,
) -> Option<(usize, u64)> {
    let mut files = BTreeMap::new();
    for rank in 0..ranks {
        let bytes = written(|out| write(Rank(rank), out)).ok()?;
        files.insert(format!("rank{rank}.ti"), bytes);
    }
    let list: String = files.keys().map(|name| format!("{name}\n")).collect();
    files.insert("list".to_owned(), list.into_bytes());
    let trace = read_files("list", |name| Ok(files[name].clone()));
    let trace = trace.unwrap_or_else(|error| panic!("ti: {error}"));
    Some((trace.ranks(), trace.messages()))
}

/// Checks that all written forms of a trace can be read, with the same ranks and messages.
fn check_forms(trace: &Trace) {
    let expected = Some((trace.ranks(), trace.messages()));
    let fct = read_back("fct", written(|out| compiled::write(trace, out)));
    assert_eq!(fct, expected);
    for form in [TraceForm::Dim, TraceForm::Goal, TraceForm::GoalBinary] {
        let conversion = Conversion {
            form,
            strict: false,
            collectives: None,
        };
        let bytes = written(|out| conversion.write(trace, out).map(drop));
        let refusal = bytes.as_ref().err().map(ToString::to_string);
        let back = read_back(&format!("{form:?}"), bytes);
        match refusal {
            Some(refusal) => assert!(refusal.contains("64 bits"), "{form:?}: {refusal}"),
            None => assert_eq!(back, expected, "{form:?}"),
        }
    }
    let Trace::Program(program) = trace.unfolded().unwrap().into_owned() else {
        return;
    };
    let tables = WriterTables::new(&program);
    let actions = read_actions(program.ranks() as u32, |rank, out| {
        ti_rank(&tables, rank, &mut Default::default(), out)
    });
    assert_eq!(actions, expected);
}

fn check_exports(trace: &Trace, replayed: Replayed<'_>) {
    let end = replayed.outcome.makespan();
    let is_counted = replayed.outcome.bytes <= Bytes(i64::MAX as u64);
    let is_whole = is_counted && end < Time::from_nanos((1u64 << 61) as f64);
    let stamp = Stamp("01/02/2026 at 03:04".into());
    let prv = written(|out| paraver::prv(replayed, &stamp, out));
    assert_eq!(prv.is_ok(), is_whole);
    if let Some(back) = read_back("prv", prv) {
        assert_eq!(back, (trace.ranks(), trace.messages()));
    }
    let none = BTreeMap::new();
    let pftrace = written(|out| perfetto::pftrace(replayed, out));
    assert_eq!(pftrace.is_ok(), is_whole);
    if let Ok(bytes) = pftrace {
        let packets = fields(&bytes).unwrap();
        let last = packets.into_iter().filter_map(|(_, packet)| match packet {
            Value::Bytes(packet) => match one(&fields(&packet)?, 8) {
                Some(Value::Varint(time)) => Some(*time),
                _ => None,
            },
            _ => None,
        });
        let (last, end) = (last.max().unwrap_or(0) as f64, end.as_nanos());
        assert!((last - end).abs() <= 1e-9 * end + 1.0, "{last} {end}");
    }
    for table in [
        tables::messages,
        tables::ranks,
        tables::pairs,
        parquet::messages,
    ] {
        let written = written(|out| table(replayed, &none, out));
        assert!(written.is_ok() || !is_counted);
    }
}

fn far_time() -> impl Strategy<Value = Time> {
    let seconds = [
        0.0,
        1e-9,
        3.7e-10,
        1e-3,
        1e5,
        9007199.254740993,
        4e9,
        7e9,
        1.9e10,
        4e17,
        6e17,
        1e18,
        1e19,
        1e300,
        f64::INFINITY,
        f64::NAN,
    ];
    select(seconds.to_vec()).prop_map(Time::from_seconds)
}

fn far_rate() -> impl Strategy<Value = f64> {
    select(vec![1e-320, 1e-300, 1e-9, 1.0, 1e9, 1e300])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn workloads_are_read_back_or_not_written(
        workload in select(Workload::ALL.to_vec()),
        (ranks, iterations, period) in (1u32..6, 0u32..4, 0u32..3),
        size in select(vec![0, 1, 8192, 900_000_000_000_000]),
        (compute, jitter) in (far_time(), select(vec![0.0, 0.2, 1.0])),
    ) {
        let shape = ProgramShape { workload, ranks, iterations, size: Bytes(size), compute, jitter, seed: 1, period };
        let texts = [
            read_back("dim", written(|out| write::dim(shape, out))),
            read_back("goal", written(|out| write::goal(shape, out))),
            read_actions(ranks, |rank, out| write::simgrid_rank(shape, rank, out)),
        ];
        // The backward pass of a layer takes twice as long as its forward pass.
        let passes = if workload == Workload::Training { 2.0 } else { 1.0 };
        let most = compute.as_seconds() * passes * (1.0 + jitter);
        match shape.trace() {
            Ok(trace) => {
                if most <= 1e18 {
                    prop_assert_eq!(texts, [Some((trace.ranks(), trace.messages())); 3]);
                }
                check_forms(&trace);
            }
            Err(_) => prop_assert!((0.0..=1e18).contains(&most).eq(&false) && texts == [None; 3]),
        }
    }

    #[test]
    fn linpack_is_read_back_or_not_written(
        (solve, per_mnk) in (select(vec![0.0, 1.0, 1e30, 1e300]), select(vec![1e-18, 1e-10, 1.0, 1e30, 1e300])),
        (cache_rate, memory_rate) in (far_rate(), far_rate()),
        (share, spread) in (select(vec![0.0, 1.0]), select(vec![0.0, 0.1, 1e300])),
    ) {
        let settings = HplSettings {
            order: 40,
            block: 8,
            rows: 2,
            columns: 2,
            depth: 1,
            broadcast: Broadcast::RingModified,
            swap: Swap::Binary,
        };
        let rates = KernelRates { solve, cache_rate, memory_rate, ..KernelRates::default() };
        let table = format!("node,intercept_s,s_per_mnk,resid_per_mnk\n0,0,{per_mnk:e},{:e}\n", f64::min(spread * per_mnk, f64::MAX));
        let processors = NodeProcessors::parse(&table).unwrap().of_ranks(4, 4).unwrap();
        let usual = Script::new(settings, &Pivots::Random { seed: 1 }, KernelRates::default(), processors.clone());
        let script = Script::new(settings, &Pivots::Random { seed: 1 }, rates, processors)
            .with_spread(CallSpread { share, seed: 1 });
        if let Ok(program) = script.program() {
            if let Ok(usual) = usual.program() {
                prop_assert_eq!(program.messages(), usual.messages());
            }
            check_forms(&Trace::Program(program));
        }
    }

    #[test]
    fn streams_are_read_back_or_not_written(
        (rate, load) in (far_rate(), select(vec![1e-300, 0.5, 100.0])),
        sizes in select(vec![(1, 1), (65_536, 4_194_304), (1, 9_000_000_000_000_000)]),
        flows in select(vec![0u32, 1, 50, 3000]),
    ) {
        let (low, high) = sizes;
        let sizes = (Bytes(low), Bytes(high));
        let drawn = Stream { flows, nodes: 4, sizes, load, rate: Rate::from_bytes_per_second(rate), seed: 1 }.draw();
        if let Ok(bytes) = written(|out| pattern::write(&drawn, out))
            && flows > 0
        {
            prop_assert_eq!(Pattern::read("stream", &bytes).unwrap().flows, drawn);
        }
    }

    #[test]
    fn replays_are_read_back_or_not_written(
        compute in far_time(),
        size in select(vec![0, 8192, 9_000_000_000_000_000, u64::MAX / 5, u64::MAX - 1]),
    ) {
        let shape = ProgramShape {
            workload: Workload::Shift,
            ranks: 3,
            iterations: 2,
            size: Bytes(size),
            compute,
            jitter: 0.0,
            seed: 1,
            period: 0,
        };
        let Ok(trace) = shape.trace() else { return Ok(()) };
        let network = builtin::network("gige-tcp").unwrap();
        let outputs = Outputs { journal: Some(JournalContents::FILES), ..Outputs::default() };
        let prepared = Prepared::new(&trace, Some(&network), &Options::default()).unwrap();
        let predicted = prepared.predict_and_export(outputs, &[], |replayed| {
            check_exports(&trace, replayed);
            Ok::<(), flowcast::Error>(())
        });
        if let Err(error) = predicted {
            prop_assert!(error.to_string().contains("not a finite number"), "{error}");
        }
    }
}

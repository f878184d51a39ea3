//! A program with loops and the same program without loops have the same times in a replay.

use std::sync::Arc;

use crate::{
    random_programs::{Numbers, any_alike, any_numbers},
    testing::program_of,
};
use flowcast::{
    Contention, Options,
    convert::{
        generate::{ProgramShape, Workload},
        write,
    },
    model::sharing::model::Model,
    predict,
    replay::{
        outcome::Outcome,
        walk::{FoldedOutcome, FoldedReplay},
    },
    trace::{
        Program, Trace, compiled,
        fold::fold,
        folded::{Folded, FoldedPart, map_all, pieces},
    },
    units::{Bytes, Rank, Time},
};
use proptest::prelude::*;

/// Loops over programs; indices are taken modulo the number of programs.
fn any_parts(depth: u32) -> BoxedStrategy<Vec<FoldedPart<usize>>> {
    let piece = any::<usize>().prop_map(FoldedPart::Once);
    if depth == 0 {
        return proptest::collection::vec(piece, 1..3).boxed();
    }
    let counts = prop_oneof![1u64..4, 20u64..60];
    let inner =
        (counts, any_parts(depth - 1)).prop_map(|(count, body)| FoldedPart::Loop(count, body));
    proptest::collection::vec(prop_oneof![piece, inner], 1..4).boxed()
}

fn folded(parts: Vec<FoldedPart<usize>>, pieces: &[Program]) -> Folded {
    let piece = &mut |index: usize| Ok::<_, ()>(pieces[index % pieces.len()].clone());
    Folded::new(map_all(parts, piece).unwrap()).unwrap()
}

/// Outcome of the folded walk; `None` if it is not exact.
fn walked(folded: &Folded, numbers: &Numbers) -> Option<FoldedOutcome> {
    let parts = folded.parts().iter().map(FoldedPart::as_ref).collect();
    let replays = map_all(parts, &mut |piece| Ok::<_, ()>(numbers.replay(piece))).unwrap();
    FoldedReplay::new(replays)?.run().unwrap()
}

/// Checks equality to half a nanosecond, since sums of floating-point numbers lose digits in a replay, plus the possible
/// rounding.
fn assert_same(folded: &Outcome, flat: &Outcome, rounding: Time) {
    assert_eq!(
        (folded.messages, folded.bytes, folded.ranks.len()),
        (flat.messages, flat.bytes, flat.ranks.len())
    );
    for (folded, flat) in folded.ranks.iter().zip(&flat.ranks) {
        let times =
            [folded, flat].map(|rank| [rank.end, rank.compute, rank.overhead, rank.blocked]);
        for (one, other) in times[0].iter().zip(&times[1]) {
            let difference = (*one - *other).as_nanos().abs();
            assert!(
                difference <= 0.5 + 1e-10 * flat.end.as_nanos() + rounding.as_nanos(),
                "{folded:?}, unrolled {flat:?}"
            );
        }
        assert_eq!(
            folded.compute + folded.overhead + folded.blocked,
            folded.end
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn loops_are_replayed_as_their_iterations_one_by_one(
        records in any_alike(), parts in any_parts(2), numbers in any_numbers(),
    ) {
        let pieces: Vec<Program> = records.iter().map(|records| records.program()).collect();
        let folded = folded(parts, &pieces);
        prop_assume!(folded.unfolded_bytes() < 1 << 20);
        let flat = folded.unfold().unwrap();
        if let Some(walked) = walked(&folded, &numbers) {
            // A call has two costs. Each is rounded by at most half a tick, by the same amount in each iteration.
            let calls: usize = (0..flat.ranks() as u32).map(|rank| flat.ops(Rank(rank)).count()).sum();
            let rounding = walked.tick * calls as f64;
            assert_same(&walked.outcome, &numbers.replay(&flat).run().unwrap(), rounding);
        }
    }

    #[test]
    fn programs_with_loops_read_back_from_their_compiled_form(records in any_alike(), parts in any_parts(2)) {
        let pieces: Vec<Program> = records.iter().map(|records| records.program()).collect();
        let folded = folded(parts, &pieces);
        prop_assume!(folded.unfolded_bytes() < 1 << 20);
        let (flat, (messages, collectives)) = (folded.unfold().unwrap(), (folded.messages(), folded.collectives()));
        let file = compiled::parts(&Trace::Folded(folded)).concat();
        let Ok(Trace::Folded(again)) = compiled::read("t", Arc::new(file.clone())) else { panic!("loops stay loops") };
        prop_assert_eq!((again.messages(), again.collectives()), (messages, collectives));
        prop_assert_eq!(&compiled::parts(&Trace::Folded(again.clone())).concat(), &file);
        let [flat, again] = [flat, again.unfold().unwrap()].map(|program| compiled::parts(&Trace::Program(program)));
        // The program without loops is a valid program.
        prop_assert!(compiled::read("t", Arc::new(flat.concat())).is_ok());
        prop_assert!(flat == again);
    }

    #[test]
    fn a_damaged_file_of_loops_is_refused_or_read_as_another(
        records in any_alike(), parts in any_parts(1), at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let pieces: Vec<Program> = records.iter().map(|records| records.program()).collect();
        let mut file = compiled::parts(&Trace::Folded(folded(parts, &pieces))).concat();
        let place = 32 + at.index(file.len() - 32);
        file[place] ^= flip;
        let checksum = crc32fast::hash(&file[32..]);
        file[12..16].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(Trace::Folded(folded)) = compiled::read("t", Arc::new(file))
            && folded.unfolded_bytes() < 1 << 20
        {
            let _ = folded.unfold();
        }
    }
}

/// Rank 1 starts a millisecond late and takes 100 ns in each iteration. Rank 0, from which it receives, takes 101 ns.
fn late_overtaking(iterations: u64) -> Folded {
    let begin = "#DIMEMAS:\"late\":0:2(1,1),1\nd:1:1:2:0:1\n1:1:0:0.001\n";
    let body = "#DIMEMAS:\"late\":0:2(1,1),1\nd:1:1:2:0:1\n1:0:0:0.000000101\n2:0:0:1:-1:8:7:1:0\n\
                3:1:0:0:-1:8:7:1:0\n1:1:0:0.000000100\n";
    let [begin, body] = [begin, body].map(program_of);
    Folded::new(vec![
        FoldedPart::Once(begin),
        FoldedPart::Loop(iterations, vec![FoldedPart::Once(body)]),
    ])
    .unwrap()
}

#[test]
fn a_rank_that_overtakes_after_a_million_iterations_is_not_skipped() {
    let mut network = flowcast::model::builtin::network("gige-tcp").unwrap();
    network.nic.latency = Time::from_nanos(5.0);
    network.nic.overhead = Time::ZERO;
    network.point_to_point.rule = flowcast::model::network::MessageRule::Hockney;
    let options = Options {
        contention: Contention::Shared(Model::Independent),
        ..Options::default()
    };
    let predicted = |iterations: u64| {
        let prediction = predict(
            &Trace::Folded(late_overtaking(iterations)),
            &network,
            &options,
        )
        .unwrap();
        let ends = [0, 1].map(|rank| prediction.outcome.ranks[rank].end.as_nanos());
        (ends, prediction)
    };
    // As soon as rank 1 waits, it follows rank 0 at a constant distance.
    let ([from, to], _) = predicted(1 << 30);
    let behind = to - from;
    assert!(behind > 100.0 && behind < 1000.0, "{behind} ns behind");
    for iterations in [1, 1000, 900_000, 999_000, 1_000_000, 2_000_000, 1 << 40] {
        let ([from, to], prediction) = predicted(iterations);
        assert_eq!(from, 101.0 * iterations as f64);
        let expected = f64::max(1e6 + 100.0 * iterations as f64, from + behind);
        assert!(
            (to - expected).abs() < 0.1,
            "{iterations}: {to}, expected {expected}"
        );
        let loops = prediction.loops.unwrap();
        assert!(loops.walked < 200, "{loops:?}");
        if iterations <= 2_000_000 {
            let flat = Trace::Program(late_overtaking(iterations).unfold().unwrap());
            assert_same(
                &prediction.outcome,
                &predict(&flat, &network, &options).unwrap().outcome,
                Time::ZERO,
            );
        }
    }
}

#[test]
fn a_generated_loop_equals_the_generated_text() {
    for workload in Workload::ALL {
        let name = workload.name();
        let (compute, size) = (Time::from_micros(10.0), Bytes(8192));
        let shape = ProgramShape {
            workload,
            ranks: 9,
            iterations: 45,
            size,
            compute,
            jitter: 0.3,
            seed: 7,
            period: 4,
        };
        let mut text = Vec::new();
        write::dim(shape, &mut text).unwrap();
        let flat = flowcast::read_text(name, text).unwrap();
        let Trace::Folded(folded) = shape.trace().unwrap() else {
            panic!("{name} has loops")
        };
        let network = flowcast::model::builtin::network("gige-tcp").unwrap();
        let options = Options {
            contention: Contention::Shared(Model::Independent),
            ..Options::default()
        };
        let outcome = |trace: &Trace| predict(trace, &network, &options).unwrap().outcome;
        let flat = outcome(&flat);
        assert_same(&outcome(&Trace::Folded(folded.clone())), &flat, Time::ZERO);
        assert_same(
            &outcome(&Trace::Program(folded.unfold().unwrap())),
            &flat,
            Time::ZERO,
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn loops_that_are_found_unroll_to_the_program(records in any_alike(), parts in any_parts(1), numbers in any_numbers()) {
        let pieces: Vec<Program> = records.iter().map(|records| records.program()).collect();
        let flat = folded(parts, &pieces).unfold().unwrap();
        let (bytes, outcome) = (flat.compiled_bytes(), numbers.replay(&flat).run().unwrap());
        if let Trace::Folded(found) = fold(flat).unwrap() {
            prop_assert!(compiled::read("t", Arc::new(compiled::parts(&Trace::Folded(found.clone())).concat())).is_ok());
            let again = found.unfold().unwrap();
            prop_assert_eq!(again.compiled_bytes(), bytes);
            prop_assert_eq!(numbers.replay(&again).run().unwrap(), outcome);
        }
    }
}

#[test]
fn the_loop_of_a_text_is_found() {
    for workload in Workload::ALL {
        let name = workload.name();
        let (compute, size) = (Time::from_micros(10.0), Bytes(8192));
        let shape = ProgramShape {
            workload,
            ranks: 9,
            iterations: 47,
            size,
            compute,
            jitter: 0.3,
            seed: 7,
            period: 4,
        };
        let mut text = Vec::new();
        write::dim(shape, &mut text).unwrap();
        let flat = program_of(text);
        let Trace::Folded(found) = fold(flat.clone()).unwrap() else {
            panic!("{name} has loops")
        };
        let pieces: usize = pieces(found.parts())
            .unwrap()
            .iter()
            .map(|(piece, _)| piece.compiled_bytes())
            .sum();
        assert!(
            4 * pieces < flat.compiled_bytes(),
            "{name}: {pieces} of {}",
            flat.compiled_bytes()
        );
    }
    let shape = ProgramShape {
        workload: Workload::Halo,
        ranks: 9,
        iterations: 40,
        size: Bytes(8),
        compute: Time::from_micros(9.0),
        jitter: 0.3,
        seed: 7,
        period: 0,
    };
    let mut text = Vec::new();
    write::dim(shape, &mut text).unwrap();
    let irregular = program_of(text);
    assert!(matches!(fold(irregular).unwrap(), Trace::Program(_)));
}

#[test]
fn models_that_need_all_iterations_report_that_there_are_too_many() {
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let trace = Trace::Folded(late_overtaking(1 << 40));
    let error = predict(&trace, &network, &Options::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("--model independent"), "{error}");
}

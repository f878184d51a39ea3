//! Quasi-dynamic model with shorter steps, and with programs that several threads read.

use std::sync::Arc;

use flowcast_formats::{
    convert::{
        generate::{ProgramShape, Workload},
        write,
    },
    read,
};
use flowcast_network::{builtin, sharing::closed_loop::Feedback};
use flowcast_program::{ReadOptions, Trace};
use flowcast_traffic::flows::quasi_dynamic::Pace;
use flowcast_units::{Bytes, Time};

use super::*;

/// A halo of 16 ranks.
fn halo(iterations: u32, threads: usize) -> Program {
    let shape = ProgramShape {
        workload: Workload::Halo,
        ranks: 16,
        iterations,
        size: Bytes(8192),
        compute: Time::from_micros(10.0),
        jitter: 0.2,
        seed: 1,
        period: 0,
    };
    let mut text = Vec::new();
    write::dim(shape, &mut text).unwrap();
    match read(
        "halo.dim",
        Arc::new(text),
        &mut |name: &str| {
            Err(std::io::Error::new(
                std::io::ErrorKind::NotFound,
                name.to_owned(),
            ))
        },
        ReadOptions { threads },
    )
    .unwrap()
    {
        Trace::Program(program) => program,
        _ => unreachable!("a .dim file is no schedule"),
    }
}

fn makespan(program: &Program, fineness: u32) -> f64 {
    let overrides = [("nic.bandwidth", "112MB/s"), ("nic.latency", "65us")];
    let overrides = overrides.map(|(field, value)| (field.to_owned(), value.to_owned()));
    let network = builtin::network("gige-lam")
        .unwrap()
        .with_overrides(&overrides)
        .unwrap();
    let placement = Placement::of_program(&network.machine, None, program).unwrap();
    let replay = Replay::new(
        program,
        &network,
        placement.clone(),
        Rendezvous::from_network(&network, None),
    )
    .unwrap();
    let pace = Pace::from_network(&network);
    let rule = Rule::QuasiDynamic(
        Feedback {
            alpha: 1.0,
            kappa: 1.0,
        },
        Pace {
            fineness: fineness * pace.fineness,
            ..pace
        },
    );
    let mut transit = Shared::new(program, &placement, &network, rule).unwrap();
    replay
        .through(&mut Unobserved, &mut transit)
        .unwrap()
        .makespan()
        .as_nanos()
}

#[test]
fn steps_a_tenth_as_long_hardly_move_the_end_of_a_halo() {
    for (iterations, bound) in [(1, 3e-4), (20, 1e-3)] {
        let program = halo(iterations, 1);
        let ends = [1, 2, 4, 10].map(|fineness| makespan(&program, fineness));
        let (least, most) = ends.iter().fold((f64::MAX, 0f64), |(least, most), end| {
            (least.min(*end), most.max(*end))
        });
        assert!(
            most / least - 1.0 < bound,
            "{iterations} iterations: {ends:?}"
        );
    }
}

#[test]
fn the_end_does_not_depend_on_the_number_of_threads() {
    let ends = [1, 3].map(|threads| makespan(&halo(10, threads), 1).to_bits());
    assert_eq!(ends[0], ends[1]);
}

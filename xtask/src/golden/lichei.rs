//! Cases of seed D, LogGP measurement and the multi-rail packet scheduler (Lichei).

use flowcast::{
    fit::{
        loggp::{FitOptions, SizeChoice, fit_loggp, preliminary_gap},
        plogp::{messages_bound, messages_for_gap_error},
        prtt::{self, PrttPoint, delay_for_overhead},
        samples::PrttSamples,
    },
    model::loggp::LogGp,
    replay::loggops::Loggops,
    statistics::{
        propagation::{Uncertain, error_of_sum, relative_error_of_product},
        regression::least_squares,
        sample,
    },
    units::{Bytes, Time, TimePerByte},
};

use super::{
    Check,
    case::{Case, Mismatch, field::Field, same},
    simulation,
};

/// Kinds and their checks.
pub(super) const KINDS: &[(&str, Check)] = &[
    ("prtt", prtt),
    ("assess_noisefree", assess_noisefree),
    ("linreg", linreg),
    ("median", median),
    ("errprop", errprop),
    ("plogp_n", plogp_n),
    ("loggp_reduce_tree", loggp_reduce_tree),
];

/// `{g, G, o, L}` in microseconds.
pub(super) fn parameters(field: &Field) -> Result<LogGp, Mismatch> {
    let micros = |key: &str| Ok(Time::from_micros(field.at(key)?.number()?));
    Ok(LogGp {
        latency: micros("L")?,
        overhead: micros("o")?,
        gap: micros("g")?,
        gap_per_byte: TimePerByte::from_micros(field.at("G")?.number()?),
    })
}

fn prtt(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let delay = Time::from_micros(input.at("d_us")?.number()?);
    let point = PrttPoint::new(
        input.at("n")?.whole()?,
        delay,
        Bytes(input.at("s")?.whole()?),
    );
    let found = prtt::prtt(&parameters(&input.at("params_us")?)?, point);
    case.near(&case.expected().at("prtt_us")?, found.as_micros())
}

/// The thesis' procedure on exact round trips: a line through every size, whatever the overhead hides.
fn assess_noisefree(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let network = parameters(&input.at("params_us")?)?;
    let messages = input.at("n")?.whole()?;
    let sizes: Vec<u64> = input
        .at("sizes")?
        .items()?
        .iter()
        .map(Field::whole)
        .collect::<Result<_, _>>()?;
    let mut samples = PrttSamples::default();
    let mut measure = |point| samples.push(point, prtt::prtt(&network, point));
    for size in sizes.iter().copied().map(Bytes) {
        measure(PrttPoint::round_trip(size));
        measure(PrttPoint::new(messages, Time::ZERO, size));
    }
    let (gap, gap_per_byte) = preliminary_gap(&samples).map_err(Mismatch::refused)?;
    let largest = sizes.iter().max().copied().unwrap_or(0);
    let delay = delay_for_overhead(gap, gap_per_byte, Bytes(largest));
    case.near(&expected.at("d")?, delay.as_micros())?;
    let point = PrttPoint::new(messages, delay, Bytes(input.at("small")?.whole()?));
    samples.push(point, prtt::prtt(&network, point));
    compare_fit(case, &samples)
}

fn compare_fit(case: &Case, samples: &PrttSamples) -> Result<(), Mismatch> {
    let expected = case.expected();
    let options = FitOptions {
        sizes: SizeChoice::Every,
        replicates: 20,
        ..FitOptions::default()
    };
    let found = fit_loggp(samples, &options)
        .map_err(Mismatch::refused)?
        .parameters;
    case.near(&expected.at("g")?, found.gap.as_micros())?;
    case.near(&expected.at("G")?, found.gap_per_byte.as_micros())?;
    case.near(&expected.at("o")?, found.overhead.as_micros())?;
    case.near(&expected.at("L")?, found.latency.as_micros())
}

/// `y = a·x + b`, and the gap, which is y at size 1. The value that the printed denominator gives is not checked.
fn linreg(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let (x, y) = (input.at("x")?.numbers()?, input.at("y")?.numbers()?);
    let line = least_squares(&x, &y).map_err(Mismatch::refused)?;
    case.near(&expected.at("a")?, line.slope)?;
    case.near(&expected.at("b")?, line.intercept)?;
    case.near(&expected.at("g_from_shift")?, line.at(1.0))
}

fn median(case: &Case) -> Result<(), Mismatch> {
    let found =
        sample::median(&case.input().at("samples")?.numbers()?).map_err(Mismatch::refused)?;
    case.near(&case.expected().at("median")?, found)
}

fn errprop(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let number = |key: &str| input.at(key)?.number();
    let x = Uncertain {
        value: number("x")?,
        error: number("dx")?,
    };
    let y = Uncertain {
        value: number("y")?,
        error: number("dy")?,
    };
    case.near(&expected.at("sum_dz")?, error_of_sum(x, y))?;
    case.near(
        &expected.at("div_rel")?,
        relative_error_of_product(x, 1.0, y, -1.0),
    )?;
    let power = relative_error_of_product(x, number("alpha")?, y, number("beta")?);
    case.near(&expected.at("pow_rel")?, power)
}

/// Times are microseconds; the number itself is exact, whatever the tolerance of the bound.
fn plogp_n(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let micros = |key: &str| Ok(Time::from_micros(input.at(key)?.number()?));
    let (latency, gap, error) = (micros("L")?, micros("g")?, input.at("err")?.number()?);
    case.near(&expected.at("n_gt")?, messages_bound(latency, gap, error))?;
    same(
        "n_min",
        Some(expected.at("n_min")?.whole()?),
        messages_for_gap_error(latency, gap, error),
    )
}

/// Times in the case are nanoseconds.
fn loggp_reduce_tree(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    if input.at("unit")?.text()? != "ns" {
        return Err(input.at("unit")?.unlike("ns"));
    }
    let nanos = |key: &str| Ok(Time::from_nanos(input.at(key)?.number()?));
    let parameters = Loggops {
        latency: nanos("L")?,
        overhead: nanos("o")?,
        gap: nanos("g")?,
        gap_per_byte: TimePerByte::from_nanos(input.at("G")?.number()?),
        eager_up_to: None,
    };
    let schedule = reduce_tree(input.at("P")?.whole()?, input.at("bytes")?.whole()?);
    let outcome = simulation::run_schedule(&simulation::parse(schedule)?, parameters)?;
    let expected = case.expected().at("host_end_ns")?.items()?;
    if expected.len() != outcome.ranks.len() {
        return Err(case.expected().unlike("one end for each host"));
    }
    expected
        .iter()
        .zip(&outcome.ranks)
        .try_for_each(|(end, rank)| case.near(end, rank.end.as_nanos()))
}

/// A binomial reduction to rank 0 as a schedule: the far half sends to the near half, and so on; a rank that has sent is
/// done.
fn reduce_tree(ranks: u32, bytes: u64) -> String {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let own = if rank == 0 { 0 } else { 1 << rank.ilog2() };
        let halves = (0..u32::BITS).rev().map(|bit| 1u32 << bit);
        let senders = halves
            .filter(|half| *half > own || rank == 0)
            .filter_map(|half| rank.checked_add(half));
        let mut steps: Vec<String> = senders
            .filter(|sender| *sender < ranks)
            .map(|sender| format!("recv {bytes}b from {sender}"))
            .collect();
        if rank > 0 {
            steps.push(format!("send {bytes}b to {}", rank - own));
        }
        text += &format!("rank {rank} {{\n");
        for (at, step) in steps.iter().enumerate() {
            text += &format!("l{at}: {step}\n");
            text += &if at > 0 {
                format!("l{at} requires l{}\n", at - 1)
            } else {
                String::new()
            };
        }
        text += "}\n";
    }
    text
}

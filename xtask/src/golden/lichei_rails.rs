//! Cases of seed D's schedulers: turns by share, schedules over rails, scaled integers.
//!
//! A schedule is checked in exact arithmetic against the case, and in the two arithmetics of the message path against
//! exact arithmetic.

use flowcast::{
    model::loggp::LogGp,
    scheduler::{
        RailId, RailsError,
        clock::{BinaryPoint, ClockArithmetic, ClockSteps, Rounding, Ticks},
        discipline::{Discipline, SchedulerName},
        optimum::{Objective, optimum},
        schedule::{BelievedSchedule, RailMessage, evaluate, run, simulate},
        turns::{
            RoundRobin, Shares, Turn, VirtualTimeRoundRobin, WeightedFairQueuing,
            WeightedRoundRobin,
        },
    },
    units::{Bytes, Time, TimePerByte},
};

use super::{
    Check,
    case::{Case, Mismatch, field::Field, same},
    lichei::parameters,
};

/// Kinds and their checks.
pub(super) const KINDS: &[(&str, Check)] = &[
    ("fair_sequences", fair_sequences),
    ("fixed_quant", fixed_quant),
    ("schedule", schedule),
];

/// By how many microseconds a virtual finish time of the message path may differ; its decisions may not.
const MICROS_OF_ARITHMETIC: f64 = 1e-3;

fn fair_sequences(case: &Case) -> Result<(), Mismatch> {
    let shares: Vec<u32> = wholes(&case.input().at("shares")?)?;
    let count: usize = case.input().at("n")?.whole()?;
    let shares = Shares::new(&shares).map_err(Mismatch::refused)?;
    for (name, expected) in case.expected().members()? {
        let mut turn: Box<dyn Turn> = match name {
            "rr" => Box::new(RoundRobin::default()),
            "wrr" => Box::new(WeightedRoundRobin::new(shares)),
            "wfq" => Box::new(WeightedFairQueuing::new(shares)),
            "vtrr" => Box::new(VirtualTimeRoundRobin::new(shares)),
            other => return Err(Mismatch::Unknown(format!("sequence {other}"))),
        };
        let found: Vec<RailId> = (0..count).filter_map(|_| turn.next(shares.all())).collect();
        same(name, rails(&expected)?, found)?;
    }
    Ok(())
}

fn fixed_quant(case: &Case) -> Result<(), Mismatch> {
    let bits = case.input().at("shift")?.whole()?;
    let per_bytes: Vec<TimePerByte> = case
        .input()
        .at("G_us")?
        .numbers()?
        .into_iter()
        .map(TimePerByte::from_micros)
        .collect();
    for (name, expected) in case.expected().members()? {
        let rounding = if name.contains("round") {
            Rounding::Nearest
        } else {
            Rounding::Down
        };
        let point = BinaryPoint { bits, rounding };
        let items = expected.items()?;
        same(name, items.len(), per_bytes.len())?;
        for (expected, per_byte) in items.iter().zip(&per_bytes) {
            match name {
                "trunc" | "round" => {
                    same(name, expected.whole()?, point.stored_per_byte(*per_byte))?
                }
                "rel_err_trunc" | "rel_err_round" => {
                    case.near(expected, point.error_of(*per_byte))?
                }
                other => return Err(Mismatch::Unknown(format!("result {other}"))),
            }
        }
    }
    Ok(())
}

fn schedule(case: &Case) -> Result<(), Mismatch> {
    let setting = Setting::read(&case.input())?;
    let expected = case.expected();
    for (objective, name) in [
        (Objective::Makespan, "opt_makespan_us"),
        (Objective::Mean, "opt_mean_us"),
    ] {
        let best = optimum(&setting.rails, &setting.messages, objective, u64::MAX)
            .map_err(Mismatch::refused)?;
        case.near(
            &expected.at(name)?,
            objective.value(&best.schedule).as_micros(),
        )?;
    }
    let example = evaluate(
        &setting.rails,
        &setting.messages,
        rails(&expected.at("opt_assignment_example")?)?,
    );
    case.near(
        &expected.at("opt_makespan_us")?,
        example.map_err(Mismatch::refused)?.makespan.as_micros(),
    )?;
    for (variant, expected) in expected.at("variants")?.members()? {
        match variant.strip_prefix("4.4.8-shift") {
            Some(integers) => setting.check_steps(integers, &expected)?,
            None => setting.check_variant(case, variant, &expected)?,
        }
    }
    Ok(())
}

/// Rails and messages of a case.
struct Setting {
    rails: Vec<LogGp>,
    shares: Shares,
    messages: Vec<RailMessage>,
}

impl Setting {
    fn read(input: &Field) -> Result<Setting, Mismatch> {
        let rails: Vec<LogGp> = input
            .at("rails")?
            .items()?
            .iter()
            .map(parameters)
            .collect::<Result<_, _>>()?;
        let messages = input
            .at("messages")?
            .items()?
            .iter()
            .map(message)
            .collect::<Result<_, _>>()?;
        let shares = Shares::by_bandwidth(&rails).map_err(Mismatch::refused)?;
        Ok(Setting {
            rails,
            shares,
            messages,
        })
    }

    fn check_variant(&self, case: &Case, variant: &str, expected: &Field) -> Result<(), Mismatch> {
        let name = scheduler_name(variant)?;
        let found =
            simulate(name, &self.rails, self.shares, &self.messages).map_err(Mismatch::refused)?;
        same(
            expected.path(),
            rails(&expected.at("rail")?)?,
            found.schedule.choices.clone(),
        )?;
        near_all(case, &expected.at("vft_after_us")?, &found.virtual_finish)?;
        near_all(case, &expected.at("deliver_us")?, &found.schedule.delivered)?;
        case.near(
            &expected.at("makespan_us")?,
            found.schedule.makespan.as_micros(),
        )?;
        case.near(&expected.at("mean_us")?, found.schedule.mean.as_micros())?;
        self.check_arithmetic::<Ticks>(variant, name, &found)?;
        self.check_arithmetic::<Time>(variant, name, &found)
    }

    fn check_arithmetic<M: ClockArithmetic<Scale = ()>>(
        &self,
        variant: &str,
        name: SchedulerName,
        exact: &BelievedSchedule,
    ) -> Result<(), Mismatch> {
        let mut scheduler = name
            .scheduler::<M>(&self.rails, self.shares, ())
            .map_err(Mismatch::refused)?;
        let (choices, finish) = run(scheduler.as_mut(), (), &self.messages);
        let what = format!("{variant} in {}", std::any::type_name::<M>());
        same(&what, exact.schedule.choices.clone(), choices)?;
        let close = |(exact, own): (&Time, &Time)| {
            (exact.as_micros() - own.as_micros()).abs() < MICROS_OF_ARITHMETIC
        };
        let all_close = exact.virtual_finish.iter().zip(&finish).all(close);
        if all_close {
            Ok(())
        } else {
            same(&what, exact.virtual_finish.clone(), finish)
        }
    }

    fn check_steps(&self, integers: &str, expected: &Field) -> Result<(), Mismatch> {
        let (name, point) = scaled_integers(integers)?;
        let mut scheduler = name
            .in_steps(&self.rails, self.shares, point)
            .map_err(Mismatch::refused)?;
        let (mut choices, mut finish) = (Vec::new(), Vec::new());
        for message in &self.messages {
            let rail = scheduler.pick(
                ClockSteps::from_time(message.arrival, point),
                message.size,
                self.shares.all(),
            );
            let rail = rail.ok_or_else(|| Mismatch::refused(RailsError::Count(0)))?;
            choices.push(rail);
            finish.push(scheduler.virtual_finish(rail).0);
        }
        same(expected.path(), rails(&expected.at("rail")?)?, choices)?;
        same(
            "vft_after_int",
            wholes(&expected.at("vft_after_int")?)?,
            finish,
        )?;
        let stored = expected.at("params_int")?.items()?;
        self.rails
            .iter()
            .zip(&stored)
            .try_for_each(|(rail, stored)| check_stored(rail, point, stored))
    }
}

fn check_stored(rail: &LogGp, point: BinaryPoint, stored: &Field) -> Result<(), Mismatch> {
    let steps = |time: Time| ClockSteps::from_time(time, point).0;
    same(stored.path(), stored.at("g")?.whole()?, steps(rail.gap))?;
    same(
        stored.path(),
        stored.at("G")?.whole()?,
        point.stored_per_byte(rail.gap_per_byte),
    )?;
    same(
        stored.path(),
        stored.at("oL")?.whole()?,
        steps(rail.overhead * 2.0 + rail.latency),
    )
}

fn message(field: &Field) -> Result<RailMessage, Mismatch> {
    let arrival = Time::from_micros(field.at("arrival_us")?.number()?);
    Ok(RailMessage {
        arrival,
        size: Bytes(field.at("size")?.whole()?),
    })
}

/// `20-trunc-printed` of `4.4.8-shift20-trunc-printed`.
fn scaled_integers(text: &str) -> Result<(SchedulerName, BinaryPoint), Mismatch> {
    let unknown = || Mismatch::Unknown(format!("variant 4.4.8-shift{text}"));
    let (rest, make) = printed_or_meant(text);
    let (bits, rounding) = rest.split_once('-').ok_or_else(unknown)?;
    let rounding = match rounding {
        "trunc" => Rounding::Down,
        "round" => Rounding::Nearest,
        _ => return Err(unknown()),
    };
    let bits = bits.parse().map_err(|_| unknown())?;
    Ok((make(Discipline::FixedPoint), BinaryPoint { bits, rounding }))
}

/// The section of the thesis, or the project's `ect` (earliest completion time).
fn scheduler_name(variant: &str) -> Result<SchedulerName, Mismatch> {
    let (name, make) = printed_or_meant(variant);
    let discipline = match name {
        "rr" => Discipline::RoundRobin,
        "4.4.1" => Discipline::Gap,
        "4.4.2" => Discipline::Vft,
        "4.4.3" => Discipline::VftClock,
        "4.4.4" => Discipline::Latency,
        "4.4.5" => Discipline::Overlap,
        "ect" => Discipline::EarliestDelivery,
        "ect5" => Discipline::EarliestOverlap,
        _ => return Err(Mismatch::Unknown(format!("variant {variant}"))),
    };
    Ok(make(discipline))
}

fn printed_or_meant(variant: &str) -> (&str, fn(Discipline) -> SchedulerName) {
    match variant.strip_suffix("-printed") {
        Some(name) => (name, SchedulerName::printed),
        None => (variant, SchedulerName::new),
    }
}

fn wholes<T: TryFrom<u64>>(field: &Field) -> Result<Vec<T>, Mismatch> {
    field.items()?.iter().map(Field::whole).collect()
}

fn rails(field: &Field) -> Result<Vec<RailId>, Mismatch> {
    Ok(wholes(field)?.into_iter().map(RailId).collect())
}

fn near_all(case: &Case, expected: &Field, found: &[Time]) -> Result<(), Mismatch> {
    let items = expected.items()?;
    same(expected.path(), items.len(), found.len())?;
    items
        .iter()
        .zip(found)
        .try_for_each(|(expected, found)| case.near(expected, found.as_micros()))
}

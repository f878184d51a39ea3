//! The scheduler file and the random file that a `.cfg` names.

use super::{content_lines, note};
use crate::{
    dimemas_cfg::{
        error::{DimemasConfigError, shortened},
        fields::Fields,
        records::ConfigRecord,
    },
    machine::{
        random::{RandomDistribution, Randomness, Shape},
        scheduler::{Policy, Scheduler},
    },
};

const POLICIES: [&str; 8] = [
    "FIFO",
    "RR",
    "PRIO",
    "FIXED_PRIORITY_FIFO",
    "SVR4",
    "UNIX_SVR4",
    "BOOST",
    "SS_MPI_CP",
];
const POLICY: [&str; 1] = ["policy"];
const SECONDS: [&str; 1] = ["seconds"];

/// Reads the scheduler file: how ranks share processors, and notes on settings that are not modelled.
pub(in crate::dimemas_cfg) fn scheduler(
    text: &str,
) -> Result<(Scheduler, Vec<String>), DimemasConfigError> {
    let mut scheduler = Scheduler::default();
    let mut notes = Vec::new();
    let mut known = true;
    for (line, content) in content_lines(text) {
        let (name, value) = content
            .split_once(':')
            .ok_or_else(|| unknown_line(line, content))?;
        let record = ConfigRecord {
            line,
            name: name.trim(),
            fields: vec![value.trim()],
        };
        match record.name {
            "Policy" => known = policy(&record, &mut scheduler, &mut notes)?,
            "Context switch cost (seconds)" => {
                scheduler.context_switch = record.fields(&SECONDS)?.seconds()?
            }
            "Busy wait (seconds)" => {
                let mut fields = record.fields(&SECONDS)?;
                if fields.amount()? > 0.0 {
                    notes.push(note(
                        &fields,
                        value.trim(),
                        "waiting ranks release their processor immediately",
                    ));
                }
            }
            "Quantum (seconds)" => scheduler.quantum = record.fields(&SECONDS)?.seconds()?,
            _ if known => return Err(unknown_line(line, content)),
            // The other policies have their own lines; the note on the policy covers them.
            _ => {}
        }
    }
    Ok((scheduler, notes))
}

fn unknown_line(line: usize, content: &str) -> DimemasConfigError {
    let expected = "Policy: NAME, Context switch cost (seconds): N, Busy wait (seconds): N or Quantum (seconds): N";
    DimemasConfigError::Line {
        line,
        found: shortened(content),
        expected: expected.into(),
    }
}

/// Sets the policy. Returns `true` if the policy is modelled exactly.
fn policy(
    record: &ConfigRecord,
    scheduler: &mut Scheduler,
    notes: &mut Vec<String>,
) -> Result<bool, DimemasConfigError> {
    let mut fields = record.fields(&POLICY)?;
    let policy = fields.choice(&POLICIES)?;
    match policy {
        "FIFO" => scheduler.policy = Policy::Fifo,
        "RR" => scheduler.policy = Policy::RoundRobin,
        "PRIO" | "FIXED_PRIORITY_FIFO" => scheduler.policy = Policy::Priority,
        _ => {
            notes.push(note(
                &fields,
                policy,
                "ranks that share a processor run first in, first out",
            ));
            return Ok(false);
        }
    }
    Ok(true)
}

const DISTRIBUTION: [&str; 3] = ["distribution", "first parameter", "second parameter"];

/// Quantities that may vary at random: their names in the file that comes with Dimemas, and the names that its source reads.
const VARIED: [(&str, &str); 7] = [
    ("processor_ratio_dist", "Processor"),
    ("Network_bandwidth_ratio_dist", "Network bandwidth"),
    ("Network_latency_ratio_dist", "Network latency"),
    ("Memory_bandwidth_ratio_dist", "Memory bandwidth"),
    ("Memory_latency_ratio_dist", "Memory latency"),
    ("External_network_ratio_dist", "External Network bandwidth"),
    (
        "External_network_latency_ratio_dist",
        "External Network latency",
    ),
];

/// Reads the random file, with lines such as `"processor_ratio_dist" NORMAL 0.0 0.0` or `Processor: NORMAL 0.0 0.0`.
/// Latencies are in nanoseconds and bandwidths in MB/s, as the tool adds them.
pub(in crate::dimemas_cfg) fn random(text: &str) -> Result<Randomness, DimemasConfigError> {
    const MEGABYTES: f64 = 1_048_576.0;
    let mut random = Randomness::default();
    for (line, content) in content_lines(text) {
        let (name, rest) = named_line(line, content)?;
        let record = ConfigRecord {
            line,
            name,
            fields: rest.split_whitespace().collect(),
        };
        let mut fields = record.fields(&DISTRIBUTION)?;
        match VARIED
            .iter()
            .position(|(one, other)| name == *one || name == *other)
        {
            Some(0) => random.speed = RandomDistribution::new(shape(&mut fields, 1.0)?),
            Some(1) => random.bandwidth = RandomDistribution::new(shape(&mut fields, MEGABYTES)?),
            Some(2) => random.latency = RandomDistribution::new(shape(&mut fields, 1.0)?),
            Some(3) => {
                random.intra_bandwidth = RandomDistribution::new(shape(&mut fields, MEGABYTES)?)
            }
            Some(4) => random.intra_latency = RandomDistribution::new(shape(&mut fields, 1.0)?),
            Some(5) => {
                random.wide_area_bandwidth = RandomDistribution::new(shape(&mut fields, MEGABYTES)?)
            }
            _ => random.wide_area_latency = RandomDistribution::new(shape(&mut fields, 1.0)?),
        }
    }
    Ok(random)
}

fn named_line(line: usize, content: &str) -> Result<(&str, &str), DimemasConfigError> {
    let split = match content.strip_prefix('"') {
        Some(rest) => rest.split_once('"'),
        None => content.split_once(':'),
    };
    split
        .map(|(name, rest)| (name.trim(), rest))
        .filter(|(name, _)| known(name))
        .ok_or_else(|| {
            let names: Vec<&str> = VARIED
                .iter()
                .map(|(one, _)| *one)
                .chain(VARIED.iter().map(|(_, other)| *other))
                .collect();
            let expected = format!(
                "one of {}, then a distribution and its parameters",
                names.join(", ")
            );
            DimemasConfigError::Line {
                line,
                found: shortened(content),
                expected,
            }
        })
}

fn known(name: &str) -> bool {
    VARIED
        .iter()
        .any(|(one, other)| name == *one || name == *other)
}

/// Reads a distribution and its two parameters, multiplied by `factor`. A distribution that only yields 0 counts as none.
fn shape(fields: &mut Fields, factor: f64) -> Result<Shape, DimemasConfigError> {
    let name = fields.choice(&["NONE", "NORMAL", "UNIFORM"])?;
    let (first, second) = (fields.number()? * factor, fields.number()? * factor);
    Ok(match name {
        _ if first == 0.0 && second == 0.0 => Shape::None,
        "NORMAL" if second < 0.0 => {
            return Err(fields.wrong("a standard deviation that is not negative"));
        }
        "NORMAL" => Shape::Normal {
            mean: first,
            deviation: second,
        },
        "UNIFORM" if second < first => {
            return Err(fields.wrong("a value of at least the previous one"));
        }
        "UNIFORM" => Shape::Uniform {
            least: first,
            most: second,
        },
        _ => Shape::None,
    })
}

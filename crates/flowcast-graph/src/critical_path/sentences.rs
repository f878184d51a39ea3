//! One-sentence summaries of a critical path, for tables and for readers in a hurry.

use std::{collections::BTreeMap, fmt};

use super::{CriticalPath, StepCounts};
use flowcast_replay::time_part::TimePart;
use flowcast_units::{Rounded, Time};

/// Shares below this fraction are not mentioned, unless there is no larger one.
const LEAST_SHARE: f64 = 0.05;

impl CriticalPath {
    /// The largest shares in words: `compute 62 %, latency 21 %`.
    pub fn sentence(&self) -> String {
        let shares = self.shares();
        let shown = shares
            .iter()
            .enumerate()
            .filter(|(index, share)| *index == 0 || share.fraction >= LEAST_SHARE);
        let words: Vec<String> = shown
            .take(3)
            .map(|(_, share)| format!("{} {:.0} %", share.limit.name(), share.fraction * 100.0))
            .collect();
        if words.is_empty() {
            "nothing takes time".to_owned()
        } else {
            words.join(", ")
        }
    }

    /// The largest share in one line: `latency-bound: 1,204 messages on the critical path, 40.00 us of latency each`.
    pub fn reason(&self) -> String {
        let Some(first) = self.shares().first().copied() else {
            return "nothing takes time".to_owned();
        };
        let StepCounts {
            messages,
            bytes,
            overheads,
            gaps,
            collectives,
        } = self.counts;
        let time = Rounded(first.time);
        let story = match first.limit {
            TimePart::Compute => format!(
                "{time} of computation on the critical path{}",
                self.busiest()
            ),
            TimePart::Overhead => each(
                overheads,
                "message overhead",
                "message overheads",
                "",
                first.time,
            ),
            TimePart::Gap => each(
                gaps,
                "gap of a sending interface",
                "gaps of sending interfaces",
                "",
                first.time,
            ),
            TimePart::Latency => each(messages, "message", "messages", " of latency", first.time),
            TimePart::Bandwidth => {
                format!("{} on the critical path take {time}", Rounded(bytes))
            }
            TimePart::Contention => {
                format!(
                    "messages on the critical path wait {time} for links, buses and bandwidth that other messages use"
                )
            }
            TimePart::Collective => each(
                collectives,
                "collective operation",
                "collective operations",
                "",
                first.time,
            ),
            TimePart::Processor => format!("{time} of waiting for processors on the critical path"),
            _ => format!("{time} of waiting without a known cause"),
        };
        format!("{}-bound: {story}", first.limit.name())
    }

    /// Phrase that names the rank with most of the path's computation and the number of ranks that share it. Empty without
    /// computation.
    fn busiest(&self) -> String {
        let mut times = BTreeMap::new();
        for step in self
            .steps
            .iter()
            .filter(|step| step.limit == TimePart::Compute)
        {
            *times.entry(step.rank).or_insert(Time::ZERO) += step.end - step.start;
        }
        let most = times
            .iter()
            .max_by_key(|(rank, time)| (**time, std::cmp::Reverse(**rank)));
        most.map_or(String::new(), |(rank, time)| match times.len() {
            1 => format!(", all of it on rank {rank}"),
            ranks => format!(
                ", spread over {ranks} ranks, most on rank {rank} ({})",
                Rounded(*time)
            ),
        })
    }
}

/// Number of items on the path and the mean time of each. `part` follows the time: ` of latency`.
fn each(count: u64, one: &str, many: &str, part: &str, time: Time) -> String {
    let mean = Rounded(time * (1.0 / count.max(1) as f64));
    match count {
        1 => format!("1 {one} on the critical path, {mean}{part}"),
        _ => format!(
            "{} {many} on the critical path, {mean}{part} each",
            GroupedSteps(count)
        ),
    }
}

/// A count with commas between thousands.
struct GroupedSteps(u64);

impl fmt::Display for GroupedSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            let comma = index > 0 && (digits.len() - index).is_multiple_of(3);
            write!(f, "{}{digit}", if comma { "," } else { "" })?;
        }
        Ok(())
    }
}

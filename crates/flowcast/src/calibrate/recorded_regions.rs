//! Regions of a dedicated run for the fit of Dimemas' parameters: the exercise in each, its repetitions, and the time of one
//! repetition.
//!
//! A region that contains a single collective operation is identified by it. The first word of a region's name identifies a
//! pattern of messages: `pingpong`, `exchange`, `fan-out`, `fan-in`, `pairs`. Repetitions are counted by the calls.

use std::collections::BTreeMap;

use crate::calibrate::dimemas::{Exercise, MeasuredRegion};
use flowcast_program::recorded_times::measured;
use flowcast_recording::{
    decode::{Item, RankFile},
    operation, region_name,
    table::MpiFunction,
};
use flowcast_units::{Bytes, CollectiveOp};

/// Regions with a known exercise, and the names of the other regions.
pub fn exercises(files: &[RankFile]) -> (Vec<MeasuredRegion>, Vec<String>) {
    let mut contents: BTreeMap<String, RegionContent> = BTreeMap::new();
    for (rank, file) in files.iter().enumerate() {
        walk(rank, file, &mut contents);
    }
    let times = measured(files);
    let (mut understood, mut others) = (Vec::new(), Vec::new());
    for (name, time) in times.regions {
        let found = contents
            .get(&name)
            .and_then(|content| content.exercise(&name));
        match found {
            Some((exercise, size, repetitions)) => understood.push(MeasuredRegion {
                name,
                exercise,
                size,
                ranks: files.len() as u32,
                once: time * (1.0 / repetitions as f64),
            }),
            None => others.push(name),
        }
    }
    (understood, others)
}

/// Contents of a region.
#[derive(Debug, Default)]
struct RegionContent {
    /// Collectives by operation: number of calls of the first rank, and bytes sent and received by the root or, without one,
    /// by any rank.
    collectives: BTreeMap<CollectiveOp, (u64, Bytes, Bytes)>,
    /// Number of messages that the second rank sends: one for each repetition in all patterns.
    sent_by_second: u64,
    /// Size of the largest message.
    largest: Bytes,
}

impl RegionContent {
    fn exercise(&self, name: &str) -> Option<(Exercise, Bytes, u64)> {
        let only = self
            .collectives
            .iter()
            .next()
            .filter(|_| self.collectives.len() == 1);
        let (exercise, size, repetitions) = match only {
            Some((op, (calls, send, recv))) if self.sent_by_second == 0 => (
                Exercise::Collective(*op, *send, *recv),
                Bytes(send.0.max(recv.0)),
                *calls,
            ),
            None => (pattern(name)?, self.largest, self.sent_by_second),
            Some(_) => return None,
        };
        (repetitions > 0).then_some((exercise, size, repetitions))
    }
}

fn pattern(name: &str) -> Option<Exercise> {
    use Exercise::*;
    Some(match name.split_whitespace().next()? {
        "pingpong" => PingPong,
        "exchange" => Exchange,
        "fan-out" => FanOut,
        "fan-in" => FanIn,
        "pairs" => Pairs,
        _ => return None,
    })
}

fn walk(rank: usize, file: &RankFile, contents: &mut BTreeMap<String, RegionContent>) {
    let mut open: Vec<String> = Vec::new();
    for item in &file.items {
        let Item::Call(call) = item else { continue };
        let words = &file.signatures[call.signature as usize];
        let Some(function) = MpiFunction::named(&file.functions[words[0] as usize]) else {
            continue;
        };
        if function.kind == "pcontrol" && words.len() >= 3 {
            match words[1] {
                1.. => open.push(region_name(file, words)),
                _ => drop(open.pop()),
            }
        } else if let Some(region) = open.last() {
            add(
                contents.entry(region.clone()).or_default(),
                function,
                words,
                rank,
                file,
            );
        }
    }
}

fn add(
    content: &mut RegionContent,
    function: &MpiFunction,
    words: &[i64],
    rank: usize,
    file: &RankFile,
) {
    let [first, second, third, fourth] =
        [1, 2, 3, 4].map(|at| words.get(at).copied().unwrap_or(-1));
    let [third, fourth] = [third, fourth].map(|bytes| Bytes(bytes.max(0) as u64));
    match function.kind.as_str() {
        "send" | "ssend" | "isend" | "issend" | "sendrecv" => {
            content.sent_by_second += u64::from(rank == 1);
            content.largest = content.largest.max(fourth);
        }
        _ => {
            let Some(op) = operation(&function.name) else {
                return;
            };
            let members = usize::try_from(first)
                .ok()
                .and_then(|own| file.communicators.get(own));
            let root = members.and_then(|members| members.world_rank(second));
            let known = content.collectives.entry(op).or_default();
            known.0 += u64::from(rank == 0);
            if root.is_none_or(|root| root.index() == rank) {
                (known.1, known.2) = (third, fourth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_recording::decode::{Members, RecordedCall};
    use flowcast_units::Time;

    fn file(rank: u32) -> RankFile {
        let functions = ["Pcontrol", "Bcast", "Send", "Recv"]
            .map(String::from)
            .to_vec();
        // Region 1 with broadcasts from both, region 2 with messages, region 3 with both.
        let mut signatures: Vec<Vec<i64>> = (1..=3).map(|name| vec![0, 1, name]).collect();
        signatures.extend([vec![0, -1, 1], vec![1, 0, 0, 500, 0], vec![1, 0, 1, 0, 500]]);
        signatures.extend([
            vec![2, 0, 1 - i64::from(rank), 7, 4096],
            vec![3, 0, 1 - i64::from(rank), 7, 0],
        ]);
        let order = [0, 4, 5, 4, 5, 3, 1, 6, 7, 6, 7, 3, 2, 4, 6, 7, 3];
        let items = order.iter().zip(1..).map(|(signature, at)| {
            Item::Call(RecordedCall {
                thread: 0,
                signature: *signature,
                begin: at * 100,
                burst: 50,
                cpu: 50,
                time: 50,
            })
        });
        let world = Members {
            own: vec![0, 1],
            remote: Vec::new(),
        };
        RankFile {
            functions,
            signatures,
            items: items.collect(),
            communicators: vec![world.into()],
            names: ["one".into(), "pingpong 4096".into(), "mixed".into()].into(),
            ..RankFile::default()
        }
    }

    #[test]
    fn regions_are_identified_by_calls_and_names_and_repetitions_are_counted() {
        let (understood, others) = exercises(&[file(0), file(1)]);
        assert_eq!(others, ["mixed"]);
        let once = |name: &str| {
            understood
                .iter()
                .find(|region| region.name == name)
                .unwrap()
        };
        let bcast = once("one");
        assert!(matches!(
            bcast.exercise,
            Exercise::Collective(CollectiveOp::Bcast, ..)
        ));
        assert_eq!(bcast.once, Time::from_nanos(125.0));
        let trip = once("pingpong 4096");
        assert_eq!(
            (trip.exercise, trip.size, trip.ranks),
            (Exercise::PingPong, Bytes(4096), 2)
        );
        assert_eq!(trip.once, Time::from_nanos(250.0));
    }
}

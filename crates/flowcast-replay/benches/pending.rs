//! What the queue of pending events costs: `cargo bench -p flowcast --bench pending [ROUNDS]`.
//!
//! The events are those of real replays (a halo exchange and a dissemination under limited links), taken down by an
//! observer: when each was inserted and when it was due. Every structure then gets the same insertions and gives out all
//! that is due before each; every round times each structure once, in turn. The engine uses the first.

#![allow(clippy::type_complexity)]

#[allow(dead_code, unused_imports)]
#[path = "../src/contention/pending.rs"]
mod pending;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant as Clock;

use flowcast_model::machine::{Machine, NodeGroup};
use flowcast_model::network::Network;
use flowcast_replay::contention::Contention;
use flowcast_replay::costs::Rendezvous;
use flowcast_replay::placement::Placement;
use flowcast_replay::record::{Observer, Received, Sent};
use flowcast_trace::generate::{Shape, Workload};
use flowcast_trace::{Program, ReadOptions, Trace, read, write};
use flowcast_units::{Bytes, Time};
use pending::{Event, Kind, Pending};

/// An event: when it is inserted, when it is due, and its delay in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Insertion {
    at: f64,
    due: f64,
    delay: f64,
    /// How many events are given out before.
    given_out: u32,
}

#[derive(Default)]
struct Notes(Vec<Insertion>);

impl Notes {
    fn note(&mut self, at: f64, due: f64) {
        if due.is_finite() && due > at {
            self.0.push(Insertion { at, due, delay: due - at, given_out: 0 });
        }
    }
}

impl Observer for Notes {
    fn computed(&mut self, _rank: u32, start: f64, end: f64) {
        self.note(start, end);
    }
    fn sent(&mut self, _rank: u32, _slot: u32, sent: Sent) {
        self.note(sent.start, sent.end);
    }
    fn moved(&mut self, _slot: u32, start: f64, arrival: f64) {
        self.note(start, arrival);
    }
    fn received(&mut self, _rank: u32, _slot: u32, received: Received) {
        self.note(received.call, received.before);
    }
}

fn main() {
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(11);
    for (workload, ranks, iterations) in [
        (Workload::Halo, 64, 400),
        (Workload::Halo, 1024, 25),
        (Workload::Halo, 16384, 2),
        (Workload::Dissemination, 1024, 10),
    ] {
        let events = events(workload, ranks, iterations);
        let structures: [(&str, fn(&[Insertion]) -> u64); 4] = [
            ("a lane for each delay, heap of heads", lanes),
            ("4-ary heap", heap),
            ("std BinaryHeap", binary_heap),
            ("radix heap", radix_heap),
        ];
        let mut samples = vec![Vec::new(); structures.len()];
        for _ in 0..rounds {
            for ((_, run), samples) in structures.iter().zip(&mut samples) {
                let begin = Clock::now();
                black_box(run(&events));
                samples.push(begin.elapsed().as_secs_f64() * 1e9 / events.len() as f64);
            }
        }
        println!("{} of {ranks} ranks, {} events, ns per event: median (least)", workload.name(), events.len());
        for ((name, _), samples) in structures.iter().zip(&mut samples) {
            samples.sort_by(f64::total_cmp);
            println!("  {name:<40} {:>7.1}  ({:.1})", samples[samples.len() / 2], samples[0]);
        }
    }
}

/// The events of a replay with one link in and one out.
fn events(workload: Workload, ranks: u32, iterations: u32) -> Vec<Insertion> {
    let program = program(workload, ranks, iterations);
    let text = "schema = \"flowcast/network/1\"\nname = \"test\"\n[point_to_point]\nrule = \"dimemas\"\n[nic]\nlatency = \
                \"2us\"\nbandwidth = \"1000MB/s\"\n";
    let mut network = Network::from_toml(text, &[]).expect("the text is a network");
    let group = NodeGroup { count: 0, in_links: 1, out_links: 1, ..NodeGroup::default() };
    network.machine = Machine { nodes: vec![group], ..Machine::default() };
    let placement = Placement::of_program(&network.machine, None, &program).expect("one rank on each node");
    let replay = Contention::new(&program, &network, placement, Rendezvous::AsRecorded).expect("one kind of way");
    let mut notes = Notes::default();
    replay.observed(&mut notes).expect("the workload ends");
    notes.0.sort_by(|a, b| a.at.total_cmp(&b.at));
    count_given_out(&mut notes.0);
    notes.0
}

fn count_given_out(events: &mut [Insertion]) {
    let mut heap = BinaryHeap::new();
    for event in events {
        while heap.peek().is_some_and(|Reverse(due)| *due <= event.at.to_bits()) {
            heap.pop();
            event.given_out += 1;
        }
        heap.push(Reverse(event.due.to_bits()));
    }
}

fn program(workload: Workload, ranks: u32, iterations: u32) -> Program {
    let shape = Shape {
        workload,
        ranks,
        iterations,
        size: Bytes(8192),
        compute: Time::from_micros(10.0),
        jitter: 0.2,
        seed: 1,
    };
    let mut text = Vec::new();
    write::dim(shape, &mut text).expect("a vector takes everything");
    let mut none = |name: &str| Err(std::io::Error::new(std::io::ErrorKind::NotFound, name.to_owned()));
    match read("workload.dim", Arc::new(text), &mut none, ReadOptions::default()).expect("it was just written") {
        Trace::Program(program) => program,
        Trace::Schedule(_) => unreachable!("a .dim file is no schedule"),
    }
}

fn lanes(events: &[Insertion]) -> u64 {
    let mut delays: Vec<f64> = events.iter().map(|event| event.delay).collect();
    delays.sort_by(f64::total_cmp);
    // Delays of one event only are no lanes, as in the engine, which knows them from the costs.
    let common =
        delays.chunk_by(|a, b| a == b).filter(|run| run.len() > events.len() / 100).map(|run| run[0]).collect();
    drive(events, common)
}

fn heap(events: &[Insertion]) -> u64 {
    drive(events, Vec::new())
}

fn drive(events: &[Insertion], lanes: Vec<f64>) -> u64 {
    let mut pending = Pending::default();
    pending.open_lanes(lanes);
    let mut sum = 0;
    for (index, event) in events.iter().enumerate() {
        for _ in 0..event.given_out {
            sum += pending.next().map_or(0, |event| u64::from(event.index));
        }
        pending.put(pending.lane(event.delay), event.due, Event { kind: Kind::Turn, index: index as u32 });
    }
    while let Some(event) = pending.next() {
        sum += u64::from(event.index);
    }
    sum
}

fn binary_heap(events: &[Insertion]) -> u64 {
    let mut heap = BinaryHeap::new();
    let mut sum = 0;
    for (index, event) in events.iter().enumerate() {
        for _ in 0..event.given_out {
            sum += heap.pop().map_or(0, |Reverse((_, index))| index);
        }
        heap.push(Reverse((event.due.to_bits(), index as u64)));
    }
    while let Some(Reverse((_, index))) = heap.pop() {
        sum += index;
    }
    sum
}

/// Buckets by the highest bit in which an entry differs from the last one given out (Ahuja, Mehlhorn, Orlin, Tarjan).
struct RadixHeap {
    last: u64,
    buckets: Vec<Vec<(u64, u64)>>,
}

impl RadixHeap {
    fn bucket(&self, due: u64) -> usize {
        (64 - (due ^ self.last).leading_zeros()) as usize
    }

    fn push(&mut self, due: u64, index: u64) {
        let bucket = self.bucket(due);
        self.buckets[bucket].push((due, index));
    }

    fn pop(&mut self) -> Option<u64> {
        if self.buckets[0].is_empty() {
            let found = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
            self.last = self.buckets[found].iter().map(|entry| entry.0).min()?;
            let mut moved = std::mem::take(&mut self.buckets[found]);
            moved.drain(..).for_each(|(due, index)| self.push(due, index));
            self.buckets[found] = moved;
        }
        self.buckets[0].pop().map(|(_, index)| index)
    }
}

fn radix_heap(events: &[Insertion]) -> u64 {
    let mut heap = RadixHeap { last: 0, buckets: vec![Vec::new(); 65] };
    let mut sum = 0;
    for (index, event) in events.iter().enumerate() {
        for _ in 0..event.given_out {
            sum += heap.pop().unwrap_or(0);
        }
        heap.push(event.due.to_bits(), index as u64);
    }
    while let Some(index) = heap.pop() {
        sum += index;
    }
    sum
}

//! Cost of an event in each queue: `cargo bench -p flowcast-traffic [ROUNDS]`.
//!
//! The streams are similar to those of the engines. Each rank has one event. When it is due, the rank's next event follows:
//! after a fixed delay (a start-up, a transfer) three times out of four, otherwise after a computation of varying length.
//! Every round times each queue once, in turn.

use std::{cmp::Reverse, collections::BinaryHeap, hint::black_box, time::Instant as Clock};

use flowcast_traffic::queues::{
    KeyQueue, indexed::IndexedHeap, ladder::Ladder, lanes::LaneQueue, member_of, time_of,
    tournament::Tournament,
};
use flowcast_units::Time;

const EVENTS: u32 = 400_000;
const DELAYS: [f64; 3] = [2000.0, 8192.0, 10_192.0];

/// Delay of the event with this number, in nanoseconds.
fn delay(number: u32) -> f64 {
    kind(number).map_or_else(|varying| varying, |fixed| DELAYS[fixed])
}

/// Index of an event's fixed delay, or its varying delay.
fn kind(number: u32) -> Result<usize, f64> {
    let random = number.wrapping_mul(0x9E37_79B1) ^ number.wrapping_mul(0x85EB_CA6B) >> 15;
    match random >> 28 {
        0..4 => Err(8000.0 + f64::from(random & 0xFFF)),
        other => Ok(other as usize % DELAYS.len()),
    }
}

/// Runs all events on this many ranks. Returns the time of the last event.
type Drive = fn(u32) -> f64;

fn main() {
    let rounds = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(11);
    let queues: [(&str, Drive); 6] = [
        ("lanes: a queue for each delay, heap of heads", by_lanes),
        ("tournament", |ranks| by_keys(Tournament::new(ranks), ranks)),
        ("ladder queue", |ranks| {
            by_keys(Ladder::new(ranks as usize), ranks)
        }),
        ("indexed 4-ary heap", by_indexed),
        ("std BinaryHeap", by_binary_heap),
        ("binary tournament without branches", by_binary_tournament),
    ];
    for ranks in [16, 64, 1024, 16384, 262_144] {
        let mut samples = vec![Vec::new(); queues.len()];
        for _ in 0..rounds {
            for ((_, run), samples) in queues.iter().zip(&mut samples) {
                let begin = Clock::now();
                black_box(run(ranks));
                samples.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(EVENTS));
            }
        }
        println!("{ranks} ranks, ns per event: median (least)");
        for ((name, _), samples) in queues.iter().zip(&mut samples) {
            samples.sort_by(f64::total_cmp);
            println!(
                "  {name:<46} {:>7.1}  ({:.1})",
                samples[samples.len() / 2],
                samples[0]
            );
        }
    }
}

fn by_lanes(ranks: u32) -> f64 {
    let mut queue = LaneQueue::default();
    let delays = DELAYS.map(Time::from_nanos);
    queue.open_lanes(delays.to_vec());
    let lanes = delays.map(|delay| queue.lane(delay));
    (0..ranks).for_each(|rank| queue.at(Time::from_nanos(delay(rank)), rank));
    for number in ranks..ranks + EVENTS {
        let Some(rank) = queue.pop() else { break };
        match kind(number) {
            Ok(fixed) => queue.put(lanes[fixed], queue.now() + delays[fixed], rank),
            Err(varying) => queue.at(queue.now() + Time::from_nanos(varying), rank),
        }
    }
    queue.now().as_nanos()
}

fn key(time: f64, number: u32, rank: u32) -> u128 {
    u128::from(time.to_bits()) << 64 | u128::from(number) << 32 | u128::from(rank)
}

fn by_keys(mut queue: impl KeyQueue, ranks: u32) -> f64 {
    let mut now = 0.0;
    (0..ranks).for_each(|rank| queue.set(rank, key(delay(rank), rank, rank)));
    for number in ranks..ranks + EVENTS {
        let Some(first) = queue.first() else { break };
        now = time_of(first).as_nanos();
        let rank = member_of(first);
        queue.set(rank, key(now + delay(number), number, rank));
    }
    now
}

fn by_indexed(ranks: u32) -> f64 {
    let mut queue = IndexedHeap::default();
    let mut last = 0.0;
    (0..ranks).for_each(|rank| queue.set(rank, Time::from_nanos(delay(rank))));
    for number in ranks..ranks + EVENTS {
        let Some((now, rank)) = queue.first() else {
            break;
        };
        last = now.as_nanos();
        queue.set(rank, Time::from_nanos(last + delay(number)));
    }
    last
}

fn by_binary_heap(ranks: u32) -> f64 {
    let mut heap: BinaryHeap<_> = (0..ranks)
        .map(|rank| Reverse(key(delay(rank), rank, rank)))
        .collect();
    let mut now = 0.0;
    for number in ranks..ranks + EVENTS {
        let Some(Reverse(first)) = heap.pop() else {
            break;
        };
        now = time_of(first).as_nanos();
        heap.push(Reverse(key(now + delay(number), number, member_of(first))));
    }
    now
}

/// Drives a full binary tree of times and members, with the root at 1 and the leaves in the second half.
fn by_binary_tournament(ranks: u32) -> f64 {
    let mut winners = vec![[u64::MAX - 1, 0]; 2 * (ranks as usize).next_power_of_two().max(2)];
    let leaves = winners.len() / 2;
    let set = |winners: &mut Vec<[u64; 2]>, rank: u32, time: f64| {
        let mut place = leaves + rank as usize;
        let mut winner = [time.to_bits(), u64::from(rank)];
        winners[place] = winner;
        while place > 1 {
            let other = winners[place ^ 1];
            let mask = u64::from(other[0] < winner[0] + (place as u64 & 1)).wrapping_neg();
            winner = [
                winner[0] ^ (winner[0] ^ other[0]) & mask,
                winner[1] ^ (winner[1] ^ other[1]) & mask,
            ];
            place >>= 1;
            winners[place] = winner;
        }
    };
    (0..ranks).for_each(|rank| set(&mut winners, rank, delay(rank)));
    let mut now = 0.0;
    for number in ranks..ranks + EVENTS {
        let [time, rank] = winners[1];
        now = f64::from_bits(time);
        set(&mut winners, rank as u32, now + delay(number));
    }
    now
}

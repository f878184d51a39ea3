//! Two sessions over rails that are cut, corrupted and replaced at random: every message arrives once, ordered ones in
//! order.

use std::{collections::VecDeque, io::IoSlice};

use flowcast_network::loggp::LogGp;
use flowcast_rails::{
    policy::Steering,
    session::{DeliveryOrder, Opening, Refused, Session, SessionRule},
    token::Token,
};
use flowcast_scheduler::{
    RailId, RailSet,
    adaptive::AdaptiveRule,
    clock::Ticks,
    discipline::{Discipline, SchedulerName},
    split::SplitRule,
};
use flowcast_units::{Bytes, Time, TimePerByte};
use proptest::prelude::*;

const RAILS: u8 = 3;

fn cost() -> LogGp {
    LogGp {
        gap: Time::from_micros(1.0),
        gap_per_byte: TimePerByte::from_nanos(10.0),
        overhead: Time::from_micros(1.0),
        latency: Time::from_micros(20.0),
    }
}

/// Rule with pieces so short that most messages of these tests are divided.
const SPLIT: SplitRule = SplitRule {
    from: Bytes(100),
    minimal_piece: Bytes(60),
    least_gain: Time::ZERO,
};

const TOKEN: Token = Token::new([7; 16]);

fn rule(steering: Steering) -> SessionRule {
    SessionRule {
        window: 64,
        longest: 4096,
        acknowledge_within: Time::from_micros(100.0),
        silence: Time::from_micros(2000.0),
        steering,
        token: TOKEN,
    }
}

/// Two ends, and the bytes in flight in each direction of each rail.
struct Pair {
    ends: [Session; 2],
    under_way: [[VecDeque<u8>; RAILS as usize]; 2],
    now: u64,
    sent: [Vec<(u64, DeliveryOrder)>; 2],
    received: [Vec<u64>; 2],
}

impl Pair {
    fn new(steering: Steering) -> Pair {
        let end = || Session::new(rule(steering), vec![cost(); RAILS as usize]).unwrap();
        let mut pair = Pair {
            ends: [end(), end()],
            under_way: Default::default(),
            now: 0,
            sent: Default::default(),
            received: Default::default(),
        };
        let new = [Opening::New; 2];
        (0..RAILS).for_each(|rail| pair.connect(RailId(rail), new));
        pair
    }

    fn tick(&self) -> Ticks {
        Ticks::from_nanos(self.now)
    }

    fn connect(&mut self, rail: RailId, openings: [Opening; 2]) {
        self.cut(rail);
        let now = self.tick();
        for (end, opening) in self.ends.iter_mut().zip(openings) {
            end.connected(rail, cost(), opening, now).unwrap();
        }
    }

    /// One end gives up a rail and reconnects it.
    fn replace(&mut self, at: usize, rail: RailId) {
        let mut openings = [Opening::Answered; 2];
        openings[at] = Opening::Again;
        self.connect(rail, openings);
    }

    /// Both ends detect the cut at the same time; bytes in flight are lost.
    fn cut(&mut self, rail: RailId) {
        let now = self.tick();
        for (end, under_way) in self.ends.iter_mut().zip(&mut self.under_way) {
            under_way[rail.index()].clear();
            if end.alive().contains(rail) {
                end.lost(rail, now);
            }
        }
    }

    fn send(&mut self, from: usize, size: usize, delivery: DeliveryOrder) {
        let number = self.sent[from].len() as u64;
        let mut message = number.to_le_bytes().to_vec();
        message.resize(8 + size, number as u8);
        let now = self.tick();
        match self.ends[from].send(&message, delivery, now) {
            Ok(_) => self.sent[from].push((number, delivery)),
            Err(refused) => assert_eq!(refused, Refused::NoCredit),
        }
    }

    /// Moves up to `bytes` bytes on a rail from one end to the other.
    fn transfer(&mut self, from: usize, rail: RailId, bytes: usize) {
        if !self.ends[from].alive().contains(rail) {
            return;
        }
        let under_way = &mut self.under_way[from][rail.index()];
        let mut slices = [IoSlice::new(&[]); 32];
        let count = self.ends[from].output(rail, &mut slices);
        let written: Vec<u8> = slices[..count]
            .iter()
            .flat_map(|slice| slice.iter().copied())
            .take(bytes)
            .collect();
        self.ends[from].wrote(rail, written.len());
        under_way.extend(written);
        let arriving: Vec<u8> = under_way.drain(..bytes.min(under_way.len())).collect();
        let now = self.tick();
        for part in arriving.chunks(64 * 1024) {
            let to = &mut self.ends[1 - from];
            to.receive_buffer(rail)[..part.len()].copy_from_slice(part);
            if to.arrived(rail, part.len(), now).is_err() {
                return self.cut(rail);
            }
        }
    }

    fn spoil(&mut self, from: usize, rail: RailId, at: usize) {
        let under_way = &mut self.under_way[from][rail.index()];
        let length = under_way.len();
        if length > 0 {
            under_way[at % length] ^= 0x10;
        }
    }

    fn attend(&mut self, elapsed: u64) {
        self.now += elapsed;
        let now = self.tick();
        for at in 0..2 {
            let silent = self.ends[at].attend(now);
            silent.for_each(|rail| self.replace(at, rail));
        }
    }

    fn consume(&mut self, at: usize, count: usize) {
        for message in std::iter::from_fn(|| self.ends[at].receive()).take(count) {
            let number = u64::from_le_bytes(*message.first_chunk().unwrap());
            assert!(message[8..].iter().all(|byte| *byte == number as u8));
            self.received[at].push(number);
        }
    }

    /// Moves data until everything has arrived, with rails that work.
    fn settle(&mut self) {
        for rail in (0..RAILS).map(RailId) {
            if !self.ends[0].alive().contains(rail) {
                self.replace(0, rail);
            }
        }
        for _ in 0..4000 {
            for (from, rail) in
                (0..2).flat_map(|from| (0..RAILS).map(move |rail| (from, RailId(rail))))
            {
                self.transfer(from, rail, 100_000);
                // An earlier corrupted frame may still end a rail here.
                if !self.ends[0].alive().contains(rail) {
                    self.replace(1, rail);
                }
            }
            (0..2).for_each(|at| self.consume(at, usize::MAX));
            self.attend(150_000);
            if self.ends.iter().all(|end| end.outstanding() == 0) {
                return;
            }
        }
        panic!("messages are outstanding for ever");
    }

    fn check(&self) {
        for from in 0..2 {
            let received = &self.received[1 - from];
            let mut once = received.clone();
            once.sort_unstable();
            assert_eq!(
                once,
                (0..self.sent[from].len() as u64).collect::<Vec<_>>(),
                "each message once"
            );
            let ordered =
                |number: &&u64| self.sent[from][**number as usize].1 == DeliveryOrder::Ordered;
            assert!(received.iter().filter(ordered).is_sorted());
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Send(usize, usize, DeliveryOrder),
    Transfer(usize, RailId, usize),
    Consume(usize, usize),
    Attend(u64),
    Cut(RailId),
    Spoil(usize, RailId, usize),
    Connect(RailId, Opening),
}

fn any_step() -> impl Strategy<Value = Step> {
    let rail = || (0..RAILS).prop_map(RailId);
    let delivery = prop_oneof![Just(DeliveryOrder::Ordered), Just(DeliveryOrder::Unordered)];
    prop_oneof![
        8 => (0usize..2, prop_oneof![0usize..600, 600usize..4000], delivery).prop_map(|(from, size, delivery)| Step::Send(from, size, delivery)),
        8 => (0usize..2, rail(), 1usize..3000).prop_map(|(from, rail, bytes)| Step::Transfer(from, rail, bytes)),
        3 => (0usize..2, 1usize..20).prop_map(|(at, count)| Step::Consume(at, count)),
        2 => (0u64..1_000_000).prop_map(Step::Attend),
        1 => rail().prop_map(Step::Cut),
        1 => (0usize..2, rail(), any::<usize>()).prop_map(|(from, rail, at)| Step::Spoil(from, rail, at)),
        1 => (rail(), prop_oneof![Just(Opening::New), Just(Opening::Again)]).prop_map(|(rail, opening)| Step::Connect(rail, opening)),
    ]
}

fn any_steering() -> impl Strategy<Value = Steering> {
    let name = |discipline| Steering::Fixed(SchedulerName::new(discipline));
    prop_oneof![
        Just(name(Discipline::EarliestDelivery)),
        Just(name(Discipline::RoundRobin)),
        Just(Steering::Dividing(SPLIT)),
        Just(Steering::Adaptive(AdaptiveRule::default(), None)),
        Just(Steering::Adaptive(AdaptiveRule::default(), Some(SPLIT))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]
    #[test]
    fn whatever_happens_to_the_rails_each_message_arrives_once_and_in_order(
        steering in any_steering(),
        steps in prop::collection::vec(any_step(), 1..400),
    ) {
        let mut pair = Pair::new(steering);
        for step in steps {
            match step {
                Step::Send(from, size, delivery) => pair.send(from, size, delivery),
                Step::Transfer(from, rail, bytes) => pair.transfer(from, rail, bytes),
                Step::Consume(at, count) => pair.consume(at, count),
                Step::Attend(elapsed) => pair.attend(elapsed),
                Step::Cut(rail) => pair.cut(rail),
                Step::Spoil(from, rail, at) => pair.spoil(from, rail, at),
                Step::Connect(rail, Opening::New) => pair.connect(rail, [Opening::New; 2]),
                Step::Connect(rail, _) => pair.replace(0, rail),
            }
        }
        pair.settle();
        pair.check();
    }
}

#[test]
fn a_sender_without_credit_waits_until_the_receiver_consumes() {
    let mut pair = Pair::new(Steering::Fixed(SchedulerName::new(
        Discipline::EarliestDelivery,
    )));
    for _ in 0..200 {
        pair.send(0, 10, DeliveryOrder::Unordered);
    }
    assert_eq!(pair.sent[0].len(), 64, "the window");
    let everywhere = |pair: &mut Pair| {
        for (from, rail) in (0..2).flat_map(|from| (0..RAILS).map(move |rail| (from, RailId(rail))))
        {
            pair.transfer(from, rail, 100_000);
        }
    };
    everywhere(&mut pair);
    pair.attend(1_000_000);
    everywhere(&mut pair);
    assert!(!pair.ends[0].has_credit(), "received, but not consumed");
    pair.consume(1, 20);
    pair.attend(1_000_000);
    everywhere(&mut pair);
    for _ in 0..200 {
        pair.send(0, 10, DeliveryOrder::Unordered);
    }
    assert_eq!(pair.sent[0].len(), 84, "20 consumed");
    pair.settle();
    pair.check();
}

#[test]
fn messages_of_another_scheduler_do_not_count_against_a_rail() {
    let mut pair = Pair::new(Steering::Fixed(SchedulerName::new(Discipline::RoundRobin)));
    (0..9).for_each(|_| pair.send(0, 4000, DeliveryOrder::Unordered));
    let adaptive = Steering::Adaptive(AdaptiveRule::default(), None);
    pair.now += 20_000_000;
    let now = pair.tick();
    pair.ends[0].steer(adaptive, RailSet::ALL, now).unwrap();
    pair.settle();
    for rail in (0..RAILS).map(RailId) {
        assert_eq!(pair.ends[0].slowdown(rail), (1.0, 0));
    }
}

#[test]
fn pieces_use_credit_and_a_message_stays_whole_without_enough_credit() {
    let mut pair = Pair::new(Steering::Dividing(SPLIT));
    for _ in 0..200 {
        pair.send(0, 4000, DeliveryOrder::Unordered);
    }
    let counts = pair.ends[0].counts();
    assert_eq!(
        (counts.divided, counts.sent),
        (21, 22),
        "three pieces each, and the window is 64"
    );
    pair.settle();
    pair.check();
}

#[test]
fn a_piece_on_a_rail_that_fails_takes_another_and_the_message_arrives_whole() {
    let mut pair = Pair::new(Steering::Dividing(SPLIT));
    pair.send(0, 4000, DeliveryOrder::Ordered);
    pair.transfer(0, RailId(0), 100_000);
    pair.transfer(0, RailId(2), 700);
    assert!(!pair.ends[1].has_messages(), "two pieces are missing");
    pair.cut(RailId(1));
    pair.cut(RailId(2));
    assert!(
        pair.ends[0].counts().sent_again >= 2,
        "neither of them is acknowledged"
    );
    pair.settle();
    pair.check();
    assert_eq!(pair.ends[1].counts().received, 3);
}

#[test]
fn a_message_sent_without_a_rail_leaves_on_the_first_rail_that_connects() {
    let mut pair = Pair::new(Steering::Fixed(SchedulerName::new(
        Discipline::EarliestDelivery,
    )));
    (0..RAILS).for_each(|rail| pair.cut(RailId(rail)));
    pair.send(0, 5, DeliveryOrder::Ordered);
    assert_eq!(pair.ends[0].outstanding(), 1);
    pair.connect(RailId(2), [Opening::New; 2]);
    pair.transfer(0, RailId(2), 1000);
    pair.consume(1, 1);
    assert_eq!(pair.received[1], [0]);
}

#[test]
fn a_rail_that_delivers_nothing_is_given_up_and_other_rails_take_its_messages() {
    let mut pair = Pair::new(Steering::Fixed(SchedulerName::new(Discipline::RoundRobin)));
    (0..200).for_each(|_| pair.send(0, 10, DeliveryOrder::Ordered));
    let others = [RailId(1), RailId(2)];
    let mut silent = RailSet::NONE;
    while silent.is_empty() {
        for (from, rail) in (0..2).flat_map(|from| others.map(|rail| (from, rail))) {
            pair.transfer(from, rail, 100_000);
        }
        pair.now += 150_000;
        let now = pair.tick();
        silent = pair.ends[0].attend(now);
        assert!(pair.ends[1].attend(now).is_empty(), "it has sent nothing");
    }
    assert_eq!(silent, RailSet::first(1));
    assert!(pair.now >= 2_000_000, "the silence");
    pair.replace(0, RailId(0));
    pair.settle();
    pair.check();
}

#[test]
fn a_reconnected_rail_takes_messages_once_the_other_end_was_heard_on_it() {
    let mut pair = Pair::new(Steering::Fixed(SchedulerName::new(
        Discipline::EarliestDelivery,
    )));
    (0..RAILS).for_each(|rail| pair.cut(RailId(rail)));
    pair.send(0, 5, DeliveryOrder::Ordered);
    pair.replace(0, RailId(1));
    pair.transfer(0, RailId(1), 1000);
    assert!(!pair.ends[1].has_messages());
    pair.transfer(1, RailId(1), 1000);
    pair.transfer(0, RailId(1), 1000);
    pair.consume(1, 1);
    assert_eq!(pair.received[1], [0]);
}

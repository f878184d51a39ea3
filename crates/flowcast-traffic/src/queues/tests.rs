//! Comparison of each queue with a list that is searched.

use super::{
    KeyQueue, NEVER, indexed::IndexedHeap, ladder::Ladder, lanes::LaneQueue, member_of, time_of,
    tournament::Tournament,
};
use flowcast_units::Time;
use proptest::prelude::*;

/// Events in no order; the first is the least.
#[derive(Default)]
struct List<T>(Vec<T>);

impl<T: Copy + PartialOrd> List<T> {
    fn first(&self) -> Option<T> {
        self.0
            .iter()
            .copied()
            .min_by(|a, b| a.partial_cmp(b).unwrap())
    }

    fn remove(&mut self, gone: impl Fn(&T) -> bool) {
        self.0.retain(|event| !gone(event));
    }
}

/// Changes keys, some of them to none, and takes the first event, until the end.
fn compare(
    mut queue: impl KeyQueue,
    members: u32,
    changes: Vec<(u32, u32, u32)>,
) -> Result<(), TestCaseError> {
    let (mut list, mut now) = (List(Vec::new()), 0.0);
    let take = |queue: &mut dyn FnMut() -> Option<u128>, list: &mut List<u128>| {
        let first = queue();
        prop_assert_eq!(first, list.first());
        Ok(first)
    };
    for (created, (member, delay, kind)) in (0u128..).zip(changes) {
        let member = member % members;
        let key = u128::from((now + f64::from(delay / 10)).to_bits()) << 64
            | created << 32
            | u128::from(member);
        list.remove(|listed| member_of(*listed) == member);
        queue.set(member, if delay == 0 { NEVER } else { key });
        list.0.extend((delay > 0).then_some(key));
        if kind > 0
            && let Some(first) = take(&mut || queue.first(), &mut list)?
        {
            now = time_of(first).as_nanos();
            queue.set(member_of(first), NEVER);
            list.remove(|listed| *listed == first);
        }
    }
    while let Some(first) = take(&mut || queue.first(), &mut list)? {
        queue.set(member_of(first), NEVER);
        list.remove(|listed| *listed == first);
    }
    Ok(())
}

fn any_changes() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    proptest::collection::vec((0u32..400, 0u32..2000, 0u32..4), 1..800)
}

proptest! {
    #[test]
    fn a_tournament_returns_the_smallest_key(members in 1u32..400, changes in any_changes()) {
        compare(Tournament::new(members), members, changes)?;
    }

    #[test]
    fn a_ladder_returns_the_smallest_key(members in 1u32..400, changes in any_changes()) {
        compare(Ladder::new(members as usize), members, changes)?;
    }

    #[test]
    fn an_indexed_heap_returns_the_earliest(steps in proptest::collection::vec((0u32..20, 0u32..50), 1..200)) {
        let (mut queue, mut list) = (IndexedHeap::default(), List(Vec::new()));
        for (member, time) in steps {
            let time = Time::from_nanos(f64::from(time));
            queue.set(member, time);
            list.remove(|(_, listed)| *listed == member);
            list.0.push((time, member));
            prop_assert_eq!(queue.first(), list.first());
            if member % 5 == 1 {
                queue.remove(member + 1);
                list.remove(|(_, listed)| *listed == member + 1);
            }
            prop_assert_eq!(queue.contains(member + 1), list.0.iter().any(|(_, listed)| *listed == member + 1));
            if member % 3 == 0 {
                let first = queue.pop();
                prop_assert_eq!(first, list.first());
                list.remove(|listed| Some(*listed) == first);
            }
        }
    }

    #[test]
    fn lanes_return_events_by_time_and_insertion(steps in proptest::collection::vec((0u8..7, 0u32..4), 1..200)) {
        let delays = [0.0, 1.0, 2.5].map(Time::from_nanos);
        let (mut queue, mut list) = (LaneQueue::default(), List::default());
        queue.open_lanes(delays.to_vec());
        for (number, (action, delay)) in (0u32..).zip(steps) {
            match action {
                0..=2 => {
                    let delay = delays[usize::from(action)];
                    queue.put(queue.lane(delay), queue.now() + delay, number);
                    list.0.push((queue.now() + delay, number));
                }
                3 => {
                    let time = queue.now() + Time::from_nanos(f64::from(delay));
                    queue.at(time, number);
                    list.0.push((time, number));
                }
                4 => {
                    let next = list.first().map(|(time, _)| time);
                    prop_assert_eq!(queue.next_time(), next);
                    let [half, one] = [0.5, 1.0].map(|nanos| queue.now() + Time::from_nanos(nanos));
                    queue.advance(next.unwrap_or(one).min(half));
                }
                _ => {
                    let first = list.first();
                    prop_assert_eq!(queue.pop(), first.map(|(_, number)| number));
                    if let Some((time, _)) = first {
                        prop_assert_eq!(queue.now(), time);
                        list.remove(|listed| Some(*listed) == first);
                    }
                }
            }
        }
    }
}

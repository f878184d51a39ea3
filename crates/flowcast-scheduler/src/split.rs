//! Large messages, split so that all rails finish at the same time.
//!
//! Rail r delivers the first byte of a piece that is assigned to it now at `a_r = max(VFT_r, now) + 2o_r + L_r + k·o`, where
//! k pieces were prepared before it and occupied the processor. Each further byte takes `G_r`. A piece of `x` bytes is then
//! complete at `a_r + G_r(x-1)`. All pieces are complete at the same time T if
//!
//! `T = (s - n + Σ a_r/G_r) / Σ 1/G_r`,  `x_r = 1 + (T - a_r)/G_r`,
//!
//! with sums over the n participating rails: those with the smallest `a_r`, as long as each piece is at least as long as the
//! minimal piece. The message is split if T is earlier than on one rail alone by more than the least gain.
//!
//! A decision costs one integer division for each participating rail and no floating point: `1/G_r` is kept as an integer.

use super::{
    MAX_RAILS, RailId, RailScheduler, RailSet, RailsError,
    clock::{ClockArithmetic, Ticks},
    table::RailTable,
};
use flowcast_network::loggp::LogGp;
use flowcast_units::{Bytes, Time};

/// Criterion for splitting a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitRule {
    /// Length below which messages are never split.
    pub from: Bytes,
    /// Smallest length of a piece.
    pub minimal_piece: Bytes,
    /// Smallest gain: the fastest rail takes a message alone unless another rail, or a split, completes earlier by more than
    /// this.
    pub least_gain: Time,
}

impl Default for SplitRule {
    /// Defaults: from 64 KiB on, in pieces of 8 KiB or more, for any gain.
    fn default() -> SplitRule {
        SplitRule {
            from: Bytes(65_536),
            minimal_piece: Bytes(8192),
            least_gain: Time::ZERO,
        }
    }
}

impl SplitRule {
    /// Rule for messages of MPI programs, whose pieces cost two copies and a header each. It divides from 8 KiB on, in
    /// pieces of 1400 bytes or more, which fill a packet with the header, for a gain of ten microseconds. This is about the
    /// time that two processors spend on an acknowledgement that TCP sends in a separate packet. The Open MPI component and
    /// predictions use this rule.
    pub fn inside_mpi() -> SplitRule {
        SplitRule {
            from: Bytes(8192),
            minimal_piece: Bytes(1400),
            least_gain: Time::from_micros(10.0),
        }
    }
}

/// Division of a message over rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    pieces: [u64; MAX_RAILS],
    complete: Ticks,
}

impl Split {
    /// The pieces in the order of the rails, each with its length. The lengths add up to the length of the message.
    pub fn pieces(&self) -> impl Iterator<Item = (RailId, Bytes)> + use<> {
        self.pieces
            .into_iter()
            .enumerate()
            .filter_map(|(rail, bytes)| (bytes > 0).then_some((RailId(rail as u8), Bytes(bytes))))
    }

    /// Number of participating rails.
    pub fn rails(&self) -> usize {
        self.pieces.iter().filter(|bytes| **bytes > 0).count()
    }

    /// Delivery time of the last piece.
    pub fn complete(&self) -> Ticks {
        self.complete
    }
}

/// Fractional bits of `1/G`, in bytes per tick.
const INVERSE_BITS: u32 = 40;

/// Earliest delivery that divides messages over rails if that is faster, and accounts for the pieces.
#[derive(Debug, Clone)]
pub struct Splitter {
    table: RailTable<Ticks>,
    divider: Divider,
}

impl Splitter {
    /// Creates a splitter for idle rails.
    ///
    /// # Errors
    /// No rail, or more than [`MAX_RAILS`].
    pub fn new(rails: &[LogGp], rule: SplitRule) -> Result<Splitter, RailsError> {
        Ok(Splitter {
            table: RailTable::new(rails, ())?,
            divider: Divider::new(rails, rule),
        })
    }

    /// Divides a message that is ready at `now` over rails of `usable`, and accounts for its pieces. A message that does not
    /// gain from division stays whole. Returns `None` if no rail is usable.
    pub fn split(&mut self, now: Ticks, size: Bytes, usable: RailSet) -> Option<Split> {
        let split = self.divider.plan(&self.table, now, size, usable)?;
        split
            .pieces()
            .for_each(|(rail, piece)| self.give(rail, now, piece));
        Some(split)
    }

    /// Returns the division of a message, or `None` if it should stay whole. Accounts for nothing, so that the caller can
    /// add headers.
    pub fn divide(&self, now: Ticks, size: Bytes, usable: RailSet) -> Option<Split> {
        self.divider
            .plan(&self.table, now, size, usable)
            .filter(|split| split.rails() > 1)
    }

    /// Accounts for a piece.
    pub fn give(&mut self, rail: RailId, now: Ticks, size: Bytes) {
        self.table.give(rail, now, size);
    }
}

impl RailScheduler<Ticks> for Splitter {
    /// Chooses a rail for the whole message, and accounts for it: the rail with the largest bandwidth, unless another one
    /// delivers the message earlier by more than the least gain.
    #[inline]
    fn pick(&mut self, now: Ticks, size: Bytes, usable: RailSet) -> Option<RailId> {
        let (_, rail) = self.divider.alone(&self.table, now, size, usable)?;
        self.give(rail, now, size);
        Some(rail)
    }

    #[inline]
    fn virtual_finish(&self, rail: RailId) -> Ticks {
        self.table.entries()[rail.index()].virtual_finish
    }

    fn restart_clock(&mut self, elapsed: Ticks) {
        self.table.restart_clock(elapsed);
    }
}

/// Closed-form division of a message over rails. The caller keeps the accounts of the rails.
#[derive(Debug, Clone)]
pub(crate) struct Divider {
    inverse: [u64; MAX_RAILS],
    rule: SplitRule,
    least_gain: Ticks,
}

impl Divider {
    /// Creates a divider for rails of these costs.
    pub(crate) fn new(rails: &[LogGp], rule: SplitRule) -> Divider {
        Divider {
            inverse: std::array::from_fn(|index| rails.get(index).map_or(0, inverse)),
            least_gain: Ticks::from_time(rule.least_gain, ()),
            rule,
        }
    }

    /// Replaces the costs of a rail.
    pub(crate) fn set_cost(&mut self, rail: RailId, cost: &LogGp) {
        self.inverse[rail.index()] = inverse(cost);
    }

    /// Returns the best division of a message over rails of `usable`, or `None` if none is usable. Accounts for nothing.
    pub(crate) fn plan(
        &self,
        table: &RailTable<Ticks>,
        now: Ticks,
        size: Bytes,
        usable: RailSet,
    ) -> Option<Split> {
        let (complete, rail) = self.alone(table, now, size, usable)?;
        let mut whole = Split {
            pieces: [0; MAX_RAILS],
            complete,
        };
        whole.pieces[rail.index()] = size.0.max(1);
        if size < self.rule.from {
            return Some(whole);
        }
        let best = self.together(table, now, size, usable);
        Some(
            best.filter(|split| split.complete.plus(self.least_gain) < complete)
                .unwrap_or(whole),
        )
    }

    /// Returns the rail for a whole message and its arrival there, or `None` if no rail is usable. It is the rail with the
    /// largest bandwidth, unless another one delivers the message earlier by more than the least gain.
    ///
    /// A change of rails for a small gain is expensive for short messages: two processes that answer each other over
    /// different rails have to acknowledge each message in a separate packet.
    pub(crate) fn alone(
        &self,
        table: &RailTable<Ticks>,
        now: Ticks,
        size: Bytes,
        usable: RailSet,
    ) -> Option<(Ticks, RailId)> {
        let arrivals = usable
            .and(table.all())
            .map(|rail| (complete(table, now, rail, size), rail));
        let fastest = arrivals
            .clone()
            .min_by_key(|(_, rail)| table.entries()[rail.index()].per_byte)?;
        let earliest = arrivals.min()?;
        let leaves = earliest.0.plus(self.least_gain) < fastest.0;
        Some(if leaves { earliest } else { fastest })
    }

    /// Adds the rails one after the other, in the order of their first byte's delivery.
    fn together(
        &self,
        table: &RailTable<Ticks>,
        now: Ticks,
        size: Bytes,
        usable: RailSet,
    ) -> Option<Split> {
        let mut order = [(Ticks::ZERO, RailId(0)); MAX_RAILS];
        let mut count = 0;
        for rail in usable.filter(|rail| self.inverse[rail.index()] > 0) {
            order[count] = (complete(table, now, rail, Bytes(1)), rail);
            count += 1;
        }
        let order = &mut order[..count];
        order.sort_unstable();
        queue_for_the_processor(table, order);
        (2..=count)
            .filter_map(|taking| self.divide(table, size, &order[..taking]))
            .min_by_key(|split| split.complete)
    }

    /// Computes the closed form. Returns `None` if a piece would be shorter than allowed.
    fn divide(
        &self,
        table: &RailTable<Ticks>,
        size: Bytes,
        rails: &[(Ticks, RailId)],
    ) -> Option<Split> {
        let origin = rails.iter().map(|(first_byte, _)| *first_byte).min()?;
        let weight = |rail: &RailId| u128::from(self.inverse[rail.index()]);
        let total: u128 = rails.iter().map(|(_, rail)| weight(rail)).sum();
        let waiting: u128 = rails
            .iter()
            .map(|(first_byte, rail)| u128::from(first_byte.since(origin).count()) * weight(rail))
            .sum();
        let bytes = u128::from(size.0.checked_sub(rails.len() as u64)?) << INVERSE_BITS;
        let until = Ticks::from_count(u64::try_from((bytes + waiting) / total).ok()?);
        let mut split = Split {
            pieces: [0; MAX_RAILS],
            complete: origin,
        };
        let mut left = size.0;
        for (first_byte, rail) in rails {
            let beyond = (u128::from(until.since(first_byte.since(origin)).count()) * weight(rail))
                >> INVERSE_BITS;
            let piece = u64::try_from(beyond).ok()?.checked_add(1)?.min(left);
            split.pieces[rail.index()] = piece;
            left -= piece;
        }
        // Rounding down leaves a few bytes; the fastest rail takes them in the least time.
        let (_, fastest) = rails
            .iter()
            .max_by_key(|(_, rail)| self.inverse[rail.index()])?;
        split.pieces[fastest.index()] += left;
        for (first_byte, rail) in rails {
            let piece = split.pieces[rail.index()];
            if piece < self.rule.minimal_piece.0.max(1) {
                return None;
            }
            let entry = &table.entries()[rail.index()];
            split.complete = split
                .complete
                .later(first_byte.plus(entry.transfer(table.tail(Bytes(piece)))));
        }
        Some(split)
    }
}

/// Delays the rails' first bytes, because the processor prepares one piece after the other.
fn queue_for_the_processor(table: &RailTable<Ticks>, order: &mut [(Ticks, RailId)]) {
    let mut prepared = Ticks::ZERO;
    for (first_byte, rail) in order {
        *first_byte = first_byte.plus(prepared);
        prepared = prepared.plus(table.entries()[rail.index()].overhead);
    }
}

fn complete(table: &RailTable<Ticks>, now: Ticks, rail: RailId, size: Bytes) -> Ticks {
    let entry = &table.entries()[rail.index()];
    entry
        .start(now.bounded())
        .plus(entry.end_to_end)
        .plus(entry.transfer(table.tail(size)))
}

/// `1/G` in bytes per tick, computed once. A rail without `G` does not participate, because a split beside it gains nothing.
fn inverse(rail: &LogGp) -> u64 {
    let per_byte = Ticks::per_byte(rail.gap_per_byte, ());
    if per_byte == 0 {
        0
    } else {
        (1u64 << INVERSE_BITS)
            .saturating_mul(256)
            .checked_div(per_byte)
            .unwrap_or(0)
    }
}

/// Returns the shortest message that two or more idle rails deliver earlier together than the best of them alone, or `None`
/// if there is none of up to 4 GiB.
///
/// # Errors
/// No rail, or more than [`MAX_RAILS`].
pub fn pays_from(rails: &[LogGp], rule: SplitRule) -> Result<Option<Bytes>, RailsError> {
    let splitter = Splitter::new(
        rails,
        SplitRule {
            from: Bytes(2),
            ..rule
        },
    )?;
    let pays = |size: u64| {
        splitter
            .divide(Ticks::ZERO, Bytes(size), RailSet::ALL)
            .is_some()
    };
    // Finds the longest message for which it does not pay, bit by bit.
    let mut longest = 0;
    for bit in (0..32).rev() {
        let longer = longest + (1u64 << bit);
        if !pays(longer) {
            longest = longer;
        }
    }
    Ok(pays(longest + 1).then_some(Bytes(longest + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::TimePerByte;
    use proptest::prelude::*;

    fn rail(gap: f64, per_byte: f64, overhead: f64, latency: f64) -> LogGp {
        LogGp {
            gap: Time::from_nanos(gap),
            gap_per_byte: TimePerByte::from_nanos(per_byte),
            overhead: Time::from_nanos(overhead),
            latency: Time::from_nanos(latency),
        }
    }

    const ANY: SplitRule = SplitRule {
        from: Bytes(2),
        minimal_piece: Bytes(1),
        least_gain: Time::ZERO,
    };

    fn pieces(split: &Split) -> Vec<(u8, u64)> {
        split
            .pieces()
            .map(|(rail, bytes)| (rail.0, bytes.0))
            .collect()
    }

    #[test]
    fn two_rails_share_by_speed_and_head_start() {
        // a = 1000 and 4000 ns, G = 1 and 3 ns: T = (8998 + 1000 + 4000/3) / (4/3) = 8498.5 ns.
        let mut splitter = Splitter::new(
            &[rail(10.0, 1.0, 0.0, 1000.0), rail(10.0, 3.0, 0.0, 4000.0)],
            ANY,
        )
        .unwrap();
        let split = splitter
            .split(Ticks::ZERO, Bytes(9000), RailSet::ALL)
            .unwrap();
        assert_eq!(pieces(&split), [(0, 7500), (1, 1500)]);
        assert_eq!(split.complete(), Ticks::from_nanos(8499));
        assert_eq!(
            splitter.virtual_finish(RailId(1)),
            Ticks::from_nanos(10 + 3 * 1499)
        );
    }

    #[test]
    fn a_message_that_the_first_rail_delivers_before_the_second_could_begin_stays_whole() {
        let mut splitter = Splitter::new(
            &[rail(10.0, 1.0, 0.0, 1000.0), rail(10.0, 1.0, 0.0, 4000.0)],
            ANY,
        )
        .unwrap();
        assert_eq!(
            pieces(
                &splitter
                    .split(Ticks::ZERO, Bytes(3000), RailSet::ALL)
                    .unwrap()
            ),
            [(0, 3000)]
        );
    }

    #[test]
    fn a_short_message_leaves_the_fastest_rail_for_more_than_the_least_gain() {
        let rails = [rail(3000.0, 4.0, 0.0, 0.0), rail(3000.0, 1.0, 0.0, 1000.0)];
        let rule = SplitRule {
            least_gain: Time::from_nanos(5000.0),
            ..SplitRule::inside_mpi()
        };
        let mut splitter = Splitter::new(&rails, rule).unwrap();
        let mut pick = |now| {
            splitter
                .pick(Ticks::from_nanos(now), Bytes(1), RailSet::ALL)
                .unwrap()
                .0
        };
        // The idle first rail delivers at 0, the second one at 1000 and 4000 ns, and at 7000 ns after two earlier messages.
        assert_eq!([0, 0, 0, 0, 9000].map(&mut pick), [1, 1, 0, 1, 1]);
    }

    #[test]
    fn no_piece_is_shorter_than_the_minimum_and_small_gains_are_ignored() {
        let rails = [rail(10.0, 1.0, 0.0, 1000.0), rail(10.0, 3.0, 0.0, 4000.0)];
        let rules = [
            SplitRule {
                minimal_piece: Bytes(1501),
                ..ANY
            },
            SplitRule {
                from: Bytes(9001),
                ..ANY
            },
            SplitRule {
                least_gain: Time::from_nanos(1501.0),
                ..ANY
            },
        ];
        for rule in rules {
            let split = Splitter::new(&rails, rule)
                .unwrap()
                .split(Ticks::ZERO, Bytes(9000), RailSet::ALL)
                .unwrap();
            assert_eq!(pieces(&split), [(0, 9000)], "{rule:?}");
        }
    }

    #[test]
    fn splitting_pays_once_the_second_rail_delivers_a_first_byte_in_time() {
        let rails = [rail(10.0, 1.0, 0.0, 1000.0), rail(10.0, 3.0, 0.0, 4000.0)];
        let from = pays_from(&rails, ANY).unwrap().unwrap();
        assert!((3000..=3003).contains(&from.0), "{from}");
        let from = pays_from(
            &rails,
            SplitRule {
                minimal_piece: Bytes(1000),
                ..ANY
            },
        )
        .unwrap()
        .unwrap();
        assert!(
            (6997..=7001).contains(&from.0),
            "a piece of 1000 bytes ends at 6997 ns: {from}"
        );
        assert_eq!(pays_from(&rails[..1], ANY).unwrap(), None);
    }

    /// Tries every division of a message over two rails, one after the other.
    fn evident(rails: &[LogGp; 2], size: u64) -> f64 {
        let [a, b] = rails
            .each_ref()
            .map(|rail: &LogGp| rail.overhead.as_nanos() * 2.0 + rail.latency.as_nanos());
        let per_byte = rails.map(|rail| rail.gap_per_byte.as_nanos());
        let (a, b) = if a <= b {
            (a, b + rails[0].overhead.as_nanos())
        } else {
            (a + rails[1].overhead.as_nanos(), b)
        };
        let alone = rails
            .iter()
            .map(|rail| rail.one_way(Bytes(size)).as_nanos())
            .fold(f64::INFINITY, f64::min);
        (1..size)
            .map(|x: u64| {
                (a + per_byte[0] * (x - 1) as f64).max(b + per_byte[1] * (size - x - 1) as f64)
            })
            .fold(alone, f64::min)
    }

    fn any_rail() -> impl Strategy<Value = LogGp> {
        (1u32..500, 1u32..20, 0u32..900, 0u32..9000).prop_map(|(g, per_byte, o, l)| {
            rail(
                f64::from(g),
                f64::from(per_byte),
                f64::from(o),
                f64::from(l),
            )
        })
    }

    proptest! {
        #[test]
        fn the_closed_form_is_as_good_as_an_exhaustive_search_of_divisions(
            first in any_rail(), second in any_rail(), size in 2u64..4000,
        ) {
            let rails = [first, second];
            let split = Splitter::new(&rails, ANY).unwrap().split(Ticks::ZERO, Bytes(size), RailSet::ALL).unwrap();
            let found = split.complete().time(()).as_nanos();
            let slowest = rails.map(|rail| rail.gap_per_byte.as_nanos()).into_iter().fold(0.0, f64::max);
            let best = evident(&rails, size);
            prop_assert!(found >= best - 1.0 && found <= best + 2.0 * slowest, "{found} {best}");
        }

        #[test]
        fn pieces_add_up_and_are_complete_together(
            rails in prop::collection::vec(any_rail(), 1..=16),
            sizes in prop::collection::vec(1u64..2_000_000, 1..8),
            usable in 1u16..,
        ) {
            let mut splitter = Splitter::new(&rails, SplitRule { minimal_piece: Bytes(100), ..ANY }).unwrap();
            for size in sizes {
                let before = splitter.clone();
                let usable = RailSet::from_bits(usable);
                let Some(split) = splitter.split(Ticks::ZERO, Bytes(size), usable) else {
                    prop_assert!(usable.and(RailSet::first(rails.len())).is_empty());
                    return Ok(());
                };
                prop_assert_eq!(split.pieces().map(|(_, bytes)| bytes.0).sum::<u64>(), size);
                let usable = usable.and(RailSet::first(rails.len()));
                prop_assert!(usable.into_iter().all(|rail| split.complete() <= complete(&before.table, Ticks::ZERO, rail, Bytes(size))));
                if split.rails() > 1 {
                    // The processor's queue is at most 16 overheads of 0.9 us long, and a byte takes at most 20 ns.
                    let early = |(rail, bytes)| split.complete().since(complete(&before.table, Ticks::ZERO, rail, bytes));
                    let spread = split.pieces().map(early).max().unwrap();
                    prop_assert!(spread <= Ticks::from_nanos(16 * 900 + 17 * 20), "{spread:?}");
                    prop_assert!(split.pieces().all(|(_, bytes)| bytes.0 >= 100));
                }
            }
        }
    }
}

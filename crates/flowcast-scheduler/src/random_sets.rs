//! Random sets of messages on the rails of the thesis, for comparisons of schedulers.

use rand::{Rng, RngExt};

use super::{Rail, schedule::RailMessage};
use flowcast_units::{Bytes, Time};

/// Properties of a random set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetPlan {
    /// Number of messages of a set.
    pub messages: usize,
    /// Largest size that may be drawn; 0 counts as 1 byte.
    pub largest: Bytes,
    /// End of the interval from 0 in which arrivals are uniformly distributed; 0 means a burst.
    pub window: Time,
}

impl SetPlan {
    /// Draws a set. The largest power of two that does not exceed a message's size is uniformly distributed over the powers
    /// of two.
    pub(crate) fn draw(&self, random: &mut impl Rng) -> Vec<RailMessage> {
        let octaves = u64::BITS - self.largest.0.max(1).leading_zeros();
        let mut set: Vec<RailMessage> = (0..self.messages)
            .map(|_| {
                let low = 1u64 << random.random_range(0..octaves);
                let high = low
                    .saturating_mul(2)
                    .min(self.largest.0.max(1).saturating_add(1));
                let arrival = self.window * random.random::<f64>();
                RailMessage {
                    arrival,
                    size: Bytes(random.random_range(low..high)),
                }
            })
            .collect();
        set.sort_by_key(|message| message.arrival);
        set
    }
}

/// The six combinations of the thesis' networks (table 3.5.3.1) on which its schedules are checked.
pub fn thesis_rails() -> Vec<Vec<Rail>> {
    let infiniband = rail("infiniband=1.4,0.00103,1.4,2.82us");
    let myrinet = rail("myrinet=3.4,0.00409,1.9,24.3us");
    let gigabit = rail("gige=0.897,0.00849,6.1,65.4us");
    vec![
        vec![infiniband.clone(), myrinet.clone()],
        vec![infiniband.clone(), gigabit.clone()],
        vec![myrinet.clone(), gigabit.clone()],
        vec![infiniband.clone(), infiniband.clone()],
        vec![gigabit.clone(), gigabit.clone()],
        vec![infiniband, myrinet, gigabit],
    ]
}

fn rail(text: &str) -> Rail {
    Rail::parse(text).expect("the text is a constant and has four numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    #[test]
    fn sizes_range_from_one_byte_to_the_largest_and_arrivals_are_in_order() {
        let plan = SetPlan {
            messages: 5000,
            largest: Bytes(1000),
            window: Time::from_micros(50.0),
        };
        let set = plan.draw(&mut Pcg64Mcg::seed_from_u64(3));
        let sizes = || set.iter().map(|message| message.size.0);
        assert_eq!((sizes().min(), sizes().max()), (Some(1), Some(1000)));
        assert!(set.is_sorted_by_key(|message| message.arrival));
        assert_eq!(set, plan.draw(&mut Pcg64Mcg::seed_from_u64(3)));
    }

    #[test]
    fn a_largest_size_of_one_byte_leaves_no_choice() {
        let plan = SetPlan {
            messages: 9,
            largest: Bytes(1),
            window: Time::ZERO,
        };
        assert!(
            plan.draw(&mut Pcg64Mcg::seed_from_u64(3))
                .iter()
                .all(|message| message.size == Bytes(1))
        );
    }
}

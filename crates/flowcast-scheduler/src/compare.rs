//! Distance of schedulers from the optimum: makespan over optimal makespan on random sets.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::{
    RailsError,
    discipline::SchedulerName,
    optimum::{Objective, Optimum, optimum},
    random_sets::SetPlan,
    schedule::simulate,
    turns::Shares,
};
use flowcast_network::loggp::LogGp;

/// Random sets of messages on which schedulers are compared with the optimum.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerComparison {
    /// Number of sets; every scheduler serves all of them.
    pub sets: usize,
    /// Properties of each set.
    pub plan: SetPlan,
    /// Seed of the sets; equal seeds give equal sets.
    pub seed: u64,
    /// Number of branches after which the search for an optimum stops.
    pub limit: u64,
}

/// Ratios of several schedulers on the same sets.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerRatios {
    /// Ratios of each scheduler in ascending order, in the order in which the schedulers were given.
    pub ratios: Vec<Ratios>,
    /// Number of sets with a proven optimum. The others use the best known schedule instead.
    pub proven: usize,
}

/// Ratios to the optimum in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratios(Vec<f64>);

impl SchedulerComparison {
    /// Lets each scheduler serve every set on `rails`.
    ///
    /// # Errors
    /// Rails or shares from which no scheduler can be built.
    pub fn run(
        &self,
        rails: &[LogGp],
        schedulers: &[SchedulerName],
    ) -> Result<SchedulerRatios, RailsError> {
        let shares = Shares::by_bandwidth(rails)?;
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut ratios = vec![Vec::with_capacity(self.sets); schedulers.len()];
        let mut proven = 0;
        for _ in 0..self.sets {
            let messages = self.plan.draw(&mut random);
            let best = optimum(rails, &messages, Objective::Makespan, self.limit)?;
            proven += usize::from(best.proven);
            for (name, ratios) in schedulers.iter().zip(&mut ratios) {
                let own = simulate(*name, rails, shares, &messages)?.schedule.makespan;
                ratios.push(over(own.as_nanos(), &best));
            }
        }
        Ok(SchedulerRatios {
            ratios: ratios.into_iter().map(Ratios::new).collect(),
            proven,
        })
    }
}

/// Ratio to the best makespan; 1 without messages.
fn over(own: f64, best: &Optimum) -> f64 {
    let best = best.schedule.makespan.as_nanos();
    if best == 0.0 { 1.0 } else { own / best }
}

impl Ratios {
    /// Sorts ratios into ascending order.
    pub fn new(mut ratios: Vec<f64>) -> Ratios {
        ratios.sort_by(f64::total_cmp);
        Ratios(ratios)
    }

    /// The ratios in ascending order; 1 means as good as the best known schedule.
    pub fn sorted(&self) -> &[f64] {
        &self.0
    }

    /// Quantile of the ratios: at least the fraction `share` of the sets has this ratio or a smaller one. 1 without sets.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0
            .get(rank.clamp(1, self.0.len().max(1)) - 1)
            .copied()
            .unwrap_or(1.0)
    }

    /// Mean ratio; 1 without sets.
    pub fn mean(&self) -> f64 {
        if self.0.is_empty() {
            1.0
        } else {
            self.0.iter().sum::<f64>() / self.0.len() as f64
        }
    }

    /// Merges the ratios of several comparisons.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Ratios>) -> Ratios {
        Ratios::new(
            all.into_iter()
                .flat_map(|ratios| ratios.0.iter().copied())
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{discipline::Discipline, rail::Rail, random_sets::thesis_rails},
        *,
    };
    use flowcast_units::{Bytes, Time};

    #[test]
    fn quantiles_are_ratios_that_occurred() {
        let ratios = Ratios::new(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(
            [0.0, 0.5, 0.51, 1.0].map(|share| ratios.quantile(share)),
            [1.0, 2.0, 3.0, 4.0]
        );
        assert_eq!(ratios.mean(), 2.5);
    }

    #[test]
    fn earliest_delivery_stays_near_the_optimum_on_the_rails_of_the_thesis() {
        let plan = SetPlan {
            messages: 8,
            largest: Bytes(16_384),
            window: Time::ZERO,
        };
        let comparison = SchedulerComparison {
            sets: 100,
            plan,
            seed: 1,
            limit: u64::MAX,
        };
        let names = [Discipline::EarliestDelivery, Discipline::RoundRobin].map(SchedulerName::new);
        let all: Vec<SchedulerRatios> = thesis_rails()
            .into_iter()
            .map(|rails: Vec<Rail>| {
                let costs: Vec<_> = rails.iter().map(|rail| rail.cost).collect();
                comparison.run(&costs, &names).unwrap()
            })
            .collect();
        assert!(all.iter().all(|compared| compared.proven == 100));
        let [ours, turns] = [0, 1]
            .map(|index| Ratios::together(all.iter().map(|compared| &compared.ratios[index])));
        assert!(ours.sorted()[0] >= 1.0 - 1e-9, "nothing beats the optimum");
        assert!(
            ours.quantile(0.95) <= 1.25 && ours.quantile(1.0) <= 1.4,
            "{ours:?}"
        );
        assert!(
            turns.quantile(0.95) > 3.0,
            "the choice of rails must matter on these sets"
        );
    }
}

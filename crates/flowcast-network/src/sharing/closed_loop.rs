//! Closed-loop sharing: flows with equal windows whose data and acknowledgements wait in the queues of the links.
//!
//! Steady rates `r_i`, in units where a flow alone runs at 1, and queueing delays `q_l >= 0` of the links satisfy
//!
//! `r_i = (sum of q_l over the data path + kappa * sum of q_l over the acknowledgement path)^(-1/alpha)`,
//! `load_l = sum of r_i over the flows through l <= C_l`, and `q_l > 0` only where `load_l = C_l`.
//!
//! `alpha = 1, kappa = 0` is proportional fairness, and `alpha` to infinity is max-min. `alpha = 1, kappa = 1` is TCP with a
//! fixed window through lossless queues; it gives two flows into a node and one flow out of it one half each. Zig-zags of
//! three flows measure alpha (end : middle = `2^(1/alpha)`), two-in-one-out measures kappa.
//!
//! With kappa > 0 the conditions do not determine which of several saturated links on a path holds the queue, and the rates
//! of other flows depend on it. The solution in which data wait at the first of them is used.

pub(super) mod queues;
mod relaxation;

use super::{
    Allocations, Changes, RateModel, SharingError,
    active_flows::{ActiveFlows, Reach},
    fabric::{AllocatedFraction, Allocation, Fabric, Limit},
};
use relaxation::{NotConverged, Relaxation, StopRule};

/// Parameters of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Exponent of the fairness; positive.
    pub alpha: f64,
    /// Weight of the delay of acknowledgements; not negative.
    pub kappa: f64,
}

/// Relative increase in capacity from each link of a path to the next, in the steps towards the exact capacities.
const LEANS: [f64; 2] = [1e-2, 1e-3];

/// Number of flows above which a change is solved from the previous solution. With fewer flows, the affected flows are
/// solved from scratch, so that the solution does not depend on the past.
const LARGE: usize = 400;

/// Relative difference in time below which ends of flows are one event, in patterns of more than [`LARGE`] flows. Their
/// solution is less precise.
const SAME_EVENT: f64 = 1e-6;

/// The model. It stores the delays of the previous event, which are close to the next solution.
#[derive(Debug, Clone)]
pub struct ClosedLoop {
    feedback: Feedback,
    stop: StopRule,
    delays: Vec<f64>,
    /// State that is updated from change to change, if there are many flows.
    kept: Option<Relaxation>,
    /// `true` if there are many flows; decided at the first change.
    is_large: Option<bool>,
}

impl ClosedLoop {
    /// Creates a model that solves precisely, as patterns require. [`ClosedLoop::for_program`] solves less precisely.
    pub fn new(feedback: Feedback) -> ClosedLoop {
        ClosedLoop {
            feedback,
            stop: StopRule::HIGH,
            delays: Vec::new(),
            kept: None,
            is_large: None,
        }
    }

    /// Creates a model for the messages of a program. Each change is solved from the previous solution, beginning with the
    /// first, and less precisely.
    pub fn for_program(feedback: Feedback) -> ClosedLoop {
        ClosedLoop {
            stop: StopRule::LOW,
            is_large: Some(true),
            ..ClosedLoop::new(feedback)
        }
    }

    /// Queueing delay of each link in the last solution, in units of the round trip of a flow without contention.
    pub fn delays(&self) -> &[f64] {
        self.kept
            .as_ref()
            .map_or(&self.delays, |kept| kept.queues().delays())
    }

    /// Solves the rates of all active flows. With kappa > 0 they depend on the saturated link that holds the queue of a
    /// path, and the conditions do not determine this link. To place the queue at the first such link, the solution is
    /// followed from capacities that grow along each path to the exact capacities.
    fn solve(
        &mut self,
        fabric: &Fabric,
        active_flows: &ActiveFlows,
    ) -> Result<Changes, NotConverged> {
        let mut relaxation = Relaxation::new(fabric, self.feedback);
        relaxation
            .queues_mut()
            .start_from(&self.delays, active_flows);
        if self.feedback.kappa > 0.0 {
            for lean in LEANS {
                relaxation.queues_mut().lean(fabric, lean);
                // A starting point for the next step need not have converged.
                let _ = relaxation.update(
                    fabric,
                    active_flows,
                    StopRule::EXACT,
                    &mut Changes::default(),
                );
            }
            relaxation.queues_mut().lean(fabric, 0.0);
        }
        let mut changes = Changes::default();
        let solved = relaxation.update(fabric, active_flows, StopRule::EXACT, &mut changes);
        solved.or_else(|_| {
            relaxation.update(fabric, active_flows, StopRule::CAUTIOUS, &mut changes)
        })?;
        self.delays.clear();
        self.delays.extend(relaxation.queues().delays());
        Ok(changes)
    }
}

impl RateModel for ClosedLoop {
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations {
        let mut active_flows = ActiveFlows::new(fabric.link_count());
        active
            .iter()
            .for_each(|flow| active_flows.insert(*flow as u32, &fabric.paths[*flow]));
        let changes = self
            .solve(fabric, &active_flows)
            .map_err(|restless| unsettled(active.len(), restless))?;
        let mut shares = vec![
            Allocation {
                share: AllocatedFraction::WHOLE,
                limit: Limit::Alone
            };
            active.len()
        ];
        for (flow, allocation) in changes.flows {
            let position = active
                .binary_search(&(flow as usize))
                .expect("only active flows have changed");
            shares[position] = allocation;
        }
        Ok(shares)
    }

    fn reach(&self) -> Reach {
        Reach::Queues
    }

    fn tolerance(&self, fabric: &Fabric) -> f64 {
        if fabric.paths.len() > LARGE {
            SAME_EVENT
        } else {
            0.0
        }
    }

    fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &mut ActiveFlows,
        changes: &mut Changes,
    ) -> Result<(), SharingError> {
        if *self.is_large.get_or_insert(fabric.paths.len() > LARGE) {
            let kept = self
                .kept
                .get_or_insert_with(|| Relaxation::new(fabric, self.feedback));
            let updated = kept
                .update(fabric, active_flows, self.stop, changes)
                .or_else(|_| kept.update_with_care(fabric, active_flows, self.stop, changes));
            return updated.map_err(|restless| unsettled(active_flows.count(), restless));
        }
        for group in active_flows.reached(fabric, self.reach()) {
            let allocations = self.shares(fabric, &group)?;
            changes
                .flows
                .extend(group.iter().map(|flow| *flow as u32).zip(allocations));
        }
        Ok(())
    }
}

fn unsettled(flows: usize, NotConverged { imbalance }: NotConverged) -> SharingError {
    SharingError::Unsettled {
        flows,
        residual: imbalance,
    }
}

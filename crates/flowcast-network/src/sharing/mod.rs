//! Sharing models: which rates concurrent flows get, and the `[sharing]` section of a network file.
//!
//! A flow carries a message from one node to another over the links of its path ([`fabric`]): out of its source, up and
//! down the cables between switches, into its destination; its ACKs return over the links of the reversed path. All
//! rates are in units of a node's interface, so that a flow without others has its uncontended rate, 1 or the capacity of
//! the narrowest link on its path. A model answers one question, [`RateModel::shares`]: which fraction `r_i` of a node's
//! interface is allocated to each of the active flows? When flows start and end is not its business (`flowcast-traffic`).
//!
//! - [`independent`]: `r_i = 1`.
//! - [`fair`]: max-min fairness. `sum of r_i over the flows through l <= C_l` on each link `l`, and each flow crosses a full
//!   link on which no flow gets more (Bertsekas and Gallager, Data Networks, section 6.5.2).
//! - [`asymmetric`]: `r_i = 1/max(degrees of its two nodes, flows over the backbone)`, counted by direction or, where data
//!   and ACKs disturb each other, as the larger of both directions (Zhu et al.).
//! - [`flow_cuts`]: `r_i = 1/(1 + cut)`, with measured cuts for each kind of conflict (Martinasso and Méhaut, RR-5910,
//!   sections 5.1 to 5.3).
//! - [`ib_penalty`]: `r_i = 1/max(p_source, p_destination)` (Vienne et al., 2008).
//! - [`closed_loop`]: flows with fixed windows fill queues of delays `q_l >= 0`, and
//!   `r_i = (sum of q_l over data + kappa * sum of q_l over ACKs)^(-1/alpha)` with `q_l > 0` only on full links. Its steady
//!   rates are solved link by link (`relaxation`); [`quasi_dynamic`] lets the queues change with time.
//!
//! Half-duplex ports (`nic.duplex`) and media that a group of nodes shares (`[bus]`) are links that carry both directions:
//! what the models say of a link holds for them too, with the flows of both directions.
//!
//! [`active_flows`] has the flows by link and what has changed, so that a model allocates anew only what a start or an end
//! can reach; [`rates`] makes the models from a network; [`protocol`] has the parameters of the packet level.

pub mod active_flows;
pub mod asymmetric;
mod bus;
pub mod closed_loop;
pub mod completion;
pub mod components;
pub mod error;
pub mod fabric;
pub mod fair;
pub mod flow_cuts;
pub mod ib_penalty;
pub mod independent;
pub mod link_loads;
pub mod model;
pub mod parameters;
pub mod protocol;
pub mod quasi_dynamic;
pub mod rates;

use active_flows::{ActiveFlows, Reach};
pub use error::SharingError;
use fabric::{Allocation, Fabric, LinkId};
pub use model::LIMITS;
pub use parameters::{
    AlphaParameters, FlowCutParameters, LoopParameters, PacketParameters, PenaltyParameters,
    SaturationParameters, Sharing,
};

/// What a model allocates anew; what is not named stays as it was.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// New allocations, by flow.
    pub flows: Vec<(u32, Allocation)>,
    /// Whether a model that can may name links instead of flows: then their shares and holders change.
    pub may_name_links: bool,
    /// Whether nobody asks what keeps flows from more; then a model may name any reason.
    pub ignores_limits: bool,
    /// New shares of links: each flow that a link holds back has the link's share.
    pub links: Vec<(LinkId, f64)>,
    /// Flows that another link than before holds back, and which.
    pub held: Vec<(u32, LinkId)>,
}

/// A rule by which active flows share the links that they cross.
pub trait RateModel: Send {
    /// The allocations of the active flows; `active` are indices of the fabric's paths, in ascending order, and the result
    /// has the same order.
    ///
    /// # Errors
    /// The model does not know these flows' situation, or found no solution.
    fn shares(
        &mut self,
        fabric: &Fabric,
        active: &[usize],
    ) -> Result<Vec<Allocation>, SharingError>;

    /// Which flows the start or end of one can affect.
    fn reach(&self) -> Reach {
        Reach::Nodes
    }

    /// Whether what a flow gets depends, to the last bit, on nothing but the flows within [`RateModel::reach`] and when these
    /// came: not on numbers that flows have, nor on what the model has solved elsewhere.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether flows over the same path always get the same share, so that they may go under one number.
    fn is_by_path(&self) -> bool {
        false
    }

    /// Whether a flow that is alone on all its links has its uncontended share, whatever other flows do.
    fn spares_lone_flows(&self) -> bool {
        false
    }

    /// The part of a time up to which ends are one event, because the rates are no more exact; 0 if they are.
    fn tolerance(&self, _fabric: &Fabric) -> f64 {
        0.0
    }

    /// As [`RateModel::shares`] for all active flows, but only what may have changed since they were last settled. One
    /// model has to see all changes of the active flows, one after the other.
    ///
    /// # Errors
    /// As [`RateModel::shares`].
    fn update(
        &mut self,
        fabric: &Fabric,
        active_flows: &mut ActiveFlows,
        changes: &mut Changes,
    ) -> Result<(), SharingError> {
        for group in active_flows.reached(fabric, self.reach()) {
            let allocations = self.shares(fabric, &group)?;
            changes
                .flows
                .extend(group.iter().map(|flow| *flow as u32).zip(allocations));
        }
        Ok(())
    }
}

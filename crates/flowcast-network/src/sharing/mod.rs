//! Sharing models, which determine the rates of concurrent flows, and the `[sharing]` section of a network file.
//!
//! A flow carries a message from one node to another over the links of its path ([`fabric`]): out of its source, up and down
//! the cables between switches, into its destination. Its ACKs return over the links of the reversed path. All rates are in
//! units of a node's interface, so the rate of a flow without contention is 1 or the capacity of the narrowest link on its
//! path. A model answers one question, [`RateModel::shares`]: which fraction `r_i` of a node's interface is allocated to
//! each of the active flows? Models do not decide when flows start and end (`flowcast-traffic`).
//!
//! - [`independent`]: `r_i = 1`.
//! - [`fair`]: max-min fairness. `sum of r_i over the flows through l <= C_l` on each link `l`, and each flow crosses a full
//!   link on which no flow gets more (Bertsekas and Gallager, Data Networks, section 6.5.2).
//! - [`asymmetric`]: `r_i = 1/max(degrees of its two nodes, flows over the backbone)`, counted by direction, or as the
//!   larger of both directions if data and ACKs disturb each other (Zhu et al.).
//! - [`flow_cuts`]: `r_i = 1/(1 + cut)`, with measured cuts for each kind of conflict (Martinasso and Méhaut, RR-5910,
//!   sections 5.1 to 5.3).
//! - [`ib_penalty`]: `r_i = 1/max(p_source, p_destination)` (Vienne et al., 2008).
//! - [`closed_loop`]: flows with fixed windows fill queues with delays `q_l >= 0`, and
//!   `r_i = (sum of q_l over data + kappa * sum of q_l over ACKs)^(-1/alpha)` with `q_l > 0` only on full links. Its steady
//!   rates are solved link by link (`relaxation`); [`quasi_dynamic`] lets the queues change with time.
//!
//! Half-duplex ports (`nic.duplex`) and media shared by a group of nodes (`[bus]`) are links that carry both directions. The
//! rules for links apply to them with the flows of both directions.
//!
//! [`active_flows`] contains the flows by link and their changes, so that a model only reallocates flows that a start or an
//! end can reach. [`rates`] creates the models for a network. [`protocol`] has the parameters of the packet level.

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

/// New allocations of a model. Everything that is not listed stays unchanged.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// New allocations with their flows.
    pub flows: Vec<(u32, Allocation)>,
    /// `true` if a capable model may report links instead of flows: the shares of links, and the links that hold back flows.
    pub may_name_links: bool,
    /// `true` if the limits of flows are not needed; a model may then report any limit.
    pub ignores_limits: bool,
    /// New shares of links. Each flow that a link holds back has the share of the link.
    pub links: Vec<(LinkId, f64)>,
    /// Flows that are held back by another link than before, with that link.
    pub held: Vec<(u32, LinkId)>,
}

/// Allocations of active flows, in the order of the flows; or the reason why the model has none.
pub type Allocations = Result<Vec<Allocation>, SharingError>;

/// A rule by which active flows share links.
pub trait RateModel: Send {
    /// Allocations of the active flows. `active` contains indices of the fabric's paths in ascending order, and the result
    /// has the same order.
    ///
    /// # Errors
    /// The model does not support the situation of these flows, or found no solution.
    fn shares(&mut self, fabric: &Fabric, active: &[usize]) -> Allocations;

    /// Flows that the start or end of a flow can affect.
    fn reach(&self) -> Reach {
        Reach::Nodes
    }

    /// `true` if the share of a flow depends, to the last bit, only on the flows within [`RateModel::reach`] and their start
    /// times. It must not depend on flow numbers or on other solutions of the model.
    fn is_local(&self) -> bool {
        false
    }

    /// `true` if flows over the same path always get the same share, so that they may share one number.
    fn is_by_path(&self) -> bool {
        false
    }

    /// `true` if a flow that is alone on all its links always has its share without contention, regardless of other flows.
    fn spares_lone_flows(&self) -> bool {
        false
    }

    /// Relative difference in time up to which ends are one event, because rates are not more precise; 0 for exact rates.
    fn tolerance(&self, _fabric: &Fabric) -> f64 {
        0.0
    }

    /// Adds to `changes` the new allocations of all flows whose allocation may have changed since the last settlement, as
    /// [`RateModel::shares`] would compute them. A single model must see all changes of the active flows in order.
    ///
    /// # Errors
    /// The same errors as [`RateModel::shares`].
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

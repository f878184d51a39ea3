//! The names of the sharing models.

use super::error::SharingError;
use crate::near;
use flowcast_units::named;

/// What stands in the place of a sharing model where Dimemas' links, buses and processors hold.
pub const LIMITS: &str = "limits";

named! {
    /// A model of concurrent communications.
    pub enum Model {
        /// Flows do not meet.
        Independent = "independent",
        /// Max-min fairness: a flow can get more only at the cost of one that has no more.
        Fair = "fair",
        /// Own direction's flows only (seed of the asymmetric model's comparison).
        DegreeFair = "degree-fair",
        /// Flow cuts (RR-5910, sections 5.1 to 5.3).
        FlowCuts = "flow-cuts",
        /// Hierarchical Ethernet with disturbed directions.
        Asymmetric = "asymmetric",
        /// Windows, queues and acknowledgements.
        ClosedLoop = "closed-loop",
        /// The closed loop without its acknowledgements.
        AlphaFair = "alpha-fair",
        /// The closed loop packet by packet; not a rate model.
        Packet = "packet",
        /// InfiniBand penalties (Vienne, Martinasso, Vincent and Méhaut, 2008).
        IbPenalty = "ib-penalty",
    }
}

impl Model {
    /// The model of this name.
    ///
    /// # Errors
    /// [`SharingError::UnknownModel`] lists the names.
    pub fn named(name: &str) -> Result<Model, SharingError> {
        Model::from_name(name).ok_or_else(|| SharingError::UnknownModel {
            found: format!(
                "`{name}`{}",
                near::question(name, Model::ALL.map(Model::name))
            ),
            expected: Model::names(),
        })
    }
}

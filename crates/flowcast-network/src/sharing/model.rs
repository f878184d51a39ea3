//! Names of the sharing models.

use super::error::SharingError;
use crate::near;
use flowcast_units::named;

/// Name used in place of a sharing model if Dimemas' links, buses and processors apply.
pub const LIMITS: &str = "limits";

named! {
    /// A model of concurrent communications.
    pub enum Model {
        /// Flows do not affect each other.
        Independent = "independent",
        /// Max-min fairness: a flow can only get more at the cost of a flow that has no more.
        Fair = "fair",
        /// Counts only the flows of the own direction (basis for the comparison with the asymmetric model).
        DegreeFair = "degree-fair",
        /// Flow cuts (RR-5910, sections 5.1 to 5.3).
        FlowCuts = "flow-cuts",
        /// Hierarchical Ethernet with directions that disturb each other.
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
    /// Returns the model with this name.
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

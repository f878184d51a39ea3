//! The names of the sharing models.

use super::error::SharingError;
use crate::near;

/// What stands in the place of a sharing model where Dimemas' links, buses and processors hold.
pub const LIMITS: &str = "limits";

/// A model of concurrent communications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Flows do not meet.
    Independent,
    /// Max-min fairness: a flow can get more only at the cost of one that has no more.
    Fair,
    /// Own direction's flows only (seed of the asymmetric model's comparison).
    DegreeFair,
    /// Flow cuts (RR-5910, sections 5.1 to 5.3).
    FlowCuts,
    /// Hierarchical Ethernet with disturbed directions.
    Asymmetric,
    /// Windows, queues and acknowledgements.
    ClosedLoop,
    /// The closed loop without its acknowledgements.
    AlphaFair,
    /// The closed loop packet by packet; not a rate model.
    Packet,
    /// InfiniBand penalties (Vienne, Martinasso, Vincent and Méhaut, 2008).
    IbPenalty,
}

impl Model {
    /// Every model once, in the order in which messages list them.
    pub const ALL: [Model; 9] = [
        Model::Independent,
        Model::Fair,
        Model::DegreeFair,
        Model::FlowCuts,
        Model::Asymmetric,
        Model::ClosedLoop,
        Model::AlphaFair,
        Model::Packet,
        Model::IbPenalty,
    ];

    /// Name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Model::Independent => "independent",
            Model::Fair => "fair",
            Model::DegreeFair => "degree-fair",
            Model::FlowCuts => "flow-cuts",
            Model::Asymmetric => "asymmetric",
            Model::ClosedLoop => "closed-loop",
            Model::AlphaFair => "alpha-fair",
            Model::Packet => "packet",
            Model::IbPenalty => "ib-penalty",
        }
    }

    /// The model of this name.
    ///
    /// # Errors
    /// [`SharingError::UnknownModel`] lists the names.
    pub fn named(name: &str) -> Result<Model, SharingError> {
        let names = Model::ALL.map(Model::name);
        Model::ALL
            .into_iter()
            .find(|model| model.name() == name)
            .ok_or_else(|| SharingError::UnknownModel {
                found: format!("`{name}`{}", near::question(name, names)),
                expected: names.join(", "),
            })
    }
}

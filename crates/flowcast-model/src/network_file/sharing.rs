//! The section `[sharing]` on disk.

use serde::{Deserialize, Serialize};

use crate::{
    error::{NetworkError, field_error},
    is_default,
    sharing::{
        SharingError,
        model::{LIMITS, Model},
        parameters::{
            AlphaParameters, FlowCutParameters, LoopParameters, PacketParameters,
            PenaltyParameters, SaturationParameters, Sharing,
        },
    },
};

/// The section on disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SharingFile {
    pub model: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub flow_cuts: FlowCutParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub closed_loop: LoopParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub alpha_fair: AlphaParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub asymmetric: SaturationParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub ib_penalty: PenaltyParameters,
    #[serde(skip_serializing_if = "is_default")]
    pub packet: PacketParameters,
}

impl TryFrom<SharingFile> for Sharing {
    type Error = NetworkError;

    fn try_from(file: SharingFile) -> Result<Sharing, NetworkError> {
        let limits = file.model.as_deref() == Some(LIMITS);
        let model = file
            .model
            .as_deref()
            .filter(|_| !limits)
            .map(Model::named)
            .transpose();
        Ok(Sharing {
            model: model
                .map_err(|error: SharingError| field_error("sharing.model", error.to_string()))?,
            limits,
            flow_cuts: file.flow_cuts,
            closed_loop: file.closed_loop,
            alpha_fair: file.alpha_fair,
            asymmetric: file.asymmetric,
            ib_penalty: file.ib_penalty,
            packet: file.packet,
        })
    }
}

impl From<Sharing> for SharingFile {
    fn from(sharing: Sharing) -> SharingFile {
        SharingFile {
            model: sharing
                .model
                .map(Model::name)
                .or(sharing.limits.then_some(LIMITS))
                .map(str::to_owned),
            flow_cuts: sharing.flow_cuts,
            closed_loop: sharing.closed_loop,
            alpha_fair: sharing.alpha_fair,
            asymmetric: sharing.asymmetric,
            ib_penalty: sharing.ib_penalty,
            packet: sharing.packet,
        }
    }
}

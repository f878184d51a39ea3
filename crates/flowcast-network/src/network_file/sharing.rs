//! The section `[sharing]` on disk.

use crate::{
    error::{NetworkError, field_error},
    sharing::{
        SharingError,
        model::{LIMITS, Model},
        parameters::{
            AlphaParameters, FlowCutParameters, LoopParameters, PacketParameters,
            PenaltyParameters, SaturationParameters, Sharing,
        },
    },
};

section! {
    /// The section on disk.
    pub(crate) struct SharingFile: Default {
        /// Default model ([details](predict.md#which-model-predicts)): `limits` (programs), `independent`, `fair`,
        /// `degree-fair`, `flow-cuts`, `asymmetric`, `closed-loop`, `alpha-fair`, `packet` or `ib-penalty`.
        /// Default: `fair`. Example: `"flow-cuts"`.
        model: Option<String>,
        flow_cuts: FlowCutParameters | default,
        closed_loop: LoopParameters | default,
        alpha_fair: AlphaParameters | default,
        asymmetric: SaturationParameters | default,
        ib_penalty: PenaltyParameters | default,
        packet: PacketParameters | default,
    }
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

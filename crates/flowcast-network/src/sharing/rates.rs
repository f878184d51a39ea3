//! Rate models with the parameters of a network.

use super::{
    RateModel, SharingError,
    asymmetric::{Counted, EqualParts, Saturation},
    closed_loop::{ClosedLoop, Feedback},
    fabric::AllocatedFraction,
    fair::Fair,
    flow_cuts::{Cuts, FlowCuts, Strictness},
    ib_penalty::IbPenalty,
    independent::Independent,
    model::Model,
    parameters::{FlowCutParameters, LoopParameters, PenaltyParameters, Sharing},
    protocol::{Protocol, Windows},
    quasi_dynamic::STEEPEST,
};
use crate::network::Network;
use flowcast_units::Rate;

impl Model {
    /// Returns the model that a network selects, by default max-min fairness.
    pub fn from_network(network: &Network) -> Model {
        network.sharing.model.unwrap_or(Model::Fair)
    }
}

/// Creates a rate model with the network's parameters; `None` for [`Model::Packet`].
///
/// # Errors
/// A parameter is missing or out of range.
pub fn rate_model(
    model: Model,
    network: &Network,
    strictness: Strictness,
) -> Result<Option<Box<dyn RateModel>>, SharingError> {
    let sharing = &network.sharing;
    Ok(Some(match model {
        Model::Independent => Box::new(Independent),
        Model::Fair => Box::new(Fair::default()),
        Model::DegreeFair | Model::Asymmetric => Box::new(EqualParts {
            saturation: saturation(network)?,
            counted: if model == Model::DegreeFair {
                Counted::OwnDirection
            } else {
                Counted::BusierDirection
            },
        }),
        Model::FlowCuts => Box::new(FlowCuts::new(cuts(&sharing.flow_cuts)?, strictness)),
        Model::ClosedLoop => Box::new(ClosedLoop::new(feedback(&sharing.closed_loop)?)),
        Model::AlphaFair => Box::new(ClosedLoop::new(alpha_fair(sharing)?)),
        Model::IbPenalty => Box::new(ib_penalty(&sharing.ib_penalty)?),
        Model::Packet => return Ok(None),
    }))
}

/// Windows for a closed loop that simulates the filling of queues; `None` if its steady rates apply.
///
/// # Errors
/// The closed loop does not have equal windows through lossless queues, or the window is missing.
pub fn transient_windows(model: Model, network: &Network) -> Result<Option<Windows>, SharingError> {
    let sharing = &network.sharing;
    if model != Model::ClosedLoop || sharing.closed_loop.transient != Some(true) {
        return Ok(None);
    }
    let Feedback { alpha, kappa } = feedback(&sharing.closed_loop)?;
    for (field, value) in [
        ("sharing.closed_loop.alpha", alpha),
        ("sharing.closed_loop.kappa", kappa),
    ] {
        SharingError::check(
            field,
            value,
            1.0..=1.0,
            "1 with sharing.closed_loop.transient",
        )?;
    }
    if sharing.packet.window.is_none() {
        return Err(SharingError::parameter(
            "sharing.packet.window",
            None,
            "the bytes in flight of a flow, for sharing.closed_loop.transient",
        ));
    }
    let Protocol {
        window, segment, ..
    } = Protocol::new(&sharing.packet)?;
    Ok(Some(Windows { window, segment }))
}

/// Creates a model as [`rate_model`] does, but for the many messages of a program: the closed loop is solved less precisely.
///
/// # Errors
/// The same errors as [`rate_model`].
pub fn program_model(
    model: Model,
    network: &Network,
) -> Result<Option<Box<dyn RateModel>>, SharingError> {
    Ok(Some(match model {
        Model::ClosedLoop => Box::new(ClosedLoop::for_program(feedback(
            &network.sharing.closed_loop,
        )?)),
        Model::AlphaFair => Box::new(ClosedLoop::for_program(alpha_fair(&network.sharing)?)),
        _ => return rate_model(model, network, Strictness::Extended),
    }))
}

/// Parameters of the loop for messages of a program that follow quasi-dynamic queues ([`super::quasi_dynamic`]). `None` if
/// acknowledgements do not wait, because the steady rates are then unique, and for an alpha that is too large for the steps.
///
/// # Errors
/// A parameter is out of range.
pub fn quasi_dynamic_feedback(
    model: Model,
    network: &Network,
) -> Result<Option<Feedback>, SharingError> {
    if model != Model::ClosedLoop {
        return Ok(None);
    }
    Ok(Some(feedback(&network.sharing.closed_loop)?)
        .filter(|Feedback { alpha, kappa }| *kappa > 0.0 && *alpha <= STEEPEST))
}

/// Rate of the interface, which must be finite.
///
/// # Errors
/// The rate is 0, which stands for infinite.
pub fn finite_rate(network: &Network) -> Result<Rate, SharingError> {
    let rate = network.nic.rate();
    if rate.as_bytes_per_second() > 0.0 {
        Ok(rate)
    } else {
        Err(SharingError::parameter(
            "nic.bandwidth",
            Some(0.0),
            "a finite rate for windows and packets",
        ))
    }
}

fn cuts(given: &FlowCutParameters) -> Result<Cuts, SharingError> {
    const EXPECTED: &str =
        "a flow cut of 0 or more, such as those of gige-lam, gige-mpich and myrinet-mx";
    let cut = |field, value: Option<f64>| {
        value
            .filter(|cut| (0.0..=1e6).contains(cut))
            .ok_or_else(|| SharingError::parameter(field, value, EXPECTED))
    };
    Ok(Cuts {
        odd_end: cut("sharing.flow_cuts.odd_end", given.odd_end)?,
        odd_inner: cut("sharing.flow_cuts.odd_inner", given.odd_inner)?,
        io_out: cut("sharing.flow_cuts.io_out", given.io_out)?,
        include: cut("sharing.flow_cuts.include", given.include)?,
        start_end: cut("sharing.flow_cuts.start_end", given.start_end)?,
    })
}

fn feedback(given: &LoopParameters) -> Result<Feedback, SharingError> {
    let alpha = exponent("sharing.closed_loop.alpha", given.alpha)?;
    let kappa = given.kappa.unwrap_or(1.0);
    SharingError::check(
        "sharing.closed_loop.kappa",
        kappa,
        0.0..=2.0,
        "a number from 0 to 2",
    )?;
    Ok(Feedback { alpha, kappa })
}

/// Parameters of the closed loop without its acknowledgements.
fn alpha_fair(sharing: &Sharing) -> Result<Feedback, SharingError> {
    let alpha = match sharing.alpha_fair.alpha {
        None => exponent("sharing.closed_loop.alpha", sharing.closed_loop.alpha)?,
        own => exponent("sharing.alpha_fair.alpha", own)?,
    };
    Ok(Feedback { alpha, kappa: 0.0 })
}

fn exponent(field: &'static str, alpha: Option<f64>) -> Result<f64, SharingError> {
    SharingError::check(
        field,
        alpha.unwrap_or(1.0),
        0.1..=100.0,
        "a number from 0.1 to 100",
    )
}

fn saturation(network: &Network) -> Result<Saturation, SharingError> {
    let given = &network.sharing.asymmetric;
    let nic = network.nic.rate().as_bytes_per_second();
    let cap = given
        .backbone_share
        .map(|rate| rate.as_bytes_per_second() / nic);
    if let Some(cap) = cap.filter(|cap| !cap.is_finite() || *cap <= 0.0) {
        return Err(SharingError::parameter(
            "sharing.asymmetric.backbone_share",
            Some(cap),
            "a rate above 0, relative to the interface's rate",
        ));
    }
    Ok(Saturation {
        from: given.backbone_from,
        cap: cap.map(AllocatedFraction),
    })
}

fn ib_penalty(given: &PenaltyParameters) -> Result<IbPenalty, SharingError> {
    let published = IbPenalty::default();
    let weight = |field, value: Option<f64>, default: f64| {
        let range = f64::MIN_POSITIVE..=1e6;
        SharingError::check(field, value.unwrap_or(default), range, "a number above 0")
    };
    Ok(IbPenalty {
        out: weight("sharing.ib_penalty.out", given.out, published.out)?,
        into: weight("sharing.ib_penalty.into", given.into, published.into)?,
        crowded: weight(
            "sharing.ib_penalty.crowded",
            given.crowded,
            published.crowded,
        )?,
    })
}

//! The sharing models by name, made from a network file.

use super::asymmetric::{Asymmetric, DegreeFair, Saturation};
use super::closed_loop::{ClosedLoop, Feedback};
use super::fabric::{AllocatedFraction, BusShare};
use super::fair::Fair;
use super::flow_cuts::{Cuts, FlowCuts, Strictness};
use super::ib_penalty::IbPenalty;
use super::independent::Independent;
use super::protocol::{Protocol, Windows};
use super::quasi_dynamic::STEEPEST;
use super::{FlowCutParameters, LoopParameters, PenaltyParameters, RateModel, Sharing, SharingError};
use crate::near;
use crate::network::Network;
use flowcast_units::Rate;

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
        Model::ALL.into_iter().find(|model| model.name() == name).ok_or_else(|| SharingError::UnknownModel {
            found: format!("`{name}`{}", near::question(name, names)),
            expected: names.join(", "),
        })
    }

    /// The model that a network asks for; max-min fairness if it does not.
    pub fn of(network: &Network) -> Model {
        network.sharing.model.unwrap_or(Model::Fair)
    }
}

/// Makes a rate model with the network's parameters; none for [`Model::Packet`].
///
/// # Errors
/// A parameter that is missing or out of range.
pub fn rate_model(
    model: Model,
    network: &Network,
    strictness: Strictness,
) -> Result<Option<Box<dyn RateModel>>, SharingError> {
    let sharing = &network.sharing;
    Ok(Some(match model {
        Model::Independent => Box::new(Independent),
        Model::Fair => Box::new(Fair::default()),
        Model::DegreeFair => Box::new(DegreeFair { saturation: saturation(network)? }),
        Model::Asymmetric => Box::new(Asymmetric { saturation: saturation(network)? }),
        Model::FlowCuts => Box::new(FlowCuts::new(cuts(&sharing.flow_cuts)?, strictness)),
        Model::ClosedLoop => Box::new(ClosedLoop::new(feedback(&sharing.closed_loop)?)),
        Model::AlphaFair => Box::new(ClosedLoop::new(alpha_fair(sharing)?)),
        Model::IbPenalty => Box::new(ib_penalty(&sharing.ib_penalty)?),
        Model::Packet => return Ok(None),
    }))
}

/// The windows with which the closed loop is stepped through the filling of queues; none where its steady rates hold.
///
/// # Errors
/// A closed loop that is not that of equal windows through lossless queues, or no window.
pub fn transient_windows(model: Model, network: &Network) -> Result<Option<Windows>, SharingError> {
    let sharing = &network.sharing;
    if model != Model::ClosedLoop || sharing.closed_loop.transient != Some(true) {
        return Ok(None);
    }
    let Feedback { alpha, kappa } = feedback(&sharing.closed_loop)?;
    if alpha != 1.0 {
        return Err(parameter("sharing.closed_loop.alpha", Some(alpha), "1 beside sharing.closed_loop.transient"));
    }
    if kappa != 1.0 {
        return Err(parameter("sharing.closed_loop.kappa", Some(kappa), "1 beside sharing.closed_loop.transient"));
    }
    if sharing.packet.window.is_none() {
        return Err(parameter(
            "sharing.packet.window",
            None,
            "the bytes that a flow keeps in flight, for sharing.closed_loop.transient",
        ));
    }
    let Protocol { window, segment, .. } = Protocol::of(&sharing.packet)?;
    Ok(Some(Windows { window, segment }))
}

/// As [`rate_model`], for the messages of a program, which are many: the closed loop follows them less closely.
///
/// # Errors
/// As [`rate_model`].
pub fn program_model(model: Model, network: &Network) -> Result<Option<Box<dyn RateModel>>, SharingError> {
    Ok(Some(match model {
        Model::ClosedLoop => Box::new(ClosedLoop::for_program(feedback(&network.sharing.closed_loop)?)),
        Model::AlphaFair => Box::new(ClosedLoop::for_program(alpha_fair(&network.sharing)?)),
        _ => return rate_model(model, network, Strictness::Extended),
    }))
}

/// The parameters of the loop if the messages of a program follow it ([`super::quasi_dynamic`]): where acknowledgements wait,
/// since without that the steady rates are the only ones, and up to an alpha that the steps can cope with.
///
/// # Errors
/// A parameter that is out of range.
pub fn quasi_dynamic_feedback(model: Model, network: &Network) -> Result<Option<Feedback>, SharingError> {
    if model != Model::ClosedLoop {
        return Ok(None);
    }
    Ok(Some(feedback(&network.sharing.closed_loop)?)
        .filter(|Feedback { alpha, kappa }| *kappa > 0.0 && *alpha <= STEEPEST))
}

/// The interface's rate, which must be finite.
///
/// # Errors
/// A rate of 0, which stands for infinite.
pub fn finite_rate(network: &Network) -> Result<Rate, SharingError> {
    let rate = network.nic.rate();
    if rate.as_bytes_per_second() > 0.0 {
        Ok(rate)
    } else {
        Err(parameter("nic.bandwidth", Some(0.0), "a finite rate for windows and packets"))
    }
}

/// The backbone's rate in units of the interface's.
///
/// # Errors
/// A network whose interface has no rate.
pub fn backbone_share(network: &Network) -> Result<Option<AllocatedFraction>, SharingError> {
    let nic = network.nic.rate().as_bytes_per_second();
    let rate = network.backbone.map(|rate| rate.goodput().as_bytes_per_second()).filter(|rate| *rate > 0.0);
    if rate.is_some() && nic == 0.0 {
        return Err(parameter("nic.bandwidth", Some(nic), "a finite rate beside that of the backbone"));
    }
    Ok(rate.map(|rate| AllocatedFraction(rate / nic)))
}

/// The media that groups of nodes share, in units of the interface's rate; none that are no limit.
pub(super) fn bus_share(network: &Network) -> Result<Option<BusShare>, SharingError> {
    let nic = network.nic.rate().as_bytes_per_second();
    let Some(bus) = network.bus else { return Ok(None) };
    let rate = bus.rate.goodput().as_bytes_per_second();
    if rate > 0.0 && nic == 0.0 {
        return Err(parameter("nic.bandwidth", Some(nic), "a finite rate beside that of the bus"));
    }
    Ok((rate > 0.0).then(|| BusShare { nodes: bus.nodes, capacity: AllocatedFraction(rate / nic) }))
}

/// Rates of links need an interface's rate to be held against.
pub(super) fn infinite_interface() -> SharingError {
    parameter("nic.bandwidth", Some(0.0), "a finite rate beside those of the topology")
}

fn cuts(given: &FlowCutParameters) -> Result<Cuts, SharingError> {
    const EXPECTED: &str = "a flow cut of 0 or more, as gige-lam, gige-mpich and myrinet-mx have it";
    let cut = |field, value: Option<f64>| {
        value.filter(|cut| (0.0..=1e6).contains(cut)).ok_or_else(|| parameter(field, value, EXPECTED))
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
    if !(0.0..=2.0).contains(&kappa) {
        return Err(parameter("sharing.closed_loop.kappa", Some(kappa), "a number from 0 to 2"));
    }
    Ok(Feedback { alpha, kappa })
}

/// The closed loop without its acknowledgements.
fn alpha_fair(sharing: &Sharing) -> Result<Feedback, SharingError> {
    let alpha = match sharing.alpha_fair.alpha {
        None => exponent("sharing.closed_loop.alpha", sharing.closed_loop.alpha)?,
        own => exponent("sharing.alpha_fair.alpha", own)?,
    };
    Ok(Feedback { alpha, kappa: 0.0 })
}

fn exponent(field: &'static str, alpha: Option<f64>) -> Result<f64, SharingError> {
    let alpha = alpha.unwrap_or(1.0);
    if (0.1..=100.0).contains(&alpha) {
        return Ok(alpha);
    }
    Err(parameter(field, Some(alpha), "a number from 0.1 to 100"))
}

fn saturation(network: &Network) -> Result<Saturation, SharingError> {
    let given = &network.sharing.asymmetric;
    let nic = network.nic.rate().as_bytes_per_second();
    let cap = given.backbone_share.map(|rate| rate.as_bytes_per_second() / nic);
    if let Some(cap) = cap.filter(|cap| !cap.is_finite() || *cap <= 0.0) {
        return Err(parameter(
            "sharing.asymmetric.backbone_share",
            Some(cap),
            "a rate above 0 beside that of the interface",
        ));
    }
    Ok(Saturation { from: given.backbone_from, cap: cap.map(AllocatedFraction) })
}

fn ib_penalty(given: &PenaltyParameters) -> Result<IbPenalty, SharingError> {
    let published = IbPenalty::default();
    let weight = |field, value: Option<f64>, default: f64| {
        let weight = value.unwrap_or(default);
        let is_weight = weight > 0.0 && weight <= 1e6;
        if is_weight { Ok(weight) } else { Err(parameter(field, value, "a number above 0")) }
    };
    Ok(IbPenalty {
        out: weight("sharing.ib_penalty.out", given.out, published.out)?,
        into: weight("sharing.ib_penalty.into", given.into, published.into)?,
        crowded: weight("sharing.ib_penalty.crowded", given.crowded, published.crowded)?,
    })
}

fn parameter(field: &'static str, found: Option<f64>, expected: &'static str) -> SharingError {
    let found = found.map_or("nothing".to_owned(), |value| value.to_string());
    SharingError::Parameter { field, found, expected }
}

//! Parameters of sharing models that conflicts determine, and starting points of the search.

use flowcast_network::sharing::{PacketParameters, Sharing, model::Model, protocol::Congestion};

use super::{links::Ports, outcome::Bound};

/// A field of the network file that conflicts can determine.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConflictField {
    /// Dotted name of the field in the network file.
    pub field: &'static str,
    /// Range of its values.
    pub range: (f64, f64),
    scale: ParameterScale,
    place: fn(&mut Sharing) -> &mut Option<f64>,
}

/// Distance from a bound within which a parameter counts as at the bound, as a fraction of its range.
const AT_BOUND: f64 = 1e-3;

/// Scale on which the search is linear.
#[derive(Debug, Clone, Copy)]
enum ParameterScale {
    Linear,
    Logarithm,
    /// Logarithm of the value plus 1, which is the time that a flow with this cut takes.
    LogarithmOfOneMore,
}

impl ConflictField {
    /// Converts a value of the file to the scale of the search.
    pub(super) fn to_search(self, value: f64) -> f64 {
        match self.scale {
            ParameterScale::Linear => value,
            ParameterScale::Logarithm => value.ln(),
            ParameterScale::LogarithmOfOneMore => value.ln_1p(),
        }
    }

    /// Converts a value of the search to the value in the file.
    pub(super) fn in_file(self, value: f64) -> f64 {
        let (low, high) = self.range;
        let value = match self.scale {
            ParameterScale::Linear => value,
            ParameterScale::Logarithm => value.exp(),
            ParameterScale::LogarithmOfOneMore => value.exp_m1(),
        };
        value.clamp(low, high)
    }

    /// Bound of the range, if a value of the search has reached one.
    pub(super) fn bound(self, at: f64) -> Option<Bound> {
        let (low, high) = self.search_range();
        let [is_low, is_high] =
            [low, high].map(|end: f64| (at - end).abs() <= AT_BOUND * (high - low));
        if is_low {
            Some(Bound::Lower)
        } else if is_high {
            Some(Bound::Upper)
        } else {
            None
        }
    }

    /// Bounds of the search.
    pub(super) fn search_range(self) -> (f64, f64) {
        (self.to_search(self.range.0), self.to_search(self.range.1))
    }

    /// Sets the field among the parameters of the models.
    pub(super) fn set(self, sharing: &mut Sharing, value: f64) {
        *(self.place)(sharing) = Some(value);
    }
}

/// A model that is compared with the conflicts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The model whose parameters are fitted.
    pub model: Model,
    /// Input that it needs in addition to its parameters.
    pub needs: Needs,
    /// The parameters that the search varies.
    pub parameters: &'static [ConflictField],
    /// Starting points of searches, in the order of the parameters.
    pub starts: &'static [&'static [f64]],
}

/// Input that a candidate takes from the transport of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// Only the measured times.
    Nothing,
    /// The window, to follow the filling of queues.
    Window,
    /// The whole transport, and wire rates.
    Transport,
}

const CUT: (f64, f64) = (0.0, 20.0);

const fn cut(field: &'static str, place: fn(&mut Sharing) -> &mut Option<f64>) -> ConflictField {
    ConflictField {
        field,
        range: CUT,
        scale: ParameterScale::LogarithmOfOneMore,
        place,
    }
}

const fn alpha(field: &'static str, place: fn(&mut Sharing) -> &mut Option<f64>) -> ConflictField {
    ConflictField {
        field,
        range: (0.1, 100.0),
        scale: ParameterScale::Logarithm,
        place,
    }
}

const LOOP: [ConflictField; 2] = [
    alpha("sharing.closed_loop.alpha", |sharing| {
        &mut sharing.closed_loop.alpha
    }),
    ConflictField {
        field: "sharing.closed_loop.kappa",
        range: (0.0, 2.0),
        scale: ParameterScale::Linear,
        place: |sharing| &mut sharing.closed_loop.kappa,
    },
];

/// `start_end` is not a parameter: it also cuts a flow alone, whose rate is the unit of all cuts.
const CUTS: [ConflictField; 4] = [
    cut("sharing.flow_cuts.odd_end", |sharing| {
        &mut sharing.flow_cuts.odd_end
    }),
    cut("sharing.flow_cuts.odd_inner", |sharing| {
        &mut sharing.flow_cuts.odd_inner
    }),
    cut("sharing.flow_cuts.io_out", |sharing| {
        &mut sharing.flow_cuts.io_out
    }),
    cut("sharing.flow_cuts.include", |sharing| {
        &mut sharing.flow_cuts.include
    }),
];

const ZIG_ZAG_CUTS: [ConflictField; 2] = [CUTS[0], CUTS[1]];

const fn plain(model: Model) -> Candidate {
    Candidate {
        model,
        needs: Needs::Nothing,
        parameters: &[],
        starts: &[&[]],
    }
}

const ALPHA_FAIR: Candidate = Candidate {
    parameters: &[alpha("sharing.alpha_fair.alpha", |sharing| {
        &mut sharing.alpha_fair.alpha
    })],
    starts: &[&[1.0], &[0.5], &[2.41], &[8.0]],
    ..plain(Model::AlphaFair)
};

/// The models, simpler ones first. Cuts start at those of LAM, MPICH and Myrinet in RR-5910, Table 2.
const FLUID: [Candidate; 7] = [
    plain(Model::Independent),
    plain(Model::Fair),
    plain(Model::DegreeFair),
    plain(Model::Asymmetric),
    Candidate {
        parameters: &CUTS,
        starts: &[
            &[0.5, 2.0, 3.0, 0.5],
            &[0.75, 4.0 / 3.0, 3.0, 0.5],
            &[1.0, 1.0, 0.0, 0.0],
        ],
        ..plain(Model::FlowCuts)
    },
    ALPHA_FAIR,
    Candidate {
        parameters: &LOOP,
        starts: &[
            &[1.0, 1.0],
            &[1.0, 0.1],
            &[2.41, 0.1],
            &[0.5, 0.5],
            &[8.0, 0.1],
        ],
        ..plain(Model::ClosedLoop)
    },
];

/// Models for ports that both directions share. Such ports have no income/outgo conflicts, so only the cuts of zig-zags
/// remain. The loop's acknowledgements wait where its data do, so it equals `alpha-fair` for any kappa.
const HALF_DUPLEX: [Candidate; 5] = [
    plain(Model::Independent),
    plain(Model::Fair),
    plain(Model::Asymmetric),
    Candidate {
        parameters: &ZIG_ZAG_CUTS,
        starts: &[&[0.5, 2.0], &[1.0, 1.0]],
        ..plain(Model::FlowCuts)
    },
    ALPHA_FAIR,
];

/// Models that can be compared with a measurement over this transport, simpler ones first: those that need no window, the
/// closed loop while it settles if all flows keep the same window, and the packet level.
pub(super) fn candidates(transport: Option<&PacketParameters>, ports: Ports) -> Vec<Candidate> {
    let mut all = match ports {
        Ports::Full | Ports::Bus => FLUID.to_vec(),
        Ports::Half => HALF_DUPLEX.to_vec(),
    };
    if let Some(transport) = transport {
        if transport.window.is_some()
            && transport.congestion.unwrap_or_default() == Congestion::Fixed
        {
            all.push(Candidate {
                needs: Needs::Window,
                ..plain(Model::ClosedLoop)
            });
        }
        all.push(Candidate {
            needs: Needs::Transport,
            ..plain(Model::Packet)
        });
    }
    all
}

/// The parameter for this field, if there is one.
pub(super) fn known(field: &str) -> Option<ConflictField> {
    FLUID
        .iter()
        .flat_map(|candidate| candidate.parameters)
        .copied()
        .find(|known| known.field == field)
}

//! Patterns of concurrent communications.

use flowcast_model::{
    cluster::pattern::{Pattern, Steps},
    network::Network,
    sharing::{flow_cuts::Strictness, model::Model},
};
use flowcast_network::{
    flows::concurrent::{Method, Prediction, predict, predict_seeds},
    packet::seeds::{Runs, Spread},
};
use flowcast_units::Time;

use crate::Error;

/// How a pattern is predicted. The default is the network's own sharing model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatternOptions {
    /// How flows share what they cross; the network's own model without it.
    pub model: Option<Model>,
    /// Flow cuts refuse more than two flows in one direction of a node, which their paper does not define.
    pub is_strict: bool,
    /// Under the packet model: so many runs with random starts and random times of hosts.
    pub runs: Option<Runs>,
}

/// When each flow of a pattern ends.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternPrediction {
    /// The model that was used.
    pub model: Model,
    /// The flows, in the order of the pattern; of several runs the medians.
    pub prediction: Prediction,
    /// Of several runs, where nine of ten ends of each flow lie; otherwise empty.
    pub spreads: Vec<Spread>,
}

impl PatternOptions {
    /// The model, and how strictly it is read, on a network.
    pub fn method(&self, network: &Network) -> Method {
        let strictness = if self.is_strict {
            Strictness::Strict
        } else {
            Strictness::Extended
        };
        Method {
            model: self.model.unwrap_or_else(|| Model::of(network)),
            strictness,
        }
    }
}

/// Predicts when each flow of a pattern ends (Martinasso and Méhaut, section 5; Zhu et al., Algorithm 1).
///
/// # Errors
/// [`Error::Pattern`] for a parameter that the model lacks or a situation that it does not know, [`Error::Option`] for
/// seeds with another model than `packet`.
pub fn predict_pattern(
    pattern: &Pattern,
    network: &Network,
    options: &PatternOptions,
) -> Result<PatternPrediction, Error> {
    let method = options.method(network);
    let model = method.model;
    let (prediction, spreads) = match options.runs {
        None => (predict(pattern, network, method)?, Vec::new()),
        Some(runs) if model == Model::Packet => predict_seeds(pattern, network, runs)?,
        Some(_) => {
            return Err(Error::option(
                "--seeds",
                format!("the model {}", model.name()),
                "packet (--model packet)",
            ));
        }
    };
    if !prediction
        .flows
        .iter()
        .all(|flow| flow.end.as_nanos().is_finite())
    {
        return Err(Error::NotFinite(format!(
            "the pattern and the network {}",
            network.name
        )));
    }
    Ok(PatternPrediction {
        model,
        prediction,
        spreads,
    })
}

/// Predicts a pattern in steps, one prediction for each: its flows start, with all times from the beginning of the first step,
/// when the last flow of the step before has ended (RR-5910, section 6.3).
///
/// # Errors
/// As [`predict_pattern`].
pub fn predict_steps(
    steps: &Steps,
    network: &Network,
    options: &PatternOptions,
) -> Result<Vec<PatternPrediction>, Error> {
    let (mut begin, mut predicted) = (Time::ZERO, Vec::new());
    for flows in &steps.steps {
        let pattern = Pattern {
            flows: flows.clone(),
            racks: steps.racks.clone(),
        };
        let step = predict_pattern(&pattern, network, options)?.later(begin);
        begin = step.prediction.makespan();
        predicted.push(step);
    }
    Ok(predicted)
}

impl PatternPrediction {
    fn later(mut self, by: Time) -> PatternPrediction {
        self.prediction = self.prediction.later(by);
        let ends = self
            .spreads
            .iter_mut()
            .flat_map(|Spread { median, low, high }| [median, low, high]);
        ends.for_each(|completion| completion.end += by);
        self
    }
}

//! Patterns of concurrent communications.

use flowcast_network::{
    cluster::{
        flow::Flow,
        pattern::{Pattern, Steps},
        racks::Racks,
    },
    machine::Mapping,
    network::Network,
    sharing::{flow_cuts::Strictness, model::Model},
};
use flowcast_replay::placement::Placement;
use flowcast_traffic::{
    flows::concurrent::{FlowsPrediction, Method, predict, predict_ends, predict_seeds},
    packet::seeds::Spread,
};
use flowcast_units::{Rank, Time};

use crate::{Contention, Error, Options};

/// Predicted ends of the flows of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternPrediction {
    /// Model of the prediction.
    pub model: Model,
    /// The flows, in the order of the pattern; for several runs, the medians.
    pub prediction: FlowsPrediction,
    /// For several runs, the range that contains nine of ten ends of each flow; otherwise empty.
    pub spreads: Vec<Spread>,
}

impl Options {
    /// Model of a pattern on a network, and the strictness with which it is applied.
    ///
    /// # Errors
    /// The contention option selects rules for traces.
    pub fn method(&self, network: &Network) -> Result<Method, Error> {
        self.refuse_rails("a pattern")?;
        let model = match self.contention {
            Contention::Automatic => Model::from_network(network),
            Contention::Shared(model) => model,
            Contention::Limits | Contention::Loggops => {
                return Err(Error::option("--model", "a pattern", "a trace"));
            }
        };
        let strictness = if self.is_strict {
            Strictness::Strict
        } else {
            Strictness::Extended
        };
        Ok(Method { model, strictness })
    }
}

/// Predicts the end of each flow of a pattern (Martinasso and Méhaut, section 5; Zhu et al., Algorithm 1).
///
/// # Errors
/// [`Error::Sharing`] for a parameter that the model lacks or a situation that it does not define, [`Error::Option`] for
/// seeds with another model than `packet`.
pub fn predict_pattern(
    pattern: &Pattern,
    network: &Network,
    options: &Options,
) -> Result<PatternPrediction, Error> {
    let method = options.method(network)?;
    let model = method.model;
    let (prediction, spreads) = match options.runs {
        None if options.keeps_intervals => (predict(pattern, network, method)?, Vec::new()),
        None => {
            let ends = predict_ends(&pattern.flows, &pattern.racks, network, method)?;
            (ends, Vec::new())
        }
        Some(runs) if model == Model::Packet => predict_seeds(pattern, network, runs)?,
        Some(_) => {
            return Err(Error::option(
                "--replicates",
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
        return Err(flowcast_replay::outcome::NotFiniteTime(format!(
            "the pattern and the network {}",
            network.name
        ))
        .into());
    }
    Ok(PatternPrediction {
        model,
        prediction,
        spreads,
    })
}

/// Predicts a pattern in steps, with one prediction for each step. The flows of a step start when the last flow of the
/// previous step has ended (RR-5910, section 6.3). All times count from the start of the first step.
///
/// # Errors
/// Errors of [`predict_pattern`]; a mapping, for which only [`Case::makespan`](crate::Case::makespan) is known.
pub fn predict_steps(
    steps: &Steps,
    network: &Network,
    options: &Options,
) -> Result<Vec<PatternPrediction>, Error> {
    if options.mapping.is_some() {
        let expected = "a trace (the flows of a pattern are between nodes)";
        return Err(Error::option("--mapping", "a pattern", expected));
    }
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

/// Number of ranks: one more than the highest rank that sends or receives.
pub(crate) fn ranks_of_steps(steps: &Steps) -> usize {
    let flows = steps.steps.iter().flatten();
    flows
        .map(|flow| flow.src.max(flow.dst).index() + 1)
        .max()
        .unwrap_or(0)
}

/// Time at which the last flow of the last step ends. With a mapping, flows are between ranks. The mapping then decides
/// which flows share the network: flows inside a node take the network's costs for messages inside nodes (RR-5910, section
/// 6.3).
///
/// # Errors
/// Errors of [`predict_pattern`]; a mapping that does not fit.
pub(crate) fn makespan_of_steps(
    steps: &Steps,
    network: &Network,
    options: &Options,
) -> Result<Time, Error> {
    let Some(mapping) = &options.mapping else {
        let predicted = predict_steps(steps, network, options)?;
        let last = predicted.last();
        return Ok(last.map_or(Time::ZERO, |step| step.prediction.makespan()));
    };
    let durations = durations_of_steps(steps, network, options, mapping)?;
    let longest = durations.iter().map(|flows| flows.iter().max());
    Ok(longest.flatten().copied().sum())
}

/// Time from the start of its step to the end of each flow, with the ranks on the nodes of a mapping.
///
/// # Errors
/// Errors of [`predict_pattern`]; a mapping that does not fit.
pub fn durations_of_steps(
    steps: &Steps,
    network: &Network,
    options: &Options,
    mapping: &Mapping,
) -> Result<Vec<Vec<Time>>, Error> {
    let placement = Placement::new(&network.machine, Some(mapping), ranks_of_steps(steps))?;
    let method = options.method(network)?;
    let racks = match network.backbone {
        Some(_) => Racks::in_blocks(placement.nodes(), network.machine.nodes_per_rack),
        None => Racks::default(),
    };
    let mut durations = Vec::with_capacity(steps.steps.len());
    for step in &steps.steps {
        let mut ends = Vec::with_capacity(step.len());
        let mut between = Vec::with_capacity(step.len());
        for flow in step {
            let [from, to] = [flow.src, flow.dst].map(|rank| Rank(rank.0));
            let [src, dst] = [from, to].map(|rank| placement.node(rank));
            if src == dst {
                let inside = placement.group(from).inside();
                ends.push(Some(flow.start + inside.time_for(flow.size)));
            } else {
                ends.push(None);
                between.push(Flow { src, dst, ..*flow });
            }
        }
        let mut predicted = Vec::new();
        if !between.is_empty() {
            predicted = predict_ends(&between, &racks, network, method)?.flows;
        }
        let mut predicted = predicted.into_iter().map(|flow| flow.end);
        let ends = ends.into_iter().map(|end| end.or_else(|| predicted.next()));
        durations.push(ends.flatten().collect());
    }
    Ok(durations)
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

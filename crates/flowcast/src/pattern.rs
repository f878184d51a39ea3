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

/// When each flow of a pattern ends.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternPrediction {
    /// The model that was used.
    pub model: Model,
    /// The flows, in the order of the pattern; of several runs the medians.
    pub prediction: FlowsPrediction,
    /// Of several runs, where nine of ten ends of each flow lie; otherwise empty.
    pub spreads: Vec<Spread>,
}

impl Options {
    /// The model of a pattern, and how strictly it is read, on a network.
    ///
    /// # Errors
    /// Rules that are for traces.
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

/// Predicts when each flow of a pattern ends (Martinasso and Méhaut, section 5; Zhu et al., Algorithm 1).
///
/// # Errors
/// [`Error::Sharing`] for a parameter that the model lacks or a situation that it does not know, [`Error::Option`] for
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

/// Predicts a pattern in steps, one prediction for each: its flows start, with all times from the beginning of the first step,
/// when the last flow of the step before has ended (RR-5910, section 6.3).
///
/// # Errors
/// As [`predict_pattern`]; a mapping, under which only [`Case::makespan`](crate::Case::makespan) is known.
pub fn predict_steps(
    steps: &Steps,
    network: &Network,
    options: &Options,
) -> Result<Vec<PatternPrediction>, Error> {
    if options.mapping.is_some() {
        let expected = "a trace; of a pattern the flows of nodes";
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

/// Number of ranks: one more than the highest that sends or receives.
pub(crate) fn ranks_of_steps(steps: &Steps) -> usize {
    let flows = steps.steps.iter().flatten();
    flows
        .map(|flow| flow.src.max(flow.dst).index() + 1)
        .max()
        .unwrap_or(0)
}

/// When the last flow of the last step ends. With a mapping flows are between ranks: those between nodes meet as the mapping
/// makes them, those inside a node cost what the network says of such messages (RR-5910, section 6.3).
///
/// # Errors
/// As [`predict_pattern`]; a mapping that does not fit.
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

/// How long after the begin of its step each flow ends whose ranks run where a mapping says.
///
/// # Errors
/// As [`predict_pattern`]; a mapping that does not fit.
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

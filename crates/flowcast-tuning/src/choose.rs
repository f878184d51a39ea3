//! Choice of the best algorithm of a library for an operation, with its gain over the library's own decision and the
//! probability of that gain.

use flowcast_network::{
    algorithm::{AlgorithmTable, Base, Choice, RuleExtent, algorithm_names, named_choice},
    measured_collectives::MeasuredCollectives,
};
use flowcast_place::rank_place::RankPlace;
use flowcast_statistics::resampling::normal_share;
use flowcast_units::{Bytes, CollectiveOp};
use thiserror::Error;

use super::{
    cases::CollectiveCase,
    job::JobKey,
    predict::CollectivePrediction,
    residuals::{ResidualPlace, Residuals},
    step_times::{PlacedCase, TooManyMessages, seconds_once},
};
use crate::library_rules::{LibraryRule, RankDistribution};

/// Smaller relative gains count as no gain, however certain they are.
const SMALLEST_GAIN: f64 = 0.02;

/// Operations for which an algorithm is to be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceQuestion {
    /// The operation.
    pub op: CollectiveOp,
    /// Library whose algorithms are compared.
    pub library: Base,
    /// Places of the ranks, indexed by rank.
    pub places: Vec<RankPlace>,
    /// Number of ranks on each node, the same for all nodes.
    pub ranks_per_node: u32,
    /// Sizes of the buffers, as [`RuleExtent::from_buffer`] counts them.
    pub sizes: Vec<Bytes>,
    /// Capacity of the links out of a group, in multiples of a node's interface.
    pub group_links: f64,
}

/// Predicted time of one algorithm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmTime {
    /// The library's name of the algorithm.
    pub name: String,
    /// The algorithm with its parameters.
    pub choice: Choice,
    /// Predicted time with its interval, at the level given to `choose`.
    pub time: CollectivePrediction,
}

/// Comparison of the algorithms for one size.
#[derive(Debug, Clone, PartialEq)]
pub struct AlgorithmChoice {
    /// The operation.
    pub op: CollectiveOp,
    /// Number of ranks of the operation: the number of places in the question.
    pub ranks: u32,
    /// Number of nodes: ranks divided by ranks per node.
    pub nodes: u32,
    /// Size of the buffer.
    pub bytes: Bytes,
    /// Predicted times of all algorithms, the fastest first.
    pub algorithms: Vec<AlgorithmTime>,
    /// The library's own decision.
    pub default: AlgorithmTime,
    /// Relative gain of the fastest algorithm over the library's own decision, from 0 to 1.
    pub gain: f64,
    /// Probability that the fastest algorithm is faster than the library's own decision.
    pub sure: f64,
    /// Names of algorithms that send too many messages to be compared.
    pub left_out: Vec<String>,
}

impl AlgorithmChoice {
    /// `true` if the gain is too small or less certain than `level`.
    pub fn is_no_difference(&self, level: f64) -> bool {
        self.gain < SMALLEST_GAIN || self.sure < level
    }

    /// Recommended algorithm: the fastest, or the library's own decision if the difference is insignificant.
    pub fn advised(&self, level: f64) -> &AlgorithmTime {
        match self.is_no_difference(level) {
            true => &self.default,
            false => &self.algorithms[0],
        }
    }
}

/// Error: the library's own decision sends too many messages to be predicted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("found {} on {ranks} ranks for {bytes}, for which the library chooses `{algorithm}`, expected {TooManyMessages}", op.name())]
pub struct UndecidedChoice {
    /// The operation.
    pub op: CollectiveOp,
    /// Number of ranks of the operation.
    pub ranks: u32,
    /// Size of the buffer.
    pub bytes: Bytes,
    /// Algorithm that the library decides on.
    pub algorithm: String,
}

/// Chooses the best algorithm for each size of a question.
///
/// # Errors
/// A size for which the library's own decision cannot be predicted.
pub fn choose(
    measured: &MeasuredCollectives,
    question: &ChoiceQuestion,
    level: f64,
    threads: usize,
) -> Result<Vec<AlgorithmChoice>, UndecidedChoice> {
    let residuals = Residuals::from_measured(measured);
    let candidates: Vec<Candidates> = question
        .sizes
        .iter()
        .map(|size| candidates(measured, question, *size))
        .collect::<Result<_, _>>()?;
    let cases = candidates
        .iter()
        .flat_map(|candidates| &candidates.compared);
    let cases: Vec<PlacedCase> = cases.map(|(_, case)| case.clone()).collect();
    let mut seconds = seconds_once(&cases, &measured.costs.costs, threads).into_iter();
    let mut choices = Vec::new();
    for (size, candidates) in question.sizes.iter().zip(&candidates) {
        let own: Vec<f64> = seconds.by_ref().take(candidates.compared.len()).collect();
        choices.push(decide(&residuals, question, *size, candidates, &own, level));
    }
    Ok(choices)
}

/// The library's own decision, followed by its algorithms with different messages.
struct Candidates {
    compared: Vec<(String, PlacedCase)>,
    left_out: Vec<String>,
}

fn candidates(
    measured: &MeasuredCollectives,
    question: &ChoiceQuestion,
    bytes: Bytes,
) -> Result<Candidates, UndecidedChoice> {
    let ranks = question.places.len() as u32;
    let extent = RuleExtent::from_buffer(question.op, ranks, bytes);
    let (library, version) = library_and_version(question.library);
    let default = AlgorithmTable::from_base(question.library).choose(question.op, &extent);
    let named = algorithm_names(question.op, question.library).filter_map(|name| {
        let choice = named_choice(question.op, library, version, name, &extent).ok()?;
        Some((name.to_owned(), choice))
    });
    let mut candidates: Vec<(String, Choice)> = vec![("default".to_owned(), default)];
    for (name, choice) in named {
        if !candidates[1..].iter().any(|(_, known)| *known == choice) {
            candidates.push((name, choice));
        }
    }
    let (compared, left_out): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .map(|(name, choice)| {
            let case = CollectiveCase {
                job: JobKey {
                    system: measured.system.clone(),
                    run: String::new(),
                    nodes: ranks / question.ranks_per_node,
                },
                ranks_per_node: question.ranks_per_node,
                library: question.library,
                op: question.op,
                choice,
                bytes,
            };
            (name, case)
        })
        .partition(|(_, case)| case.check().is_ok());
    if compared.len() < 2 || compared[0].0 != "default" {
        return Err(UndecidedChoice {
            op: question.op,
            ranks,
            bytes,
            algorithm: default.to_string(),
        });
    }
    let compared = compared.into_iter();
    Ok(Candidates {
        compared: compared
            .map(|(name, case)| {
                let placed = PlacedCase {
                    case,
                    places: question.places.clone().into(),
                    group_links: question.group_links,
                };
                (name, placed)
            })
            .collect(),
        left_out: left_out.into_iter().map(|(name, _)| name).collect(),
    })
}

/// Name and version of a library that [`named_choice`] knows.
const fn library_and_version(base: Base) -> (&'static str, &'static str) {
    match base {
        Base::OpenMpi => ("OMPI", "4.1"),
        Base::Mpich => ("MPICH", "4.0"),
        Base::CrayMpich => ("CRAY_MPICH", "8.1"),
    }
}

fn decide(
    residuals: &Residuals,
    question: &ChoiceQuestion,
    bytes: Bytes,
    Candidates {
        compared: candidates,
        left_out,
    }: &Candidates,
    seconds: &[f64],
    level: f64,
) -> AlgorithmChoice {
    let places: Vec<ResidualPlace> = candidates
        .iter()
        .map(|(_, placed)| ResidualPlace::new(&placed.case))
        .collect();
    let expected = residuals.expected(&places);
    let times: Vec<AlgorithmTime> = candidates
        .iter()
        .enumerate()
        .map(|(at, (name, placed))| AlgorithmTime {
            name: name.clone(),
            choice: placed.case.choice,
            time: CollectivePrediction::new(
                seconds[at] * expected.means[at].exp(),
                residuals.deviation(&places, &expected, at),
                level,
            ),
        })
        .collect();
    let predicted = times
        .iter()
        .map(|candidate| candidate.time.predicted.as_seconds());
    let predicted: Vec<f64> = predicted.collect();
    let mut order: Vec<usize> = (1..times.len()).collect();
    order.sort_by(|one, other| predicted[*one].total_cmp(&predicted[*other]));
    let fastest = order[0];
    let ratio = predicted[fastest] / predicted[0];
    let deviation = residuals.deviation_between(&places, &expected, [0, fastest]);
    let is_same = candidates[fastest].1.case.choice == candidates[0].1.case.choice;
    AlgorithmChoice {
        op: question.op,
        ranks: question.places.len() as u32,
        nodes: question.places.len() as u32 / question.ranks_per_node,
        bytes,
        algorithms: order.iter().map(|at| times[*at].clone()).collect(),
        default: times[0].clone(),
        gain: if is_same { 0.0 } else { (1.0 - ratio).max(0.0) },
        sure: if is_same {
            0.5
        } else {
            normal_share(-ratio.ln() / deviation)
        },
        left_out: left_out.clone(),
    }
}

/// Rows for the libraries' files. The advice for a size applies from the geometric mean of this and the next smaller size.
pub fn library_rules(choices: &[AlgorithmChoice], level: f64) -> Vec<LibraryRule> {
    let mut rules: Vec<LibraryRule> = Vec::new();
    let mut before: Option<&AlgorithmChoice> = None;
    for choice in choices {
        let goes_on = before.filter(|before| {
            (before.op, before.ranks, before.nodes) == (choice.op, choice.ranks, choice.nodes)
        });
        let from = goes_on.map_or(Bytes(0), |before| {
            Bytes(
                ((before.bytes.0 as f64) * (choice.bytes.0 as f64))
                    .sqrt()
                    .ceil() as u64,
            )
        });
        let advised = choice.advised(level).choice;
        let is_known = goes_on.is_some() && rules.last().is_some_and(|last| last.choice == advised);
        if !is_known {
            rules.push(LibraryRule {
                op: choice.op,
                ranks: choice.ranks,
                distribution: RankDistribution::on_nodes(choice.ranks, choice.nodes),
                from,
                choice: advised,
            });
        }
        before = Some(choice);
    }
    rules
}

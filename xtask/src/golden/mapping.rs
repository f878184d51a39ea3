//! Cases of seed A on where the ranks of a broadcast go: Table 4, and the search over all mappings.

use flowcast::cluster::flow::Flow;
use flowcast::cluster::pattern::Steps;
use flowcast::model::sharing::flow_cuts::Strictness;
use flowcast::model::sharing::model::Model;
use flowcast::place::exhaustive::{Ranking, Slots, search};
use flowcast::place::step_cost::{InsideNode, Mapping, StepCost};
use flowcast::simulate::concurrent::Method;
use flowcast::units::{Bytes, Node, Rate, Time};

use super::case::{Case, Mismatch, same};
use super::field::Field;
use super::martinasso::METHOD;
use super::simulation::built_in;

/// The steps of the binomial broadcast over eight ranks.
const BROADCAST: &[&[(u32, u32)]] = &[&[(0, 4)], &[(0, 2), (4, 6)], &[(0, 1), (2, 3), (4, 5), (6, 7)]];

/// Mapping B puts step three's four flows on a directed ring of the four nodes.
pub fn table_four(case: &Case) -> Result<(), Mismatch> {
    let (input, expected) = (case.input(), case.expected());
    let steps = steps(BROADCAST.iter().map(|step| step.to_vec()).collect(), size(&input)?);
    let network = built_in(input.at("profile")?.text()?, &[("nic.latency", "0us")])?;
    let inside = InsideNode { latency: Time::ZERO, rate: Rate::default() };
    let mapping = Mapping([3, 0, 0, 1, 1, 2, 2, 3].map(Node).to_vec());
    let time = |model| {
        let cost = StepCost { steps: &steps, network: &network, method: Method { model, ..METHOD }, inside };
        cost.time(&mapping).map(Time::as_seconds).map_err(Mismatch::refused)
    };
    case.near(&expected.at("T_B_s")?, time(Model::FlowCuts)?)?;
    case.near(&expected.at("T_B_indep_s")?, time(Model::Independent)?)?;
    case.near(&expected.at("Tnc_s")?, network.nic.lone_message(size(&input)?).as_seconds())
}

pub fn mapping_search(case: &Case) -> Result<(), Mismatch> {
    let input = case.input();
    let steps = steps(pairs(&input.at("steps")?)?, size(&input)?);
    let network = built_in(input.at("profile")?.text()?, &[("nic.latency", "0us")])?;
    let inside = InsideNode { latency: Time::from_seconds(input.at("T_intra_s")?.number()?), rate: Rate::default() };
    let method = Method { strictness: Strictness::Extended, ..METHOD };
    let cost = StepCost { steps: &steps, network: &network, method, inside };
    let slots = Slots { nodes: input.at("nodes")?.whole()?, per_node: input.at("slots")?.whole()? };
    compare(case, &search(&cost, slots).map_err(Mismatch::refused)?)
}

fn compare(case: &Case, ranking: &Ranking) -> Result<(), Mismatch> {
    let expected = case.expected();
    case.near(&expected.at("best_time_s")?, ranking.histogram[0].0.as_seconds())?;
    let found: Vec<Vec<Vec<u32>>> = ranking.best.iter().map(groups).collect();
    same("best_pairings", nested(&expected.at("best_pairings")?)?, found)?;
    let histogram = expected.at("histogram_time_s")?;
    same("different times", histogram.members()?.len(), ranking.histogram.len())?;
    for (time, count) in histogram.members()? {
        let time: f64 = time.parse().map_err(|_| histogram.unlike("times as names"))?;
        let is_it = |found: &&(Time, u64)| case.tolerance.accepts(time, found.0.as_seconds());
        let found = ranking.histogram.iter().find(is_it).map_or(0, |(_, count)| *count);
        same(count.path(), count.whole()?, found)?;
    }
    Ok(())
}

fn groups(mapping: &Mapping) -> Vec<Vec<u32>> {
    mapping.groups().iter().map(|ranks| ranks.iter().map(|rank| rank.0).collect()).collect()
}

fn nested(field: &Field) -> Result<Vec<Vec<Vec<u32>>>, Mismatch> {
    let group = |group: &Field| group.items()?.iter().map(Field::whole).collect::<Result<Vec<u32>, _>>();
    let mapping = |mapping: &Field| mapping.items()?.iter().map(group).collect::<Result<Vec<_>, _>>();
    field.items()?.iter().map(mapping).collect()
}

fn pairs(field: &Field) -> Result<Vec<Vec<(u32, u32)>>, Mismatch> {
    let pair = |pair: Vec<u32>| match pair.as_slice() {
        [src, dst] => Ok((*src, *dst)),
        _ => Err(field.unlike("pairs of ranks")),
    };
    nested(field)?.into_iter().map(|step| step.into_iter().map(pair).collect()).collect()
}

fn size(input: &Field) -> Result<Bytes, Mismatch> {
    Ok(Bytes((input.at("size_MB")?.number()? * 1e6).round() as u64))
}

/// Flows between ranks, all of one size.
fn steps(steps: Vec<Vec<(u32, u32)>>, size: Bytes) -> Steps {
    let flow = |(src, dst)| Flow { id: 1, src: Node(src), dst: Node(dst), size, start: Time::ZERO };
    Steps { steps: steps.into_iter().map(|step| step.into_iter().map(flow).collect()).collect() }
}

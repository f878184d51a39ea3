//! The windows of the flows in flight, stage by stage, and how a step carries them around.

use super::links::{Leaving, LinkQueues, Place, Weight};
use flowcast_model::sharing::fabric::Path;

/// Of the longest path and back.
const MOST_STAGES: usize = 2 * super::MOST_HOPS;

/// The windows in flight, each with the same number of stages: data, then acknowledgements, shorter paths with stages in
/// which nothing is.
#[derive(Debug)]
pub(super) struct WindowLoops {
    /// Stages of a flow, and those of its data.
    stages: usize,
    data: usize,
    places: Vec<Place>,
    /// Bytes before the step and after it.
    before: Vec<f64>,
    after: Vec<f64>,
    /// Bytes that were there in the step or came, as the links know of them.
    there: Vec<f64>,
    sources: Vec<WindowSource>,
    /// How long the last flows are there in this step, in seconds, if they come after its begin.
    late: Vec<f64>,
}

/// What a step has made of a flow.
pub(super) struct Carried {
    /// Bytes that arrived.
    pub arrived: f64,
    /// How long before the end of the step its last byte was sent, in seconds, if it has been.
    pub last_sent: Option<f64>,
    /// What it added to the queue it began in, less what a steady change of that queue accounts for at its begin.
    pub missed: f64,
}

/// What makes a flow go on.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowSource {
    /// Bytes.
    pub unsent: f64,
    /// Bytes that came back in this step, or would have if the flow had gone on.
    pub back: f64,
    /// The same for each second of the last step.
    pub rate: f64,
}

impl WindowLoops {
    /// None, on paths of up to so many links.
    pub(super) fn new(hops: usize) -> WindowLoops {
        let stages = match 2 * hops {
            0..=4 => 4,
            5..=6 => 6,
            7..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            33..=64 => 64,
            _ => MOST_STAGES,
        };
        WindowLoops {
            stages,
            data: stages / 2,
            places: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            there: Vec::new(),
            sources: Vec::new(),
            late: Vec::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn source(&mut self, slot: usize) -> &mut WindowSource {
        &mut self.sources[slot]
    }

    pub(super) fn sources(&self) -> &[WindowSource] {
        &self.sources
    }

    /// The places of a flow's data.
    pub(super) fn data_places(&self, slot: usize) -> &[Place] {
        &self.places[slot * self.stages..][..self.data]
    }

    /// All places with the bytes there.
    pub(super) fn held(&self, slot: usize) -> impl Iterator<Item = (Place, f64)> {
        let stages = slot * self.stages..(slot + 1) * self.stages;
        self.places[stages.clone()]
            .iter()
            .copied()
            .zip(self.before[stages].iter().copied())
    }

    /// Data that have not yet arrived.
    pub(super) fn data_held(&self, slot: usize) -> f64 {
        self.before[slot * self.stages..][..self.data].iter().sum()
    }

    /// Adds a flow with its first bytes in its first stage.
    pub(super) fn push(&mut self, links: &LinkQueues, path: &Path, first: f64, unsent: f64) {
        let begin = self.places.len();
        let data = path
            .data_in_order()
            .map(|link| links.place(link, Weight::Data));
        self.places.extend(data);
        self.places.resize(begin + self.data, links.nowhere());
        // Of a link that both directions share, the goodput accounts for the flow's own ACKs.
        let back = |link| {
            let is_shared = path.data().contains(&link);
            links.place(
                link,
                if is_shared {
                    Weight::Nothing
                } else {
                    Weight::Acknowledgements
                },
            )
        };
        self.places
            .extend(path.acknowledgements_in_order().map(back));
        self.places.resize(begin + self.stages, links.nowhere());
        self.before.push(first);
        self.before.resize(begin + self.stages, 0.0);
        self.after.resize(begin + self.stages, 0.0);
        self.there.resize(begin + self.stages, 0.0);
        self.sources.push(WindowSource {
            unsent,
            back: 0.0,
            rate: 0.0,
        });
    }

    /// The flow that was added last comes so many seconds before the end of the next step.
    pub(super) fn come_late(&mut self, seconds: f64) {
        self.late.push(seconds);
    }

    /// Takes back the flows that come late.
    pub(super) fn without_late(&mut self) {
        let count = self.count() - self.late.len();
        self.truncate(count);
    }

    fn truncate(&mut self, count: usize) {
        self.late.clear();
        self.sources.truncate(count);
        for stages in [&mut self.before, &mut self.after, &mut self.there] {
            stages.truncate(count * self.stages);
        }
        self.places.truncate(count * self.stages);
    }

    /// The last flow takes this one's place.
    pub(super) fn swap_remove(&mut self, slot: usize) {
        let last = self.count() - 1;
        let from = last * self.stages..(last + 1) * self.stages;
        self.places.copy_within(from.clone(), slot * self.stages);
        self.before.copy_within(from, slot * self.stages);
        self.sources.swap_remove(slot);
        self.truncate(last);
    }

    /// Carries all windows around with what the links let leave.
    pub(super) fn carry(&mut self, links: &LinkQueues, sums: &mut [f64]) {
        match self.stages {
            4 => self.carry_rings::<4>(links, sums),
            6 => self.carry_rings::<6>(links, sums),
            8 => self.carry_rings::<8>(links, sums),
            16 => self.carry_rings::<16>(links, sums),
            32 => self.carry_rings::<32>(links, sums),
            64 => self.carry_rings::<64>(links, sums),
            _ => self.carry_rings::<MOST_STAGES>(links, sums),
        }
    }

    fn carry_rings<const STAGES: usize>(&mut self, links: &LinkQueues, sums: &mut [f64]) {
        let full = self.count() - self.late.len();
        let before = self.before.as_chunks::<STAGES>().0;
        let after = self.after.as_chunks_mut::<STAGES>().0;
        let there = self.there.as_chunks_mut::<STAGES>().0;
        let places = self.places.as_chunks::<STAGES>().0;
        for (slot, source) in self.sources.iter_mut().enumerate() {
            let (after, there, places) = (&mut after[slot], &mut there[slot], &places[slot]);
            if !places.iter().any(|place| links.is_open(*place)) {
                continue;
            }
            let mut leaving = [Leaving::NOTHING; STAGES];
            let late = slot.checked_sub(full).map(|index| self.late[index]);
            for (leaving, place) in leaving.iter_mut().zip(places) {
                *leaving = match late {
                    Some(late) => links.leaving_late(*place, late),
                    None => links.leaving(*place),
                };
            }
            let mut now = carry_ring(&before[slot], after, leaving, source);
            if late.is_some() {
                for stage in 0..STAGES {
                    now[stage] = links.there_for(places[stage], after[stage]);
                }
            }
            for stage in 0..STAGES {
                sums[places[stage].index()] += now[stage] - there[stage];
            }
            *there = now;
        }
    }

    /// Before the first turn of a step nothing has been brought to the links.
    pub(super) fn begin(&mut self) {
        self.there.fill(0.0);
    }

    /// The most bytes that a flow has more or less in a stage after the step, but for those that come late.
    pub(super) fn largest_change(&self) -> f64 {
        let full = (self.count() - self.late.len()) * self.stages;
        let stages = self.before[..full].iter().zip(&self.after[..full]);
        stages
            .map(|(before, after)| (after - before).abs())
            .fold(0.0, f64::max)
    }

    /// What a step of so many seconds makes of a flow, which has less to send then.
    pub(super) fn end_of(&mut self, slot: usize, step: f64) -> Carried {
        let full = self.count() - self.late.len();
        let late = slot.checked_sub(full).map(|index| self.late[index]);
        let time = late.unwrap_or(step);
        let first = slot * self.stages;
        let data = first..first + self.data;
        let held = |stages: &[f64]| stages[data.clone()].iter().sum::<f64>();
        let source = &mut self.sources[slot];
        let sent = source.back.min(source.unsent);
        let after = if source.unsent > 0.0 {
            time * source.unsent / source.back
        } else {
            0.0
        };
        source.unsent -= sent;
        source.rate = source.back / time;
        Carried {
            arrived: sent + held(&self.before) - held(&self.after),
            last_sent: (after <= time).then_some(time - after),
            missed: late.map_or(0.0, |late| self.before[first] * late / step),
        }
    }

    /// Tells the links how fast flows are.
    pub(super) fn note_rates(&self, links: &mut LinkQueues) {
        links.forget_rates();
        for (source, places) in self
            .sources
            .iter()
            .zip(self.places.chunks_exact(self.stages))
        {
            if source.unsent > 0.0 {
                for place in places {
                    links.note_rate(links.link(*place), source.rate);
                }
            }
        }
    }

    /// The step is made.
    pub(super) fn end(&mut self) {
        self.late.clear();
        std::mem::swap(&mut self.before, &mut self.after);
    }
}

/// What leaves the last stage comes to the first, as long as there is something to send: the sum of what goes around
/// follows from the part of each byte that does. Gives back what each stage had or got.
#[inline(always)]
fn carry_ring<const STAGES: usize>(
    before: &[f64; STAGES],
    after: &mut [f64; STAGES],
    leaving: [Leaving; STAGES],
    source: &mut WindowSource,
) -> [f64; STAGES] {
    let (mut own, mut around, mut coming) = (0.0, 1.0, 0.0);
    let mut there = [0.0; STAGES];
    for stage in 0..STAGES {
        let previous = std::mem::replace(&mut own, before[stage] * leaving[stage].before);
        there[stage] = before[stage] - own + previous;
        coming = (coming + there[stage]) * leaving[stage].after;
        around *= leaving[stage].after;
    }
    coming = (coming + around * own) / (1.0 - around);
    source.back = own + coming;
    if source.back <= source.unsent {
        there[0] += own;
    } else {
        there[0] += source.unsent;
        coming = 0.0;
    }
    for stage in 0..STAGES {
        there[stage] += coming;
        coming = there[stage] * leaving[stage].after;
        after[stage] = there[stage] - coming;
    }
    there
}

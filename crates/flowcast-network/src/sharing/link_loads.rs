//! How loaded the links of each class are: the part of the time in which they would be busy at their full rates.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::fabric::{Fabric, FlowPath, LinkId};
use flowcast_units::Time;

/// The load of a class of links, of which only those count that carry data.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassLoad {
    /// The class, such as `node` or `global`.
    pub class: String,
    /// How many of its links carry data.
    pub links: usize,
    /// Their utilisation on average, from 0 to 1.
    pub mean: f64,
    /// The highest utilisation of one of them.
    pub highest: f64,
    /// That link; the first of several.
    pub busiest: String,
}

/// What the links of a fabric have carried. Several threads may note different links.
#[derive(Debug)]
pub struct LinkLoads {
    fabric: Fabric,
    /// By link: nanoseconds at the rate of an interface, as bits.
    work: Vec<AtomicU64>,
}

impl LinkLoads {
    /// Nothing yet.
    pub fn new(fabric: &Fabric) -> LinkLoads {
        LinkLoads {
            work: std::iter::repeat_with(|| AtomicU64::new(0f64.to_bits()))
                .take(fabric.link_count())
                .collect(),
            fabric: fabric.without_paths(),
        }
    }

    /// A message whose data take so long at the rate of an interface goes along a path.
    pub fn add(&self, path: &FlowPath, work: Time) {
        for link in path.data() {
            let sum = &self.work[link.index()];
            let before = f64::from_bits(sum.load(Relaxed));
            sum.store((before + work.as_nanos()).to_bits(), Relaxed);
        }
    }

    /// The loads over a time, by class, those that carry nothing left out.
    pub fn by_class(&self, time: Time) -> Vec<ClassLoad> {
        let classes = self.fabric.classes();
        let mut loads: Vec<Vec<(f64, u32)>> = vec![Vec::new(); classes.len()];
        for (work, link) in self.work.iter().zip((0..).map(LinkId)) {
            let work = f64::from_bits(work.load(Relaxed));
            if work > 0.0 && time > Time::ZERO {
                let utilisation = work / (self.fabric.capacity(link).0 * time.as_nanos());
                loads[self.fabric.class(link)].push((utilisation, link.0));
            }
        }
        let mut known = Vec::new();
        for (class, loads) in classes.iter().zip(loads) {
            let highest = loads
                .iter()
                .copied()
                .reduce(|best, other| if other.0 > best.0 { other } else { best });
            let Some((highest, link)) = highest else {
                continue;
            };
            let sum: f64 = loads.iter().map(|(utilisation, _)| utilisation).sum();
            known.push(ClassLoad {
                class: class.clone(),
                links: loads.len(),
                mean: sum / loads.len() as f64,
                highest,
                busiest: self.fabric.link(LinkId(link)).phrase(),
            });
        }
        known
    }
}

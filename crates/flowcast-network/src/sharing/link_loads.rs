//! Utilisation of the links of each class: the fraction of time in which they would be busy at their full rates.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::fabric::{Fabric, FlowPath, LinkId};
use flowcast_units::Time;

/// Utilisation of a class of links. Only links that carry data count.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassLoad {
    /// Name of the class, such as `node` or `global`.
    pub class: String,
    /// Number of links in the class that carry data.
    pub links: usize,
    /// Their mean utilisation, from 0 to 1.
    pub mean: f64,
    /// Highest utilisation among them.
    pub highest: f64,
    /// Link with the highest utilisation; the first of several.
    pub busiest: String,
}

/// Work of the links of a fabric. Several threads may record different links.
#[derive(Debug)]
pub struct LinkLoads {
    fabric: Fabric,
    /// Indexed by link: time at the rate of an interface in nanoseconds, as bits of a floating-point number.
    work: Vec<AtomicU64>,
}

impl LinkLoads {
    /// Creates a record without work.
    pub fn new(fabric: &Fabric) -> LinkLoads {
        LinkLoads {
            work: std::iter::repeat_with(|| AtomicU64::new(0f64.to_bits()))
                .take(fabric.link_count())
                .collect(),
            fabric: fabric.without_paths(),
        }
    }

    /// Records a message on a path; `work` is the time of its data at the rate of an interface.
    pub fn add(&self, path: &FlowPath, work: Time) {
        for link in path.data() {
            let sum = &self.work[link.index()];
            let before = f64::from_bits(sum.load(Relaxed));
            sum.store((before + work.as_nanos()).to_bits(), Relaxed);
        }
    }

    /// Utilisation over a period, by class. Classes without data are omitted.
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

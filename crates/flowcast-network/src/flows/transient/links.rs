//! The queues before the links, and which part of them leaves in a step.

use flowcast_model::sharing::{
    fabric::{Fabric, LinkId},
    protocol::Windows,
};

/// Relative change of what leaves a link at which links and flows agree.
const AGREED: f64 = 1e-3;

/// Changes of a queue do not matter that are small for so many packets, or for what goes through the link in this part of
/// the shortest round trip over it.
const STILL: f64 = 4.0;
const UNNOTICED: f64 = 0.1;

/// What leaves a queue in a step, as parts of what it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    /// Of the contents at its begin.
    pub before: f64,
    /// Of the rest and what comes.
    pub after: f64,
}

impl Leaving {
    pub(super) const NOTHING: Leaving = Leaving {
        before: 0.0,
        after: 0.0,
    };
}

/// What a stage adds to the contents of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Data,
    Acknowledgements,
    Nothing,
}

/// A link with the weight of what waits before it, as one number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(u32);

impl Place {
    #[inline(always)]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// All queues, by link.
#[derive(Debug)]
pub(super) struct LinkQueues {
    /// Bytes per second.
    capacities: Vec<f64>,
    /// Bytes that wait, and the change of that in the last step for each second.
    contents: Vec<f64>,
    slopes: Vec<f64>,
    /// The rate of the fastest flow, in bytes per second.
    fastest: Vec<f64>,
    /// Whether what leaves it has changed since the sums were made.
    is_open: Vec<bool>,
    window: f64,
    /// Bytes that wait after this step.
    next: Vec<f64>,
    /// Bytes of data that an acknowledgement's byte on the wire stands for.
    acknowledgement: f64,
    /// Bytes and time of a full packet.
    segment: f64,
    packet: f64,
    /// Of this step, with a link behind the others that lets everything through.
    leaving: Vec<Leaving>,
    /// The largest `after`, that of a link that is not full.
    most: Vec<f64>,
    /// The part of the step that counts for contents at its end, in seconds.
    implicit: Vec<f64>,
    /// Links of a weight, a power of two.
    bank: u32,
}

impl LinkQueues {
    pub(super) fn new(fabric: &Fabric, windows: Windows, rate: f64) -> LinkQueues {
        let links = fabric.link_count();
        let bank = (links as u32 + 1).next_power_of_two();
        let segment = windows.segment.0 as f64;
        LinkQueues {
            capacities: (0..links as u32)
                .map(|link| fabric.capacity(LinkId(link)).0 * rate)
                .collect(),
            contents: vec![0.0; links],
            slopes: vec![0.0; links],
            fastest: vec![0.0; links],
            is_open: vec![true; bank as usize],
            window: windows.window.0 as f64,
            next: vec![0.0; links],
            acknowledgement: windows.acknowledgement(),
            segment,
            packet: segment / rate,
            leaving: vec![
                Leaving {
                    before: 0.0,
                    after: 1.0,
                };
                bank as usize
            ],
            most: vec![0.0; links],
            implicit: vec![0.0; links],
            bank,
        }
    }

    /// Time of a full packet, in seconds.
    pub(super) fn packet(&self) -> f64 {
        self.packet
    }

    pub(super) fn segment(&self) -> f64 {
        self.segment
    }

    pub(super) fn place(&self, link: LinkId, weight: Weight) -> Place {
        Place(link.0 + weight as u32 * self.bank)
    }

    /// A stage in which nothing ever is.
    pub(super) fn nowhere(&self) -> Place {
        Place(self.capacities.len() as u32 + Weight::Nothing as u32 * self.bank)
    }

    pub(super) fn link(&self, place: Place) -> LinkId {
        LinkId(place.0 & (self.bank - 1))
    }

    pub(super) fn is_somewhere(&self, place: Place) -> bool {
        self.link(place).index() < self.capacities.len()
    }

    /// Bytes on the wire for each byte that a flow has there.
    pub(super) fn weight(&self, place: Place) -> f64 {
        match place.0 / self.bank {
            0 => 1.0,
            1 => self.acknowledgement,
            _ => 0.0,
        }
    }

    pub(super) fn contents(&self, link: LinkId) -> f64 {
        self.contents[link.index()]
    }

    /// What to hold a change of a queue against, for a flow of this rate and the others: the contents, and what they do not
    /// notice.
    pub(super) fn scale(&self, link: LinkId, rate: f64) -> f64 {
        let link = link.index();
        self.contents[link] + self.unnoticed(link, rate)
    }

    fn unnoticed(&self, link: usize, rate: f64) -> f64 {
        let round_trip = self.window / self.fastest[link].max(rate);
        (UNNOTICED * self.capacities[link] * round_trip).max(STILL * self.segment)
    }

    /// Forgets how fast flows are.
    pub(super) fn forget_rates(&mut self) {
        self.fastest.fill(0.0);
    }

    /// A flow over this link is so fast.
    pub(super) fn note_rate(&mut self, link: LinkId, rate: f64) {
        if let Some(fastest) = self.fastest.get_mut(link.index()) {
            *fastest = fastest.max(rate);
        }
    }

    /// Adds the first bytes of a flow.
    pub(super) fn add(&mut self, link: LinkId, bytes: f64) {
        self.contents[link.index()] += bytes;
    }

    /// How long what comes now waits, in seconds.
    pub(super) fn wait(&self, link: LinkId) -> f64 {
        self.contents[link.index()] / self.capacities[link.index()]
    }

    /// How long what came so many seconds before the end of the last step waits, behind `more` bytes than the change in
    /// that step says.
    pub(super) fn wait_before(&self, place: Place, seconds: f64, more: f64) -> f64 {
        let link = self.of(place);
        let contents = self.contents[link] - self.slopes[link] * seconds + more;
        contents.max(0.0) / self.capacities[link]
    }

    pub(super) fn longest_wait(&self) -> f64 {
        let links = self.contents.iter().zip(&self.capacities);
        links
            .map(|(contents, capacity)| contents / capacity)
            .fold(0.0, f64::max)
    }

    /// Before a step of so many seconds: contents go on changing as they did.
    pub(super) fn begin(&mut self, step: f64) {
        self.is_open.fill(true);
        for link in 0..self.contents.len() {
            let (contents, capacity) = (self.contents[link], self.capacities[link]);
            let now = step / (contents / capacity).max(self.packet);
            let before = (now / 2.0).min(1.0);
            let implicit = step * (1.0 - before / now);
            let then = (contents + step * self.slopes[link]) / capacity;
            let part = |wait: f64| implicit / (wait.max(self.packet) + implicit);
            self.most[link] = part(0.0);
            self.implicit[link] = implicit;
            self.leaving[link] = Leaving {
                before,
                after: part(then),
            };
        }
    }

    /// The index of a place's link.
    #[inline(always)]
    fn of(&self, place: Place) -> usize {
        (place.0 & (self.bank - 1)) as usize
    }

    /// What leaves in this step.
    #[inline(always)]
    pub(super) fn leaving(&self, place: Place) -> Leaving {
        self.leaving[self.of(place)]
    }

    /// What leaves in so many seconds at the end of the step, of what comes in these.
    #[inline(always)]
    pub(super) fn leaving_late(&self, place: Place, time: f64) -> Leaving {
        let link = self.of(place);
        let after = self.leaving[link].after;
        let after = self.implicit.get(link).map_or(1.0, |implicit| {
            let left = (1.0 - after) * implicit;
            time * after / (left + time * after)
        });
        Leaving { before: 0.0, after }
    }

    /// What would have been there, had it been there throughout the step, for so many bytes in the end.
    #[inline(always)]
    pub(super) fn there_for(&self, place: Place, left: f64) -> f64 {
        let stays = 1.0 - self.leaving[self.of(place)].after;
        if stays > 0.0 { left / stays } else { 0.0 }
    }

    /// Sums of what is there and comes, by place.
    pub(super) fn empty_sums(&self) -> Vec<f64> {
        vec![0.0; 3 * self.bank as usize]
    }

    /// Lets of each link leave what it can carry of the sums. Whether that is what left it, but for little.
    pub(super) fn balance(&mut self, sums: &[f64]) -> bool {
        let mut agrees = true;
        self.is_open.fill(false);
        for link in 0..self.contents.len() {
            let there = sums[link] + self.acknowledgement * sums[link + self.bank as usize];
            let served = self.implicit[link] * self.capacities[link];
            let most = self.most[link];
            let after = if there * most > served {
                served / there
            } else {
                most
            };
            let former = self.leaving[link].after;
            self.next[link] = there * (1.0 - former);
            let is_open = (after - former).abs() > AGREED * after;
            self.is_open[link] = is_open;
            if is_open {
                self.leaving[link].after = after;
                agrees = false;
            }
        }
        agrees
    }

    /// Whether what leaves the link has changed since the sums were made.
    #[inline(always)]
    pub(super) fn is_open(&self, place: Place) -> bool {
        self.is_open[self.of(place)]
    }

    /// The largest relative change of a queue in this step.
    pub(super) fn largest_change(&self) -> f64 {
        let change = |link: usize| {
            let (before, after) = (self.contents[link], self.next[link]);
            (after - before).abs() / (before.max(after) + self.unnoticed(link, 0.0))
        };
        (0..self.contents.len()).map(change).fold(0.0, f64::max)
    }

    /// The step is made.
    pub(super) fn end(&mut self, step: f64) {
        for link in 0..self.contents.len() {
            let after = self.next[link];
            self.slopes[link] = (after - self.contents[link]) / step;
            self.contents[link] = after;
        }
    }
}

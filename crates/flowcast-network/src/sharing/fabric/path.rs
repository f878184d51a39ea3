//! The path of a flow: short paths are stored inline, long ones behind a pointer.

use std::sync::Arc;

use super::LinkId;

/// Maximum number of links per direction that are stored inline. It is sufficient for a switch, and for racks with a
/// backbone.
const FEW: usize = 4;

/// The path of one flow.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FlowPath {
    /// Dense number of the interface at the source.
    pub src: u32,
    /// Dense number of the interface at the destination.
    pub dst: u32,
    /// Number of links that the data cross, and number of links that the acknowledgements cross.
    hops: [u16; 2],
    /// The links of each direction with at most `FEW` links.
    few: [[LinkId; FEW]; 2],
    /// The links of the data, then those of the acknowledgements, if either has more.
    many: Option<Arc<[LinkId]>>,
}

impl FlowPath {
    /// Creates a path between two interfaces. For the data and for the acknowledgements it takes the links out of one
    /// interface and into the other, and the links in between in order of travel.
    pub(super) fn new(
        [src, dst]: [u32; 2],
        ends: [[LinkId; 2]; 2],
        between: [&[LinkId]; 2],
    ) -> FlowPath {
        let mut few = [[LinkId(0); FEW]; 2];
        for way in 0..2 {
            few[way][..2].copy_from_slice(&ends[way]);
            for (place, link) in few[way][2..].iter_mut().zip(between[way]) {
                *place = *link;
            }
        }
        let is_long = between.iter().any(|links| links.len() > FEW - 2);
        FlowPath {
            src,
            dst,
            hops: between.map(|links| 2 + links.len() as u16),
            few,
            many: is_long.then(|| [&ends[0], between[0], &ends[1], between[1]].concat().into()),
        }
    }

    /// Copy of the path between the interfaces 0 and 1, over renumbered links.
    pub(super) fn renumbered(&self, number: impl Fn(LinkId) -> LinkId) -> FlowPath {
        let both = [self.data(), self.acknowledgements()];
        let between = both
            .map(|links| -> Vec<LinkId> { links[2..].iter().map(|link| number(*link)).collect() });
        FlowPath::new(
            [0, 1],
            both.map(|links| [number(links[0]), number(links[1])]),
            [&between[0], &between[1]],
        )
    }

    /// Links that the data cross: out, in, then the links in between from source to destination.
    #[inline(always)]
    pub fn data(&self) -> &[LinkId] {
        match usize::from(self.hops[0]) {
            hops @ ..=FEW => &self.few[0][..hops],
            _ => self.many_of_data(),
        }
    }

    /// Links that the acknowledgements cross, in the same order.
    #[inline(always)]
    pub fn acknowledgements(&self) -> &[LinkId] {
        match usize::from(self.hops[1]) {
            hops @ ..=FEW => &self.few[1][..hops],
            _ => self.many_of_acknowledgements(),
        }
    }

    /// Links that the data of a long path cross. A separate function keeps the callers small.
    #[inline(never)]
    fn many_of_data(&self) -> &[LinkId] {
        let many = self.many.as_deref().unwrap_or(&[]);
        &many[..usize::from(self.hops[0])]
    }

    #[inline(never)]
    fn many_of_acknowledgements(&self) -> &[LinkId] {
        let many = self.many.as_deref().unwrap_or(&[]);
        &many[usize::from(self.hops[0])..]
    }

    /// Links that the data cross, from source to destination.
    pub fn data_in_order(&self) -> impl Iterator<Item = LinkId> {
        in_order(self.data())
    }

    /// Links that the acknowledgements cross, from destination to source.
    pub fn acknowledgements_in_order(&self) -> impl Iterator<Item = LinkId> {
        in_order(self.acknowledgements())
    }

    /// Out link of the source.
    #[inline]
    pub fn out(&self) -> LinkId {
        self.few[0][0]
    }

    /// In link of the destination.
    #[inline]
    pub fn into(&self) -> LinkId {
        self.few[0][1]
    }

    /// `true` if the path crosses more than the links of the two nodes.
    pub(crate) fn is_between_racks(&self) -> bool {
        self.hops[0] > 2
    }
}

impl Clone for FlowPath {
    fn clone(&self) -> FlowPath {
        FlowPath {
            many: self.many.clone(),
            ..*self
        }
    }

    /// Without long paths, no reference counter changes.
    #[inline]
    fn clone_from(&mut self, source: &FlowPath) {
        (self.src, self.dst) = (source.src, source.dst);
        (self.hops, self.few) = (source.hops, source.few);
        if self.many.is_some() || source.many.is_some() {
            self.many.clone_from(&source.many);
        }
    }
}

fn in_order(links: &[LinkId]) -> impl Iterator<Item = LinkId> {
    links[..1]
        .iter()
        .chain(&links[2..])
        .chain(&links[1..2])
        .copied()
}

//! The path of a flow: few links in place, many behind a pointer.

use std::sync::Arc;

use super::LinkId;

/// So many links of data and acknowledgements together stand in place: those of a switch, and of racks with a backbone.
const FEW: usize = 8;

/// The path of one flow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// Dense number of the interface at the source.
    pub src: u32,
    /// Dense number of the interface at the destination.
    pub dst: u32,
    data: u16,
    all: u16,
    links: PathLinks,
}

/// Those of the data, then those of the acknowledgements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PathLinks {
    Few([LinkId; FEW]),
    Many(Arc<[LinkId]>),
}

impl Path {
    /// Between two interfaces: the links of the data (out of the source, into the destination, then those in between in the
    /// order of travel), and those of the acknowledgements, likewise from the destination.
    pub(super) fn new(
        [src, dst]: [u32; 2],
        data: impl Iterator<Item = LinkId>,
        acknowledgements: impl Iterator<Item = LinkId>,
    ) -> Path {
        let mut links: Vec<LinkId> = data.collect();
        let data = links.len() as u16;
        links.extend(acknowledgements);
        let all = links.len() as u16;
        let links = match links.len() {
            ..=FEW => {
                links.resize(FEW, LinkId(0));
                PathLinks::Few(links.try_into().expect("as many as there is room for"))
            }
            _ => PathLinks::Many(links.into()),
        };
        Path {
            src,
            dst,
            data,
            all,
            links,
        }
    }

    /// The links of the data, then those of the acknowledgements.
    #[inline]
    pub(super) fn all(&self) -> &[LinkId] {
        let links: &[LinkId] = match &self.links {
            PathLinks::Few(links) => links,
            PathLinks::Many(links) => links,
        };
        &links[..usize::from(self.all)]
    }

    /// The links that the data cross: out, in, and those in between from the source to the destination.
    #[inline]
    pub fn data(&self) -> &[LinkId] {
        let links: &[LinkId] = match &self.links {
            PathLinks::Few(links) => links,
            PathLinks::Many(links) => links,
        };
        &links[..usize::from(self.data)]
    }

    /// The links that the acknowledgements cross, in the same order.
    #[inline]
    pub fn acknowledgements(&self) -> &[LinkId] {
        &self.all()[usize::from(self.data)..]
    }

    /// The links that the data cross, from the source to the destination.
    pub fn data_in_order(&self) -> impl Iterator<Item = LinkId> {
        in_order(self.data())
    }

    /// The links that the acknowledgements cross, from the destination to the source.
    pub fn acknowledgements_in_order(&self) -> impl Iterator<Item = LinkId> {
        in_order(self.acknowledgements())
    }

    /// Out link of the source.
    #[inline]
    pub fn out(&self) -> LinkId {
        self.data()[0]
    }

    /// In link of the destination.
    #[inline]
    pub fn into(&self) -> LinkId {
        self.data()[1]
    }

    /// Whether it crosses more than the two nodes' links.
    pub(crate) fn is_between_racks(&self) -> bool {
        self.data > 2
    }
}

fn in_order(links: &[LinkId]) -> impl Iterator<Item = LinkId> {
    links[..1]
        .iter()
        .chain(&links[2..])
        .chain(&links[1..2])
        .copied()
}

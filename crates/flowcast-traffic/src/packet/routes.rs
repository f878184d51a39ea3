//! Links that the frames of a connection cross, there and back, and the longer path that a connection may take instead.

use super::{connection::PacketConnection, link::PacketLink, picos::Picos};
use flowcast_network::sharing::{
    SharingError,
    fabric::{Fabric, LinkId},
};

/// Value for no link: the end of a path.
pub(super) const END: u32 = u32::MAX;

/// Largest number of links that a frame can count.
pub(super) const MOST_HOPS: usize = 64;

/// Path of the data and path of the ACKs of each connection, in rows of equal length.
#[derive(Debug, Clone, Default)]
pub(super) struct Routes {
    links: Vec<u32>,
    row: usize,
    /// Path in the fabric of each connection, indexed by connection.
    paths: Vec<usize>,
    choices: Option<Box<Choices>>,
}

/// Connections that choose between two paths with their first frame.
#[derive(Debug, Clone)]
struct Choices {
    fabric: Fabric,
    /// `true` if the connection has chosen, indexed by connection.
    decided: Vec<bool>,
    /// Flows that have taken the longer path.
    detoured: Vec<usize>,
    /// Connections that have chosen a path over each link, indexed by link.
    over: Vec<Vec<u32>>,
}

impl Routes {
    /// Creates a table without connections, for the paths of a fabric.
    ///
    /// # Errors
    /// A path over more links than frames can count.
    pub(super) fn new(fabric: &Fabric) -> Result<Routes, SharingError> {
        let each = fabric.paths.iter();
        let longest = each.map(|path| path.data().len().max(path.acknowledgements().len()));
        let longest = longest.max().unwrap_or(0);
        if longest > MOST_HOPS {
            return Err(SharingError::TooManyHops {
                found: longest,
                most: MOST_HOPS,
            });
        }
        let choices = fabric.detour(0).map(|_| {
            Box::new(Choices {
                fabric: fabric.clone(),
                decided: Vec::new(),
                detoured: Vec::new(),
                over: vec![Vec::new(); fabric.link_count()],
            })
        });
        Ok(Routes {
            links: Vec::new(),
            // Each row has room for the end after the last link.
            row: longest + 1,
            paths: Vec::new(),
            choices,
        })
    }

    /// Adds the paths of a connection that carries a flow of the fabric.
    pub(super) fn push(&mut self, fabric: &Fabric, flow: usize) {
        let path = &fabric.paths[flow];
        self.links.extend(row_of(path.data_in_order(), self.row));
        self.links
            .extend(row_of(path.acknowledgements_in_order(), self.row));
        self.paths.push(flow);
        if let Some(choices) = &mut self.choices {
            choices.decided.push(false);
        }
    }

    /// Link at a place of a path, or [`END`].
    #[inline]
    pub(super) fn at(&self, route: usize, hop: usize) -> u32 {
        self.links[route * self.row + hop]
    }

    /// Links of a connection, there and back.
    pub(super) fn links_of(&self, connection: usize) -> impl Iterator<Item = usize> {
        let rows = &self.links[2 * connection * self.row..][..2 * self.row];
        let used = rows.iter().filter(|link| **link != END);
        used.map(|link| *link as usize)
    }

    /// Number of the path in the fabric that a connection takes.
    pub(super) fn path_of(&self, connection: usize) -> usize {
        self.paths[connection]
    }

    /// `true` if connections choose their paths.
    #[inline]
    pub(super) fn have_choices(&self) -> bool {
        self.choices.is_some()
    }

    /// Chooses the path of a connection with its first frame, by the frames that wait at the links. A connection in flight
    /// that has chosen a path over a link counts as one more frame there, because its first frames may not have arrived
    /// there yet.
    pub(super) fn choose(
        &mut self,
        now: Picos,
        connection: usize,
        links: &[PacketLink],
        connections: &[PacketConnection],
    ) {
        let Some(choices) = &mut self.choices else {
            return;
        };
        if std::mem::replace(&mut choices.decided[connection], true) {
            return;
        }
        let Choices {
            fabric,
            detoured,
            over,
            ..
        } = &mut **choices;
        let flow = self.paths[connection];
        let Some(detour) = fabric.detour(flow) else {
            return;
        };
        let [shortest, longer] = [flow, detour].map(|path| &fabric.paths[path]);
        let is_detour = fabric.is_less_loaded(longer, shortest, |id| {
            let (link, chosen) = (&links[id.index()], over[id.index()].iter());
            let in_flight = chosen.filter(|other| !connections[**other as usize].stream.is_whole());
            link.waiting(now).0 + link.full_frame().0 * in_flight.count() as u64
        });
        for link in if is_detour { longer } else { shortest }.data() {
            over[link.index()].push(connection as u32);
        }
        if is_detour {
            detoured.push(flow);
            self.paths[connection] = detour;
            let new: Vec<u32> = row_of(longer.data_in_order(), self.row)
                .chain(row_of(longer.acknowledgements_in_order(), self.row))
                .collect();
            self.links[2 * connection * self.row..][..2 * self.row].copy_from_slice(&new);
        }
    }

    /// Flows that have taken the longer path.
    pub(super) fn detoured(&self) -> &[usize] {
        self.choices
            .as_ref()
            .map_or(&[], |choices| &choices.detoured)
    }
}

/// Links of a path, followed by ends up to the length of a row.
fn row_of(way: impl Iterator<Item = LinkId>, row: usize) -> impl Iterator<Item = u32> {
    way.map(|link| link.0)
        .chain(std::iter::repeat(END))
        .take(row)
}

//! View of the engine for the search for steady states, and skipping of whole periods.

use super::{
    super::{link::PacketLink, picos::Picos, shift::Shift, steady::Search},
    PacketEngine,
};

/// Notes of the engine for the search.
pub(super) struct EngineNotes {
    of: Vec<ConnectionNotes>,
    has_news: bool,
    /// Time of the last arrival on an anchor, and the anchor: a connection whose arrivals make the search examine its part.
    came: Option<(Picos, usize)>,
    /// Connections on which a message has begun or ended.
    changed: Vec<usize>,
}

/// Notes on a connection.
#[derive(Clone, Default)]
struct ConnectionNotes {
    /// `true` if each arrival makes the search examine the connection's part.
    is_anchor: bool,
    /// Times of the arrivals in a period that is followed once more; `None` if no period is followed.
    arrivals: Option<Vec<Picos>>,
}

impl EngineNotes {
    #[inline]
    pub(super) fn arrive(&mut self, now: Picos, connection: usize) {
        let of = &mut self.of[connection];
        if of.is_anchor {
            (self.came, self.has_news) = (Some((now, connection)), true);
        }
        if let Some(arrivals) = &mut of.arrivals {
            arrivals.push(now);
        }
    }

    pub(super) fn change(&mut self, connection: usize) {
        self.changed.push(connection);
        self.has_news = true;
    }
}

impl PacketEngine {
    /// Runs like [`PacketEngine::run`], but skips exact repetitions. Returns the number of events that were executed.
    pub(in super::super) fn run_skipping(&mut self) -> u64 {
        let of = vec![ConnectionNotes::default(); self.connections.len()];
        self.noted = Some(EngineNotes {
            of,
            has_news: false,
            came: None,
            changed: Vec::new(),
        });
        let mut search = Search::new(self);
        while self.step() {
            search.step(self);
        }
        self.noted = None;
        search.steps()
    }

    #[inline]
    pub(in super::super) fn has_news(&mut self) -> bool {
        self.noted
            .as_mut()
            .is_some_and(|noted| std::mem::take(&mut noted.has_news))
    }

    /// Takes the next connection on which a message has begun or ended.
    pub(in super::super) fn changed(&mut self) -> Option<usize> {
        self.noted.as_mut()?.changed.pop()
    }

    /// Takes the time at which the last packet has arrived on an anchor, and the anchor.
    pub(in super::super) fn came(&mut self) -> Option<(Picos, usize)> {
        self.noted.as_mut()?.came.take()
    }

    fn note(&mut self, connection: usize) -> &mut ConnectionNotes {
        &mut self.noted.as_mut().expect("only the search asks").of[connection]
    }

    pub(in super::super) fn note_nothing(&mut self, connection: usize) {
        *self.note(connection) = ConnectionNotes::default();
    }

    pub(in super::super) fn note_anchor(&mut self, connection: usize) {
        self.note(connection).is_anchor = true;
    }

    pub(in super::super) fn note_arrivals(&mut self, connection: usize) {
        self.note(connection).arrivals = Some(Vec::new());
    }

    pub(in super::super) fn note_no_arrivals(&mut self, connection: usize) {
        self.note(connection).arrivals = None;
    }

    /// Links of a connection, there and back.
    pub(in super::super) fn links_of(&self, connection: usize) -> impl Iterator<Item = usize> {
        self.routes.links_of(connection)
    }

    /// Skips `periods` periods of a connection. Packets arrive in each of them as in the followed period.
    pub(in super::super) fn skip(&mut self, connection: usize, period: Shift, periods: u32) {
        let times = self.note(connection).arrivals.take().unwrap_or_default();
        if period.packets > 0 {
            self.connections[connection].skip(&times, period, periods);
        }
    }

    /// Skips `periods` periods of a link, whose state one period ago was `then`.
    pub(in super::super) fn skip_link(
        &mut self,
        lane: usize,
        then: &PacketLink,
        periods: u32,
        period: Picos,
        packets: &[u32],
    ) {
        self.links[lane].skip(then, periods, period, packets);
        self.set(lane, self.links[lane].first());
    }
}

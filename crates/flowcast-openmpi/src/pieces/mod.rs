//! Messages in pieces: what ob1 gives to one network goes over several, and arrives at the other side's ob1 whole.
//!
//! A piece is an active message on a tag of our own with a header that says of which message it is which part. The receiver
//! puts the parts together and hands the message to whom ob1's tag belongs, as if the network of the last piece had brought it.
//! ob1 numbers what has an order of its own, so no piece waits for another message.
//!
//! A long message that ob1 wants written into the receiver's memory (PUT) is divided as well: each network writes a part. The
//! FIN behind it tells the receiver that all is there; it goes over every network that wrote a part, after the part, and is
//! handed on when the last copy has come.

mod sending;
mod wire;
mod writing;

use flowcast_scheduler::{MAX_RAILS, RailId, RailSet, split::Split};

pub(crate) use sending::{SendArguments, send};
pub(crate) use wire::listen;
pub(crate) use writing::{PutArguments, no_room, put, rails_of_fin};

/// Which part of a message goes over which rail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RailPart {
    pub rail: RailId,
    pub offset: usize,
    pub length: usize,
}

/// Parts one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RailParts {
    parts: [RailPart; MAX_RAILS],
    count: usize,
}

impl RailParts {
    pub(crate) fn new(pieces: impl Iterator<Item = (RailId, usize)>) -> RailParts {
        let none = RailPart {
            rail: RailId(0),
            offset: 0,
            length: 0,
        };
        let mut all = RailParts {
            parts: [none; MAX_RAILS],
            count: 0,
        };
        let mut offset = 0;
        for (rail, length) in pieces.take(MAX_RAILS) {
            all.parts[all.count] = RailPart {
                rail,
                offset,
                length,
            };
            all.count += 1;
            offset += length;
        }
        all
    }

    /// As the scheduler divides a message that ob1 asked one rail for; `None` if that one carries all of it.
    pub(crate) fn divided(split: &Split, asked: RailId) -> Option<RailParts> {
        let parts = RailParts::new(split.pieces().map(|(rail, piece)| (rail, piece.0 as usize)));
        let is_as_asked = matches!(parts.all(), [only] if only.rail == asked);
        (!is_as_asked).then_some(parts)
    }

    /// All of it first, and empty parts behind it over the other rails: what was given to them before arrives before.
    pub(crate) fn behind(rails: RailSet, length: usize) -> RailParts {
        let lengths = std::iter::once(length).chain(std::iter::repeat(0));
        RailParts::new(rails.zip(lengths))
    }

    pub(crate) fn all(&self) -> &[RailPart] {
        &self.parts[..self.count]
    }
}

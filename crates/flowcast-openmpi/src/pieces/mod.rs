//! Messages in pieces: a message that ob1 assigns to one network is sent over several, and reaches the remote ob1 whole.
//!
//! A piece is an active message on a tag of our own. Its header identifies the message and the piece's part of it. The
//! receiver joins the pieces and passes the message to the owner of ob1's tag, as if the network of the last piece had
//! delivered it. ob1 numbers messages whose order matters, so no piece waits for another message.
//!
//! A long message that ob1 wants to write into the receiver's memory (PUT) is divided as well: each network writes a part.
//! The following FIN notifies the receiver that all data have arrived. It is sent over every network that wrote a part,
//! after the part, and is delivered when the last copy has arrived.

mod sending;
mod wire;
mod writing;

use flowcast_scheduler::{MAX_RAILS, RailId, RailSet, split::Split};

pub(crate) use sending::{SendArguments, send};
pub(crate) use wire::listen;
pub(crate) use writing::{PutArguments, no_room, put, rails_of_fin};

/// Part of a message, and the rail that carries it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RailPart {
    pub rail: RailId,
    pub offset: usize,
    pub length: usize,
}

/// Consecutive parts of a message.
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

    /// Parts of a message as divided by the scheduler. Returns `None` if the rail that ob1 requested carries all of it.
    pub(crate) fn divided(split: &Split, asked: RailId) -> Option<RailParts> {
        let parts = RailParts::new(split.pieces().map(|(rail, piece)| (rail, piece.0 as usize)));
        let is_as_asked = matches!(parts.all(), [only] if only.rail == asked);
        (!is_as_asked).then_some(parts)
    }

    /// The whole message on the first rail, followed by empty parts on the other rails. They arrive after all earlier data
    /// of those rails.
    pub(crate) fn behind(rails: RailSet, length: usize) -> RailParts {
        let lengths = std::iter::once(length).chain(std::iter::repeat(0));
        RailParts::new(rails.zip(lengths))
    }

    pub(crate) fn all(&self) -> &[RailPart] {
        &self.parts[..self.count]
    }
}

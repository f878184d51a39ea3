//! The rate of a link, of payload and of frames.

use flowcast_units::{Rate, TimePerByte};

/// The goodput of one flow alone, in the form in which it was given; so the times of both forms are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoneFlow {
    /// Bytes per second; 0 is infinite.
    Bandwidth(Rate),
    /// `G` of LogGP, the inverse.
    GapPerByte(TimePerByte),
}

/// The rate of a link in each direction. Fluid models count payload (goodput), the packet level counts frames (wire
/// rate); a rate that is given alone stands for both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkRate<G = Rate> {
    /// Goodput: bytes of payload in a second.
    Goodput(G),
    /// Wire rate: bytes of frames in a second, headers included.
    Wire(Rate),
    /// Goodput and wire rate, each given for itself.
    Both {
        /// Bytes of payload in a second.
        goodput: G,
        /// Bytes of frames in a second, headers included.
        wire: Rate,
    },
}

impl<G: Copy + From<Rate> + Into<Rate>> LinkRate<G> {
    /// What is given of the two; `None` where neither is.
    pub fn given(goodput: Option<G>, wire: Option<Rate>) -> Option<LinkRate<G>> {
        match (goodput, wire) {
            (Some(goodput), Some(wire)) => Some(LinkRate::Both { goodput, wire }),
            (Some(goodput), None) => Some(LinkRate::Goodput(goodput)),
            (None, wire) => wire.map(LinkRate::Wire),
        }
    }

    /// Of payload, as far as it is given.
    pub fn given_goodput(self) -> Option<G> {
        if let LinkRate::Goodput(goodput) | LinkRate::Both { goodput, .. } = self {
            Some(goodput)
        } else {
            None
        }
    }

    /// Of frames, as far as it is given.
    pub fn given_wire(self) -> Option<Rate> {
        if let LinkRate::Wire(wire) | LinkRate::Both { wire, .. } = self {
            Some(wire)
        } else {
            None
        }
    }

    /// Bytes of payload per second; 0 is infinite.
    pub fn goodput(self) -> Rate {
        self.given_goodput().map_or_else(|| self.wire(), G::into)
    }

    /// Bytes of frames per second; 0 is infinite.
    pub fn wire(self) -> Rate {
        match self {
            LinkRate::Goodput(goodput) => goodput.into(),
            LinkRate::Wire(wire) | LinkRate::Both { wire, .. } => wire,
        }
    }

    /// The wire rate alone: the one that is given, the goodput where none is, or so many times the goodput.
    pub(crate) fn on_the_wire(self, of_goodput: Option<f64>) -> LinkRate<G> {
        match of_goodput {
            Some(factor) => LinkRate::Wire(Rate::from_bytes_per_second(
                self.goodput().as_bytes_per_second() * factor,
            )),
            None => self.given_wire().map_or(self, LinkRate::Wire),
        }
    }
}

impl From<Rate> for LoneFlow {
    fn from(rate: Rate) -> LoneFlow {
        LoneFlow::Bandwidth(rate)
    }
}

impl From<LoneFlow> for Rate {
    fn from(flow: LoneFlow) -> Rate {
        match flow {
            LoneFlow::Bandwidth(rate) => rate,
            LoneFlow::GapPerByte(gap) => gap.rate(),
        }
    }
}

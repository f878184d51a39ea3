//! Rate of a link, in payload and in frames.

use flowcast_units::{Rate, TimePerByte};

/// Goodput of a single flow, in the form in which it was given, so that times are exact for both forms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SingleFlowRate {
    /// Bytes per second; 0 is infinite.
    Bandwidth(Rate),
    /// `G` of LogGP, the inverse of the bandwidth.
    GapPerByte(TimePerByte),
}

/// Rate of a link in each direction. Fluid models count payload (goodput), the packet level counts frames (wire rate). If
/// only one rate is given, it stands for both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkRate<G = Rate> {
    /// Goodput: bytes of payload per second.
    Goodput(G),
    /// Wire rate: bytes of frames per second, including headers.
    Wire(Rate),
    /// Both goodput and wire rate are given.
    Both {
        /// Bytes of payload per second.
        goodput: G,
        /// Bytes of frames per second, including headers.
        wire: Rate,
    },
}

impl<G: Copy + From<Rate> + Into<Rate>> LinkRate<G> {
    /// Combines the given rates; `None` if neither is given.
    pub fn given(goodput: Option<G>, wire: Option<Rate>) -> Option<LinkRate<G>> {
        match (goodput, wire) {
            (Some(goodput), Some(wire)) => Some(LinkRate::Both { goodput, wire }),
            (Some(goodput), None) => Some(LinkRate::Goodput(goodput)),
            (None, wire) => wire.map(LinkRate::Wire),
        }
    }

    /// Goodput, if it is given.
    pub fn given_goodput(self) -> Option<G> {
        if let LinkRate::Goodput(goodput) | LinkRate::Both { goodput, .. } = self {
            Some(goodput)
        } else {
            None
        }
    }

    /// Wire rate, if it is given.
    pub fn given_wire(self) -> Option<Rate> {
        if let LinkRate::Wire(wire) | LinkRate::Both { wire, .. } = self {
            Some(wire)
        } else {
            None
        }
    }

    /// Goodput in bytes of payload per second; 0 is infinite. Falls back to the wire rate.
    pub fn goodput(self) -> Rate {
        self.given_goodput().map_or_else(|| self.wire(), G::into)
    }

    /// Wire rate in bytes of frames per second; 0 is infinite. Falls back to the goodput.
    pub fn wire(self) -> Rate {
        match self {
            LinkRate::Goodput(goodput) => goodput.into(),
            LinkRate::Wire(wire) | LinkRate::Both { wire, .. } => wire,
        }
    }

    /// Keeps only the wire rate: the goodput times `of_goodput` if that is given, otherwise the given wire rate. Without
    /// either, the rate stays unchanged.
    pub(crate) fn on_the_wire(self, of_goodput: Option<f64>) -> LinkRate<G> {
        match of_goodput {
            Some(factor) => LinkRate::Wire(Rate::from_bytes_per_second(
                self.goodput().as_bytes_per_second() * factor,
            )),
            None => self.given_wire().map_or(self, LinkRate::Wire),
        }
    }
}

impl From<Rate> for SingleFlowRate {
    fn from(rate: Rate) -> SingleFlowRate {
        SingleFlowRate::Bandwidth(rate)
    }
}

impl From<SingleFlowRate> for Rate {
    fn from(flow: SingleFlowRate) -> Rate {
        match flow {
            SingleFlowRate::Bandwidth(rate) => rate,
            SingleFlowRate::GapPerByte(gap) => gap.rate(),
        }
    }
}

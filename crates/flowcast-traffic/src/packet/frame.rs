//! A frame in flight, in eight bytes.

/// Number, connection, direction and hop of a frame, with a mark for the last packet of a message.
///
/// | bits | content |
/// |---|---|
/// | 0 | the packet is the last of its message |
/// | 1-6 | number of links that it has crossed |
/// | 7 | an ACK, which goes back |
/// | 8-31 | connection |
/// | 32-63 | data: number of the transmission on its connection; ACK: number of packets that have arrived |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame(u64);

/// Number of connections that frames can name.
pub(super) const MOST_CONNECTIONS: usize = 1 << 24;

const LAST: u64 = 1;
const HOP: u64 = 1 << 1;
const ACK: u64 = 1 << 7;

impl Frame {
    /// Creates a data frame on its first link.
    #[inline]
    pub(super) fn data(connection: u32, number: u32, place: Place) -> Frame {
        let last = if place == Place::Last { LAST } else { 0 };
        Frame(u64::from(number) << 32 | u64::from(connection) << 8 | last)
    }

    /// Creates an ACK on its first link.
    #[inline]
    pub(super) fn ack(connection: u32, number: u32) -> Frame {
        Frame(u64::from(number) << 32 | u64::from(connection) << 8 | ACK)
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn connection(self) -> u32 {
        (self.0 as u32) >> 8
    }

    /// Row in the table of routes: two for each connection, data and ACKs.
    #[inline]
    pub(super) fn route(self) -> usize {
        (self.0 as u32 >> 7) as usize
    }

    #[inline]
    pub(super) fn hop(self) -> usize {
        (self.0 >> 1 & 63) as usize
    }

    #[inline]
    pub(super) fn on_next_hop(self) -> Frame {
        Frame(self.0 + HOP)
    }

    /// Returns the frame that is in the same position this many packets later.
    pub(super) fn advanced(self, packets: u32) -> Frame {
        Frame(self.0 + (u64::from(packets) << 32))
    }

    #[inline]
    pub(super) fn is_ack(self) -> bool {
        self.0 & ACK != 0
    }

    #[inline]
    pub(super) fn is_last(self) -> bool {
        self.0 & LAST != 0
    }
}

/// Position of a packet in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Other packets follow; this one is full.
    Inside,
    /// The last packet, which may be shorter.
    Last,
}

#[cfg(test)]
mod tests {
    use super::super::routes::MOST_HOPS;
    use super::*;

    #[test]
    fn a_frame_returns_its_content() {
        let largest = MOST_CONNECTIONS as u32 - 1;
        let mut frame = Frame::data(largest, u32::MAX, Place::Last);
        for _ in 1..MOST_HOPS {
            frame = frame.on_next_hop();
        }
        assert_eq!(
            (frame.connection(), frame.number(), frame.hop()),
            (largest, u32::MAX, MOST_HOPS - 1)
        );
        assert!(frame.is_last() && !frame.is_ack());
        let ack = Frame::ack(5, 7);
        assert_eq!((ack.route(), ack.number(), ack.hop()), (11, 7, 0));
        assert!(ack.is_ack() && !ack.is_last());
    }
}

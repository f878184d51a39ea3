//! A single transmission of a packet.

use super::picos::Picos;

/// A single transmission of a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transmission {
    /// Number of the packet among those of its sender.
    pub packet: u32,
    /// Number of packets that were delivered when it was sent.
    pub delivered: u32,
    /// Time at which it was sent.
    pub sent: Picos,
    /// Sending time of the packet whose delivery was the latest at that time.
    pub first_sent: Picos,
    /// Time at which the sender learned of that delivery.
    pub delivered_at: Picos,
    /// `true` if the window was not full when it was sent, for lack of data.
    pub is_starved: bool,
    pub is_lost: bool,
}

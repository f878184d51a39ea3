//! One sending of one packet.

use super::picos::Picos;

/// One sending of one packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transmission {
    /// Number of the packet among those of its sender.
    pub packet: u32,
    /// Packets delivered when it was sent.
    pub delivered: u32,
    /// When it was sent.
    pub sent: Picos,
    /// When the packet was sent whose delivery was the latest at that time.
    pub first_sent: Picos,
    /// When that delivery was heard of.
    pub delivered_at: Picos,
    /// Whether the window was not full when it was sent, for lack of data.
    pub is_starved: bool,
    pub is_lost: bool,
}

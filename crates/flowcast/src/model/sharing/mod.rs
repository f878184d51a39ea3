//! What concurrent messages leave each other: the `[sharing]` section of a network file.

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Rate};

/// Parameters of the sharing models; each model reads its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sharing {
    /// The model that is used when none is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Flow cuts: the two ends of an odd zig-zag (RR-5910 Table 2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odd_end: Option<f64>,
    /// Flow cuts: every second flow inside an odd zig-zag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odd_inner: Option<f64>,
    /// Flow cuts: the outgoing flow of an income/outgo conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_out: Option<f64>,
    /// Flow cuts: a flow left over between two active neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<f64>,
    /// Flow cuts: a flow left over at the start or end of its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_end: Option<f64>,
    /// Closed loop: exponent of the fairness, 1 proportional, large max-min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Closed loop: weight of the delay that acknowledgements meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// Packet level: bytes that a flow keeps in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Asymmetric Ethernet: flows over the backbone from which it is the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backbone_from: Option<u32>,
    /// Asymmetric Ethernet: what one flow of a saturated backbone may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backbone_share: Option<Rate>,
}

impl Sharing {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Sharing::default()
    }
}

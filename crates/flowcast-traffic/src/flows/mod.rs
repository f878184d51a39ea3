//! How long concurrent messages take: fluid simulations of flows that share a network.
//!
//! What it is for: a communication pattern (flows with starts and sizes) goes in, the completion of each flow comes out,
//! with the reason why it was slower than alone; [`concurrent::predict`] is the entry, and chooses the method. Replays of
//! programs, whose messages start when earlier ones have ended, use the same simulations through [`traffic::NetworkTraffic`].
//! The crate decides when flows start and end; what each gets meanwhile is the question to a sharing model
//! ([`flowcast_network::sharing`]). It knows no clock and no machine, and equal inputs give equal bits.
//!
//! # The models
//!
//! Flow `i` starts at `s_i` with `m_i` bytes and ends when the integral of its rate since then has reached `m_i`, plus the
//! latency `L`, which is not contended: a flow that meets no other takes `L + m_i/C`. There are three ways to its rate.
//!
//! - **Rates from event to event** ([`fluid`], [`in_flight`], and `flow_classes` where many flows share few paths; Martinasso and Méhaut, RR-5910, section 5.3; Zhu et al.,
//!   Algorithm 1). Events are starts and ends of flows. The rates `r_i` between two events are constant and are what the
//!   sharing model allocates to the active flows; the next event is at `min(next start, min over i of t + left_i/r_i)`.
//! - **Quasi-dynamic queues** ([`quasi_dynamic`]), for programs under the closed loop. The queueing delays `q_l` approach
//!   their balance with the time of a packet, `dq_l/dt = (F_l(q) - q_l)/lag`, and the rates follow the delays.
//! - **Packets** ([`crate::packet`]), also for patterns under the closed loop whose window is known: in trains of packets, without
//!   losses.

mod bottleneck;
pub mod concurrent;
mod flow_classes;
pub mod fluid;
pub mod in_flight;
mod progress;
pub mod quasi_dynamic;
pub mod traffic;

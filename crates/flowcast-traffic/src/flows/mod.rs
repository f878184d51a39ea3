//! Durations of concurrent messages: fluid simulations of flows that share a network.
//!
//! The input is a communication pattern (flows with starts and sizes). The output is the completion of each flow, with the
//! reason why it was slower than alone. [`concurrent::predict`] is the entry point, and chooses the method. Replays of
//! programs, whose messages start when earlier ones have ended, use the same simulations through
//! [`traffic::NetworkTraffic`]. The crate decides when flows start and end; a sharing model ([`flowcast_network::sharing`])
//! decides their rates in between. It uses neither a clock nor properties of the machine, and equal inputs give equal bits.
//!
//! # The models
//!
//! Flow `i` starts at `s_i` with `m_i` bytes. It ends when the integral of its rate since then has reached `m_i`, plus the
//! latency `L`, which is not contended: a flow without others on its links takes `L + m_i/C`. There are three ways to
//! determine its rate.
//!
//! - **Rates from event to event** ([`fluid`], [`in_flight`], and `flow_classes` where many flows share few paths;
//!   Martinasso and Méhaut, RR-5910, section 5.3; Zhu et al., Algorithm 1). Events are starts and ends of flows. Between two
//!   events, the rates `r_i` that the sharing model allocates to the active flows are constant. The next event is at
//!   `min(next start, min over i of t + left_i/r_i)`.
//! - **Quasi-dynamic queues** ([`quasi_dynamic`]), for programs under the closed loop. The queueing delays `q_l` approach
//!   their balance within the time of a packet, `dq_l/dt = (F_l(q) - q_l)/lag`, and the rates follow the delays.
//! - **Packets** ([`crate::packet`]), also for patterns under the closed loop with a known window: in trains of packets,
//!   without losses.

mod bottleneck;
pub mod concurrent;
mod flow_classes;
pub mod fluid;
pub mod in_flight;
mod progress;
pub mod quasi_dynamic;
pub mod traffic;

//! Parameters of LogGP with intervals from measured round trips (Lichei, chapter 3).
//!
//! [`samples`] reads and writes measurements. [`mod@prtt`] predicts a parametrised round trip under LogGP.
//! [`loggp::fit_loggp`] fits parameters with intervals to samples, without ever saturating the network. [`verdict`] reports
//! problems of samples. [`plogp`] counts the messages that the older method would need. [`calls`] fits the times of single
//! MPI calls as functions of size.
//!
//! ```
//! use flowcast_fit::prtt::{PrttPoint, prtt};
//! use flowcast_network::loggp::LogGp;
//! use flowcast_units::{Bytes, Time, TimePerByte};
//!
//! let [latency, overhead, gap] = [20.0, 3.0, 5.0].map(Time::from_micros);
//! let network = LogGp { latency, overhead, gap, gap_per_byte: TimePerByte::from_nanos(8.0) };
//! // 2 (2o + L + 1000 G)
//! assert_eq!(prtt(&network, PrttPoint::round_trip(Bytes(1001))), Time::from_micros(68.0));
//! ```

pub mod benchmark_log;
pub mod bursts;
pub mod calls;
pub mod error;
mod estimate;
pub mod hockney;
pub mod import;
pub mod loggp;
pub mod network;
pub mod options;
pub mod pairs;
pub mod plogp;
pub mod prtt;
pub mod quality;
pub mod sample_table;
pub mod samples;
pub mod verdict;
pub mod zoo;

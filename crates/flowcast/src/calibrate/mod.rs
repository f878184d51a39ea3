//! Fits of a network's parameters to measured times of concurrent messages and of whole programs.
//!
//! [`conflict_samples`] reads and writes the durations of elementary conflicts. [`conflicts`] fits each sharing model to
//! them and reports the model that explains the network best (Martinasso and Méhaut, section 5; Zhu et al.). [`dimemas`]
//! finds Dimemas' latency, bandwidth, links and collective models from the regions of dedicated runs, which
//! [`recorded_regions`] takes from recordings (Girona, Labarta, Badia). [`narrowing`] finds one parameter of any replay:
//!
//! ```
//! use flowcast::calibrate::narrowing::least_cost;
//!
//! let (at, cost) = least_cost(0.0, 10.0, |x| Ok::<f64, ()>((x - 3.0_f64).powi(2))).unwrap();
//! assert!((at - 3.0).abs() < 0.01 && cost < 1e-4);
//! ```

pub mod conflict_samples;
pub mod conflicts;
pub mod dimemas;
pub mod narrowing;
pub mod recorded_regions;

//! Random perturbation: a drawn value is added to a latency, a bandwidth or a relative speed at each use.
//!
//! The text form has units: `normal 0ns 500ns` (mean, standard deviation), `uniform -1us 2us` (least, most), `none`.

use std::{fmt, marker::PhantomData, str::FromStr};

use flowcast_units::{Rate, Time, UnitError};

section! {
    /// Quantities that vary at random, with their distributions.
    pub struct Randomness: Default + Copy {
        /// Seed of the random numbers.
        /// Default: 0. Example: `7`.
        seed: u64,
        /// Random addition to the relative speed, for each computation.
        /// Default: `none`. Example: `"normal 0 0.1"`.
        speed: RandomDistribution<f64>,
        /// Random addition to the start-up time of each message between nodes, on each side.
        /// Default: `none`. Example: `"normal 0ns 500ns"`.
        latency: RandomDistribution<Time>,
        /// Random addition to the bandwidth of each message between nodes.
        /// Default: `none`. Example: `"uniform -1MB/s 1MB/s"`.
        bandwidth: RandomDistribution<Rate>,
        /// Random addition to the start-up time of each message inside a node, on each side.
        /// Default: `none`. Example: `"normal 0ns 50ns"`.
        intra_latency: RandomDistribution<Time>,
        /// Random addition to the bandwidth of each message inside a node.
        /// Default: `none`. Example: `"uniform -1MB/s 1MB/s"`.
        intra_bandwidth: RandomDistribution<Rate>,
        /// Random addition to the start-up time of each message between sites, on each side.
        /// Default: `none`. Example: `"uniform -1us 2us"`.
        wide_area_latency: RandomDistribution<Time>,
        /// Random addition to the bandwidth of each message between sites.
        /// Default: `none`. Example: `"uniform -1MB/s 1MB/s"`.
        wide_area_bandwidth: RandomDistribution<Rate>,
    }
}

impl Randomness {
    /// `true` if at least one of the distributions varies. The seed alone has no effect.
    pub fn varies(&self) -> bool {
        *self
            != Randomness {
                seed: self.seed,
                ..Randomness::default()
            }
    }
}

/// A distribution of values of some unit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RandomDistribution<Q> {
    /// Shape with its parameters, in the unit of `Q`.
    pub shape: Shape,
    unit: PhantomData<Q>,
}

/// Shape of a distribution, in nanoseconds, bytes per second or as a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Shape {
    /// No distribution: nothing is added.
    #[default]
    None,
    /// A normal distribution; drawn values may be negative.
    Normal {
        /// Mean of the values.
        mean: f64,
        /// Standard deviation of the values.
        deviation: f64,
    },
    /// A uniform distribution between two values.
    Uniform {
        /// Smallest value; may be negative.
        least: f64,
        /// Largest value, at least `least`.
        most: f64,
    },
}

impl<Q> RandomDistribution<Q> {
    /// Creates a distribution of this shape, with numbers in the unit of `Q`.
    pub const fn new(shape: Shape) -> RandomDistribution<Q> {
        RandomDistribution {
            shape,
            unit: PhantomData,
        }
    }

    /// `true` if a value is drawn. A distribution with a spread of 0 counts as varying.
    pub fn varies(&self) -> bool {
        self.shape != Shape::None
    }
}

/// Text form of a distribution's values.
pub(crate) trait RandomQuantity {
    /// Reads a non-negative value.
    ///
    /// # Errors
    /// The number has no unit.
    fn parse(text: &str) -> Result<f64, UnitError>;
    /// Returns a value as text.
    fn show(value: f64) -> String;
}

impl RandomQuantity for Time {
    fn parse(text: &str) -> Result<f64, UnitError> {
        Time::parse(text).map(Time::as_nanos)
    }
    fn show(value: f64) -> String {
        Time::from_nanos(value).to_string()
    }
}

impl RandomQuantity for Rate {
    fn parse(text: &str) -> Result<f64, UnitError> {
        Rate::parse(text).map(Rate::as_bytes_per_second)
    }
    fn show(value: f64) -> String {
        Rate::from_bytes_per_second(value).to_string()
    }
}

impl RandomQuantity for f64 {
    fn parse(text: &str) -> Result<f64, UnitError> {
        let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
        number.ok_or_else(|| UnitError {
            found: text.to_owned(),
            expected: "a number",
        })
    }
    fn show(value: f64) -> String {
        value.to_string()
    }
}

const EXPECTED: &str =
    "none, or normal or uniform with two values, such as `normal 0ns 500ns` or `uniform -1us 2us`";

impl<Q: RandomQuantity> FromStr for RandomDistribution<Q> {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shape = match words[..] {
            ["none"] => Shape::None,
            ["normal", mean, deviation] => Shape::Normal {
                mean: signed::<Q>(mean)?,
                deviation: Q::parse(deviation)?,
            },
            ["uniform", least, most] => Shape::Uniform {
                least: signed::<Q>(least)?,
                most: signed::<Q>(most)?,
            },
            _ => {
                return Err(UnitError {
                    found: text.to_owned(),
                    expected: EXPECTED,
                });
            }
        };
        match shape {
            Shape::Uniform { least, most } if least > most => Err(UnitError {
                found: text.to_owned(),
                expected: "the smaller value before the larger one",
            }),
            _ => Ok(RandomDistribution::new(shape)),
        }
    }
}

fn signed<Q: RandomQuantity>(text: &str) -> Result<f64, UnitError> {
    match text.strip_prefix('-') {
        Some(rest) => Ok(-Q::parse(rest)?),
        None => Q::parse(text),
    }
}

impl<Q: RandomQuantity> fmt::Display for RandomDistribution<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            Shape::None => f.write_str("none"),
            Shape::Normal { mean, deviation } => {
                write!(f, "normal {} {}", shown::<Q>(mean), shown::<Q>(deviation))
            }
            Shape::Uniform { least, most } => {
                write!(f, "uniform {} {}", shown::<Q>(least), shown::<Q>(most))
            }
        }
    }
}

fn shown<Q: RandomQuantity>(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", Q::show(value.abs()))
}

flowcast_units::serde_as_text!(
    RandomDistribution<f64>,
    RandomDistribution<Time>,
    RandomDistribution<Rate>
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_as_they_are_written() {
        for text in ["none", "normal 0ns 500ns", "uniform -1us 2us"] {
            let read: RandomDistribution<Time> = text.parse().unwrap();
            assert_eq!(
                read.to_string()
                    .parse::<RandomDistribution<Time>>()
                    .unwrap(),
                read,
                "{text}"
            );
        }
        assert_eq!(
            "normal 0.5 0.1"
                .parse::<RandomDistribution<f64>>()
                .unwrap()
                .to_string(),
            "normal 0.5 0.1"
        );
    }

    #[test]
    fn a_distribution_without_units_or_in_the_wrong_order_is_refused() {
        for text in [
            "normal 0 500",
            "uniform 2us -1us",
            "gamma 1us 2us",
            "normal 1us",
            "normal 0ns -5ns",
        ] {
            assert!(text.parse::<RandomDistribution<Time>>().is_err(), "{text}");
        }
    }
}

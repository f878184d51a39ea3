//! The section `[cable]` of the lab file.

use std::{fmt, marker::PhantomData};

use flowcast_units::{Bytes, Rate, Time};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de,
    de::{IntoDeserializer, value::SeqAccessDeserializer},
};

use crate::lab::spec::RailRates;

/// Link emulator between the two nodes of a lab, one on each rail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CableSpec {
    /// Wire rate, or one rate from node 0 and one from node 1; defaults to `nic.bandwidth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RailRates>,
    /// Time from the departure of the last bit to its arrival.
    #[serde(default)]
    pub delay: PerDirection<Time>,
    /// Additional delay of each frame: the largest value if uniform, the mean if exponential.
    #[serde(default)]
    pub jitter: PerDirection<Time>,
    /// Distribution of the jitter.
    #[serde(default)]
    pub jitter_distribution: Distribution,
    /// Limit for the bytes that wait for their departure, including the frame on the wire.
    #[serde(default = "ample")]
    pub queue: PerDirection<Bytes>,
    /// Probability that a frame is lost on the wire.
    #[serde(default)]
    pub loss: PerDirection<f64>,
    /// Seed of jitter and losses.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// Time before a delivery at which the link emulator's process wakes up and polls.
    #[serde(default = "usual_spin")]
    pub spin: Time,
}

/// Distribution of the jitter of a link emulator's frames; uniform by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Uniform from 0 to the jitter.
    #[default]
    Uniform,
    /// Exponential, with the jitter as its mean.
    Exponential,
}

/// Values for the frames of node 0 and for those of node 1; the file has a single value if they are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerDirection<T>(pub [T; 2]);

/// One direction of a link emulator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectionSpec {
    /// Rate of frames on the wire, including headers.
    pub rate: Rate,
    /// Time from departure to arrival.
    pub delay: Time,
    /// Largest or mean jitter.
    pub jitter: Time,
    /// Distribution of the jitter.
    pub distribution: Distribution,
    /// Limit for the waiting bytes.
    pub queue: Bytes,
    /// Probability of a loss.
    pub loss: f64,
    /// Seed of jitter and losses.
    pub seed: u64,
}

impl DirectionSpec {
    /// Returns a direction that delays each frame and has no other effect.
    pub(crate) fn delay(delay: Time) -> DirectionSpec {
        DirectionSpec {
            rate: Rate::from_bytes_per_second(1e12),
            delay,
            jitter: Time::ZERO,
            distribution: Distribution::Uniform,
            queue: Bytes(1 << 31),
            loss: 0.0,
            seed: 1,
        }
    }
}

impl CableSpec {
    /// Returns the direction of a rail's link emulator that starts at node `from`, 0 or 1. `bandwidth` is the interface's
    /// rate.
    pub fn direction(&self, rail: usize, from: usize, bandwidth: Rate) -> DirectionSpec {
        let given = self
            .rate
            .as_ref()
            .and_then(|rates| rates.0.get(from).or(rates.0.last()));
        DirectionSpec {
            rate: given.copied().unwrap_or(bandwidth),
            delay: self.delay.0[from],
            jitter: self.jitter.0[from],
            distribution: self.jitter_distribution,
            queue: self.queue.0[from],
            loss: self.loss.0[from],
            seed: self.seed.wrapping_add((2 * rail + from) as u64),
        }
    }
}

fn ample() -> PerDirection<Bytes> {
    PerDirection([Bytes(3_000_000); 2])
}

fn first_seed() -> u64 {
    1
}

fn usual_spin() -> Time {
    Time::from_nanos(100_000.0)
}

impl<T: Serialize + PartialEq> Serialize for PerDirection<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [forward, backward] = &self.0;
        if forward == backward {
            forward.serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de, T: Deserialize<'de> + Copy> Deserialize<'de> for PerDirection<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PerDirection<T>, D::Error> {
        deserializer.deserialize_any(OneOrTwo(PhantomData))
    }
}

struct OneOrTwo<T>(PhantomData<T>);

fn both<'de, T: Deserialize<'de> + Copy, D: Deserializer<'de>>(
    value: D,
) -> Result<PerDirection<T>, D::Error> {
    T::deserialize(value).map(|value| PerDirection([value; 2]))
}

impl<'de, T: Deserialize<'de> + Copy> de::Visitor<'de> for OneOrTwo<T> {
    type Value = PerDirection<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a value, or a list of two values: for frames from node 0 and for frames from node 1",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PerDirection<T>, E> {
        both(IntoDeserializer::<E>::into_deserializer(text))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<PerDirection<T>, E> {
        both(IntoDeserializer::<E>::into_deserializer(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<PerDirection<T>, E> {
        both(IntoDeserializer::<E>::into_deserializer(number))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, items: A) -> Result<PerDirection<T>, A::Error> {
        let values = Vec::deserialize(SeqAccessDeserializer::new(items))?;
        let count = values.len();
        <[T; 2]>::try_from(values)
            .map(PerDirection)
            .map_err(|_| de::Error::invalid_length(count, &self))
    }
}

//! The section `[intervals]`: its validation, and networks drawn from it.
//!
//! Drawn values are never negative. Each value is computed from a normal score; the file's correlations apply to these
//! scores. Before they are correlated, the scores of each field are a Latin hypercube
//! ([`stratified_scores`]): fewer draws are needed than with independent scores.

use std::collections::BTreeMap;

use toml::Table;

use super::{
    NetworkFile, check_field, overrides::twins, upgrade::current_name, value_at, value_at_mut,
};
use crate::{
    error::{NetworkError, field_error, refused},
    machine::inside::InsideNode,
    network::Network,
    parameter_interval::ParameterInterval,
    quantity::Quantity,
};
use flowcast_statistics::{linear_system::cholesky, resampling::stratified_scores};

impl Network {
    /// Value of a field, by the dotted name that `--set` uses. `*` stands for the first index of a list, and a machine
    /// without nodes has one group. `None` if the field is not set or is not a number.
    pub fn quantity(&self, field: &str) -> Option<Quantity> {
        match current_name(field) {
            "nic.bandwidth" => Some(Quantity::Rate(self.nic.rate())),
            "nic.gap_per_byte" => Some(Quantity::TimePerByte(self.nic.per_byte())),
            name if name.starts_with("machine.nodes.") => {
                let mut network = self.clone();
                network.machine.nodes = self.machine.groups();
                for group in &mut network.machine.nodes {
                    let InsideNode { latency, rate } = group.inside();
                    (group.intra_latency, group.intra_bandwidth) = (Some(latency), Some(rate));
                }
                quantity_in(&network.to_table(), &name.replace('*', "0"))
            }
            name => quantity_in(&self.to_table(), &name.replace('*', "0")),
        }
    }

    /// Returns the fields that have an interval and for which `matters` returns `true`, as they vary together.
    ///
    /// # Errors
    /// The correlations contradict each other.
    pub fn variation(&self, matters: &dyn Fn(&str) -> bool) -> Result<Variation<'_>, NetworkError> {
        let fields: Vec<(&str, &ParameterInterval)> = self
            .intervals
            .iter()
            .map(|(name, interval)| (name.as_str(), interval))
            .filter(|(name, _)| matters(name))
            .collect();
        let bare = Network {
            intervals: BTreeMap::new(),
            accuracy: Vec::new(),
            provenance: BTreeMap::new(),
            ..self.clone()
        };
        Ok(Variation {
            network: self,
            table: bare.to_table(),
            factor: cholesky(&correlations(&fields)).ok_or_else(contradiction)?,
            fields,
        })
    }

    /// Returns `draws` networks. Each has other values for the fields that have an interval and for which `matters` returns
    /// `true`; equal seeds give equal networks. The networks have no intervals, accuracy record or provenance. Empty if no
    /// such field has an interval.
    ///
    /// # Errors
    /// The file format rejects a drawn value, or the correlations contradict each other.
    pub fn drawn(
        &self,
        matters: &dyn Fn(&str) -> bool,
        draws: usize,
        seed: u64,
    ) -> Result<Vec<Network>, NetworkError> {
        let variation = self.variation(matters)?;
        if variation.fields.is_empty() {
            return Ok(Vec::new());
        }
        let scores = stratified_scores(variation.fields.len(), draws, seed);
        scores.iter().map(|scores| variation.at(scores)).collect()
    }
}

/// Uncertain fields of a network and their joint distribution.
pub struct Variation<'a> {
    network: &'a Network,
    table: Table,
    fields: Vec<(&'a str, &'a ParameterInterval)>,
    /// Cholesky factor of the fields' correlations.
    factor: Vec<Vec<f64>>,
}

impl Variation<'_> {
    /// Number of fields.
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Returns the network with one field at a normal score. Fields that are correlated with it follow.
    ///
    /// # Errors
    /// The file format rejects a value.
    pub fn along(&self, field: usize, score: f64) -> Result<Network, NetworkError> {
        let mut scores = vec![0.0; field];
        scores.push(score);
        self.at(&scores)
    }

    /// Returns the network at independent normal scores, one for each field. Fields at a score of 0, and those behind the
    /// last score, have the file's values.
    ///
    /// # Errors
    /// The file format rejects a value.
    pub fn at(&self, scores: &[f64]) -> Result<Network, NetworkError> {
        let mut table = self.table.clone();
        for ((name, interval), row) in self.fields.iter().zip(&self.factor) {
            let weighted = row.iter().zip(scores);
            let score = weighted.map(|(weight, score)| weight * score).sum();
            self.vary(&mut table, name, interval, score);
        }
        let file: NetworkFile = table.try_into().map_err(Box::new)?;
        Network::try_from(file)
    }

    fn vary(&self, table: &mut Table, name: &str, interval: &ParameterInterval, score: f64) {
        let Some(value) = quantity_in(table, name) else {
            return;
        };
        let drawn = interval.at(value.number(), score);
        put(table, name, value.with_number(drawn));
        // A field with its own interval does not follow another field.
        for twin in twins(name).filter(|twin| !self.network.intervals.contains_key(twin)) {
            let Some(before) = quantity_in(table, &twin) else {
                continue;
            };
            let after = match value {
                Quantity::Time(_) => (before.number() + drawn - value.number()).max(0.0),
                Quantity::TimePerByte(_) => before.number() * (value.number() / drawn),
                _ => before.number() * (drawn / value.number()),
            };
            // A field of 0, which is infinite for a rate, cannot be scaled.
            if after.is_finite() {
                put(table, &twin, before.with_number(after));
            }
        }
    }
}

fn correlations(fields: &[(&str, &ParameterInterval)]) -> Vec<Vec<f64>> {
    (0..fields.len())
        .map(|at: usize| {
            (0..fields.len())
                .map(|other: usize| match at == other {
                    true => 1.0,
                    false => given(&fields[at], &fields[other])
                        .or_else(|| given(&fields[other], &fields[at]))
                        .unwrap_or(0.0),
                })
                .collect()
        })
        .collect()
}

fn given(a: &(&str, &ParameterInterval), b: &(&str, &ParameterInterval)) -> Option<f64> {
    a.1.correlations.get(b.0).copied()
}

/// Checks that each interval contains its field's value, and that correlations refer to fields with intervals.
pub(crate) fn check(
    file: &Table,
    intervals: &BTreeMap<String, ParameterInterval>,
) -> Result<(), NetworkError> {
    intervals.iter().try_for_each(|(field, interval)| {
        check_field("intervals", field)?;
        check_one(file, field, interval)?;
        check_correlations(intervals, field, interval)
    })?;
    let all: Vec<(&str, &ParameterInterval)> = intervals
        .iter()
        .map(|(field, interval)| (field.as_str(), interval))
        .collect();
    cholesky(&correlations(&all))
        .map(drop)
        .ok_or_else(contradiction)
}

fn contradiction() -> NetworkError {
    field_error(
        "intervals",
        "found contradictory correlations, expected a positive definite correlation matrix".into(),
    )
}

fn check_one(file: &Table, field: &str, interval: &ParameterInterval) -> Result<(), NetworkError> {
    let ParameterInterval {
        low, high, level, ..
    } = interval;
    if !(*level > 0.0 && *level < 1.0) {
        return Err(refused(
            format!("intervals.{field}.level"),
            level,
            "a level above 0 and below 1",
        ));
    }
    let Some(value) = quantity_in(file, field) else {
        return Err(refused(
            format!("intervals.{field}"),
            "an interval of a field that is missing or not a number",
            "a numeric field of the file",
        ));
    };
    for (part, end) in [(".low", low), (".high", high)] {
        if end.kind() != value.kind() {
            return Err(refused(
                format!("intervals.{field}{part}"),
                format!("`{end}`"),
                &format!("{}, as in {field}", value.kind()),
            ));
        }
        if !end.number().is_finite() {
            return Err(refused(
                format!("intervals.{field}{part}"),
                format!("`{end}`"),
                "a finite number",
            ));
        }
    }
    if low.number() <= value.number() && value.number() <= high.number() {
        return Ok(());
    }
    let expected = format!("an interval that contains the value {value}");
    Err(refused(
        format!("intervals.{field}"),
        format!("{low} to {high}"),
        &expected,
    ))
}

fn check_correlations(
    intervals: &BTreeMap<String, ParameterInterval>,
    field: &str,
    interval: &ParameterInterval,
) -> Result<(), NetworkError> {
    for (other, correlation) in &interval.correlations {
        let at = format!("intervals.{field}.correlations.{other}");
        if other == field || !intervals.contains_key(other) {
            return Err(refused(
                at,
                "a correlation",
                "one with another field that has an interval",
            ));
        }
        if correlation.abs() >= 1.0 || !correlation.is_finite() {
            return Err(refused(at, correlation, "a number above -1 and below 1"));
        }
    }
    Ok(())
}

fn quantity_in(table: &Table, name: &str) -> Option<Quantity> {
    Quantity::of_value(value_at(table, name)?)
}

fn put(table: &mut Table, name: &str, quantity: Quantity) {
    if let Some(value) = value_at_mut(table, name) {
        *value = quantity.value_like(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::{Rate, Time};

    const FILE: &str = "schema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n\
                        [nic]\nlatency = \"10us\"\nbandwidth = \"100MB/s\"\nwire_rate = \"110MB/s\"\n";

    fn with(intervals: &str) -> Result<Network, NetworkError> {
        Network::from_toml(&format!("{FILE}[intervals]\n{intervals}"), &[])
    }

    fn every(_: &str) -> bool {
        true
    }

    #[test]
    fn draws_match_the_interval_and_wire_rates_follow() {
        let network =
            with("\"nic.bandwidth\" = { low = \"90MB/s\", high = \"105MB/s\", level = 0.9 }\n")
                .unwrap();
        let drawn = network.drawn(&every, 1000, 1).unwrap();
        let mut rates: Vec<f64> = drawn
            .iter()
            .map(|one| one.nic.rate().as_bytes_per_second() / 1e6)
            .collect();
        rates.sort_by(f64::total_cmp);
        assert!(
            (rates[50] - 90.0).abs() < 0.1 && (rates[950] - 105.0).abs() < 0.1,
            "{} {}",
            rates[50],
            rates[950]
        );
        assert!((rates[500] - 100.0).abs() < 0.1);
        for one in &drawn {
            let wire = one.nic.rate.given_wire().unwrap().as_bytes_per_second();
            assert!((wire / one.nic.rate().as_bytes_per_second() - 1.1).abs() < 1e-9);
        }
        assert_eq!(drawn, network.drawn(&every, 1000, 1).unwrap());
        assert_ne!(drawn, network.drawn(&every, 1000, 2).unwrap());
    }

    #[test]
    fn the_wire_rate_of_a_bus_follows_its_bandwidth() {
        let text = format!(
            "{FILE}[bus]\nbandwidth = \"100MB/s\"\nwire_rate = \"120MB/s\"\n\
             [intervals]\n\"bus.bandwidth\" = {{ low = \"90MB/s\", high = \"110MB/s\", level = 0.9 }}\n"
        );
        let network = Network::from_toml(&text, &[]).unwrap();
        for one in network.drawn(&every, 16, 1).unwrap() {
            let rate = one.bus.unwrap().rate;
            let wire = rate.given_wire().unwrap().as_bytes_per_second();
            let goodput = rate.goodput().as_bytes_per_second();
            assert!(goodput != 1e8 && (wire / goodput - 1.2).abs() < 1e-9);
        }
    }

    #[test]
    fn draws_of_a_latency_are_never_negative() {
        let network =
            with("\"nic.latency\" = { low = \"0us\", high = \"30us\", level = 0.9 }\n").unwrap();
        let drawn = network.drawn(&every, 64, 1).unwrap();
        let latencies = || drawn.iter().map(|one| one.nic.latency);
        assert_eq!(latencies().min(), Some(Time::ZERO));
        assert!(latencies().max().unwrap() > Time::from_micros(30.0));
    }

    #[test]
    fn correlated_fields_move_together() {
        let intervals = "\"nic.latency\" = { low = \"5us\", high = \"20us\", level = 0.9, correlations = { \"nic.bandwidth\" = 0.9 } }\n\
                         \"nic.bandwidth\" = { low = \"50MB/s\", high = \"200MB/s\", level = 0.9 }\n";
        let drawn = with(intervals).unwrap().drawn(&every, 400, 3).unwrap();
        let logs =
            |of: fn(&Network) -> f64| drawn.iter().map(|one| of(one).ln()).collect::<Vec<f64>>();
        let (x, y) = (
            logs(|one| one.nic.latency.as_nanos()),
            logs(|one| one.nic.rate().as_bytes_per_second()),
        );
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let product = |a: &[f64], b: &[f64]| {
            let (of_a, of_b) = (mean(a), mean(b));
            a.iter()
                .zip(b)
                .map(|(a, b)| (a - of_a) * (b - of_b))
                .sum::<f64>()
        };
        let found = product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt();
        assert!((found - 0.9).abs() < 0.05, "{found}");
    }

    #[test]
    fn contradictory_correlations_are_refused() {
        let both = |other: f64| {
            vec![
                vec![1.0, 0.9, 0.9],
                vec![0.9, 1.0, other],
                vec![0.9, other, 1.0],
            ]
        };
        assert!(cholesky(&both(0.9)).is_some() && cholesky(&both(-0.9)).is_none());
    }

    #[test]
    fn fields_without_influence_are_not_drawn() {
        let network =
            with("\"nic.latency\" = { low = \"5us\", high = \"20us\", level = 0.9 }\n").unwrap();
        assert_eq!(
            network.drawn(&|name| name != "nic.latency", 8, 1).unwrap(),
            []
        );
    }

    #[test]
    fn an_interval_has_the_unit_of_its_field_and_contains_its_value() {
        for (text, expected) in [
            (
                "\"nic.latency\" = { low = \"5MB/s\", high = \"20us\", level = 0.9 }",
                "intervals.nic.latency.low: found `5MB/s`, expected a time, as in nic.latency",
            ),
            (
                "\"nic.latency\" = { low = 5, high = \"20us\", level = 0.9 }",
                "expected a time",
            ),
            (
                "\"nic.latency\" = { low = \"11us\", high = \"20us\", level = 0.9 }",
                "found 11us to 20us, expected an interval that contains the value 10us",
            ),
            (
                "\"nic.gap_per_byte\" = { low = \"1ns/B\", high = \"2ns/B\", level = 0.9 }",
                "a field that is missing",
            ),
            (
                "\"point_to_point.rule\" = { low = 1, high = 2, level = 0.9 }",
                "or not a number",
            ),
            (
                "\"nic.latency\" = { low = \"5us\", high = \"20us\", level = 0.9, correlations = { \"nic.gap\" = 0.5 } }",
                "nic.gap: found a correlation",
            ),
            (
                "\"nic.latency\" = { low = \"5us\", high = \"soon\", level = 0.9 }",
                "a quantity with its unit",
            ),
        ] {
            let error = with(&format!("{text}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn setting_a_field_removes_its_interval() {
        let text = format!(
            "{FILE}[intervals]\n\"nic.latency\" = {{ low = \"5us\", high = \"20us\", level = 0.9 }}\n\
             \"nic.gap\" = {{ low = \"0us\", high = \"1us\", level = 0.9, correlations = {{ \"nic.latency\" = 0.5 }} }}\n"
        );
        let set = Network::from_toml(&text, &[("nic.latency".into(), "50us".into())]).unwrap();
        assert_eq!(
            (set.nic.latency, set.intervals.len()),
            (Time::from_micros(50.0), 1)
        );
        assert!(set.intervals["nic.gap"].correlations.is_empty());
        let other =
            Network::from_toml(&text, &[("nic.bandwidth".into(), "50MB/s".into())]).unwrap();
        assert_eq!(other.intervals.len(), 2);
    }

    #[test]
    fn an_interval_that_misses_the_value_is_widened_to_it() {
        let rate = Rate::from_bytes_per_second;
        let interval = ParameterInterval::around(rate(10.0), rate(11.0), rate(12.0), 0.9);
        assert_eq!(
            (interval.low, interval.high),
            (Quantity::Rate(rate(10.0)), Quantity::Rate(rate(12.0)))
        );
    }
}

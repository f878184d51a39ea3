//! The accuracy record of a network file: the errors of each model's predictions against measurements on this network.
//!
//! Errors are `(predicted - measured) / measured`. They are stored one by one with the names of the predicted cases. They
//! determine the width of a prediction's interval, and a case that was itself measured can be held out.

mod coverage;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::{Deserialize, Serialize};

use flowcast_units::{Bytes, named};

use crate::{
    error::{NetworkError, refused},
    sharing::model::{LIMITS, Model},
};
use flowcast_statistics::{StatsError, check, sample::quantile, two_way::TwoWay};

pub use coverage::Coverage;

/// Number of residuals that represent a distribution.
const QUANTILES: usize = 199;

/// Shares of cases for which an entry stores the largest error.
const SHARES: [&str; 3] = ["0.5", "0.9", "1"];

named! {
    /// Kind of predicted and measured case. The name is the plural, for messages.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum CaseKind {
        /// Whole runs of programs.
        Programs = "programs",
        /// Regions of programs, such as the sizes of a micro-benchmark.
        Regions = "regions of programs",
        /// Patterns, from the first start to the last end.
        Patterns = "patterns",
        /// Single flows of patterns.
        Flows = "flows",
    }
}

section! {
    /// Accuracy of a model's predictions.
    #[derive(Default)]
    pub struct Accuracy {
        /// Sharing model or `limits`; a variant may follow a slash.
        /// Default: required. Example: `"packet/openmpi"`.
        model: String,
        /// Subject of the predictions. Entries can be compared if their text, `judged` and `fitted` are equal.
        /// Default: required. Example: `"random patterns, in no fit"`.
        validated_on: String,
        /// Unit of the comparison: `programs` or `patterns` as a whole, `regions` of programs, or `flows` of patterns.
        /// Default: unknown. Example: `"flows"`.
        judged: Option<CaseKind>,
        /// `true` if parameters were fitted to the predicted measurements.
        /// Default: `false`. Example: `true`.
        fitted: bool | default,
        /// Smallest and largest message size. Results of patterns apply to programs whose messages are at least half and at most
        /// twice as large.
        /// Default: unknown. Example: `["2MB", "4MB"]`.
        messages: Option<[Bytes; 2]> [default],
        /// Number of predictions, at least 1; equal to the number of `errors`, if there are any.
        /// Default: required. Example: `57`.
        cases: u64,
        /// Mean of the absolute errors, as a fraction; the choice of the most accurate model ignores entries without it.
        /// Default: unknown. Example: `0.031`.
        mean: Option<f64>,
        /// Machine of the measurement.
        /// Default: unknown. Example: `"node17, 6.1.0"`.
        machine: String | default,
        /// Date of the measurement or prediction.
        /// Default: unknown. Example: `"2026-03-01"`.
        date: String | default,
        /// Disturbance of the measurement; predictions report it.
        /// Default: none. Example: `"other programs take 42 % of the processors"`.
        disturbed_by: Option<String> | default,
        /// Quantiles of the absolute errors, by fraction of the cases, from 0 to 1: `0.5` is the median, `1` the largest
        /// error.
        /// Default: none. Example: `{ "0.5" = 0.02, "1" = 0.12 }`.
        quantiles: BTreeMap<String, f64> [default],
        /// Signed errors, -1 or more, by name of the program or pattern: one error for it as a whole, or one for each of its
        /// flows or regions. Dots or slashes separate the parts of a name, the most general first.
        /// Default: none. Example: `{ "cg.S.4" = [-0.02] }`.
        errors: BTreeMap<String, Vec<f64>> | default,
    }
}

impl Accuracy {
    /// Creates an entry from signed errors, each above -1, by the name of the predicted case.
    ///
    /// # Errors
    /// There is no error, or an error is not finite.
    pub fn of_errors(
        model: &str,
        kind: CaseKind,
        validated_on: &str,
        errors: BTreeMap<String, Vec<f64>>,
    ) -> Result<Accuracy, StatsError> {
        let mut entry = Accuracy {
            model: model.to_owned(),
            validated_on: validated_on.to_owned(),
            judged: Some(kind),
            ..Accuracy::default()
        };
        entry.add(errors)?;
        Ok(entry)
    }

    /// Adds errors. They replace earlier errors of the same name.
    ///
    /// # Errors
    /// The same errors as [`Accuracy::of_errors`].
    pub fn add(&mut self, errors: BTreeMap<String, Vec<f64>>) -> Result<(), StatsError> {
        let tidied = errors
            .into_iter()
            .map(|(name, errors)| (name, errors.into_iter().map(tidy).collect()));
        self.errors.extend(tidied);
        let absolute: Vec<f64> = self
            .errors
            .values()
            .flatten()
            .map(|error| error.abs())
            .collect();
        check("mean error", &absolute, 1)?;
        self.cases = absolute.len() as u64;
        self.mean = Some(tidy(absolute.iter().sum::<f64>() / absolute.len() as f64));
        self.quantiles = SHARES
            .into_iter()
            .map(|share: &str| {
                Ok((
                    share.to_owned(),
                    tidy(quantile(&absolute, share.parse().expect("a number"))?),
                ))
            })
            .collect::<Result<_, StatsError>>()?;
        Ok(())
    }

    /// Name of the model without the part after a slash.
    pub fn base_model(&self) -> &str {
        self.model.split('/').next().unwrap_or_default()
    }

    /// Errors by name, without those of `held_out` and of names that continue it after a dot or a slash.
    pub(crate) fn errors_without<'a>(
        &'a self,
        held_out: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a str, &'a [f64])> {
        let named = self
            .errors
            .iter()
            .map(|(name, errors)| (name.as_str(), errors.as_slice()));
        named.filter(move |(name, _)| !held_out.is_some_and(|case| is_part_of(name, case)))
    }

    /// `true` if the entry applies to messages of this size. Entries about programs and their regions apply to all sizes.
    /// Other entries apply if they were validated on messages of half to twice the size.
    fn covers(&self, size: Bytes) -> bool {
        match (self.judged, self.messages) {
            (Some(CaseKind::Programs | CaseKind::Regions), _) => true,
            (_, Some([smallest, largest])) => {
                smallest.0 / 2 <= size.0 && size.0 <= largest.0.saturating_mul(2)
            }
            (_, None) => false,
        }
    }

    /// `true` if both entries are about the same cases, so that they can be compared.
    fn is_comparable(&self, other: &Accuracy) -> bool {
        (self.judged, self.fitted, &self.validated_on)
            == (other.judged, other.fitted, &other.validated_on)
    }
}

fn is_part_of(name: &str, whole: &str) -> bool {
    name.strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(PARTS))
}

/// Separators of the parts of a name.
const PARTS: [char; 2] = ['.', '/'];

/// Rounds to four decimals, which is more than the repetitions of a measurement agree on.
fn tidy(error: f64) -> f64 {
    // Adding 0 removes a negative zero.
    (error * 1e4).round() / 1e4 + 0.0
}

/// The whole accuracy record of the models on a network.
#[derive(Debug, Clone, Copy)]
pub struct AccuracyRecord<'a>(&'a [Accuracy]);

impl<'a> AccuracyRecord<'a> {
    /// Creates a record from entries in any order.
    pub fn new(entries: &'a [Accuracy]) -> AccuracyRecord<'a> {
        AccuracyRecord(entries)
    }

    /// Returns the entry of the most accurate model: the smallest mean absolute error among entries that were validated on
    /// the same cases, and the first of equals. If there are several sets of cases, the choice prefers cases that no
    /// parameter was fitted to, then the kind most like `wanted`, then the set on which most models were compared. If a
    /// message size is given, entries for other sizes are ignored. Returns `None` if nothing was validated.
    pub fn best(self, wanted: CaseKind, size: Option<Bytes>) -> Option<&'a Accuracy> {
        let speaking = self.0.iter().filter(|entry: &&Accuracy| {
            entry.mean.is_some() && size.is_none_or(|size| entry.covers(size))
        });
        let first = speaking.clone().min_by_key(|entry: &&Accuracy| {
            let alike = speaking.clone().filter(|other| other.is_comparable(entry));
            let models: BTreeSet<_> = alike.map(|other| &other.model).collect();
            (
                entry.fitted,
                distance(wanted, entry.judged),
                std::cmp::Reverse(models.len()),
            )
        })?;
        let alike = speaking.filter(|entry| entry.is_comparable(first));
        alike.min_by(|a, b| {
            a.mean
                .unwrap_or(f64::MAX)
                .total_cmp(&b.mean.unwrap_or(f64::MAX))
        })
    }

    /// Returns the entries of a model that store single errors and are most relevant to `wanted`. The first criterion is the
    /// kind of case. The second prefers `model` itself to its variants with another part after the slash. The third prefers
    /// cases outside fits to cases that parameters were fitted to. Empty if the model has no entry with single errors.
    pub fn by_model(self, model: &str, wanted: CaseKind) -> Vec<&'a Accuracy> {
        let base = model.split('/').next().unwrap_or_default();
        let known = self
            .0
            .iter()
            .filter(|entry| entry.base_model() == base && !entry.errors.is_empty());
        let ordered = known.map(|entry: &Accuracy| {
            let order = (
                distance(wanted, entry.judged),
                entry.model != model,
                entry.fitted,
            );
            (order, entry)
        });
        let nearest = ordered.clone().map(|(order, _)| order).min();
        ordered
            .filter(|(order, _)| Some(*order) == nearest)
            .map(|(_, entry)| entry)
            .collect()
    }

    /// `true` if there is no entry.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// `ln(measured / predicted)` of all errors except those of `held_out`. Cases with a predicted time of 0 have no residual.
pub fn residuals(entries: &[&Accuracy], held_out: Option<&str>) -> Vec<f64> {
    let errors = entries
        .iter()
        .flat_map(|entry| entry.errors_without(held_out))
        .flat_map(|(_, errors)| errors);
    errors
        .filter(|error| **error > -1.0)
        .map(|error| -error.ln_1p())
        .collect()
}

/// Accuracy of models for whole programs in laboratories, predicted from recordings made elsewhere. It stands in for
/// networks on which no program has been measured yet. `docs/evidence/programs.md` describes the programs and the method.
pub fn of_programs_in_laboratories() -> AccuracyRecord<'static> {
    #[derive(Deserialize)]
    struct Record {
        accuracy: Vec<Accuracy>,
    }
    static RECORD: LazyLock<Vec<Accuracy>> = LazyLock::new(|| {
        let record: Record =
            toml::from_str(include_str!("../../accuracy/programs.toml")).expect("a test reads it");
        record.accuracy
    });
    AccuracyRecord(&RECORD)
}

/// Estimates residuals for another program on another network, evenly spaced in probability. They come from the errors of
/// programs named `PROGRAM/NETWORK`, without those of `held_out`. If there are too few programs or networks, the plain
/// residuals are returned.
pub fn residuals_elsewhere(entries: &[&Accuracy], held_out: Option<&str>) -> Vec<f64> {
    let mut by_both = BTreeMap::new();
    for (name, errors) in entries
        .iter()
        .flat_map(|entry| entry.errors_without(held_out))
    {
        if let (Some(both), [error]) = (name.split_once('/'), errors)
            && *error > -1.0
        {
            by_both.insert(both, -error.ln_1p());
        }
    }
    TwoWay::new(&by_both).map_or_else(
        || residuals(entries, held_out),
        |spread| spread.quantiles(QUANTILES),
    )
}

/// Adds an entry to the entries of a network. Its errors are added to an entry of the same model on the same cases, if there
/// is one.
///
/// # Errors
/// Never fails for an entry that has errors.
pub fn record(entries: &mut Vec<Accuracy>, new: Accuracy) -> Result<(), StatsError> {
    let Some(known) = entries.iter_mut().find(|known: &&mut Accuracy| {
        known.model == new.model && known.is_comparable(&new) && !known.errors.is_empty()
    }) else {
        entries.push(new);
        return Ok(());
    };
    (known.machine, known.date) = (new.machine, new.date);
    known.disturbed_by = new.disturbed_by.or(known.disturbed_by.take());
    known.add(new.errors)
}

/// Distance between a validated kind of case and the requested kind; 0 is the closest.
fn distance(wanted: CaseKind, kind: Option<CaseKind>) -> usize {
    use CaseKind::{Flows, Patterns, Programs, Regions};
    let order = match wanted {
        Programs => [Programs, Regions, Patterns, Flows],
        Regions => [Regions, Programs, Patterns, Flows],
        Patterns => [Patterns, Flows, Programs, Regions],
        Flows => [Flows, Patterns, Regions, Programs],
    };
    order
        .iter()
        .position(|known| Some(*known) == kind)
        .unwrap_or(order.len())
}

/// Checks the entry at this index in the file.
pub(crate) fn check_entry(place: usize, entry: &Accuracy) -> Result<(), NetworkError> {
    let model = entry.base_model();
    if model != LIMITS && Model::named(model).is_err() {
        return Err(refused(
            format!("accuracy.{place}.model"),
            format!("`{model}`"),
            "limits or a sharing model",
        ));
    }
    if entry.cases == 0 {
        return Err(refused(format!("accuracy.{place}.cases"), 0, "at least 1"));
    }
    if let Some(name) = entry.quantiles.keys().find(|name| !is_share(name)) {
        return Err(refused(
            format!("accuracy.{place}.quantiles"),
            format!("`{name}`"),
            "fractions of cases from 0 to 1",
        ));
    }
    for (name, errors) in &entry.errors {
        if let Some(error) = errors
            .iter()
            .find(|error| !(error.is_finite() && **error >= -1.0))
        {
            return Err(refused(
                format!("accuracy.{place}.errors.{name}"),
                error,
                "(predicted - measured) / measured, at least -1",
            ));
        }
    }
    let errors: usize = entry.errors.values().map(Vec::len).sum();
    if errors > 0 && errors as u64 != entry.cases {
        return Err(refused(
            format!("accuracy.{place}.cases"),
            entry.cases,
            &format!("{errors}, the number of errors"),
        ));
    }
    Ok(())
}

fn is_share(name: &str) -> bool {
    name.parse()
        .is_ok_and(|share: f64| (0.0..=1.0).contains(&share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{network::Network, network_file::with_ledger};

    fn entry(model: &str, kind: CaseKind, validated_on: &str, error: f64) -> Accuracy {
        let errors = BTreeMap::from([("a".to_owned(), vec![error, -error])]);
        Accuracy::of_errors(model, kind, validated_on, errors).unwrap()
    }

    #[test]
    fn an_entry_summarises_its_errors_and_new_errors_of_a_name_replace_earlier_ones() {
        let errors = [("a", vec![0.1, -0.2]), ("b", vec![0.3])]
            .map(|(name, errors)| (name.to_owned(), errors));
        let mut entry =
            Accuracy::of_errors("fair", CaseKind::Flows, "x", BTreeMap::from(errors)).unwrap();
        assert_eq!((entry.cases, entry.mean), (3, Some(0.2)));
        assert_eq!(
            entry.quantiles,
            BTreeMap::from(
                [("0.5", 0.2), ("0.9", 0.28), ("1", 0.3)].map(|(share, at)| (share.to_owned(), at))
            )
        );
        entry
            .add(BTreeMap::from([("b".to_owned(), vec![0.6])]))
            .unwrap();
        assert_eq!(
            (entry.cases, entry.mean, entry.quantiles["1"]),
            (3, Some(0.3), 0.6)
        );
        assert!(Accuracy::of_errors("fair", CaseKind::Flows, "x", BTreeMap::new()).is_err());
    }

    #[test]
    fn a_held_out_name_is_left_out_with_all_of_its_parts() {
        let errors =
            ["cg.S.4", "cg.W.4", "cgx.S.4", "is.S.4"].map(|name| (name.to_owned(), vec![0.0]));
        let entry =
            Accuracy::of_errors("fair", CaseKind::Programs, "x", BTreeMap::from(errors)).unwrap();
        let names = |held_out| {
            entry
                .errors_without(held_out)
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Some("cg")), ["cgx.S.4", "is.S.4"]);
        assert_eq!(names(Some("cg.S.4")), ["cg.W.4", "cgx.S.4", "is.S.4"]);
        assert_eq!(names(None).len(), 4);
    }

    #[test]
    fn the_best_model_has_the_smallest_error_on_measurements_in_no_fit() {
        let mut network = crate::builtin::network("gige-tcp").unwrap();
        assert!(
            network
                .accuracy_record()
                .best(CaseKind::Programs, None)
                .is_none()
        );
        let seen = Accuracy {
            fitted: true,
            ..entry("fair", CaseKind::Regions, "regions", 0.001)
        };
        network.accuracy = vec![
            seen,
            entry("fair", CaseKind::Flows, "random", 0.1),
            entry("packet", CaseKind::Flows, "random", 0.02),
            entry("closed-loop/transient", CaseKind::Flows, "random", 0.02),
            entry("limits/openmpi", CaseKind::Flows, "others", 0.01),
        ];
        let best = |network: &Network, wanted| {
            network
                .accuracy_record()
                .best(wanted, None)
                .map(|entry| entry.model.clone())
        };
        assert_eq!(
            best(&network, CaseKind::Programs),
            Some("packet".to_owned())
        );
        network
            .accuracy
            .push(entry("limits/openmpi", CaseKind::Programs, "NAS", 0.2));
        assert_eq!(
            best(&network, CaseKind::Programs),
            Some("limits/openmpi".to_owned())
        );
        assert_eq!(
            best(&network, CaseKind::Patterns),
            Some("packet".to_owned())
        );
        assert_eq!(
            Network::from_toml(&network.to_toml(), &[]).unwrap(),
            network
        );
    }

    #[test]
    fn validation_on_other_sizes_does_not_apply_to_messages() {
        let of_sizes = |model: &str, sizes: [u64; 2], error: f64| Accuracy {
            messages: Some(sizes.map(Bytes)),
            ..entry(model, CaseKind::Flows, &format!("{sizes:?}"), error)
        };
        let mut all = vec![
            of_sizes("closed-loop", [2_000_000, 4_000_000], 0.007),
            of_sizes("packet", [2_000_000, 4_000_000], 0.01),
            of_sizes("closed-loop", [1000, 500_000], 0.5),
            of_sizes("packet", [1000, 500_000], 0.02),
        ];
        let best = |all: &[Accuracy], size| {
            AccuracyRecord::new(all)
                .best(CaseKind::Programs, Some(Bytes(size)))
                .map(|entry| entry.model.clone())
        };
        assert_eq!(best(&all, 3_000_000), Some("closed-loop".to_owned()));
        assert_eq!(best(&all, 20_000), Some("packet".to_owned()));
        assert_eq!(best(&all, 100), None);
        all.push(entry("fair", CaseKind::Programs, "NAS", 0.3));
        assert_eq!(best(&all, 100), Some("fair".to_owned()));
        all = vec![entry("fair", CaseKind::Flows, "unknown sizes", 0.01)];
        assert_eq!(best(&all, 20_000), None);
    }

    #[test]
    fn the_errors_of_a_model_come_from_the_closest_entry() {
        let mut network = crate::builtin::network("gige-tcp").unwrap();
        network.accuracy = vec![
            entry("packet", CaseKind::Flows, "random", 0.1),
            entry("packet/openmpi", CaseKind::Programs, "NAS", 0.02),
            entry("packet/formula", CaseKind::Programs, "NAS", 0.02),
        ];
        let of = |model, wanted| {
            network
                .accuracy_record()
                .by_model(model, wanted)
                .iter()
                .map(|entry| &*entry.model)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("packet/openmpi", CaseKind::Programs), ["packet/openmpi"]);
        assert_eq!(
            of("packet/mpich", CaseKind::Programs),
            ["packet/openmpi", "packet/formula"]
        );
        assert_eq!(of("packet", CaseKind::Flows), ["packet"]);
        assert_eq!(of("fair", CaseKind::Flows), [""; 0]);
    }

    #[test]
    fn writing_an_accuracy_record_keeps_the_comments_of_the_file() {
        let text = "# mine\nschema = \"flowcast/network/2\"\nname = \"x\"\n[point_to_point]\nrule = \"hockney\"\n[nic]\n\
                    latency = \"1us\" # as measured\nbandwidth = \"1GB/s\"\n[[accuracy]]\nmodel = \"fair\"\n\
                    validated_on = \"x\"\ncases = 1\n[provenance]\nhost = \"a\"\n";
        let mut entries = Network::from_toml(text, &[]).unwrap().accuracy;
        record(&mut entries, entry("fair", CaseKind::Flows, "x", 0.1)).unwrap();
        record(&mut entries, entry("fair", CaseKind::Flows, "x", 0.2)).unwrap();
        let written = with_ledger(text, &entries).unwrap();
        assert!(
            written.contains("# mine\n") && written.contains("latency = \"1us\" # as measured\n"),
            "{written}"
        );
        let read = Network::from_toml(&written, &[]).unwrap();
        assert_eq!(
            (
                read.accuracy.len(),
                read.accuracy[1].mean,
                &*read.provenance["host"]
            ),
            (2, Some(0.2), "a")
        );
    }
}

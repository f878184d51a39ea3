//! Grid of a study: networks, mappings and the values of fields, and all combinations of them in a fixed order.

use flowcast_network::{
    network::{Network, NetworkError},
    quantity::Quantity,
};
use thiserror::Error;

/// Largest number of combinations; more are treated as a mistake.
const MOST_SETS: usize = 10_000_000;

/// Short names of the fields of the interface, which are set most often.
pub const SHORT_NAMES: [&str; 5] = ["latency", "bandwidth", "overhead", "gap", "gap_per_byte"];

/// Name of the field in network files.
pub fn full_name(key: &str) -> String {
    if SHORT_NAMES.contains(&key) {
        format!("nic.{key}")
    } else {
        key.to_owned()
    }
}

/// Reason why there is no grid.
#[derive(Debug, Error)]
pub enum GridError {
    /// Invalid text: not a field with values, a name that cannot be a column, or texts that do not fit together.
    #[error("{option}: found {found}, expected {expected}")]
    Wrong {
        /// The option and its text, such as `--grid latency=5us..1us:2`; only the option if the error concerns all its
        /// texts.
        option: String,
        /// The text that was found, as given.
        found: String,
        /// Texts that the option accepts.
        expected: String,
    },
    /// A value that the network rejects.
    #[error("--grid {grid}: {source}")]
    Network {
        /// Text of the field and its values.
        grid: String,
        /// Error of the network.
        source: NetworkError,
    },
}

impl GridError {
    fn new(grid: &str, found: impl Into<String>, expected: impl Into<String>) -> GridError {
        GridError::Wrong {
            option: format!("--grid {grid}").trim_end().to_owned(),
            found: found.into(),
            expected: expected.into(),
        }
    }
}

/// Found and expected text.
type GridFault = (String, String);

/// A varied field, network or mapping, and its values.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The text as given, with the full name of the field.
    pub text: String,
    /// The field, as `--set` names it, or `network` or `mapping`.
    pub key: String,
    /// Name of the column in results: the field, with the unit of its values.
    pub column: String,
    varies: Varies,
    values: Vec<GridValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Varies {
    Network,
    Mapping,
    Field,
}

#[derive(Debug, Clone)]
struct GridValue {
    /// Value in base units, as results show it.
    shown: String,
    /// Value with its unit, as `--set` takes it.
    set: String,
}

impl Axis {
    /// Parses `KEY=FROM..TO:COUNT[:log]` or `KEY=v1,v2,v3`.
    fn parse(text: &str) -> Result<Axis, GridError> {
        let Some((key, values)) = text.split_once('=') else {
            let expected = "KEY=FROM..TO:COUNT, KEY=FROM..TO:COUNT:log or KEY=v1,v2,v3";
            return Err(GridError::new("", format!("`{text}`"), expected));
        };
        let key = full_name(key.trim());
        let (suffix, found) = match values.split_once("..") {
            Some((from, rest)) => range(from, rest),
            None => list(values),
        }
        .map_err(|(found, expected)| GridError::new(text, found, expected))?;
        let column = format!("{key}{suffix}");
        Ok(Axis {
            text: format!("{key}={}", values.trim()),
            key,
            column,
            varies: Varies::Field,
            values: found,
        })
    }

    /// Axis of networks or mappings by name; `None` if there is only one.
    fn named(varies: Varies, names: &[&str]) -> Result<Option<Axis>, GridError> {
        if names.len() < 2 {
            return Ok(None);
        }
        let key = if varies == Varies::Network {
            "network"
        } else {
            "mapping"
        };
        for (index, name) in names.iter().enumerate() {
            let (found, expected) = if name.contains([',', '"', '\n']) {
                (
                    "a comma or a quote in a name",
                    "a name that a column of CSV can hold",
                )
            } else if names[..index].contains(name) {
                ("the name twice", "each name once")
            } else {
                continue;
            };
            return Err(GridError::Wrong {
                option: format!("--{key} {name}"),
                found: found.to_owned(),
                expected: expected.to_owned(),
            });
        }
        let values = names
            .iter()
            .map(|name: &&str| GridValue {
                shown: (*name).to_owned(),
                set: String::new(),
            })
            .collect();
        let text = format!("{key}={}", names.join(","));
        Ok(Some(Axis {
            text,
            key: key.to_owned(),
            column: key.to_owned(),
            varies,
            values,
        }))
    }

    /// Number of values on the axis, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a field has a value at least")]
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

/// Suffix of the column's name, and the values.
type GridValues = (&'static str, Vec<GridValue>);

fn list(values: &str) -> Result<GridValues, GridFault> {
    let texts: Vec<&str> = values.split(',').map(str::trim).collect();
    if texts
        .iter()
        .any(|text| text.is_empty() || text.contains('"'))
    {
        return Err(fault(
            "an empty or quoted value",
            "values separated by commas, such as 1us,5us",
        ));
    }
    let read: Option<Vec<Quantity>> = texts.iter().map(|text| quantity(text)).collect();
    Ok(
        match read.filter(|read| read.iter().all(|one| one.kind() == read[0].kind())) {
            Some(read) => (
                suffix(read[0]),
                read.iter().map(|one| value(*one, one.number())).collect(),
            ),
            None => (
                "",
                texts
                    .iter()
                    .map(|text| GridValue {
                        shown: (*text).to_owned(),
                        set: (*text).to_owned(),
                    })
                    .collect(),
            ),
        },
    )
}

fn range(from: &str, rest: &str) -> Result<GridValues, GridFault> {
    let expected = "FROM..TO:COUNT or FROM..TO:COUNT:log, such as 1us..100us:20";
    let parts: Vec<&str> = rest.split(':').map(str::trim).collect();
    let (to, count, log) = match parts[..] {
        [to, count] => (to, count, false),
        [to, count, "log"] => (to, count, true),
        _ => return Err(fault(format!("`{from}..{rest}`"), expected)),
    };
    let ends = quantity(from)
        .zip(quantity(to))
        .filter(|(from, to)| from.kind() == to.kind());
    let Some((kind, to)) = ends else {
        let expected = "two quantities of the same kind, each with its unit, such as 1us..100us:20";
        return Err(fault(format!("`{rest}`"), expected));
    };
    let (from, to) = (kind.number(), to.number());
    let count = match count.parse::<usize>() {
        Ok(count) if (2..=MOST_SETS).contains(&count) => count,
        _ => {
            return Err(fault(
                format!("the count `{count}`"),
                format!("a whole number from 2 to {MOST_SETS}"),
            ));
        }
    };
    if from >= to {
        return Err(fault("an empty range", "FROM below TO"));
    }
    if log && from <= 0.0 {
        return Err(fault(
            "a range from 0",
            "FROM above 0 for steps of equal ratio (log)",
        ));
    }
    Ok((
        suffix(kind),
        (0..count)
            .map(|index| {
                value(
                    kind,
                    match index as f64 / (count - 1) as f64 {
                        0.0 => from,
                        1.0 => to,
                        part if log => six_digits(from * (to / from).powf(part)),
                        part => six_digits(from + (to - from) * part),
                    },
                )
            })
            .collect(),
    ))
}

fn fault(found: impl Into<String>, expected: impl Into<String>) -> GridFault {
    (found.into(), expected.into())
}

/// Rounds to six digits, so that points between the ends of a range stay readable.
fn six_digits(value: f64) -> f64 {
    format!("{value:.5e}")
        .parse()
        .expect("a number that was written as one")
}

fn quantity(text: &str) -> Option<Quantity> {
    Quantity::parse(text).filter(|quantity| quantity.number().is_finite())
}

/// Suffix of the name of a column.
fn suffix(kind: Quantity) -> &'static str {
    match kind {
        Quantity::Time(_) => "_s",
        Quantity::Rate(_) => "_bytes_per_s",
        Quantity::TimePerByte(_) => "_s_per_byte",
        Quantity::Size(_) => "_bytes",
        Quantity::Number(_) => "",
    }
}

/// Converts a number, as [`Quantity::number`] counts it, to base units.
fn value(kind: Quantity, number: f64) -> GridValue {
    let (shown, unit) = match kind {
        Quantity::Time(_) => (number / 1e9, "s"),
        Quantity::Rate(_) => (number, "B/s"),
        Quantity::TimePerByte(_) => (number / 1e9, "s/B"),
        Quantity::Size(_) => (number.round(), "B"),
        Quantity::Number(_) => (number, ""),
    };
    GridValue {
        shown: shown.to_string(),
        set: format!("{shown}{unit}"),
    }
}

/// All combinations of values. The last field varies fastest.
#[derive(Debug, Clone)]
pub struct ParameterGrid {
    axes: Vec<Axis>,
    sets: usize,
}

impl ParameterGrid {
    /// Creates the grid of networks, then mappings by name, then texts `KEY=FROM..TO:COUNT[:log]` or `KEY=v1,v2,v3`. Every
    /// value is tried on every network. A single network or mapping is not an axis.
    ///
    /// # Errors
    /// A text of another form, a value that a network rejects, a name or a field twice, too many combinations, or nothing to
    /// vary.
    pub fn new(
        networks: &[Network],
        mappings: &[String],
        texts: &[String],
    ) -> Result<ParameterGrid, GridError> {
        let fields: Vec<Axis> = texts
            .iter()
            .map(|text| Axis::parse(text))
            .collect::<Result<_, _>>()?;
        refuse_twins(&fields)?;
        for (axis, text) in fields.iter().zip(texts) {
            for (value, network) in axis
                .values
                .iter()
                .flat_map(|value| networks.iter().map(move |one| (value, one)))
            {
                let tried = network.with_overrides(&[(axis.key.clone(), value.set.clone())]);
                tried.map_err(|source| GridError::Network {
                    grid: text.clone(),
                    source,
                })?;
            }
        }
        let networks: Vec<&str> = networks
            .iter()
            .map(|network| network.name.as_str())
            .collect();
        let mappings: Vec<&str> = mappings.iter().map(String::as_str).collect();
        let named = [
            Axis::named(Varies::Network, &networks)?,
            Axis::named(Varies::Mapping, &mappings)?,
        ];
        let axes: Vec<Axis> = named.into_iter().flatten().chain(fields).collect();
        if axes.is_empty() {
            return Err(GridError::new(
                "",
                "nothing to vary",
                "KEY=VALUES, or several of --network or --mapping",
            ));
        }
        let product = axes
            .iter()
            .try_fold(1usize, |product, axis| product.checked_mul(axis.len()));
        match product.filter(|sets| *sets <= MOST_SETS) {
            Some(sets) => Ok(ParameterGrid { axes, sets }),
            None => Err(GridError::new(
                "",
                format!("more than {MOST_SETS} combinations"),
                "fewer",
            )),
        }
    }

    /// Number of combinations, at most 10 million.
    #[allow(clippy::len_without_is_empty, reason = "there is a set at least")]
    pub fn len(&self) -> usize {
        self.sets
    }

    /// The axes, in the order of the columns.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Index of the value that a set has on each axis.
    pub fn positions(&self, set: usize) -> Vec<usize> {
        let mut rest = set;
        let mut positions: Vec<usize> = Vec::new();
        for axis in self.axes.iter().rev() {
            positions.push(rest % axis.len());
            rest /= axis.len();
        }
        positions.reverse();
        positions
    }

    /// Values of a set, as results show them.
    pub fn shown(&self, set: usize) -> impl Iterator<Item = &str> {
        let positions = self.positions(set);
        self.axes
            .iter()
            .zip(positions)
            .map(|(axis, at)| axis.values[at].shown.as_str())
    }

    /// The network of a set: one of `networks` with the set's values.
    ///
    /// # Errors
    /// The values of several fields together do not make a valid network.
    pub fn network(&self, networks: &[Network], set: usize) -> Result<Network, NetworkError> {
        let positions = self.positions(set);
        let pairs = self
            .axes
            .iter()
            .zip(positions)
            .filter(|(axis, _)| axis.varies == Varies::Field);
        let overrides: Vec<_> = pairs
            .map(|(axis, at)| (axis.key.clone(), axis.values[at].set.clone()))
            .collect();
        networks[self.index(Varies::Network, set)].with_overrides(&overrides)
    }

    /// Index of the mapping that a set has.
    pub fn mapping(&self, set: usize) -> usize {
        self.index(Varies::Mapping, set)
    }

    fn index(&self, varies: Varies, set: usize) -> usize {
        let axis = self.axes.iter().position(|axis| axis.varies == varies);
        axis.map_or(0, |axis| self.positions(set)[axis])
    }
}

/// Rejects a field that occurs twice, and two fields of which one replaces the other.
fn refuse_twins(axes: &[Axis]) -> Result<(), GridError> {
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index]
            .iter()
            .any(|before| field(before) == field(axis))
        {
            return Err(GridError::new(
                &axis.text,
                "the field twice",
                "each field once",
            ));
        }
    }
    Ok(())
}

fn field(axis: &Axis) -> String {
    match axis.key.as_str() {
        "nic.gap_per_byte" => "nic.bandwidth".to_owned(),
        key => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(
        network: &Network,
        mappings: &[&str],
        texts: &[&str],
    ) -> Result<ParameterGrid, GridError> {
        let [mappings, texts] = [mappings, texts]
            .map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        ParameterGrid::new(std::slice::from_ref(network), &mappings, &texts)
    }

    fn shown(text: &str) -> Vec<String> {
        Axis::parse(text)
            .unwrap()
            .values
            .into_iter()
            .map(|value| value.shown)
            .collect()
    }

    fn error(text: &str) -> String {
        Axis::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn ranges_hold_both_ends_and_equal_steps_or_ratios() {
        assert_eq!(
            shown("latency=1us..2us:3"),
            ["0.000001", "0.0000015", "0.000002"]
        );
        assert_eq!(
            shown("bandwidth=10MB/s..1GB/s:3:log"),
            ["10000000", "100000000", "1000000000"]
        );
        assert_eq!(shown("machine.buses=0..4:3"), ["0", "2", "4"]);
        assert_eq!(
            shown("point_to_point.rendezvous_from=1KiB..4KiB:2"),
            ["1024", "4096"]
        );
        assert_eq!(
            shown("gap_per_byte=1ns/B..2ns/B:2"),
            ["0.000000001", "0.000000002"]
        );
    }

    #[test]
    fn lists_of_one_kind_have_a_unit_in_their_column_and_others_stay_unchanged() {
        let axis = Axis::parse("latency=1us, 2ms").unwrap();
        assert_eq!(
            (axis.key.as_str(), axis.column.as_str()),
            ("nic.latency", "nic.latency_s")
        );
        assert_eq!(shown("latency=1us, 2ms"), ["0.000001", "0.002"]);
        let axis = Axis::parse("point_to_point.rule=hockney,dimemas").unwrap();
        assert_eq!(axis.column, "point_to_point.rule");
        assert_eq!(axis.values[1].set, "dimemas");
    }

    #[test]
    fn values_reach_the_network_as_given() {
        let network = flowcast_network::builtin::network("gige-tcp").unwrap();
        let grid = new(&network, &[], &["latency=6.2us,4.7us", "gap=1ns..3ns:3"]).unwrap();
        assert_eq!(grid.len(), 6);
        assert_eq!(grid.positions(4), [1, 1]);
        let fourth = grid.network(&[network], 4).unwrap();
        assert_eq!(fourth.nic.latency.as_nanos(), 4700.0);
        assert_eq!(fourth.nic.gap.as_nanos(), 2.0);
    }

    #[test]
    fn networks_and_mappings_change_slower_than_fields() {
        let networks =
            ["gige-tcp", "gige-lam"].map(|name| flowcast_network::builtin::network(name).unwrap());
        let mappings = ["fill", "round-robin"].map(str::to_owned);
        let grid =
            ParameterGrid::new(&networks, &mappings, &["latency=1us,2us,3us".to_owned()]).unwrap();
        assert_eq!(grid.len(), 12);
        assert_eq!(
            grid.shown(7).collect::<Vec<_>>(),
            ["gige-lam", "fill", "0.000002"]
        );
        let network = grid.network(&networks, 7).unwrap();
        assert_eq!(
            (network.name.as_str(), grid.mapping(7), grid.mapping(9)),
            ("gige-lam", 0, 1)
        );
    }

    #[test]
    fn wrong_grids_are_refused_by_name() {
        assert!(error("latency").contains("expected KEY=FROM..TO:COUNT"));
        assert!(error("latency=5us..1us:3").contains("found an empty range"));
        assert!(error("latency=1us..5us:1").contains("found the count `1`"));
        assert!(error("latency=1us..5MB/s:3").contains("two quantities of the same kind"));
        assert!(error("latency=0us..5us:3:log").contains("expected FROM above 0"));
        assert!(error("latency=1us..5us").contains("expected FROM..TO:COUNT"));
        assert!(error("latency=").contains("found an empty or quoted value"));
        let network = flowcast_network::builtin::network("gige-tcp").unwrap();
        let refused = |texts: &[&str]| new(&network, &[], texts).unwrap_err().to_string();
        assert!(refused(&["latency=1..5:2"]).contains("--grid latency=1..5:2"));
        assert!(refused(&["nic.colour=1us..5us:2"]).contains("nic.colour"));
        assert!(refused(&["latency=1us,2us", "nic.latency=3us"]).contains("found the field twice"));
        assert!(
            refused(&["bandwidth=1MB/s", "gap_per_byte=1ns/B"]).contains("found the field twice")
        );
        assert!(refused(&[]).contains("found nothing to vary"));
        let mappings = |names: &[&str]| new(&network, names, &[]).unwrap_err().to_string();
        assert!(mappings(&["fill", "fill"]).contains("--mapping fill: found the name twice"));
        assert!(mappings(&["fill", "a,b"]).contains("--mapping a,b: found a comma"));
    }
}

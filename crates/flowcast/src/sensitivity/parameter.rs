//! The varied field, in the unit in which times grow linearly with it.

use flowcast_graph::selector::Selector;
use flowcast_network::{
    network::{Network, NetworkError},
    quantity::Quantity,
};
use flowcast_units::TimePerByte;

use crate::{Error, study::grid::full_name};

/// A field of the network and the range of its values. As a number it counts nanoseconds, nanoseconds per byte or bytes, or
/// has no unit. For a rate and for a speed, it is the inverse.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    field: String,
    /// Selected costs that are not a field of the network.
    selector: Option<Selector>,
    kind: Quantity,
    is_inverse: bool,
    from: f64,
    to: f64,
}

impl Parameter {
    /// Creates the parameter for a field, as `--set` names it, or for a [`Selector`], from one value to a larger one. Both
    /// values are of the kind that the field takes.
    ///
    /// # Errors
    /// [`Error::Option`] for an invalid selector, values of different kinds, an empty range, or a rate or speed that begins
    /// at 0.
    pub fn new(field: &str, from: Quantity, to: Quantity) -> Result<Parameter, Error> {
        if from.kind() != to.kind() {
            let found = format!("{} and {}", from.kind(), to.kind());
            return Err(Error::option(
                "--range",
                found,
                "two values of the same kind, each with its unit",
            ));
        }
        if from.number() >= to.number() {
            return Err(Error::option(
                "--range",
                format!("{from}..{to}"),
                "FROM below TO",
            ));
        }
        let is_speed = field
            .rsplit('.')
            .next()
            .is_some_and(|name| name.ends_with("speed"));
        let is_inverse = matches!(from, Quantity::Rate(_)) || is_speed;
        if is_inverse && from.number() <= 0.0 {
            return Err(Error::option(
                "--range",
                format!("{from}..{to}"),
                "FROM above 0, which would mean infinitely fast",
            ));
        }
        let selector = Selector::is_selector(field)
            .then(|| Selector::parse(field))
            .transpose()?;
        if let Some(selector) = selector
            .as_ref()
            .filter(|selector| selector.number(from).is_none())
        {
            let found = format!("{} for {selector}", from.kind());
            return Err(Error::option(
                "--range",
                found,
                "a time for latency, overhead and gap, a rate for bandwidth, a factor for compute and collective",
            ));
        }
        let field = selector
            .as_ref()
            .map_or(field.to_owned(), Selector::to_string);
        let mut parameter = Parameter {
            field,
            selector,
            kind: from,
            is_inverse,
            from: 0.0,
            to: 0.0,
        };
        let ends = [parameter.number(from), parameter.number(to)];
        (parameter.from, parameter.to) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        Ok(parameter)
    }

    /// Parses a field by its name or its short name, or a selector, and its range as text, such as `0us..1ms`.
    ///
    /// # Errors
    /// [`Error::Option`] for a range of another form; errors of [`Parameter::new`].
    pub fn parse(name: &str, range: &str) -> Result<Parameter, Error> {
        let ends = range.split_once("..").and_then(|(from, to)| {
            Some((Quantity::parse(from.trim())?, Quantity::parse(to.trim())?))
        });
        let (from, to) = ends.ok_or_else(|| {
            let expected = "FROM..TO, each with its unit, such as 0us..1ms";
            Error::option("--range", format!("`{range}`"), expected)
        })?;
        let name = name.trim();
        let field = if Selector::is_selector(name) {
            name.to_owned()
        } else {
            full_name(name)
        };
        Parameter::new(&field, from, to)
    }

    /// Name of the field, as `--set` names it.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The selected costs, if they are not a field of the network.
    pub fn selector(&self) -> Option<&Selector> {
        self.selector.as_ref()
    }

    /// Smallest and largest value.
    pub fn range(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    /// `true` if the parameter is the inverse of the field.
    pub fn is_inverse(&self) -> bool {
        self.is_inverse
    }

    /// `true` for a time, `false` for a time per byte, a size or a number.
    pub fn is_time(&self) -> bool {
        matches!(self.kind, Quantity::Time(_))
    }

    /// Unit of [`Parameter::in_unit`]: `s`, `s/B`, `B`, or none.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Quantity::Time(_) => "s",
            Quantity::Rate(_) | Quantity::TimePerByte(_) => "s/B",
            Quantity::Size(_) => "B",
            Quantity::Number(_) => "",
        }
    }

    /// A value of the parameter in base units.
    pub fn in_unit(&self, at: f64) -> f64 {
        if self.in_nanos() { at / 1e9 } else { at }
    }

    /// Slope of the makespan in seconds per [`Parameter::unit`]. `slope` is in nanoseconds per unit of the parameter.
    pub fn slope_in_unit(&self, slope: f64) -> f64 {
        if self.in_nanos() { slope } else { slope / 1e9 }
    }

    fn in_nanos(&self) -> bool {
        matches!(
            self.kind,
            Quantity::Time(_) | Quantity::Rate(_) | Quantity::TimePerByte(_)
        )
    }

    /// Value of the parameter for a value of the field.
    pub(super) fn number(&self, value: Quantity) -> f64 {
        match value {
            Quantity::Rate(rate) => TimePerByte::from_rate(rate).as_nanos(),
            value if self.is_inverse => 1.0 / value.number(),
            value => value.number(),
        }
    }

    /// Value of the field for a value of the parameter.
    pub fn value(&self, at: f64) -> Quantity {
        match self.kind {
            Quantity::Rate(_) => TimePerByte::from_nanos(at).rate().into(),
            kind => kind.with_number(if self.is_inverse { 1.0 / at } else { at }),
        }
    }

    /// A value as `--set` takes it; for a rate, its inverse.
    pub fn text(&self, at: f64) -> String {
        match self.kind {
            Quantity::Rate(_) => TimePerByte::from_nanos(at).to_string(),
            _ => self.value(at).to_string(),
        }
    }

    /// The network with a value of the field.
    pub(super) fn network(&self, network: &Network, at: f64) -> Result<Network, NetworkError> {
        network.with_overrides(&[(self.field.clone(), self.text(at))])
    }

    /// `true` if the field accepts whole numbers only.
    pub(super) fn is_whole(&self, network: &Network) -> bool {
        let whole = self.from.ceil();
        let is_number =
            matches!(self.kind, Quantity::Number(_) | Quantity::Size(_)) && !self.is_inverse;
        let between = whole + 0.5;
        is_number
            && (matches!(self.kind, Quantity::Size(_))
                || self.network(network, whole).is_ok() && self.network(network, between).is_err())
    }
}

//! The lab file (TOML): specification of a virtual cluster.
//!
//! Rates are wire rates: they include the 38 bytes that Ethernet adds to each frame (preamble, header, check sequence, gap).
//! A rate of 1 Gbit/s therefore delivers 941 Mbit/s of payload, as on real Gigabit Ethernet.

mod serialised;

use std::fmt;

use flowcast_network::sharing::protocol::{LONGEST_TIMEOUT, SHORTEST_TIMEOUT};
use flowcast_units::{Bytes, Node, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::lab::{
    cable::{CableSpec, DirectionSpec},
    error::{LabError, require},
    names::{self, check_name},
};
use serialised::{rate_text, serialize_rate};

/// Schema that this version reads and writes.
pub const SCHEMA: &str = "flowcast/lab/1";

/// Specification of a virtual cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabSpec {
    /// Schema of the file, always [`SCHEMA`].
    pub schema: String,
    /// Short name, which is the default name of the lab.
    pub name: String,
    /// Description in one line.
    #[serde(default)]
    pub title: String,
    /// Factor by which the network is slower than the rates and delays of the file say, so that computation takes a smaller
    /// part of a program's time; 1 to 1000.
    #[serde(default = "real_time", skip_serializing_if = "is_real_time")]
    pub slow_motion: f64,
    /// Numbers of nodes and racks.
    pub cluster: ClusterSpec,
    /// Network interfaces of each node.
    pub nic: NicSpec,
    /// Links that join racks; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backbone: Option<BackboneSpec>,
    /// Settings of TCP on all nodes.
    #[serde(default)]
    pub tcp: TcpSpec,
    /// Capacities of the queues in nodes and switch.
    #[serde(default)]
    pub queues: QueueSpec,
    /// Link emulator in user space that joins two nodes, instead of token buckets and a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable: Option<CableSpec>,
}

/// Numbers of nodes, ranks and racks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSpec {
    /// Number of nodes, 1 to 500.
    pub nodes: u32,
    /// Number of processes that an MPI launcher starts on each node.
    #[serde(default = "one")]
    pub ranks_per_node: u32,
    /// Number of racks. Consecutive nodes form racks of equal size.
    #[serde(default = "one")]
    pub racks: u32,
}

/// Network interfaces of each node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicSpec {
    /// Wire rate of each rail, in each direction.
    pub bandwidth: RailRates,
    /// Capacity that both directions share.
    #[serde(default)]
    pub duplex: Duplex,
    /// Rate of the bus as a multiple of the rate of all rails together, for `duplex = "bus"`.
    #[serde(default = "usual_bus_share")]
    pub bus_share: f64,
    /// Order of access to the bus, for `duplex = "bus"`.
    #[serde(default)]
    pub bus_order: BusOrder,
    /// Largest IP packet, 576 B to 65 kB; 1500 B if absent.
    #[serde(default = "usual_mtu")]
    pub mtu: Bytes,
    /// Delay of each frame between a node and the switch, in each direction; a process of the lab carries the frames.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay: Time,
}

/// Links that join racks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackboneSpec {
    /// Wire rate of a rack's connection to the backbone, in each direction and on each rail.
    #[serde(serialize_with = "serialize_rate")]
    pub bandwidth: Rate,
}

/// Windows and congestion control of TCP, on all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSpec {
    /// Send and receive window.
    pub window: Window,
    /// Congestion control of TCP, set on the routes of the lab.
    pub congestion_control: CongestionControl,
    /// `true` if a connection uses slow start again after a pause.
    pub slow_start_after_idle: bool,
}

/// Capacities of queues, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSpec {
    /// Queue in the node, before its interface.
    pub host: Bytes,
    /// Queue in the switch, before each port.
    pub port: Bytes,
    /// Queue in the switch, before the backbone.
    pub backbone: Bytes,
}

/// Wire rates of a node's rails; a single rate or a list in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct RailRates(pub Vec<Rate>);

/// Capacity that the two directions of an interface share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// None: each direction has the interface's rate.
    #[default]
    Full,
    /// The interface's rate: both directions together have it once.
    Half,
    /// A bus in the node, faster than the interface but not twice as fast.
    Bus,
}

impl Duplex {
    fn name(self) -> &'static str {
        match self {
            Duplex::Full => "full",
            Duplex::Half => "half",
            Duplex::Bus => "bus",
        }
    }
}

/// Order of access to a node's bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BusOrder {
    /// Received data and acknowledgements first.
    #[default]
    ReceiveFirst,
    /// Both directions in turn.
    Equal,
}

/// TCP's window in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Window {
    /// The system tunes it.
    #[default]
    Automatic,
    /// Fixed buffers of this size, as if each program requested them.
    Fixed(Bytes),
}

/// Congestion control of TCP, set on the routes of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// Reno (RFC 5681): its window is easy to predict.
    Reno,
    /// Cubic (RFC 9438), the default of Linux.
    #[default]
    Cubic,
    /// BBR: bottleneck bandwidth and round-trip time.
    Bbr,
}

fn one() -> u32 {
    1
}

fn real_time() -> f64 {
    1.0
}

fn is_real_time(factor: &f64) -> bool {
    *factor == real_time()
}

fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

fn usual_bus_share() -> f64 {
    1.5
}

fn usual_mtu() -> Bytes {
    Bytes(1500)
}

impl Default for QueueSpec {
    fn default() -> QueueSpec {
        let ample = Bytes(3_000_000);
        QueueSpec {
            host: ample,
            port: ample,
            backbone: ample,
        }
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CongestionControl::Reno => "reno",
            CongestionControl::Cubic => "cubic",
            CongestionControl::Bbr => "bbr",
        })
    }
}

impl LabSpec {
    /// Reads a lab file and applies `overrides`, pairs of dotted field name and value (`--set KEY=VALUE`).
    ///
    /// # Errors
    /// Malformed TOML, an unknown field, or a value without its unit or out of range.
    pub fn from_toml(text: &str, overrides: &[(String, String)]) -> Result<LabSpec, LabError> {
        let mut text = text.to_owned();
        for (key, value) in overrides {
            text = with_field(&text, key, value)?;
        }
        let spec: LabSpec = toml::from_str(&text).map_err(Box::new)?;
        spec.validate()?;
        Ok(spec)
    }

    /// Returns the text of a lab file, which reads back as the same lab.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a lab contains only tables, texts and numbers")
    }

    /// Returns the nodes, in order.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<> {
        (0..self.cluster.nodes).map(Node)
    }

    /// Returns the rack of a node. Racks are blocks of equal size.
    pub fn rack_of(&self, node: Node) -> u32 {
        (u64::from(node.0) * u64::from(self.cluster.racks) / u64::from(self.cluster.nodes)) as u32
    }

    /// Returns TCP's shortest timeout in slow motion; `None` at normal speed, where the system's default applies.
    pub fn shortest_timeout(&self) -> Option<Time> {
        (self.slow_motion != 1.0)
            .then(|| (SHORTEST_TIMEOUT * self.slow_motion).min(LONGEST_TIMEOUT))
    }

    /// Returns the wire rate of the bus that a node's directions share, if there is one.
    pub fn bus_rate(&self) -> Option<Rate> {
        let all = self.nic.bandwidth.0.iter();
        let all: f64 = all.map(|rate| rate.as_bytes_per_second()).sum();
        (self.nic.duplex == Duplex::Bus)
            .then(|| self.slowed(Rate::from_bytes_per_second(all * self.nic.bus_share)))
    }

    /// Returns the wire rate of a rack's uplink, if the racks have a backbone.
    pub fn backbone_rate(&self) -> Option<Rate> {
        let backbone = self.backbone.as_ref();
        backbone.map(|backbone| self.slowed(backbone.bandwidth))
    }

    /// Returns the wire rate of a rail. If a link emulator has two rates, returns the rate of frames from node 0.
    pub fn wire_rate(&self, rail: usize) -> Rate {
        self.direction(rail, Node(0)).map_or_else(
            || self.slowed(self.nic.bandwidth.0[rail]),
            |direction| direction.rate,
        )
    }

    /// Returns the direction of a rail's link emulator that starts at a node, if the lab has link emulators.
    pub fn direction(&self, rail: usize, from: Node) -> Option<DirectionSpec> {
        let cable = self.cable.as_ref()?;
        let of = cable.direction(rail, from.index(), self.nic.bandwidth.0[rail]);
        Some(DirectionSpec {
            rate: self.slowed(of.rate),
            delay: of.delay * self.slow_motion,
            jitter: of.jitter * self.slow_motion,
            ..of
        })
    }

    /// Returns the pairs of ports between which a process carries frames, with the direction from each port to the other.
    pub(crate) fn carried(&self) -> Vec<([String; 2], [DirectionSpec; 2])> {
        let mut all = Vec::new();
        for rail in 0..self.nic.bandwidth.0.len() {
            let ends = [0, 1].map(Node);
            if let [Some(one), Some(other)] = ends.map(|node| self.direction(rail, node)) {
                all.push((ends.map(|node| names::port(rail, node)), [one, other]));
            } else if self.nic.delay > Time::ZERO {
                all.extend(self.nodes().map(|node| {
                    (
                        [names::port(rail, node), names::carried_port(rail, node)],
                        [DirectionSpec::delay(self.nic.delay * self.slow_motion); 2],
                    )
                }));
            }
        }
        all
    }

    fn slowed(&self, rate: Rate) -> Rate {
        Rate::from_bytes_per_second(rate.as_bytes_per_second() / self.slow_motion)
    }

    fn validate(&self) -> Result<(), LabError> {
        require(self.schema == SCHEMA, "schema", &self.schema, SCHEMA)?;
        check_name(&self.name)?;
        require(
            !self.title.chars().any(char::is_control),
            "title",
            self.title.escape_default(),
            "one line of text",
        )?;
        in_range("slow_motion", self.slow_motion, 1.0, 1000.0)?;
        in_range("cluster.nodes", self.cluster.nodes, 1, 500)?;
        in_range(
            "cluster.ranks_per_node",
            self.cluster.ranks_per_node,
            1,
            1024,
        )?;
        in_range("cluster.racks", self.cluster.racks, 1, self.cluster.nodes)?;
        in_range(
            "nic.bandwidth (rails)",
            self.nic.bandwidth.0.len() as u32,
            1,
            8,
        )?;
        for rate in self
            .nic
            .bandwidth
            .0
            .iter()
            .chain(self.backbone.as_ref().map(|backbone| &backbone.bandwidth))
        {
            plausible_rate("bandwidth", *rate)?;
            plausible_rate("bandwidth (divided by slow_motion)", self.slowed(*rate))?;
        }
        require(
            (1.0..=2.0).contains(&self.nic.bus_share),
            "nic.bus_share",
            self.nic.bus_share,
            "a factor from 1 to 2",
        )?;
        in_time("nic.delay", self.nic.delay, Time::from_seconds(1.0))?;
        in_range("nic.mtu", self.nic.mtu, Bytes(576), Bytes(65_000))?;
        if let Window::Fixed(size) = self.tcp.window {
            in_range("tcp.window", size, Bytes(4096), Bytes(64 << 20))?;
        }
        let queues = &self.queues;
        for (name, size) in [
            ("host", queues.host),
            ("port", queues.port),
            ("backbone", queues.backbone),
        ] {
            in_range(
                &format!("queues.{name}"),
                size,
                Bytes(2 * self.nic.mtu.0),
                Bytes(1 << 31),
            )?;
        }
        self.cable
            .as_ref()
            .map_or(Ok(()), |cable| self.validate_cable(cable))
    }

    fn validate_cable(&self, cable: &CableSpec) -> Result<(), LabError> {
        let ClusterSpec { nodes, racks, .. } = self.cluster;
        require(
            (nodes, racks) == (2, 1),
            "cluster",
            format_args!("{nodes} nodes in {racks} racks"),
            "2 nodes in 1 rack, as a [cable] requires",
        )?;
        require(
            self.nic.duplex == Duplex::Full,
            "nic.duplex",
            self.nic.duplex.name(),
            "`full`, as a [cable] requires",
        )?;
        require(
            self.nic.delay == Time::ZERO,
            "nic.delay",
            self.nic.delay,
            "`cable.delay` for a [cable]",
        )?;
        if let Some(RailRates(rates)) = &cable.rate {
            require(
                (1..=2).contains(&rates.len()),
                "cable.rate",
                format_args!("{} rates", rates.len()),
                "one rate, or two: from node 0 and from node 1",
            )?;
            rates
                .iter()
                .try_for_each(|rate| plausible_rate("cable.rate", *rate))?;
        }
        for (name, times) in [
            ("cable.delay", cable.delay.0),
            ("cable.jitter", cable.jitter.0),
        ] {
            times
                .iter()
                .try_for_each(|time| in_time(name, *time, Time::from_seconds(1.0)))?;
        }
        cable.queue.0.iter().try_for_each(|size| {
            in_range(
                "cable.queue",
                *size,
                Bytes(2 * self.nic.mtu.0),
                Bytes(1 << 31),
            )
        })?;
        cable.loss.0.iter().try_for_each(|loss| {
            require(
                (0.0..1.0).contains(loss),
                "cable.loss",
                loss,
                "a probability from 0 to below 1",
            )
        })?;
        in_time("cable.spin", cable.spin, Time::from_seconds(0.01))
    }
}

/// Returns the text with one field replaced. The field is checked separately, so an error names the override.
fn with_field(text: &str, key: &str, value: &str) -> Result<String, LabError> {
    let mut table: toml::Table = toml::from_str(text).map_err(Box::new)?;
    let mut path: Vec<&str> = key.split('.').collect();
    let last = path.pop().unwrap_or(key);
    let mut inner = &mut table;
    for part in path {
        let below = inner
            .entry(part)
            .or_insert_with(|| toml::Table::new().into());
        inner = below.as_table_mut().ok_or_else(|| {
            refused_override(
                key,
                value,
                &format!("found the field `{part}`, expected the name of a section"),
            )
        })?;
    }
    inner.insert(last.to_owned(), typed(value));
    let merged = table.to_string();
    match toml::from_str::<LabSpec>(&merged) {
        Ok(_) => Ok(merged),
        Err(error) => Err(refused_override(key, value, error.message())),
    }
}

/// Parses a number, a truth value, a list separated by commas, or a text.
fn typed(value: &str) -> toml::Value {
    if value.contains(',') {
        return toml::Value::Array(value.split(',').map(|part| typed(part.trim())).collect());
    }
    value
        .parse()
        .ok()
        .map(toml::Value::Integer)
        .or_else(|| {
            value
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .map(toml::Value::Float)
        })
        .or_else(|| value.parse().ok().map(toml::Value::Boolean))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()))
}

fn in_range<T: PartialOrd + fmt::Display>(
    field: &str,
    found: T,
    low: T,
    high: T,
) -> Result<(), LabError> {
    let holds = (&low..=&high).contains(&&found);
    require(holds, field, found, &format!("{low} to {high}"))
}

fn in_time(field: &str, found: Time, most: Time) -> Result<(), LabError> {
    require(found <= most, field, found, &format!("at most {most}"))
}

fn plausible_rate(field: &str, rate: Rate) -> Result<(), LabError> {
    let megabits = rate.as_bytes_per_second() * 8e-6;
    require(
        (0.1..=100_000.0).contains(&megabits),
        field,
        rate_text(rate),
        "0.1Mbit/s to 100Gbit/s",
    )
}

fn refused_override(key: &str, value: &str, problem: &str) -> LabError {
    LabError::Override {
        key: key.to_owned(),
        value: value.to_owned(),
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_titles_are_one_plain_line() {
        let text = crate::lab::profiles::profile("cable", &[])
            .unwrap()
            .to_toml();
        for (field, value) in [
            ("title", "x\nEND\nid > /tmp/owned\n"),
            ("name", "a b"),
            ("name", "../x"),
            ("name", "$(id)"),
        ] {
            let mut table: toml::Table = toml::from_str(&text).unwrap();
            table.insert(field.into(), value.into());
            let refused = LabSpec::from_toml(&table.to_string(), &[])
                .unwrap_err()
                .to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
    }
    use crate::lab::profiles::profile;

    fn set(key: &str, value: &str) -> Result<LabSpec, LabError> {
        profile("fair", &[(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn overrides_replace_numbers_rates_lists_and_windows() {
        assert_eq!(set("cluster.nodes", "12").unwrap().cluster.nodes, 12);
        assert_eq!(
            set("nic.bandwidth", "1Gbit/s,100Mbit/s")
                .unwrap()
                .nic
                .bandwidth
                .0
                .len(),
            2
        );
        assert_eq!(
            set("tcp.window", "64KiB").unwrap().tcp.window,
            Window::Fixed(Bytes(65536))
        );
        assert_eq!(
            set("backbone.bandwidth", "150Mbit/s")
                .unwrap()
                .backbone
                .unwrap()
                .bandwidth
                .as_bytes_per_second(),
            18.75e6
        );
    }

    #[test]
    fn a_refused_override_is_named_with_what_was_expected() {
        for (key, value, expected) in [
            (
                "nic.bandwidth",
                "50",
                "--set nic.bandwidth=50: invalid type: integer `50`, expected a rate",
            ),
            ("tcp.window", "big", "automatic"),
            ("nic.colour", "red", "unknown field"),
            (
                "nic.bandwidth.x",
                "1",
                "found the field `bandwidth`, expected the name of a section",
            ),
            (
                "cluster.nodes",
                "0",
                "cluster.nodes: found `0`, expected 1 to 500",
            ),
            (
                "cluster.racks",
                "7",
                "cluster.racks: found `7`, expected 1 to 6",
            ),
            (
                "nic.bus_share",
                "3",
                "nic.bus_share: found `3`, expected a factor from 1 to 2",
            ),
            ("queues.port", "1kB", "queues.port"),
        ] {
            let message = set(key, value).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_cable_has_one_value_or_one_for_each_direction() {
        let set = |key: &str, value: &str| profile("cable", &[(key.to_owned(), value.to_owned())]);
        let (delay, loss) = (
            set("cable.delay", "50us,80us").unwrap(),
            set("cable.loss", "0.1").unwrap(),
        );
        let direction = |spec: &LabSpec, from| spec.direction(0, Node(from)).unwrap();
        assert_eq!(
            [direction(&delay, 0).delay, direction(&delay, 1).delay],
            [50.0, 80.0].map(Time::from_micros)
        );
        assert_eq!(
            [direction(&loss, 0).loss, direction(&loss, 1).loss],
            [0.1, 0.1]
        );
        assert_eq!(LabSpec::from_toml(&delay.to_toml(), &[]).unwrap(), delay);
        let rates = set("cable.rate", "10Mbit/s,1Gbit/s").unwrap();
        assert_eq!(
            direction(&rates, 1).rate,
            Rate::from_bytes_per_second(1.25e8)
        );
        assert_eq!(
            (rates.wire_rate(0), direction(&loss, 1).rate),
            (direction(&rates, 0).rate, loss.nic.bandwidth.0[0])
        );
        assert_ne!(direction(&loss, 0).seed, direction(&loss, 1).seed);
    }

    #[test]
    fn an_invalid_cable_is_refused_with_the_name_of_the_field() {
        let said = |key: &str, value: &str| {
            profile("cable", &[(key.into(), value.into())])
                .unwrap_err()
                .to_string()
        };
        for (key, value, expected) in [
            (
                "cable.loss",
                "1.5",
                "cable.loss: found `1.5`, expected a probability from 0 to below 1",
            ),
            (
                "cable.loss",
                "-1",
                "cable.loss: found `-1`, expected a probability from 0 to below 1",
            ),
            (
                "cable.delay",
                "2s",
                "cable.delay: found `2s`, expected at most 1s",
            ),
            (
                "cable.spin",
                "20ms",
                "cable.spin: found `20ms`, expected at most 10ms",
            ),
            (
                "cable.delay",
                "50",
                "--set cable.delay=50: invalid type: integer `50`, expected a time",
            ),
            ("cable.delay", "-1us", "found `-1us`, expected a time"),
            ("cable.delay", "1us,2us,3us", "a list of two"),
            ("cable.queue", "1kB", "cable.queue: found `1kB`, expected"),
            (
                "cable.rate",
                "1Mbit/s,1Mbit/s,1Mbit/s",
                "cable.rate: found `3 rates`, expected one rate, or two",
            ),
            ("cable.rate", "1bit/s", "cable.rate: found"),
            (
                "cable.jitter_distribution",
                "normal",
                "`uniform` or `exponential`",
            ),
            (
                "cluster.nodes",
                "3",
                "cluster: found `3 nodes in 1 racks`, expected 2 nodes",
            ),
            (
                "nic.duplex",
                "bus",
                "nic.duplex: found `bus`, expected `full`",
            ),
            (
                "nic.delay",
                "1us",
                "nic.delay: found `1us`, expected `cable.delay` for a [cable]",
            ),
            (
                "nic.delay",
                "2s",
                "nic.delay: found `2s`, expected at most 1s",
            ),
        ] {
            let message = said(key, value);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn nodes_are_dealt_to_racks_in_blocks() {
        let spec = profile("two-racks", &[]).unwrap();
        assert_eq!(
            spec.nodes()
                .map(|node| spec.rack_of(node))
                .collect::<Vec<_>>(),
            [0, 0, 0, 0, 1, 1, 1, 1]
        );
    }
}

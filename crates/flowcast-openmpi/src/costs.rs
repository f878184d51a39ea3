//! Sources of a rail's parameters: the user's values take precedence over stored or measured ones, and those over Open MPI's
//! defaults.

use std::{
    fmt::{self, Write},
    fs,
    path::Path,
};

use flowcast_network::{loggp::LogGp, network::Network};
use flowcast_scheduler::Rail;
use flowcast_units::{Rate, Time, TimePerByte};

use crate::{Refusal, parameters::ComponentSettings, state::RailModule};

/// Source of the parameters in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostOrigin {
    /// The user gave all parameters.
    Given,
    /// An earlier run measured the parameters that the user did not give.
    Stored,
    /// This run measured the parameters.
    Measured,
    /// Estimates from the traffic while the program runs.
    Watched,
    /// The BTL's own bandwidth and latency; no better values are known.
    Assumed,
}

impl fmt::Display for CostOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CostOrigin::Given => "given",
            CostOrigin::Stored => "stored",
            CostOrigin::Measured => "measured",
            CostOrigin::Watched => "measured while the program ran",
            CostOrigin::Assumed => "assumed from the btl's bandwidth and latency",
        })
    }
}

/// Returns the user's parameters, with the BTL's own numbers for the others, and the origin of the latter.
///
/// # Errors
/// A text that is not a rail, or a file that is not a network file.
pub(crate) fn known_costs(
    rails: &[RailModule],
    settings: &ComponentSettings,
) -> Result<(Vec<LogGp>, CostOrigin), Refusal> {
    let by_name = by_name(settings)?;
    let found: Vec<Option<LogGp>> = rails
        .iter()
        .map(|rail| cost_of(&by_name, &rail.name))
        .collect();
    let origin = if found.iter().all(Option::is_some) {
        CostOrigin::Given
    } else {
        CostOrigin::Assumed
    };
    let costs = rails
        .iter()
        .zip(found)
        .map(|(rail, given)| given.unwrap_or_else(|| assumed(rail)))
        .collect();
    Ok((costs, origin))
}

/// Returns the costs of [`given`], with `measured` for the parameters that the user does not give.
///
/// # Errors
/// The same as for [`given`].
pub(crate) fn with_measured(
    rails: &[RailModule],
    settings: &ComponentSettings,
    measured: &[Rail],
) -> Result<Vec<LogGp>, Refusal> {
    let by_name = by_name(settings)?;
    Ok(rails
        .iter()
        .enumerate()
        .map(|(index, rail): (usize, &RailModule)| {
            let given = cost_of(&by_name, &rail.name);
            // Interface names may differ between nodes. Then the order decides.
            given
                .or_else(|| {
                    cost_of(measured, &rail.name)
                        .or_else(|| measured.get(index).map(|rail| rail.cost))
                })
                .unwrap_or_else(|| assumed(rail))
        })
        .collect())
}

fn cost_of(rails: &[Rail], name: &str) -> Option<LogGp> {
    rails
        .iter()
        .find(|rail| rail.name == name)
        .map(|rail| rail.cost)
}

fn by_name(settings: &ComponentSettings) -> Result<Vec<Rail>, Refusal> {
    let mut rails = rails_in(&settings.rails)?;
    for entry in settings
        .network
        .split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        rails.push(rail_from_file(entry)?);
    }
    Ok(rails)
}

/// Parses `eth1=g,G,o,Lus; eth2=...`; line breaks separate rails as well.
///
/// # Errors
/// A text that is not a rail.
pub(crate) fn rails_in(text: &str) -> Result<Vec<Rail>, Refusal> {
    let entries = text
        .split([';', '\n'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty());
    entries
        .map(|entry| Rail::parse(entry).map_err(|error| Refusal::parameter("rails", error)))
        .collect()
}

/// Formats rails for [`rails_in`], one per line.
pub(crate) fn text_of<'a>(rails: impl IntoIterator<Item = (&'a str, LogGp)>) -> String {
    let mut text = String::new();
    for (
        name,
        LogGp {
            latency,
            overhead,
            gap,
            gap_per_byte,
        },
    ) in rails
    {
        let (gap, overhead, latency) = (gap.as_micros(), overhead.as_micros(), latency.as_micros());
        writeln!(
            text,
            "{name}={gap:.4},{:.7},{overhead:.4},{latency:.4}us",
            gap_per_byte.as_micros()
        )
        .expect("writing to a string does not fail");
    }
    text
}

fn rail_from_file(entry: &str) -> Result<Rail, Refusal> {
    let Some((name, file)) = entry.split_once('=') else {
        return Err(refused(format!(
            "found `{entry}`, expected NAME=FILE such as eth1=eth1.toml"
        )));
    };
    read_rail(name.trim(), Path::new(file.trim()))
        .map_err(|problem| refused(format!("{}: {problem}", file.trim())))
}

fn refused(problem: String) -> Refusal {
    Refusal::parameter("network", problem)
}

/// Reads a rail from a network file.
///
/// # Errors
/// A file that cannot be read, or that is not a network file.
pub(crate) fn read_rail(name: &str, file: &Path) -> Result<Rail, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let nic = Network::from_toml(&text, &[])
        .map_err(|error| error.to_string())?
        .nic;
    Ok(rail(name, LogGp::from(&nic)))
}

/// A rail whose overhead does not depend on the size.
pub(crate) fn rail(name: &str, cost: LogGp) -> Rail {
    Rail {
        name: name.to_owned(),
        cost,
        overhead_per_byte: TimePerByte::from_nanos(0.0),
    }
}

/// Parameters from the BTL: `btl_bandwidth` is in Mbit/s, `btl_latency` in microseconds.
fn assumed(rail: &RailModule) -> LogGp {
    // SAFETY: an initialised module.
    let (bandwidth, latency) =
        unsafe { ((*rail.module).btl_bandwidth, (*rail.module).btl_latency) };
    let rate = Rate::from_bytes_per_second(f64::from(bandwidth.max(1)) * 1e6 / 8.0);
    LogGp {
        latency: Time::from_micros(f64::from(latency)),
        overhead: Time::ZERO,
        gap: Time::from_micros(1.0),
        gap_per_byte: TimePerByte::from_rate(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_are_read_back_as_written() {
        let text =
            "eth1=0.9000,0.0084900,6.1000,65.4000us\neth2:1=1.4000,0.0010300,1.4000,2.8200us\n";
        let rails = rails_in(text).unwrap();
        assert_eq!(rails[1].name, "eth2:1");
        assert_eq!(
            text_of(rails.iter().map(|rail| (rail.name.as_str(), rail.cost))),
            text
        );
        assert_eq!(
            rails_in("eth1=1,0.1,1,1us; eth2=1,0.1,1,1us ;")
                .unwrap()
                .len(),
            2
        );
        assert!(
            rails_in("eth1=fast")
                .unwrap_err()
                .to_string()
                .contains("bml_flowcast_rails")
        );
    }

    #[test]
    fn errors_name_a_missing_file() {
        let message = rail_from_file("eth1=/nowhere.toml")
            .unwrap_err()
            .to_string();
        assert!(message.contains("/nowhere.toml"), "{message}");
        assert!(
            rail_from_file("eth1")
                .unwrap_err()
                .to_string()
                .contains("NAME=FILE")
        );
    }
}

//! The built-in networks: eight networks as printed in papers, then current networks, then machines with their switches.
//!
//! The file's `[origins]` gives the source of every value. For a value without a source it says `unknown` and how to measure
//! it.

use super::{
    near,
    network::{Network, NetworkError},
};

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../networks/", $name, ".toml")))),+]
    };
}

/// Name and file of each built-in network, in listing order.
pub const NETWORKS: [(&str, &str); 35] = files![
    "gige-lam",
    "gige-mpich",
    "myrinet-mx",
    "ethernet-1g-10g",
    "sgi-origin",
    "infiniband-2006",
    "myrinet-gm",
    "gige-tcp",
    "ethernet-10g-tcp",
    "ethernet-25g-tcp",
    "ethernet-100g-tcp",
    "roce-25g",
    "roce-50g",
    "roce-100g",
    "roce-200g",
    "roce-400g",
    "infiniband-fdr",
    "infiniband-edr",
    "infiniband-hdr100",
    "infiniband-hdr",
    "infiniband-ndr200",
    "infiniband-ndr",
    "omni-path",
    "slingshot-10",
    "slingshot-11",
    "slingshot-11-tcp",
    "nvlink-a100",
    "nvlink-h100",
    "shared-memory",
    "aws-efa",
    "azure-hbv3",
    "gcp-n1",
    "leonardo",
    "lumi",
    "mare-nostrum-5",
];

/// Text of the file of a built-in network.
///
/// # Errors
/// [`NetworkError::Unknown`] if there is no network of this name; it suggests similar names.
pub fn text(name: &str) -> Result<&'static str, NetworkError> {
    let found = NETWORKS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let question = near::question(name, NETWORKS.iter().map(|(known, _)| *known));
        NetworkError::Unknown(name.to_owned(), question)
    })
}

/// Returns a built-in network.
///
/// ```
/// use flowcast_network::builtin;
///
/// assert_eq!(builtin::network("gige-tcp")?.name, "gige-tcp");
/// assert!(builtin::network("gige-tpc").unwrap_err().to_string().contains("gige-tcp"));
/// # Ok::<(), flowcast_network::network::NetworkError>(())
/// ```
///
/// # Errors
/// The same errors as [`text`].
pub fn network(name: &str) -> Result<Network, NetworkError> {
    Network::from_toml(text(name)?, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        network::MessageRule,
        origin::{Evidence, OriginKind},
    };

    #[test]
    fn each_built_in_network_reads_back_equal_and_bears_its_own_name() {
        for (name, _) in NETWORKS {
            let network = network(name).unwrap();
            assert_eq!(network.name, name);
            assert_eq!(
                Network::from_toml(&network.to_toml(), &[]).unwrap(),
                network
            );
        }
    }

    /// Collects the dotted names of all values below a value of a file.
    fn values(name: &str, value: &toml::Value, found: &mut Vec<String>) {
        let below = |part: &dyn std::fmt::Display| {
            if name.is_empty() {
                part.to_string()
            } else {
                format!("{name}.{part}")
            }
        };
        match value {
            toml::Value::Table(table) => table
                .iter()
                .for_each(|(key, value)| values(&below(key), value, found)),
            toml::Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(place, value)| values(&below(&place), value, found));
            }
            _ => found.push(name.to_owned()),
        }
    }

    #[test]
    fn each_value_of_a_built_in_network_has_an_origin_and_each_origin_a_value() {
        for (name, text) in NETWORKS {
            let mut file: toml::Table = toml::from_str(text).unwrap();
            for about in [
                "schema",
                "name",
                "title",
                "source",
                "origins",
                "point_to_point",
            ] {
                file.remove(about)
                    .unwrap_or_else(|| panic!("{name}: no {about}"));
            }
            file.remove("intervals");
            let mut found = Vec::new();
            values("", &toml::Value::Table(file), &mut found);
            found.retain(|value| value != "sharing.model");
            let origins = network(name).unwrap().origins;
            let explained: Vec<String> = origins.keys().cloned().collect();
            found.sort();
            assert_eq!(found, explained, "{name}");
            for (value, origin) in origins {
                assert!(
                    origin.short().len() <= 34,
                    "{name}: {value}: too long for the table: {}",
                    origin.short()
                );
                let ways = ["flowcast measure p2p", "flowcast fit"];
                let tells_how = ways.iter().any(|way| origin.text.contains(way));
                assert!(
                    origin.kind != OriginKind::Unknown || tells_how,
                    "{name}: {value}: {}",
                    origin.text
                );
                let is_url_needed =
                    matches!(origin.kind, OriginKind::Measured | OriginKind::Vendor);
                let is_there = origin.text.contains("https://")
                    || origin.text.starts_with("simgrid/platform-calibration");
                assert!(
                    !is_url_needed || is_there,
                    "{name}: {value}: {}",
                    origin.text
                );
            }
        }
    }

    #[test]
    fn the_evidence_of_a_network_comes_from_its_less_certain_value() {
        let evidence = |name: &str| {
            let network = network(name).unwrap();
            let Evidence { kind, year, source } = network.evidence().unwrap();
            (kind, year, source.to_owned())
        };
        assert_eq!(
            evidence("gige-tcp"),
            (
                OriginKind::Published,
                Some(2006),
                "Lichei, Table 3.5.3.1".into()
            )
        );
        assert_eq!(
            evidence("roce-200g"),
            (
                OriginKind::Unknown,
                Some(2026),
                "NVIDIA/dgx-spark-playbooks".into()
            )
        );
        assert_eq!(
            evidence("infiniband-edr"),
            (
                OriginKind::Measured,
                Some(2020),
                "stackhpc/nrel-benchmarks".into()
            )
        );
        assert_eq!(
            Network::new(
                "own",
                MessageRule::Hockney,
                network("gige-lam").unwrap().nic
            )
            .evidence(),
            None
        );
    }

    #[test]
    fn an_override_removes_the_origins_of_its_fields() {
        let set = |key: &str, value: &str| {
            network("slingshot-10")
                .unwrap()
                .with_overrides(&[(key.into(), value.into())])
        };
        let origins = |key: &str, value: &str| set(key, value).unwrap().origins;
        let all = network("slingshot-10").unwrap().origins;
        assert!(!origins("nic.latency", "5us").contains_key("nic.latency"));
        assert_eq!(origins("nic.latency", "5us").len(), all.len() - 1);
        // The origin of the wire rate is removed with the origin of the bandwidth.
        assert_eq!(origins("nic.bandwidth", "5GB/s").len(), all.len() - 2);
        assert_eq!(
            origins("machine.nodes.*.intra_latency", "1us").len(),
            all.len() - 1
        );
        assert_eq!(origins("machine.nodes.0.cpus", "2").len(), all.len());
    }

    #[test]
    fn a_misspelt_name_is_refused_with_suggestions() {
        let message = text("gige-tpc").unwrap_err().to_string();
        assert!(
            message.starts_with("no network is named `gige-tpc` (did you mean gige-tcp"),
            "{message}"
        );
    }

    #[test]
    fn an_override_reaches_its_field_and_a_wrong_one_is_named() {
        let set = |key: &str, value: &str| {
            network("gige-tcp")
                .unwrap()
                .with_overrides(&[(key.into(), value.into())])
        };
        assert_eq!(
            set("nic.bandwidth", "50Mbit/s")
                .unwrap()
                .nic
                .rate()
                .as_bytes_per_second(),
            6.25e6
        );
        assert_eq!(
            set("nic.bandwidth", "8ns/B")
                .unwrap()
                .nic
                .rate()
                .as_bytes_per_second(),
            1.25e8
        );
        assert_eq!(
            set("sharing.io_out", "3").unwrap().sharing.flow_cuts.io_out,
            Some(3.0)
        );
        assert_eq!(
            network("gige-tcp").unwrap().quantity("nic.gap"),
            Some(flowcast_units::Time::from_nanos(897.0).into())
        );
        assert_eq!(
            network("gige-tcp")
                .unwrap()
                .quantity("machine.nodes.*.speed"),
            Some(1.0.into())
        );
        for (key, value) in [
            ("nic.latency", "5"),
            ("nic.latncy", "5us"),
            ("nic.latency.x", "1"),
            ("", "1"),
        ] {
            let message = set(key, value).unwrap_err().to_string();
            assert!(message.contains(key), "{key}: {message}");
        }
    }
}

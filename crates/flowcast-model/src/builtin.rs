//! The networks that come with Flowcast, as the papers print them.

use super::network::{Network, NetworkError};

/// Name and file of each built-in network, in the order in which they are listed.
pub const NETWORKS: [(&str, &str); 8] = [
    ("gige-lam", include_str!("../networks/gige-lam.toml")),
    ("gige-mpich", include_str!("../networks/gige-mpich.toml")),
    ("myrinet-mx", include_str!("../networks/myrinet-mx.toml")),
    ("ethernet-1g-10g", include_str!("../networks/ethernet-1g-10g.toml")),
    ("sgi-origin", include_str!("../networks/sgi-origin.toml")),
    ("infiniband-2006", include_str!("../networks/infiniband-2006.toml")),
    ("myrinet-gm", include_str!("../networks/myrinet-gm.toml")),
    ("gige-tcp", include_str!("../networks/gige-tcp.toml")),
];

/// The text of a built-in network's file.
///
/// # Errors
/// [`NetworkError::Unknown`] names those there are.
pub fn text(name: &str) -> Result<&'static str, NetworkError> {
    let found = NETWORKS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = NETWORKS.iter().map(|(known, _)| *known).collect();
        NetworkError::Unknown(name.to_owned(), names.join(", "))
    })
}

/// A built-in network.
///
/// # Errors
/// As [`text`].
pub fn network(name: &str) -> Result<Network, NetworkError> {
    Network::from_toml(text(name)?, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_built_in_network_reads_back_equal_and_bears_its_own_name() {
        for (name, _) in NETWORKS {
            let network = network(name).unwrap();
            assert_eq!(network.name, name);
            assert_eq!(Network::from_toml(&network.to_toml(), &[]).unwrap(), network);
        }
    }

    #[test]
    fn an_override_reaches_its_field_and_a_wrong_one_is_named() {
        let set = |key: &str, value: &str| network("gige-tcp").unwrap().with_overrides(&[(key.into(), value.into())]);
        assert_eq!(set("nic.bandwidth", "50Mbit/s").unwrap().nic.rate().as_bytes_per_second(), 6.25e6);
        assert_eq!(set("sharing.io_out", "3").unwrap().sharing.flow_cuts.io_out, Some(3.0));
        for (key, value) in [("nic.latency", "5"), ("nic.latncy", "5us"), ("nic.latency.x", "1"), ("", "1")] {
            let message = set(key, value).unwrap_err().to_string();
            assert!(message.contains(key), "{key}: {message}");
        }
    }
}

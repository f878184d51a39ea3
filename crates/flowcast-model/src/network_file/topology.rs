//! The section `[topology]` on disk.

use serde::{Deserialize, Serialize};

use crate::{
    cluster::tree::Level,
    link_rate::LinkRate,
    sharing::error::SharingError,
    topology::{Shape, Topology},
};
use flowcast_units::Rate;

/// That of the destination (Zahavi and others, 2010): the one routing that there is.
const D_MOD_K: &str = "d-mod-k";

/// The section on disk. Either `fat_tree` or `levels` is given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TopologyFile {
    pub fat_tree: Option<u32>,
    pub oversubscription: Option<u32>,
    pub bandwidth: Option<Rate>,
    pub wire_rate: Option<Rate>,
    pub routing: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelFile>,
}

/// One level of switches on disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LevelFile {
    pub down: u32,
    #[serde(default = "one")]
    pub up: u32,
    pub bandwidth: Option<Rate>,
    pub wire_rate: Option<Rate>,
}

const fn one() -> u32 {
    1
}

impl TryFrom<TopologyFile> for Topology {
    type Error = SharingError;

    fn try_from(file: TopologyFile) -> Result<Topology, SharingError> {
        let refuse = |field: &str, found: &str, expected: &str| {
            let (field, found, expected) = (
                format!("topology.{field}"),
                found.to_owned(),
                expected.to_owned(),
            );
            Err(SharingError::Topology {
                field,
                found,
                expected,
            })
        };
        if let Some(other) = file.routing.filter(|routing| routing != D_MOD_K) {
            let expected = "d-mod-k, by destination: no model routes by a hash or by load";
            return refuse("routing", &format!("`{other}`"), expected);
        }
        let rate = checked_rate("topology", file.bandwidth, file.wire_rate)?;
        let shape = match file.fat_tree {
            Some(_) if !file.levels.is_empty() => {
                return refuse("levels", "them beside fat_tree", "one of the two");
            }
            Some(ports) => Shape::FatTree {
                ports,
                oversubscription: file.oversubscription.unwrap_or(1),
                rate,
            },
            None if file.oversubscription.is_some() => {
                return refuse(
                    "oversubscription",
                    "it without fat_tree",
                    "topology.fat_tree beside it",
                );
            }
            None if rate.is_some() => {
                let field = if file.bandwidth.is_some() {
                    "bandwidth"
                } else {
                    "wire_rate"
                };
                return refuse(
                    field,
                    "it without fat_tree",
                    "topology.fat_tree beside it, or it in topology.levels",
                );
            }
            None => Shape::Levels(
                file.levels
                    .iter()
                    .enumerate()
                    .map(level)
                    .collect::<Result<_, _>>()?,
            ),
        };
        let topology = Topology { shape };
        topology.tree().map(|_| topology)
    }
}

fn level((place, file): (usize, &LevelFile)) -> Result<(Level, Option<LinkRate>), SharingError> {
    let rate = checked_rate(
        &format!("topology.levels.{place}"),
        file.bandwidth,
        file.wire_rate,
    )?;
    Ok((
        Level {
            down: file.down,
            up: file.up,
        },
        rate,
    ))
}

fn checked_rate(
    section: &str,
    goodput: Option<Rate>,
    wire: Option<Rate>,
) -> Result<Option<LinkRate>, SharingError> {
    for (name, rate) in [("bandwidth", goodput), ("wire_rate", wire)] {
        if let Some(rate) = rate.filter(|rate| rate.as_bytes_per_second() <= 0.0) {
            let (field, expected) = (format!("{section}.{name}"), "a rate above 0".to_owned());
            return Err(SharingError::Topology {
                field,
                found: rate.to_string(),
                expected,
            });
        }
    }
    Ok(LinkRate::given(goodput, wire))
}

impl From<&Topology> for TopologyFile {
    fn from(topology: &Topology) -> TopologyFile {
        match &topology.shape {
            Shape::FatTree {
                ports,
                oversubscription,
                rate,
            } => {
                let (bandwidth, wire_rate) = parts(rate);
                let oversubscription = (*oversubscription != 1).then_some(*oversubscription);
                let fat_tree = Some(*ports);
                TopologyFile {
                    fat_tree,
                    oversubscription,
                    bandwidth,
                    wire_rate,
                    ..TopologyFile::default()
                }
            }
            Shape::Levels(levels) => TopologyFile {
                levels: levels
                    .iter()
                    .map(|(Level { down, up }, rate): &(Level, Option<LinkRate>)| {
                        let (bandwidth, wire_rate) = parts(rate);
                        LevelFile {
                            down: *down,
                            up: *up,
                            bandwidth,
                            wire_rate,
                        }
                    })
                    .collect(),
                ..TopologyFile::default()
            },
        }
    }
}

fn parts(rate: &Option<LinkRate>) -> (Option<Rate>, Option<Rate>) {
    (
        rate.and_then(LinkRate::given_goodput),
        rate.and_then(LinkRate::given_wire),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Topology, SharingError> {
        toml::from_str::<TopologyFile>(text).unwrap().try_into()
    }

    #[test]
    fn the_one_routing_may_be_written() {
        assert_eq!(
            read("fat_tree = 8\nrouting = \"d-mod-k\"").unwrap(),
            read("fat_tree = 8").unwrap()
        );
    }

    #[test]
    fn both_forms_give_the_same_tree() {
        let short = read("fat_tree = 8\noversubscription = 2").unwrap();
        let levels = "[[levels]]\ndown = 4\nup = 2\n[[levels]]\ndown = 4\nup = 4\n[[levels]]\ndown = 8\nup = 0";
        let long = read(levels).unwrap();
        assert_eq!(short.tree().unwrap(), long.tree().unwrap());
        assert_eq!(short.tree().unwrap().0.nodes(), Some(128));
    }

    #[test]
    fn errors_name_the_field() {
        for (text, start) in [
            (
                "fat_tree = 7",
                "topology.fat_tree: found 7 ports, expected an even number",
            ),
            (
                "fat_tree = 8\noversubscription = 3",
                "topology.oversubscription: found 3, expected a divisor of 4, half of the ports (3:1 needs a multiple of 6 ports)",
            ),
            (
                "fat_tree = 8\noversubscription = 0",
                "topology.oversubscription: found 0, expected a divisor of 4",
            ),
            (
                "fat_tree = 8\nrouting = \"ecmp\"",
                "topology.routing: found `ecmp`, expected d-mod-k",
            ),
            (
                "fat_tree = 8\nrouting = \"adaptive\"",
                "topology.routing: found `adaptive`, expected d-mod-k",
            ),
            (
                "oversubscription = 2",
                "topology.oversubscription: found it without fat_tree",
            ),
            (
                "bandwidth = \"1GB/s\"",
                "topology.bandwidth: found it without fat_tree",
            ),
            (
                "wire_rate = \"1GB/s\"",
                "topology.wire_rate: found it without fat_tree",
            ),
            (
                "fat_tree = 4\nbandwidth = \"0B/s\"",
                "topology.bandwidth: found 0MB/s",
            ),
            (
                "[[levels]]\ndown = 4\n[[levels]]\ndown = 0",
                "topology.levels.1: found down = 0",
            ),
            (
                "[[levels]]\ndown = 4\nbandwidth = \"0B/s\"",
                "topology.levels.0.bandwidth: found 0MB/s",
            ),
            (
                "fat_tree = 4\n[[levels]]\ndown = 4",
                "topology.levels: found them beside fat_tree",
            ),
            ("", "topology.levels.0: found 0 levels"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.starts_with(start), "{text}: {message}");
        }
    }
}

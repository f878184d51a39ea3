//! Places of nodes, from their names.
//!
//! Some names contain the place of the node: HPE Cray's `x1305c6s0b0n1` (cabinet, chassis, slot, board, node) has the
//! cabinet as group, and the chassis and slot as switch; `as01r2b03` (island, rack, node), as on MareNostrum 5, has the
//! island as group and the rack as switch. Names with only a node number, such as `lrdn0001`, need the numbers of
//! consecutive nodes on a switch and in a group ([`HostBlocks`]).

use std::str::FromStr;

use flowcast_place::rank_place::RankPlace;
use thiserror::Error;

use super::allocations::{NodeRow, places};

/// Reasons why nodes have no places.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostError {
    /// The name does not contain the place of its node.
    #[error("found `{name}` without a location, expected {expected}")]
    Place {
        /// Name of the node.
        name: String,
        /// Names from which a place can be derived.
        expected: &'static str,
    },
    /// The text is not a rule for names with only a node number.
    #[error(
        "found `{found}`, expected SWITCH,GROUP or SWITCH,GROUP,FIRST: nodes per switch, nodes per group (a multiple of \
         these), and the number of the first node [default: {}]",
        HostBlocks::FIRST
    )]
    Blocks {
        /// The text that was found.
        found: String,
    },
}

/// Rule for names with only a node number. From the number `first` on, each `switch` consecutive nodes share a switch, and
/// each `group` consecutive nodes share a group. Names with different letters before the number are in different groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostBlocks {
    /// Nodes per switch, at least 1.
    pub switch: u64,
    /// Nodes per group, a multiple of `switch`.
    pub group: u64,
    /// Number of the first node.
    pub first: u64,
}

impl HostBlocks {
    /// Default number of the first node.
    pub const FIRST: u64 = 1;
}

impl FromStr for HostBlocks {
    type Err = HostError;

    fn from_str(text: &str) -> Result<HostBlocks, HostError> {
        HostBlocks::parsed(text).ok_or_else(|| HostError::Blocks {
            found: text.to_owned(),
        })
    }
}

impl HostBlocks {
    fn parsed(text: &str) -> Option<HostBlocks> {
        let numbers: Option<Vec<u64>> = text
            .split(',')
            .map(|number| number.trim().parse().ok())
            .collect();
        let (switch, group, first) = match numbers?[..] {
            [switch, group] => (switch, group, HostBlocks::FIRST),
            [switch, group, first] => (switch, group, first),
            _ => return None,
        };
        (switch > 0 && group > 0 && group.is_multiple_of(switch)).then_some(HostBlocks {
            switch,
            group,
            first,
        })
    }
}

/// Places of nodes from their names. Switches and groups are numbered in order of appearance.
///
/// # Errors
/// [`HostError::Place`] for a name without a place. `blocks` give a place to names that end in a number.
pub fn host_places(
    names: &[String],
    blocks: Option<&HostBlocks>,
) -> Result<Vec<RankPlace>, HostError> {
    let found: Vec<[String; 2]> = names
        .iter()
        .map(|name| {
            group_and_switch(name, blocks).ok_or_else(|| HostError::Place {
                name: name.clone(),
                expected: match blocks {
                    None => {
                        "names such as x1305c6s0b0n1 or as01r2b03, or --host-blocks for numbered names, such as lrdn0001"
                    }
                    Some(_) => "a name that ends with a number, at least the first number of the blocks",
                },
            })
        })
        .collect::<Result<_, _>>()?;
    let rows = found
        .iter()
        .enumerate()
        .map(|(node, [group, switch])| NodeRow {
            line: 0,
            node: node as u64,
            group,
            switch,
        });
    Ok(places(rows))
}

fn group_and_switch(name: &str, blocks: Option<&HostBlocks>) -> Option<[String; 2]> {
    let name = name.split('.').next()?;
    if let Some(blocks) = blocks {
        let letters = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let number: u64 = name[letters.len()..].parse().ok()?;
        let place = number.checked_sub(blocks.first)?;
        let group = format!("{letters}{}", place / blocks.group);
        return Some([group, (place / blocks.switch).to_string()]);
    }
    let (letters, numbers) = letters_and_numbers(name)?;
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    match (&letters[..], &numbers[..]) {
        (["x", "c", "s", "b", "n"], [cabinet, chassis, slot, ..]) => {
            Some([cabinet.clone(), format!("{chassis}.{slot}")])
        }
        ([of, "r", "b"], [island, rack, _]) => Some([format!("{of}{island}"), rack.clone()]),
        _ => None,
    }
}

/// Splits a name into letters and numbers: `x1305c6` into x, c and 1305, 6. `None` if the name does not begin with a letter
/// and end in a number.
fn letters_and_numbers(name: &str) -> Option<(Vec<String>, Vec<String>)> {
    let (mut letters, mut numbers) = (Vec::new(), Vec::new());
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter.is_ascii_digit())?;
        let (word, behind) = rest.split_at(end);
        let end = behind
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(behind.len());
        let (number, behind) = behind.split_at(end);
        letters.push(word.to_owned());
        numbers.push(number.to_owned());
        rest = behind;
    }
    (!letters.first()?.is_empty()).then_some((letters, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_place::host_list::hosts;

    fn numbers(list: &str, blocks: Option<&str>) -> Vec<(u32, u32, u32)> {
        let blocks: Option<HostBlocks> = blocks.map(|text| text.parse().unwrap());
        let places = host_places(&hosts("--hosts", list).unwrap().hosts, blocks.as_ref()).unwrap();
        places
            .iter()
            .map(|place| (place.node, place.switch, place.group))
            .collect()
    }

    #[test]
    fn a_cray_name_contains_cabinet_chassis_and_slot() {
        let list = "x1305c6s0b0n0,x1305c6s0b1n1,x1305c6s1b0n0,x1302c6s0b0n0";
        let expected = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 1)];
        assert_eq!(numbers(list, None), expected);
    }

    #[test]
    fn a_name_of_mare_nostrum_contains_island_and_rack() {
        let list = "as01r2b[03-04],as01r3b03,as02r2b03.bsc.es";
        let expected = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 1)];
        assert_eq!(numbers(list, None), expected);
    }

    #[test]
    fn numbered_names_are_placed_in_blocks() {
        let list = "nid00[1000,1003-1004,1008],login1000";
        let expected = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 1), (4, 3, 2)];
        assert_eq!(numbers(list, Some("4,8,1000")), expected);
        assert_eq!(
            numbers("lrdn[1,2,3]", Some("2,2")),
            [(0, 0, 0), (1, 0, 0), (2, 1, 1)]
        );
        for text in ["", "4", "4,6", "0,0", "4,8,x", "1,2,3,4"] {
            let error = text.parse::<HostBlocks>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("found `{text}`, expected SWITCH,GROUP")));
        }
    }

    #[test]
    fn a_name_without_a_place_is_refused() {
        for (name, blocks) in [
            ("lrdn0001", None),
            ("x1305c6s0b0", None),
            ("01r2b03", None),
            ("as01r2b", None),
            ("node", Some("4,8")),
            ("nid0999", Some("4,8,1000")),
            ("nid99999999999999999999", Some("4,8")),
        ] {
            let blocks: Option<HostBlocks> = blocks.map(|text: &str| text.parse().unwrap());
            let names = [name.to_owned()];
            let error = host_places(&names, blocks.as_ref())
                .unwrap_err()
                .to_string();
            let part = format!("found `{name}` without a location, expected ");
            assert!(error.starts_with(&part), "{error}");
        }
    }
}

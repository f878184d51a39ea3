//! Files of schema `flowcast/network/1`, and their field names.
//!
//! In schema 1, `[sharing]` contained the parameters of all models side by side. `bandwidth` was the rate of frames if the
//! file's model was `packet`, and goodput otherwise.

use toml_edit::{Decor, DocumentMut, Item, Table, TableLike};

use super::SCHEMA;
use crate::{error::NetworkError, former_schemas, sharing::model::Model};

/// Fields of schema 1 and their current names.
const MOVED: [(&str, &str); 26] = [
    ("sharing.odd_end", "sharing.flow_cuts.odd_end"),
    ("sharing.odd_inner", "sharing.flow_cuts.odd_inner"),
    ("sharing.io_out", "sharing.flow_cuts.io_out"),
    ("sharing.include", "sharing.flow_cuts.include"),
    ("sharing.start_end", "sharing.flow_cuts.start_end"),
    ("sharing.alpha", "sharing.closed_loop.alpha"),
    ("sharing.kappa", "sharing.closed_loop.kappa"),
    ("sharing.transient", "sharing.closed_loop.transient"),
    ("sharing.segment", "sharing.packet.segment"),
    ("sharing.window", "sharing.packet.window"),
    ("sharing.send_buffer", "sharing.packet.send_buffer"),
    ("sharing.congestion", "sharing.packet.congestion"),
    ("sharing.first_window", "sharing.packet.first_window"),
    ("sharing.queue", "sharing.packet.queue"),
    ("sharing.burst", "sharing.packet.burst"),
    ("sharing.connections", "sharing.packet.connections"),
    ("sharing.idle_restart", "sharing.packet.idle_restart"),
    ("sharing.warm_ups", "sharing.packet.warm_ups"),
    ("sharing.small_queues", "sharing.packet.small_queues"),
    ("sharing.jitter", "sharing.packet.jitter"),
    ("sharing.noise", "sharing.packet.noise"),
    ("sharing.backbone_from", "sharing.asymmetric.backbone_from"),
    (
        "sharing.backbone_share",
        "sharing.asymmetric.backbone_share",
    ),
    ("sharing.penalty_out", "sharing.ib_penalty.out"),
    ("sharing.penalty_in", "sharing.ib_penalty.into"),
    ("sharing.penalty_crowded", "sharing.ib_penalty.crowded"),
];

/// Sections of schema 1 whose `bandwidth` is a wire rate if the file's model is `packet`.
const RATED: [&str; 3] = ["nic", "backbone", "topology"];

/// Current name of a field, which may be given by its name in schema 1.
pub fn current_name(name: &str) -> &str {
    MOVED
        .iter()
        .find(|(old, _)| *old == name)
        .map_or(name, |(_, new)| new)
}

/// Converts a file of schema 1 to the current schema and keeps its comments; `None` for a file of another schema.
///
/// # Errors
/// The text is not TOML.
pub fn upgraded(text: &str) -> Result<Option<String>, NetworkError> {
    // The reader of the current schema gives the best messages for other errors.
    if !text.contains(former_schemas::NETWORK) {
        return Ok(None);
    }
    let mut document: DocumentMut = text.parse().map_err(Box::new)?;
    match document.get_mut("schema") {
        Some(Item::Value(schema)) if schema.as_str() == Some(former_schemas::NETWORK) => {
            let decor = schema.decor().clone();
            *schema = SCHEMA.into();
            *schema.decor_mut() = decor;
        }
        _ => return Ok(None),
    }
    let is_wire = document
        .get("sharing")
        .and_then(|sharing| sharing.get("model"))
        .and_then(Item::as_str)
        == Some(Model::Packet.name());
    if let Some(sharing) = document
        .get_mut("sharing")
        .and_then(Item::as_table_like_mut)
    {
        MOVED
            .iter()
            .for_each(|(old, new)| move_into_section(sharing, old, new));
    }
    if is_wire {
        RATED
            .iter()
            .for_each(|section| document.get_mut(section).into_iter().for_each(rename_rates));
    }
    if let Some(intervals) = document
        .get_mut("intervals")
        .and_then(Item::as_table_like_mut)
    {
        rename_intervals(intervals, is_wire);
    }
    Ok(Some(document.to_string()))
}

/// Moves `sharing.FIELD` to `sharing.SECTION.FIELD`.
fn move_into_section(sharing: &mut dyn TableLike, old: &str, new: &str) {
    let (old, new) = (
        old.trim_start_matches("sharing."),
        new.trim_start_matches("sharing."),
    );
    let (section, name) = new
        .split_once('.')
        .expect("parameters stand in the section of a model");
    let Some(field) = Field::take(sharing, old) else {
        return;
    };
    let section = sharing
        .entry(section)
        .or_insert_with(|| Item::Table(Table::new()));
    if let Some(section) = section.as_table_like_mut() {
        field.put(section, name);
    }
}

/// Renames `bandwidth` to `wire_rate`, also in the levels of a topology.
fn rename_rates(item: &mut Item) {
    if let Some(levels) = item
        .get_mut("levels")
        .and_then(Item::as_array_of_tables_mut)
    {
        levels
            .iter_mut()
            .for_each(|level| rename(level, "bandwidth", "wire_rate"));
    }
    item.as_table_like_mut()
        .into_iter()
        .for_each(|section| rename(section, "bandwidth", "wire_rate"));
}

fn rename_intervals(intervals: &mut dyn TableLike, is_wire: bool) {
    MOVED
        .iter()
        .for_each(|(old, new)| rename(intervals, old, new));
    for section in RATED.iter().filter(|_| is_wire) {
        rename(
            intervals,
            &format!("{section}.bandwidth"),
            &format!("{section}.wire_rate"),
        );
    }
}

fn rename(section: &mut dyn TableLike, old: &str, new: &str) {
    Field::take(section, old)
        .into_iter()
        .for_each(|field| field.put(section, new));
}

/// A value with the surrounding comments.
struct Field {
    comments: Decor,
    value: Item,
}

impl Field {
    fn take(section: &mut dyn TableLike, name: &str) -> Option<Field> {
        let comments = section.key(name)?.leaf_decor().clone();
        Some(Field {
            comments,
            value: section.remove(name)?,
        })
    }

    fn put(self, section: &mut dyn TableLike, name: &str) {
        section.insert(name, self.value);
        section
            .key_mut(name)
            .into_iter()
            .for_each(|mut key| *key.leaf_decor_mut() = self.comments.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_move_into_their_sections_with_their_comments() {
        let old = "# a cluster\nschema = \"flowcast/network/1\" # of old\nname = \"x\"\n[nic]\n# of frames\nbandwidth = \
                   \"1GB/s\" # said so\n[sharing]\nmodel = \"packet\"\n# as ss shows it\nwindow = \"44kB\"\nalpha = 2.0 # steep\n\
                   [intervals]\n\"sharing.alpha\" = { low = \"1\", high = \"3\", level = 0.9 }\n";
        let new = upgraded(old).unwrap().unwrap();
        for part in [
            "# a cluster\nschema = \"flowcast/network/2\" # of old\n",
            "[nic]\n# of frames\nwire_rate = \"1GB/s\" # said so\n",
            "[sharing.packet]\n# as ss shows it\nwindow = \"44kB\"\n",
            "[sharing.closed_loop]\nalpha = 2.0 # steep\n",
            "\"sharing.closed_loop.alpha\" = { low",
        ] {
            assert!(new.contains(part), "{part}\nis not in\n{new}");
        }
        assert_eq!(upgraded(&new).unwrap(), None);
    }
}

//! What somebody may have meant who misspelt a name.

use strsim::damerau_levenshtein;

/// The known names, nearest first: those of which the fewest letters must change, move, be added or left out.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = beginning(name);
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_by_cached_key(|known| (damerau_levenshtein(known, name), *known));
    known
}

/// As much of a name as tells which one is near: the time that distances take grows with the length.
fn beginning(name: &str) -> &str {
    const LONGEST: usize = 100;
    name.char_indices()
        .nth(LONGEST)
        .map_or(name, |(at, _)| &name[..at])
}

/// ` (did you mean NAME?)` where at most a third of the letters are wrong, else nothing.
pub fn question<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known).first() {
        Some(near) if damerau_levenshtein(near, beginning(name)) * 3 <= near.len() => {
            format!(" (did you mean {near}?)")
        }
        _ => String::new(),
    }
}

/// The same for a message of serde's, "unknown field `x`, expected one of `a`, `b`", or of a variant, or what is not
/// modelled under that name; nothing for others.
pub(crate) fn question_of_unknown(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let Some(name) = names.next().filter(|_| message.starts_with("unknown ")) else {
        return String::new();
    };
    let section = match message {
        _ if message.contains("`fat_tree`") => "topology",
        _ if message.contains("`gap_per_byte`") => "nic",
        _ => "",
    };
    match not_modelled(section, name) {
        Some(absent) => format!("; {absent}"),
        None => question(name, names),
    }
}

/// Two interfaces of different kinds in one network.
pub(crate) const ONE_INTERFACE: &str = "a node has nic.count interfaces of one kind: different ones are networks of their own \
    (`flowcast predict --rail A.toml --rail B.toml`)";

/// What no network file can say, by the names under which it is looked for.
pub(crate) fn not_modelled(section: &str, name: &str) -> Option<&'static str> {
    const SHAPES: &str = "switches make trees (topology.fat_tree, topology.k_ary_n_tree, topology.levels), topology.torus, \
        topology.mesh, topology.dragonfly, topology.dragonfly_plus or topology.graph";
    match (section, name) {
        ("" | "topology", "hypercube")
        | ("", "dragonfly" | "dragonfly_plus" | "torus" | "mesh" | "fat_tree")
        | ("topology", "type" | "kind" | "shape") => Some(SHAPES),
        ("nic" | "", "nics" | "rails" | "ports") | ("nic", "number" | "per_node") => {
            Some(ONE_INTERFACE)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_asked_for_if_it_is_near() {
        let known = ["fair", "packet", "closed-loop"];
        assert_eq!(nearest("pakcet", known), ["packet", "fair", "closed-loop"]);
        assert_eq!(question("pakcet", known), " (did you mean packet?)");
        assert_eq!(question("fiar", known), " (did you mean fair?)");
        assert_eq!(question("bogus", known), "");
        assert_eq!(question("x", []), "");
        let message = "unknown field `latncy`, expected one of `gap`, `latency`";
        assert_eq!(question_of_unknown(message), " (did you mean latency?)");
        assert_eq!(question_of_unknown("missing field `gap`"), "");
        let message = "unknown field `hypercube`, expected one of `fat_tree`, `levels`";
        assert!(question_of_unknown(message).starts_with("; switches make trees"));
        let message = "unknown field `number`, expected one of `gap`, `gap_per_byte`";
        assert!(question_of_unknown(message).starts_with("; a node has nic.count interfaces"));
        assert_eq!(
            question_of_unknown("unknown field `count`, expected one of `name`, `title`"),
            ""
        );
        assert_eq!(beginning(&"ü".repeat(1000)).chars().count(), 100);
    }
}

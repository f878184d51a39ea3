//! Suggestions for misspelt names: similar known names, if there are any.

use strsim::damerau_levenshtein;

/// Longest compared prefix of a name: the time for a distance grows with the length.
const LONGEST: usize = 100;

/// Shortest name that suggests longer names with this beginning.
const SHORTEST_BEGINNING: usize = 3;

/// Maximum number of names in a suggestion.
const MOST: usize = 3;

/// Returns ` (did you mean A, B or C?)` with the known names most similar to `name`, the most similar first, or an empty
/// text. A known name is similar if at most a third of its letters differ, or if it begins with `name`. For dotted names,
/// the last part decides and the whole name determines the order.
pub fn question<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let name: String = name
        .chars()
        .take(LONGEST)
        .collect::<String>()
        .to_lowercase();
    let mut near: Vec<&str> = known
        .into_iter()
        .filter(|known| is_near(&name, known))
        .collect();
    near.sort_by_cached_key(|known| (damerau_levenshtein(known, &name), *known));
    near.dedup();
    near.truncate(MOST);
    match near.as_slice() {
        [] => String::new(),
        [one] => format!(" (did you mean {one}?)"),
        [first @ .., last] => format!(" (did you mean {} or {last}?)", first.join(", ")),
    }
}

fn is_near(name: &str, known: &str) -> bool {
    let [name, known] = [name, &known.to_lowercase()]
        .map(|name| name.rsplit('.').next().unwrap_or_default().to_owned());
    let is_beginning = name.chars().count() >= SHORTEST_BEGINNING && known.starts_with(&name);
    is_beginning || damerau_levenshtein(&name, &known) * 3 <= known.chars().count()
}

/// Returns a suggestion for serde's message "unknown field `x`, expected one of `a`, `b`", or the same for a variant. If a
/// network file cannot model this name, returns the explanation instead. Empty for other messages.
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

/// Explanation for users who describe interfaces of several kinds in one network file.
pub(crate) const ONE_INTERFACE: &str = "a node has nic.count interfaces of one kind: different ones are networks of their own \
    (`flowcast predict --rail A.toml --rail B.toml`)";

/// Explains features that no network file can describe, by names that users try for them.
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
    fn only_similar_names_are_suggested() {
        let known = ["fair", "packet", "closed-loop"];
        assert_eq!(question("pakcet", known), " (did you mean packet?)");
        assert_eq!(question("Fiar", known), " (did you mean fair?)");
        assert_eq!(question("bogus", known), "");
        assert_eq!(question("x", []), "");
        let networks = ["lumi", "aws-efa", "infiniband-hdr", "infiniband-2006"];
        assert_eq!(question("nosuch", networks), "");
        assert_eq!(
            question("infiniband", networks),
            " (did you mean infiniband-hdr or infiniband-2006?)"
        );
        let fields = ["nic.count", "nic.latency", "node.latency"];
        assert_eq!(question("nic.colour", fields), "");
        assert_eq!(
            question("nic.latncy", fields),
            " (did you mean nic.latency or node.latency?)"
        );
        assert_eq!(question(&"ü".repeat(1000), known), "");
    }

    #[test]
    fn messages_of_serde_get_the_suggestions_of_their_names() {
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
    }
}

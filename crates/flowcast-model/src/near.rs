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
    name.char_indices().nth(LONGEST).map_or(name, |(at, _)| &name[..at])
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

/// The same for a message of serde's, "unknown field `x`, expected one of `a`, `b`", or of a variant; nothing for others.
pub(crate) fn question_of_unknown(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next().filter(|_| message.starts_with("unknown ")) {
        Some(name) => question(name, names),
        None => String::new(),
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
        assert_eq!(beginning(&"ü".repeat(1000)).chars().count(), 100);
    }
}

//! Built-in labs: their files by name, and labs with overrides applied.

use crate::lab::{error::LabError, names::check_name, spec::LabSpec};
use flowcast_network::near;

/// Name and text of each built-in lab file.
pub const PROFILES: [(&str, &str); 6] = [
    ("fair", include_str!("../../profiles/fair.toml")),
    ("asymmetric", include_str!("../../profiles/asymmetric.toml")),
    ("bus", include_str!("../../profiles/bus.toml")),
    ("two-racks", include_str!("../../profiles/two-racks.toml")),
    ("rails", include_str!("../../profiles/rails.toml")),
    ("cable", include_str!("../../profiles/cable.toml")),
];

/// Returns the text of a built-in lab file.
///
/// # Errors
/// No profile has this name.
pub fn text(name: &str) -> Result<&'static str, LabError> {
    let found = PROFILES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        let question = near::question(name, names.iter().copied());
        LabError::UnknownProfile(format!("`{name}`{question}"), names.join(", "))
    })
}

/// Returns a built-in lab with `overrides` applied.
///
/// ```
/// let nodes = ("cluster.nodes".to_owned(), "12".to_owned());
/// let lab = flowcast_measure::lab::profile("fair", &[nodes])?;
/// assert_eq!(lab.nodes().count(), 12);
/// # Ok::<(), flowcast_measure::lab::LabError>(())
/// ```
///
/// # Errors
/// No profile has this name, or an override is invalid.
pub fn profile(name: &str, overrides: &[(String, String)]) -> Result<LabSpec, LabError> {
    LabSpec::from_toml(text(name)?, overrides)
}

/// Returns the lab of a file with `overrides` applied. A changed copy of a profile that still has the profile's name gets
/// the name of its file, `stem`, if that is a valid name.
///
/// # Errors
/// Same errors as [`LabSpec::from_toml`].
pub fn of_file(
    text: &str,
    stem: &str,
    overrides: &[(String, String)],
) -> Result<LabSpec, LabError> {
    let spec = LabSpec::from_toml(text, overrides)?;
    let is_changed_copy = profile(&spec.name, &[]).is_ok_and(|own| own != spec);
    let name = if is_changed_copy && check_name(stem).is_ok() {
        stem
    } else {
        &spec.name
    };
    Ok(LabSpec {
        name: name.to_owned(),
        ..spec
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_its_name_and_reads_back_equal() {
        for (name, _) in PROFILES {
            let spec = profile(name, &[]).unwrap();
            assert_eq!(spec.name, name);
            assert_eq!(LabSpec::from_toml(&spec.to_toml(), &[]).unwrap(), spec);
        }
    }

    #[test]
    fn a_changed_copy_of_a_profile_has_the_name_of_its_file() {
        let name = |text: &str, stem: &str| of_file(text, stem, &[]).unwrap().name;
        let copy = text("fair").unwrap();
        let changed = copy.replace("50Mbit/s", "60Mbit/s");
        assert_eq!(
            (name(copy, "mine"), name(&changed, "mine")),
            ("fair".to_owned(), "mine".to_owned())
        );
        assert_eq!(name(&changed, "not a name"), "fair");
        assert_eq!(
            name(&changed.replace("\"fair\"", "\"hall\""), "mine"),
            "hall"
        );
    }

    #[test]
    fn the_error_for_an_unknown_profile_lists_the_known_ones() {
        assert!(
            profile("fare", &[])
                .unwrap_err()
                .to_string()
                .contains("fair, asymmetric, bus, two-racks, rails, cable")
        );
    }
}

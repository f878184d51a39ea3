//! The built-in testbeds.

use crate::error::LabError;
use crate::spec::LabSpec;
use flowcast_model::near;

/// Name and text of each built-in lab file.
pub const PROFILES: [(&str, &str); 6] = [
    ("fair", include_str!("../profiles/fair.toml")),
    ("asymmetric", include_str!("../profiles/asymmetric.toml")),
    ("bus", include_str!("../profiles/bus.toml")),
    ("two-racks", include_str!("../profiles/two-racks.toml")),
    ("rails", include_str!("../profiles/rails.toml")),
    ("cable", include_str!("../profiles/cable.toml")),
];

/// The text of a built-in lab file.
///
/// # Errors
/// No profile has that name.
pub fn text(name: &str) -> Result<&'static str, LabError> {
    let found = PROFILES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        let question = near::question(name, names.iter().copied());
        LabError::UnknownProfile(format!("`{name}`{question}"), names.join(", "))
    })
}

/// A built-in lab with `overrides` applied.
///
/// # Errors
/// No profile has that name, or an override is refused.
pub fn profile(name: &str, overrides: &[(String, String)]) -> Result<LabSpec, LabError> {
    LabSpec::from_toml(text(name)?, overrides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_bears_its_name_and_reads_back_equal() {
        for (name, _) in PROFILES {
            let spec = profile(name, &[]).unwrap();
            assert_eq!(spec.name, name);
            assert_eq!(LabSpec::from_toml(&spec.to_toml(), &[]).unwrap(), spec);
        }
    }

    #[test]
    fn an_unknown_profile_is_answered_with_the_known_ones() {
        assert!(
            profile("fare", &[]).unwrap_err().to_string().contains("fair, asymmetric, bus, two-racks, rails, cable")
        );
    }
}

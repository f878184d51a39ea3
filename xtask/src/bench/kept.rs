//! The file of counts, and the comparison with it.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::counts::Counts;
use crate::suite::{Outcome, programs::output};

/// By so much a count may rise before it is noticed, as a part of it and beyond that.
const RISE: (f64, f64) = (0.05, 0.05);

/// What counts depend on beside the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setting {
    rustc: String,
    machine: String,
}

/// The counts of all workloads, and where they were taken.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    setting: Setting,
    counts: BTreeMap<String, Counts>,
}

impl Setting {
    /// The compiler, and the machine as far as programs choose instructions by it.
    ///
    /// # Errors
    /// The compiler cannot be asked.
    pub(super) fn here() -> Result<Setting> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        #[cfg(target_arch = "x86_64")]
        let extension = if std::is_x86_feature_detected!("avx2") {
            " with AVX2"
        } else {
            ""
        };
        #[cfg(not(target_arch = "x86_64"))]
        let extension = "";
        Ok(Setting {
            rustc: output(rustc, &["--version"])?.trim().to_owned(),
            machine: format!("{}{extension}", std::env::consts::ARCH),
        })
    }
}

impl Kept {
    /// Of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(path: &Path) -> Result<Kept> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Keeps counts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(path: &Path, setting: &Setting, found: &[(&str, Counts)]) -> Result<()> {
        let counts = found
            .iter()
            .map(|(name, counts)| ((*name).to_owned(), *counts))
            .collect();
        let kept = toml::to_string(&Kept {
            setting: setting.clone(),
            counts,
        })?;
        let head = "# Costs of a message, or of a packet on a link: written by `cargo xtask bench --update`.\n\n";
        fs::write(path, format!("{head}{kept}"))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Why counts cannot be compared here, if they cannot.
    pub(super) fn differs(&self, here: &Setting) -> Option<String> {
        let Setting { rustc, machine } = &self.setting;
        let kept = format!("the stored counts are of {rustc} on {machine}");
        (self.setting != *here)
            .then(|| format!("{kept}, but this is {} on {}", here.rustc, here.machine))
    }

    /// Fails if a count has risen, or if the workloads are not those kept where `all` were counted.
    pub(super) fn compare(&self, here: &Setting, found: &[(&str, Counts)], all: bool) -> Outcome {
        if let Some(why) = self.differs(here) {
            return Outcome::Skipped(why);
        }
        let mut faults = Vec::new();
        for (name, counts) in found {
            match self.counts.get(*name) {
                Some(kept) => faults.extend(risen(name, kept, counts)),
                None => faults.push(format!("{name} has no stored count")),
            }
        }
        let is_found = |name: &&String| found.iter().any(|(found, _)| found == name);
        let gone = self.counts.keys().filter(|name| all && !is_found(name));
        faults.extend(gone.map(|name| format!("{name} has a stored count but was not counted")));
        if faults.is_empty() {
            return Outcome::Passed;
        }
        Outcome::Failed(format!(
            "{} (if intended: cargo xtask bench --update)",
            faults.join("; ")
        ))
    }
}

fn risen(name: &str, kept: &Counts, found: &Counts) -> Vec<String> {
    let (part, beyond) = RISE;
    let both = kept.named().zip(found.named());
    let risen = both.filter(|((_, kept), (_, found))| *found > kept * (1.0 + part) + beyond);
    risen
        .map(|((what, kept), (_, found))| format!("{name}: {what} {kept:.2} -> {found:.2}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: Counts = Counts {
        instructions: 100.0,
        reads: 40.0,
        writes: 20.0,
        stalled: Some(0.01),
    };

    fn setting() -> Setting {
        Setting {
            rustc: "rustc 1".into(),
            machine: "x86_64".into(),
        }
    }

    fn compare(found: &[(&str, Counts)]) -> Outcome {
        let counts = BTreeMap::from([("walk".to_owned(), COUNTS)]);
        Kept {
            setting: setting(),
            counts,
        }
        .compare(&setting(), found, true)
    }

    #[test]
    fn each_count_may_rise_by_a_twentieth() {
        assert!(matches!(
            compare(&[(
                "walk",
                Counts {
                    writes: 20.9,
                    ..COUNTS
                }
            )]),
            Outcome::Passed
        ));
        assert!(matches!(
            compare(&[(
                "walk",
                Counts {
                    instructions: 50.0,
                    ..COUNTS
                }
            )]),
            Outcome::Passed
        ));
        for more in [
            Counts {
                writes: 21.1,
                ..COUNTS
            },
            Counts {
                stalled: Some(0.2),
                instructions: 90.0,
                ..COUNTS
            },
            Counts {
                reads: 42.1,
                instructions: 90.0,
                ..COUNTS
            },
            Counts {
                instructions: 106.0,
                ..COUNTS
            },
        ] {
            let Outcome::Failed(why) = compare(&[("walk", more)]) else {
                panic!("found no rise in {more:?}")
            };
            assert!(why.contains("walk: ") && why.contains("->"), "{why}");
        }
    }

    #[test]
    fn workloads_that_are_not_kept_or_not_counted_fail() {
        assert!(matches!(
            compare(&[("walk", COUNTS), ("run", COUNTS)]),
            Outcome::Failed(_)
        ));
        assert!(matches!(compare(&[]), Outcome::Failed(_)));
    }

    #[test]
    fn counts_of_another_compiler_or_machine_are_not_compared() {
        let kept = Kept {
            setting: setting(),
            counts: BTreeMap::new(),
        };
        for other in [
            Setting {
                rustc: "rustc 2".into(),
                ..setting()
            },
            Setting {
                machine: "riscv64".into(),
                ..setting()
            },
        ] {
            assert!(matches!(
                kept.compare(&other, &[("walk", COUNTS)], true),
                Outcome::Skipped(_)
            ));
        }
    }
}

//! Outputs of a command, which are checked before it starts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use flowcast_io::folder_of;
use rustix::fs::{Access, access};

use super::{
    inputs::STANDARD_INPUT,
    place::{Identity, followed, is_descriptor},
};
use crate::exit::EnvironmentLacks;

/// File that a command is going to write.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// Option that named the file, for messages.
    pub option: &'a str,
    /// Path as given; links are not resolved.
    pub path: &'a Path,
    /// Allowed endings; empty if any ending is allowed.
    pub endings: &'a [&'a str],
}

impl<'a> Output<'a> {
    /// Output with any ending.
    pub fn new(option: &'a str, path: &'a Path) -> Output<'a> {
        Output {
            option,
            path,
            endings: &[],
        }
    }

    /// Outputs with any ending that one option names.
    pub fn each(
        option: &'a str,
        paths: impl IntoIterator<Item = &'a PathBuf>,
    ) -> impl Iterator<Item = Output<'a>> {
        paths.into_iter().map(move |path| Output::new(option, path))
    }
}

/// Checks the files that a command reads, the standard input included, and those that it is going to write. Inputs that are
/// not files, such as names of built-in networks, are ignored.
///
/// # Errors
/// An output that is an input, lies in a folder that is an input, or is another output; an ending of another format; a
/// missing folder; a file or folder without permission to write.
pub fn declare<'i, 'o>(
    inputs: impl IntoIterator<Item = &'i Path>,
    outputs: impl IntoIterator<Item = Output<'o>>,
) -> Result<()> {
    let outputs: Vec<Output> = outputs.into_iter().collect();
    outputs.iter().try_for_each(check_alone)?;
    for input in inputs
        .into_iter()
        .chain([Path::new(STANDARD_INPUT)])
        .filter(|input| input.exists())
    {
        outputs
            .iter()
            .try_for_each(|output| check_against(input, output))?;
    }
    for (at, one) in outputs.iter().enumerate() {
        if let Some(other) = outputs[at + 1..].iter().find(|other| {
            Identity::at(other.path).is_some_and(|own| Identity::at(one.path) == Some(own))
        }) {
            let (one, other, path) = (one.option, other.option, one.path.display());
            bail!("{one} and {other}: found {path} for both, expected two different files");
        }
    }
    Ok(())
}

fn check_alone(output: &Output<'_>) -> Result<()> {
    let Output {
        option,
        path,
        endings,
    } = *output;
    let place = followed(path);
    let found = fs::metadata(&place);
    if found.as_ref().is_ok_and(|found| found.is_dir()) {
        bail!(
            "{option}: found the folder {}, expected the name of a file",
            path.display()
        );
    }
    if is_descriptor(&place) || found.as_ref().is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let ending = path.extension().and_then(|ending| ending.to_str());
    if !endings.is_empty() && !ending.is_some_and(|ending| endings.contains(&ending)) {
        let expected: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
        bail!(
            "{option}: found `{}`, expected a name that ends in {}",
            path.display(),
            expected.join(" or ")
        );
    }
    if path.file_name().is_none() {
        bail!(
            "{option}: found `{}`, expected the name of a file",
            path.display()
        );
    }
    let folder = folder_of(&place);
    if !folder.is_dir() {
        bail!(
            "{option}: cannot write {}: found no folder {}",
            path.display(),
            folder.display()
        );
    }
    let is_allowed = access(folder, Access::WRITE_OK).is_ok()
        && (found.is_err() || access(&place, Access::WRITE_OK).is_ok());
    if !is_allowed {
        bail!(EnvironmentLacks(format!(
            "{option}: cannot write {}: found no write permission",
            path.display()
        )));
    }
    Ok(())
}

fn check_against(input: &Path, output: &Output<'_>) -> Result<()> {
    let is_same = if input.is_dir() {
        let (folder, place) = (fs::canonicalize(input), fs::canonicalize(output.path));
        matches!((&folder, &place), (Ok(folder), Ok(place)) if place.starts_with(folder))
    } else {
        Identity::at(input).is_some_and(|own| Identity::at(output.path) == Some(own))
    };
    if is_same {
        let (option, path) = (output.option, output.path.display());
        bail!(
            "{option}: found {path}, which is an input ({}), expected another file",
            input.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(inputs: &[&Path], outputs: &[(&str, &Path)]) -> String {
        let outputs = outputs
            .iter()
            .map(|(option, path)| Output::new(option, path));
        declare(inputs.iter().copied(), outputs)
            .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_file_under_another_name_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("q.dim"), "").unwrap();
        fs::hard_link(at("q.dim"), at("hard")).unwrap();
        symlink("q.dim", at("soft")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        for name in ["q.dim", "hard", "soft", "./q.dim"] {
            assert!(
                refused(&[&at("q.dim")], &[("-o", &at(name))]).contains("which is an input"),
                "{name}"
            );
        }
        let both = refused(&[], &[("-o", &at("dangling")), ("--ranks", &at("nothing"))]);
        assert!(both.starts_with("-o and --ranks: found "), "{both}");
        assert!(refused(&[folder.path()], &[("-o", &at("q.dim"))]).contains("which is an input"));
        assert_eq!(
            refused(
                &[&at("q.dim"), Path::new("gige-tcp")],
                &[("-o", &at("new")), ("--ranks", &at("x"))]
            ),
            ""
        );
        assert_eq!(
            refused(
                &[],
                &[
                    ("-o", Path::new("/dev/null")),
                    ("--ranks", Path::new("/dev/null"))
                ]
            ),
            ""
        );
    }

    #[test]
    fn endings_and_folders_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such.csv");
        let message = refused(&[], &[("--report", &missing)]);
        assert!(
            message.ends_with(&format!(
                "found no folder {}",
                missing.parent().unwrap().display()
            )),
            "{message}"
        );
        let xlsx = folder.path().join("x.xlsx");
        let output = Output {
            option: "--messages",
            path: &xlsx,
            endings: &["csv", "parquet"],
        };
        let message = declare([], [output]).unwrap_err().to_string();
        assert!(
            message.ends_with("x.xlsx`, expected a name that ends in .csv or .parquet"),
            "{message}"
        );
    }
}

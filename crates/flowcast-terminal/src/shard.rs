//! Shards of a run: consecutive parts of its cases, each of which a process of its own computes, and the names of their files.

use std::{
    ffi::{OsStr, OsString},
    fmt, fs,
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use flowcast_io::folder_of;

use crate::launcher::{Place, places, variable};

/// Option of every command that can run a shard of its cases.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Run only shard i of N, such as 2/8; auto takes i and N from Slurm, Open MPI or PMI, and puts i-of-N into the names of
    /// output files; `flowcast merge` joins the files
    #[arg(long, value_name = "i/N|auto")]
    pub shard: Option<Shard>,
}

/// One of the shards of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 1.
    pub number: usize,
    /// Number of shards, at least 1.
    pub of: usize,
    /// `true` if the launcher has numbered the processes. All of them then have the same options.
    is_automatic: bool,
}

/// Error of `auto` without the variables of a launcher.
const NO_VARIABLES: &str = "found none of OMPI_COMM_WORLD_RANK with OMPI_COMM_WORLD_SIZE, PMI_RANK with PMI_SIZE, \
                            SLURM_PROCID with SLURM_NTASKS, SLURM_ARRAY_TASK_ID with SLURM_ARRAY_TASK_COUNT; expected one of \
                            these pairs, or i/N (PBS_ARRAY_INDEX and PMIX_RANK come without a count)";

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        if text == "auto" {
            return Shard::of_process(&variable);
        }
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard {
                number,
                of,
                is_automatic: false,
            }),
            _ => Err("expected auto, or i/N with i from 1 to N, such as 2/8".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// Shard with the position of this process among those of its launcher.
    fn of_process(read: &dyn Fn(&str) -> Option<String>) -> Result<Shard, String> {
        let mut places = places(read);
        // The step of a batch script and a launcher of one process do not contradict the launcher of the others.
        if places.iter().any(|(_, place)| place.size > 1) {
            places.retain(|(_, place)| place.size > 1);
        }
        let found: Vec<String> = places
            .iter()
            .map(|(name, Place { rank, size })| format!("process {rank} of {size} by {name}"))
            .collect();
        places.dedup_by_key(|(_, place)| *place);
        match places[..] {
            [(_, Place { rank, size })] if rank.0 < size => Ok(Shard {
                number: rank.index() + 1,
                of: size as usize,
                is_automatic: true,
            }),
            [] => Err(NO_VARIABLES.into()),
            _ => Err(format!(
                "found {}; expected one process below its count, or i/N (`env -u` removes a variable)",
                found.join(" and ")
            )),
        }
    }

    /// Consecutive cases of the shard, counted from 0. The sizes of shards differ by at most one case.
    pub fn cases(self, all: usize) -> Range<usize> {
        let [from, to] = [self.number - 1, self.number]
            .map(|number| (number as u128 * all as u128 / self.of as u128) as usize);
        from..to
    }

    /// File for the results of the shard: the given name, or with `auto`, which all processes get with the same name, the
    /// name with `i-of-N` before its ending.
    pub fn file(self, given: &Path) -> PathBuf {
        if !self.is_automatic {
            return given.to_owned();
        }
        let mut ending = OsString::from(format!("{}-of-{}", self.number, self.of));
        if let Some(own) = given.extension() {
            ending.push(".");
            ending.push(own);
        }
        given.with_extension(ending)
    }
}

/// Files of a name: the file itself or, if it does not exist, the files that automatic shards have written for the name.
pub fn files_of(given: &Path) -> Vec<PathBuf> {
    if given.exists() {
        return vec![given.to_owned()];
    }
    let entries = fs::read_dir(folder_of(given)).into_iter().flatten();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let of_shards = names.filter(|name| given_name(name).as_deref() == given.file_name());
    let mut files: Vec<PathBuf> = of_shards.map(|name| given.with_file_name(name)).collect();
    if files.is_empty() {
        files.push(given.to_owned());
    }
    files.sort();
    files
}

/// Name from which [`Shard::file`] has made the name of a file.
fn given_name(name: &OsStr) -> Option<OsString> {
    let (before, after) = name.to_str()?.rsplit_once("-of-")?;
    let (stem, _) = before.rsplit_once('.')?;
    let ending = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    Some(format!("{stem}{ending}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shard of a process with these variables: `NAME=VALUE`, separated by spaces.
    fn automatic(variables: &str) -> Result<Shard, String> {
        Shard::of_process(&|name| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        })
    }

    #[test]
    fn shards_contain_every_case_once_and_have_equal_sizes() {
        for (all, of) in [(0, 3), (1, 3), (10, 3), (160, 7), (5, 8)] {
            let shards: Vec<Range<usize>> = (1..=of)
                .map(|number| {
                    let shard: Shard = format!("{number}/{of}").parse().unwrap();
                    shard.cases(all)
                })
                .collect();
            let cases: Vec<usize> = shards.iter().cloned().flatten().collect();
            assert_eq!(cases, (0..all).collect::<Vec<_>>());
            assert!(
                shards
                    .iter()
                    .all(|shard| (all / of..=all / of + 1).contains(&shard.len())),
                "{shards:?}"
            );
        }
    }

    #[test]
    fn shards_that_do_not_exist_are_refused() {
        for text in ["0/4", "5/4", "1", "a/b", "1/0", "automatic", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }

    #[test]
    fn launchers_number_shards_from_one() {
        for (variables, expected) in [
            ("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8", "4/8"),
            ("PMI_RANK=0 PMI_SIZE=1", "1/1"),
            // srun with PMI-2 sets both pairs.
            (
                "PMI_RANK=511 PMI_SIZE=512 SLURM_PROCID=511 SLURM_NTASKS=512",
                "512/512",
            ),
            // mpirun in a step of one task.
            (
                "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 SLURM_PROCID=0 SLURM_NTASKS=1",
                "4/8",
            ),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1 \
                 SLURM_ARRAY_TASK_COUNT=4",
                "2/4",
            ),
        ] {
            assert_eq!(automatic(variables).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn contradictory_and_missing_variables_are_named() {
        let two = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 SLURM_PROCID=0 SLURM_NTASKS=4";
        let said = automatic(two).unwrap_err();
        assert!(
            said.starts_with(
                "found process 3 of 8 by OMPI_COMM_WORLD_RANK and process 0 of 4 by SLURM_PROCID;"
            ),
            "{said}"
        );
        let beyond = automatic("PMI_RANK=4 PMI_SIZE=4").unwrap_err();
        assert!(beyond.contains("process 4 of 4 by PMI_RANK"), "{beyond}");
        let none = automatic("").unwrap_err();
        for name in [
            "OMPI_COMM_WORLD_SIZE",
            "PMI_SIZE",
            "SLURM_NTASKS",
            "SLURM_ARRAY_TASK_COUNT",
        ] {
            assert!(none.contains(name), "{none}");
        }
        // The jobs of a PBS array do not know their number.
        assert_eq!(automatic("PBS_ARRAY_INDEX=3"), Err(none));
    }

    #[test]
    fn automatic_shards_write_files_that_their_common_name_finds() {
        let folder = tempfile::tempdir().unwrap();
        for (given, expected) in [
            ("lu.csv", "lu.2-of-3.csv"),
            ("lu", "lu.2-of-3"),
            ("a-of-b.html", "a-of-b.2-of-3.html"),
        ] {
            let given = folder.path().join(given);
            let explicit: Shard = "2/3".parse().unwrap();
            assert_eq!(explicit.file(&given), given);
            assert_eq!(files_of(&given), vec![given.clone()]);
            let files = [1, 2, 3].map(|number| {
                Shard {
                    number,
                    of: 3,
                    is_automatic: true,
                }
                .file(&given)
            });
            assert_eq!(files[1], folder.path().join(expected));
            for file in files.iter().rev() {
                fs::write(file, "").unwrap();
            }
            assert_eq!(files_of(&given), files);
            // A file of the name itself is not a set of shards.
            fs::write(&given, "").unwrap();
            assert_eq!(files_of(&given), [given]);
        }
    }
}

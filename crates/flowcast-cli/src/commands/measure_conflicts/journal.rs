//! Conflicts on their way to a file: kept beside it as `NAME.partial`, each in the system's hands before the next begins.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flowcast::cluster::racks::Racks;
use flowcast::fit::conflict_samples::{ConflictSamples, Measured, csv_header, push_rows};
use flowcast::fit::samples::SamplesError;

use crate::files::{read_text, write_whole};

/// What stands behind the rows of a conflict that is whole.
const DONE: &str = "# done:";
/// What a resumed measurement must have in common with the one before.
const SAME: [&str; 3] = ["path", "lab", "racks"];

/// A measurement that is being written.
#[derive(Debug)]
pub struct Journal {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts afresh. Conflicts of an interrupted run are in the way.
    pub fn start(target: &Path, provenance: &BTreeMap<String, String>) -> Result<Journal> {
        let path = path_beside(target);
        if path.exists() {
            bail!(
                "{} holds the conflicts of an interrupted run: --resume goes on with them, or remove it",
                path.display()
            );
        }
        let cannot = || format!("cannot write {}", path.display());
        let mut file = File::create_new(&path).with_context(cannot)?;
        file.write_all(csv_header(provenance).as_bytes()).with_context(cannot)?;
        Ok(Journal { target: target.to_owned(), path, file })
    }

    /// Goes on with an interrupted run, if there is one, and gives its conflicts.
    pub fn resume(target: &Path, provenance: &BTreeMap<String, String>) -> Result<(Journal, Vec<Measured>)> {
        let path = path_beside(target);
        if !path.exists() {
            return Ok((Journal::start(target, provenance)?, Vec::new()));
        }
        let text = read_text(&path)?;
        // A run that was killed leaves a conflict without its end.
        let whole = text.rfind(DONE).and_then(|at| Some(at + text[at..].find('\n')? + 1)).unwrap_or(0);
        if whole == 0 {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            return Ok((Journal::start(target, provenance)?, Vec::new()));
        }
        let samples = read(&text[..whole]).with_context(|| path.display().to_string())?;
        if let Some(key) = SAME.into_iter().find(|key| samples.provenance.get(*key) != provenance.get(*key)) {
            let known = |all: &BTreeMap<String, String>| all.get(key).cloned().unwrap_or_else(|| "none".into());
            bail!(
                "--resume: {}: found {key} {}, expected that of this run, {}",
                path.display(),
                known(&samples.provenance),
                known(provenance)
            );
        }
        let cannot = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().append(true).open(&path).with_context(cannot)?;
        file.set_len(whole as u64).with_context(cannot)?;
        Ok((Journal { target: target.to_owned(), path, file }, samples.measured))
    }

    /// Adds a conflict.
    pub fn append(&mut self, measured: &Measured, racks: &Racks) -> Result<()> {
        let mut text = String::new();
        push_rows(&mut text, measured, racks);
        text += &format!("{DONE} {}\n", measured.conflict.name);
        self.file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Writes the whole file and removes the partial one.
    pub fn finish(self, samples: &ConflictSamples) -> Result<()> {
        write_whole(&self.target, |out| Ok(out.write_all(samples.to_csv().as_bytes())?))?;
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Removes the partial file of a run that carried nothing.
    pub fn abandon(self) {
        // The error that ends the run is the one to tell.
        let _ = fs::remove_file(&self.path);
    }

    /// Where the conflicts are meanwhile.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn read(text: &str) -> Result<ConflictSamples, SamplesError> {
    let mut samples = ConflictSamples::from_csv(text)?;
    samples.provenance.remove("done");
    Ok(samples)
}

fn path_beside(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast::cluster::conflicts::ConflictPlan;
    use flowcast::units::{Bytes, Node, Time};

    fn measured() -> Vec<Measured> {
        let nodes = (0..3).map(Node).collect();
        let plan = ConflictPlan { nodes, racks: Racks::default(), size: Bytes(1000), most: 2 };
        let time = Time::from_micros(200.0);
        let all = plan.conflicts().into_iter();
        all.map(|conflict| Measured { durations: vec![vec![time; 2]; conflict.flows.len()], conflict }).collect()
    }

    fn path(name: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("path".to_owned(), name.to_owned())])
    }

    #[test]
    fn a_killed_run_goes_on_with_whole_conflicts_and_becomes_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("conflicts.csv");
        let (all, racks) = (measured(), Racks::default());
        let mut first = Journal::start(&target, &path("tcp")).unwrap();
        all[..3].iter().for_each(|one| first.append(one, &racks).unwrap());
        // Killed in the middle of a conflict.
        first.file.write_all(b"in-2,in,1,1,1,0,,,1000,0,200\nin-2,in,1,2").unwrap();
        drop(first);
        assert!(Journal::start(&target, &path("tcp")).unwrap_err().to_string().contains("--resume"));
        let other = Journal::resume(&target, &path("mpi")).unwrap_err().to_string();
        assert!(other.contains("found path tcp, expected that of this run, mpi"), "{other}");

        let (mut second, known) = Journal::resume(&target, &path("tcp")).unwrap();
        assert_eq!(known, all[..3]);
        second.append(&all[3], &racks).unwrap();
        let (third, known) = Journal::resume(&target, &path("tcp")).unwrap();
        assert_eq!(known, all[..4]);
        let samples = ConflictSamples { provenance: path("tcp"), racks, measured: all };
        third.finish(&samples).unwrap();
        assert_eq!(ConflictSamples::from_csv(&fs::read_to_string(&target).unwrap()).unwrap(), samples);
        assert!(!path_beside(&target).exists());
    }

    #[test]
    fn a_run_that_was_killed_at_once_is_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("conflicts.csv");
        drop(Journal::start(&target, &path("tcp")).unwrap());
        let (journal, known) = Journal::resume(&target, &path("mpi")).unwrap();
        assert!(known.is_empty());
        journal.abandon();
        assert!(!path_beside(&target).exists());
    }
}

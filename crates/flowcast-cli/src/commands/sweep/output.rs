//! Where rows go: to a file beside its place until all are there, so that no finished set is lost, or to standard
//! output at the end.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::rows::{Part, Rows};
use crate::files::{read_text, write_whole};

/// The rows of this run, and the file that keeps them meanwhile.
#[derive(Debug)]
pub struct Output {
    header: String,
    rows: Rows,
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Output {
    /// Nothing is kept before the end.
    pub fn to_standard_output(header: String) -> Output {
        Output { header, rows: Rows::default(), kept: None }
    }

    /// Starts afresh. Rows of an interrupted run are in the way.
    pub fn start(target: &Path, header: String) -> Result<Output> {
        let path = partial(target);
        if path.exists() {
            bail!("{} holds the sets of an interrupted run: --resume goes on with them, or remove it", path.display());
        }
        let cannot = || format!("cannot write {}", path.display());
        let mut file = File::create_new(&path).with_context(cannot)?;
        file.write_all(header.as_bytes()).with_context(cannot)?;
        let kept = Kept { target: target.to_owned(), path, file };
        Ok(Output { header, rows: Rows::default(), kept: Some(kept) })
    }

    /// Goes on with the rows of an interrupted run, if there are any.
    pub fn resume(target: &Path, header: String) -> Result<Output> {
        let path = partial(target);
        if !path.exists() {
            return Output::start(target, header);
        }
        let name = path.display().to_string();
        let part = Part::read(&name, &read_text(&path)?)?;
        let begun = header.starts_with(&part.header);
        if !begun || (part.header != header && part.rows.len() > 0) {
            bail!("{name}: found the sets of another sweep, expected the same trace, network, fields and values");
        }
        let cannot = || format!("cannot write {name}");
        let mut file = OpenOptions::new().append(true).open(&path).with_context(cannot)?;
        if part.header == header {
            // A run that was killed while writing leaves half a row.
            file.set_len(part.whole as u64).with_context(cannot)?;
        } else {
            file.set_len(0).with_context(cannot)?;
            file.write_all(header.as_bytes()).with_context(cannot)?;
        }
        let kept = Kept { target: target.to_owned(), path, file };
        Ok(Output { header, rows: part.rows, kept: Some(kept) })
    }

    /// The rows so far.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Adds rows; they are in the system's hands when this returns.
    pub fn append(&mut self, rows: Vec<(usize, String)>) -> Result<()> {
        if let Some(Kept { path, file, .. }) = &mut self.kept {
            let text: String = rows.iter().map(|(_, line)| line.as_str()).collect();
            file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        }
        rows.into_iter().try_for_each(|(set, line)| self.rows.insert(set, line))
    }

    /// Writes all rows in the order of the sets, and removes the partial file.
    pub fn finish(&self) -> Result<()> {
        let Some(Kept { target, path, .. }) = &self.kept else {
            return write(&mut std::io::stdout().lock(), &self.header, &self.rows);
        };
        write_whole(target, |out| write(out, &self.header, &self.rows))?;
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
    }
}

/// Writes a header and rows.
pub fn write(out: &mut impl Write, header: &str, rows: &Rows) -> Result<()> {
    out.write_all(header.as_bytes())?;
    rows.lines().try_for_each(|line| out.write_all(line.as_bytes()))?;
    Ok(())
}

fn partial(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "# {\"schema\":\"flowcast/sweep/1\",\"sets\":3}\nset,makespan_s,communication_share\n";

    fn rows(sets: &[usize]) -> Vec<(usize, String)> {
        sets.iter().map(|set| (*set, format!("{set},0.5,0.25\n"))).collect()
    }

    #[test]
    fn a_killed_run_goes_on_whatever_it_was_writing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("sweep.csv");
        let mut whole = Output::start(&target, HEADER.into()).unwrap();
        whole.append(rows(&[2, 0, 1])).unwrap();
        let text = fs::read(partial(&target)).unwrap();
        whole.finish().unwrap();
        let expected = fs::read(&target).unwrap();
        for killed_at in 0..=text.len() {
            fs::write(partial(&target), &text[..killed_at]).unwrap();
            let mut output = Output::resume(&target, HEADER.into()).unwrap();
            let missing: Vec<usize> = (0..3).filter(|set| !output.rows().contains(*set)).collect();
            assert_eq!(missing.is_empty(), killed_at == text.len());
            output.append(rows(&missing)).unwrap();
            output.finish().unwrap();
            assert_eq!(fs::read(&target).unwrap(), expected, "killed at {killed_at}");
            assert!(!partial(&target).exists());
        }
    }

    #[test]
    fn sets_of_another_sweep_are_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("sweep.csv");
        Output::start(&target, HEADER.into()).unwrap().append(rows(&[1])).unwrap();
        let message = format!("{:#}", Output::start(&target, HEADER.into()).unwrap_err());
        assert!(message.contains("--resume"), "{message}");
        let message = format!("{:#}", Output::resume(&target, HEADER.replace('3', "4")).unwrap_err());
        assert!(message.contains("another sweep"), "{message}");
    }
}

//! Output of rows. They are written to a file beside the output until all are complete, so that no finished set is lost, or
//! to standard output at the end.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};
use flowcast::{
    report::sweep_page,
    study::rows::{ResultsPart, Rows},
};

use flowcast_terminal::{
    files::{self, read_own_text, write_text},
    growing::{GrowingFile, partial},
    print_out,
};

/// Rows of this run, and the file that keeps them in the meantime.
#[derive(Debug)]
pub(super) struct Output {
    header: String,
    rows: Rows,
    kept: Option<GrowingFile>,
}

const CONTENT: &str = "the sets of an interrupted run";

impl Output {
    /// Refuses to overwrite the results of an interrupted run.
    pub(super) fn refuse_earlier(target: &Path) -> Result<()> {
        GrowingFile::start(&partial(target), CONTENT, "").map(drop)
    }

    /// Resumes an interrupted run if there is one. Without a target, the output is the standard output.
    pub(super) fn open(target: Option<&Path>, header: String) -> Result<Output> {
        let (mut rows, mut kept) = (Rows::default(), None);
        if let Some(path) = target.map(partial) {
            let (file, found) = GrowingFile::resume(&path, CONTENT, &header, |text| {
                let name = path.display().to_string();
                let part = ResultsPart::read(&name, text)?;
                ensure!(
                    part.header == header,
                    "{name}: found the sets of another sweep, expected the same trace, network, fields and values"
                );
                Ok(part.rows)
            })?;
            (rows, kept) = (found, Some(file));
        }
        Ok(Output { header, rows, kept })
    }

    /// Rows of all finished sets, including those of an interrupted run that was resumed.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Adds rows. They are passed to the system before the function returns.
    pub(super) fn append(&mut self, rows: Vec<(usize, String)>) -> Result<()> {
        if let Some(file) = &mut self.kept {
            file.append(
                &rows
                    .iter()
                    .map(|(_, line)| line.as_str())
                    .collect::<String>(),
            )?;
        }
        Ok(rows
            .into_iter()
            .try_for_each(|(set, line)| self.rows.insert(set, line))?)
    }

    /// Writes all rows in the order of the sets, and removes the partial file.
    pub(super) fn finish(&self) -> Result<()> {
        let Some(file) = &self.kept else {
            print_out!("{}", self.header);
            self.rows.lines().for_each(|line| print_out!("{line}"));
            return Ok(());
        };
        file.finish(|out| write_as(&file.target(), out, &self.header, &self.rows))
    }
}

/// Files that receive rows or their page, for the checks before the work.
pub(in crate::commands) fn declared<'a>(
    output: &'a Option<PathBuf>,
    report: &'a Option<PathBuf>,
) -> impl Iterator<Item = files::Output<'a>> {
    let pages = report.iter().map(|path| files::Output {
        option: "--report",
        path,
        endings: &["html"],
    });
    files::Output::each("-o", output).chain(pages)
}

/// Draws the rows of the output if a page is requested too.
pub(in crate::commands) fn draw(output: &Option<PathBuf>, report: &Option<PathBuf>) -> Result<()> {
    let (Some(output), Some(report)) = (output, report) else {
        return Ok(());
    };
    write_text(report, &page(report, &read_own_text(output)?))
}

/// `true` if the result is a page.
pub(super) fn is_page(target: &Path) -> bool {
    target.extension().is_some_and(|ending| ending == "html")
}

/// Writes a header and rows, as a page if the target is one.
pub(in crate::commands) fn write_as(
    target: &Path,
    out: &mut impl Write,
    header: &str,
    rows: &Rows,
) -> Result<()> {
    if !is_page(target) {
        return write(out, header, rows);
    }
    let mut csv = Vec::new();
    write(&mut csv, header, rows)?;
    let csv = String::from_utf8(csv).expect("rows are text");
    Ok(out.write_all(page(target, &csv).as_bytes())?)
}

/// Page with a header and rows.
pub(super) fn page(target: &Path, csv: &str) -> String {
    let named = target.file_stem().unwrap_or_default().to_string_lossy();
    sweep_page::html(&format!("Sweep {named}"), csv)
}

/// Writes a header and rows as text.
pub(super) fn write(out: &mut impl Write, header: &str, rows: &Rows) -> Result<()> {
    out.write_all(header.as_bytes())?;
    rows.lines()
        .try_for_each(|line| out.write_all(line.as_bytes()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEADER: &str =
        "# {\"schema\":\"flowcast/sweep/1\",\"sets\":3}\nset,makespan_s,communication_share\n";

    fn rows(sets: &[usize]) -> Vec<(usize, String)> {
        sets.iter()
            .map(|set| (*set, format!("{set},0.5,0.25\n")))
            .collect()
    }

    #[test]
    fn a_run_killed_while_it_writes_can_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("sweep.csv");
        let mut whole = Output::open(Some(&target), HEADER.into()).unwrap();
        whole.append(rows(&[2, 0, 1])).unwrap();
        let text = fs::read(partial(&target)).unwrap();
        whole.finish().unwrap();
        let expected = fs::read(&target).unwrap();
        for killed_at in 0..=text.len() {
            fs::write(partial(&target), &text[..killed_at]).unwrap();
            let mut output = Output::open(Some(&target), HEADER.into()).unwrap();
            let missing: Vec<usize> = (0..3).filter(|set| !output.rows().contains(*set)).collect();
            assert_eq!(missing.is_empty(), killed_at == text.len());
            output.append(rows(&missing)).unwrap();
            output.finish().unwrap();
            assert_eq!(
                fs::read(&target).unwrap(),
                expected,
                "killed at {killed_at}"
            );
            assert!(!partial(&target).exists());
        }
    }

    #[test]
    fn sets_of_another_sweep_are_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("sweep.csv");
        Output::open(Some(&target), HEADER.into())
            .unwrap()
            .append(rows(&[1]))
            .unwrap();
        let message = format!("{:#}", Output::refuse_earlier(&target).unwrap_err());
        assert!(message.contains("--resume"), "{message}");
        let message = format!(
            "{:#}",
            Output::open(Some(&target), HEADER.replace('3', "4")).unwrap_err()
        );
        assert!(message.contains("another sweep"), "{message}");
    }
}

//! Journal of completed measurements: one line of JSON each, written before the next measurement starts.
//!
//! The first line, the header, describes the measurements. Each line is preceded by a line with a checksum, as in
//! [`growing`](flowcast_terminal::growing).

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flowcast::study::rows::{ResultsPart, Rows};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use flowcast_terminal::{
    files::{Output, declare},
    growing::{self, GrowingFile, beside},
    shard::Shard,
};

/// Schema that this version writes.
const SCHEMA: &str = "flowcast/journal/1";

/// First line: properties that the other lines share.
pub(super) trait Header: Serialize + DeserializeOwned + PartialEq {
    /// Kind of the runs in the first line: `validation` or `app-validation`.
    const KIND: &'static str;
    /// Description of the lines for people.
    const LINES: &'static str;
    /// Properties that must be the same to resume a run.
    const SAME: &'static str;
}

/// File of the journal.
#[derive(Debug)]
pub(super) struct Journal(GrowingFile);

impl Journal {
    /// Starts a new journal.
    pub(super) fn start<H: Header>(path: &Path, header: &H) -> Result<Journal> {
        Ok(Journal(GrowingFile::start(
            path,
            &content::<H>(),
            &head_of(header)?,
        )?))
    }

    /// Resumes the journal of an earlier run, if there is one, and returns its lines.
    pub(super) fn resume<H: Header, L: DeserializeOwned>(
        path: &Path,
        header: &H,
    ) -> Result<(Journal, Vec<L>)> {
        let (file, lines) = GrowingFile::resume(
            path,
            &content::<H>(),
            &head_of(header)?,
            |text| {
                let Content {
                    header: found,
                    lines,
                } = parsed::<H, L>(path, text)?;
                ensure!(
                    found == *header,
                    "{}: found {} of another {}, expected those of this run (remove the file, or choose another --report)",
                    path.display(),
                    H::LINES,
                    H::SAME
                );
                Ok(lines)
            },
        )?;
        Ok((Journal(file), lines))
    }

    /// Appends a line of JSON with its checksum. Fails if the file cannot be written.
    pub(super) fn append(&mut self, line: &impl Serialize) -> Result<()> {
        self.0.append(&line_of(line)?)
    }
}

fn content<H: Header>() -> String {
    format!("{} of an earlier run", H::LINES)
}

fn head_of<H: Header>(header: &H) -> Result<String> {
    let mut head = serde_json::to_value(header)?;
    head["schema"] = SCHEMA.into();
    head["kind"] = H::KIND.into();
    line_of(&head)
}

fn line_of(content: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(content)? + "\n")
}

/// Content of a journal.
pub(super) struct Content<H, L> {
    /// First line: the description of the measurements.
    pub header: H,
    /// The other lines, up to the first incomplete one.
    pub lines: Vec<L>,
}

/// Reads a journal.
pub(super) fn read<H: Header, L: DeserializeOwned>(path: &Path) -> Result<Content<H, L>> {
    parsed(path, &growing::read(path)?)
}

fn parsed<H: Header, L: DeserializeOwned>(path: &Path, text: &str) -> Result<Content<H, L>> {
    let mut lines = text.lines().enumerate();
    let (at, first) = lines
        .next()
        .with_context(|| format!("{}: found no line, expected a header", path.display()))?;
    let mut head: Map<String, Value> =
        serde_json::from_str(first).with_context(|| place(path, at))?;
    let [schema, kind] = ["schema", "kind"].map(|name| head.remove(name).unwrap_or_default());
    let (schema, kind) = (schema.as_str().unwrap_or(""), kind.as_str().unwrap_or(""));
    ensure!(
        (schema, kind) == (SCHEMA, H::KIND),
        "{}: found schema `{schema}` of kind `{kind}`, expected `{SCHEMA}` of kind `{}`",
        place(path, at),
        H::KIND
    );
    let header: H = serde_json::from_value(head.into()).with_context(|| place(path, at))?;
    let lines = lines.map(|(at, line)| serde_json::from_str(line).with_context(|| place(path, at)));
    Ok(Content {
        header,
        lines: lines.collect::<Result<_>>()?,
    })
}

/// Journal of a shard as a part of the journal of the whole run; `None` if the text is not a journal.
pub(crate) fn part_of_run(path: &Path, text: &str) -> Result<Option<ResultsPart>> {
    let (head, lines) = text.split_once('\n').unwrap_or_default();
    if !head.contains(SCHEMA) {
        return Ok(None);
    }
    let mut header: Map<String, Value> =
        serde_json::from_str(head).with_context(|| place(path, 0))?;
    let field = header.remove("shard").unwrap_or_default();
    let share = field.as_str().and_then(|text| text.split_once(" of "));
    let share =
        share.and_then(|(shard, all)| Some((shard.parse::<Shard>().ok()?, all.parse().ok()?)));
    let (shard, all) = share.with_context(|| {
        format!(
            "{}: found no shard, expected the journal of a shard",
            place(path, 0)
        )
    })?;
    let mut rows = Rows::default();
    for (number, line) in shard.cases(all).zip(lines.split_inclusive('\n')) {
        rows.insert(number, line.to_owned())?;
    }
    Ok(Some(ResultsPart {
        header: line_of(&header)?,
        sets: all,
        rows,
        whole: text.len(),
    }))
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{}", path.display(), line + 1)
}

/// Path of the journal: `FILE.html.journal`.
pub(super) fn path_beside(report: &Path) -> PathBuf {
    beside(report, ".journal")
}

/// Name of a file without its folder and ending.
pub(super) fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Checks that the page and the file of its figures can be written, before anything is run.
pub(super) fn declare_page<'a>(
    inputs: impl Iterator<Item = &'a Path>,
    report: &Path,
) -> Result<()> {
    let figures = report.with_extension("json");
    declare(
        inputs,
        [
            Output {
                option: "--report",
                path: report,
                endings: &["html"],
            },
            Output::new("--report", &figures),
        ],
    )
}

//! Results as pages.

use std::{io::Write, path::Path};

use anyhow::Result;
use flowcast::{
    report::chart_page::{Picture, chart_page},
    table::Document,
};
use serde_json::Value;

use crate::terminal::{
    files::Batch,
    output::Format,
    provenance,
    tables::{Most, ROWS},
};

/// Prints a result, at most so many rows of each table; writes its page as well if one is asked for.
pub(crate) fn give_answer(
    answer: &Document,
    page: Option<&Path>,
    format: Format,
    most: Most,
) -> Result<()> {
    if let Some(path) = page {
        write_page(
            path,
            &chart_page(answer, Picture::Tables, &provenance::of_this_run())?,
            &answer.json()?,
        )?;
    }
    format.print(&answer.clone().most(most.rows(), ROWS))
}

/// Writes a page and, beside it, the JSON file of its figures.
pub(crate) fn write_page(output: &Path, page: &str, document: &Value) -> Result<()> {
    let mut batch = Batch::new();
    batch.write(output, |out| Ok(out.write_all(page.as_bytes())?))?;
    batch.write(&output.with_extension("json"), |out| {
        Ok(writeln!(out, "{document}")?)
    })?;
    batch.commit()
}

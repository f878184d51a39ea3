//! Output of results as text and as pages.

use std::{collections::BTreeMap, io::Write, path::Path};

use anyhow::Result;
use flowcast::{
    answers::ROWS,
    report::chart_page::{Picture, chart_page},
    table::Document,
};

use crate::{files::Batch, output::Format, provenance, tables::RowLimit};

/// Prints a result, with a limited number of rows per table, and writes its page if one is requested.
pub fn give_answer(
    answer: &Document,
    picture: Picture,
    page: Option<&Path>,
    format: Format,
    most: RowLimit,
) -> Result<()> {
    if let Some(path) = page {
        let provenance = provenance::of_this_run();
        write_page(path, answer, picture, &provenance)?;
    }
    format.print(&answer.clone().most(most.rows(), ROWS))
}

/// Writes the page of a result, and the JSON file of its figures beside it.
pub fn write_page(
    output: &Path,
    document: &Document,
    picture: Picture,
    provenance: &BTreeMap<String, String>,
) -> Result<()> {
    let page = chart_page(document, picture, provenance)?;
    let document = document.json()?;
    let mut batch = Batch::new();
    batch.write(output, |out| Ok(out.write_all(page.as_bytes())?))?;
    batch.write(&output.with_extension("json"), |out| {
        Ok(writeln!(out, "{document}")?)
    })?;
    batch.commit()
}

//! Answers of the library, printed or as a page.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use flowcast::why::Answer;
use serde_json::Value;

use crate::terminal::files::Batch;
use crate::terminal::output::{Format, println_out};
use crate::terminal::provenance;
use crate::terminal::tables::{Most, TableForm, table};

/// Prints an answer of the library, at most so many rows of each table; the option shows all.
pub(crate) fn print_answer(
    answer: &Answer,
    format: Format,
    (most, option): (Most, &str),
) -> Result<()> {
    if format.json {
        println_out!("{}", answer.document());
        return Ok(());
    }
    answer.lines.iter().for_each(|line| println_out!("{line}"));
    let is_csv = TableForm::chosen() == TableForm::Csv;
    for own in answer
        .tables
        .iter()
        .filter(|own| is_csv || !own.rows.is_empty())
    {
        if !own.heading.is_empty() {
            println_out!("{}:", own.heading);
        }
        let mut shown = table(&own.columns);
        shown.add_rows(most.of(&own.rows));
        println_out!("{}", most.shown(&shown, own.rows.len(), option));
    }
    Ok(())
}

/// As [`print_answer`]; writes the answer's page as well if one is asked for.
pub(crate) fn give_answer(
    answer: &Answer,
    page: Option<&Path>,
    format: Format,
    most: (Most, &str),
) -> Result<()> {
    if let Some(path) = page {
        write_page(
            path,
            &answer.to_html(&provenance::of_this_run()),
            &answer.document(),
        )?;
    }
    print_answer(answer, format, most)
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

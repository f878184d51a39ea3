//! Output of results as text and as pages.

use std::{borrow::Borrow, collections::BTreeMap, io::Write, path::Path};

use anyhow::Result;
use flowcast::{
    answers::ROWS,
    model::network::Network,
    report::chart_page::{Picture, chart_page},
    table::Document,
    trace::Trace,
};

use flowcast_io::Request;

use crate::{
    files::Batch, output::Format, progress::Progress, provenance, tables::RowLimit,
    trace_args::Maps,
};

/// Answers a question about a trace, prints the answer with a limited number of rows per table, and writes its page if one is
/// requested.
///
/// # Errors
/// Errors of `open`, of the answer, and of the files.
pub fn give_answer<T: Borrow<Trace>>(
    request: &Request,
    open: impl FnOnce() -> Result<T>,
    network: Option<&Network>,
    page: Option<&Path>,
    format: Format,
    most: RowLimit,
) -> Result<()> {
    let mut progress = None;
    let answer = request.answer(
        || {
            let trace = open()?;
            let name = trace.borrow().name();
            progress = Some(Progress::without_end(format!("following {name}")));
            Ok(trace)
        },
        network,
        most.rows(),
        &mut Maps::default(),
    )?;
    drop(progress);
    if let Some(path) = page {
        write_page(path, &answer, request.picture(), &provenance::of_this_run())?;
    }
    format.print(&answer.most(most.rows(), ROWS))
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

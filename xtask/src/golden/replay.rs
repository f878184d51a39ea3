//! Tables of makespans that other simulators gave: each cell of a result column is a case.
//!
//! The traces and configurations that a row names lie beside the table (`replay/README.md` says what the columns mean).

mod workloads;

use std::{path::Path, str::FromStr};

use super::{case::Mismatch, guarded, report::Report};
use workloads::{COLLECTIVES, WORKLOADS};

/// Checks one cell of a column against its row.
pub(super) type ColumnCheck = fn(&Row, &str) -> Result<(), Mismatch>;

/// A table that this program knows.
#[derive(Debug)]
pub(super) struct Table {
    /// Its file name.
    pub file: &'static str,
    /// Columns that say what was run; all others are results.
    pub keys: &'static [&'static str],
    /// Checks by column; the part of a column's head from `(` on is a remark.
    pub columns: &'static [(&'static str, ColumnCheck)],
}

/// The tables.
pub(super) const TABLES: &[Table] = &[
    Table {
        file: "expected.tsv",
        keys: &["workload", "P", "I", "S", "msgs"],
        columns: WORKLOADS,
    },
    Table {
        file: "expected_collectives.tsv",
        keys: &["op", "P", "S", "model", "buses"],
        columns: COLLECTIVES,
    },
];

/// One line of a table.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The folder of the table and of the files that the row speaks of.
    pub folder: &'a Path,
    keys: Vec<(&'a str, &'a str)>,
}

impl<'a> Row<'a> {
    /// The value of a key column.
    ///
    /// # Errors
    /// The table lacks the column.
    pub(super) fn key(&self, name: &str) -> Result<&'a str, Mismatch> {
        let found = self.keys.iter().find(|(key, _)| *key == name);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| Mismatch::Malformed(format!("found no column `{name}`")))
    }

    /// The value of a key column as a number.
    ///
    /// # Errors
    /// The table lacks the column, or something else stands there.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Result<T, Mismatch> {
        let text = self.key(name)?;
        text.parse()
            .map_err(|_| Mismatch::Malformed(format!("{name}: found `{text}`, expected a number")))
    }

    fn name(&self) -> String {
        let keys: Vec<&str> = self.keys.iter().map(|(_, value)| *value).collect();
        format!("{}: {}", self.folder.display(), keys.join(" "))
    }
}

/// Runs all cells of the table at `path`.
pub(super) fn run(path: &Path, text: &str, report: &mut Report) {
    let file = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let Some(table) = TABLES.iter().find(|table| table.file == file) else {
        return report.add("file", &file, Err(Mismatch::Unknown("table".into())));
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let head: Vec<&str> = lines
        .next()
        .unwrap_or("")
        .split('\t')
        .map(without_remark)
        .collect();
    let mut rows = 0;
    for line in lines {
        run_row(table, folder, &head, line, report);
        rows += 1;
    }
    if rows == 0 {
        report.add(
            "file",
            &file,
            Err(Mismatch::Malformed("found no rows".into())),
        );
    }
}

fn without_remark(head: &str) -> &str {
    head.split('(').next().unwrap_or(head).trim()
}

fn run_row(table: &Table, folder: &Path, head: &[&str], line: &str, report: &mut Report) {
    let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
    if cells.len() != head.len() {
        let problem = format!(
            "found {} cells, expected {}: `{line}`",
            cells.len(),
            head.len()
        );
        return report.add("file", table.file, Err(Mismatch::Malformed(problem)));
    }
    let cells = head.iter().copied().zip(cells);
    let (keys, results): (Vec<_>, Vec<_>) =
        cells.partition(|(column, _)| table.keys.contains(column));
    let row = Row { folder, keys };
    if let Some(missing) = table.keys.iter().find_map(|key| row.key(key).err()) {
        return report.add("file", table.file, Err(missing));
    }
    for (column, expected) in results {
        let check = table.columns.iter().find(|(name, _)| *name == column);
        let outcome = match check {
            Some((_, check)) => guarded(|| check(&row, expected)),
            None => Err(Mismatch::Unknown("column".into())),
        };
        report.add(&format!("{}: {column}", table.file), &row.name(), outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(row: &Row, expected: &str) -> Result<(), Mismatch> {
        let (found, at) = (row.key("P")?, row.folder);
        if found == expected {
            Ok(())
        } else {
            Err(Mismatch::Unknown(format!("{found} in {}", at.display())))
        }
    }

    #[test]
    fn each_cell_is_a_case_and_an_unknown_column_fails() {
        let table = Table {
            file: "t.tsv",
            keys: &["op", "P"],
            columns: &[("known", agrees)],
        };
        let mut report = Report::default();
        for line in ["a\t2\t2\t0", "b\t3\t2\t0", "short\t1"] {
            run_row(
                &table,
                Path::new("here"),
                &["op", "P", "known", "stray"],
                line,
                &mut report,
            );
        }
        assert_eq!((report.passed(), report.failed()), (1, 4));
    }

    #[test]
    fn remarks_in_a_head_are_dropped() {
        assert_eq!(without_remark("lgs_lgp(L=2000,G=1)"), "lgs_lgp");
        assert_eq!(without_remark("dim_inf"), "dim_inf");
    }
}

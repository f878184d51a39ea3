//! Files with the number of bytes between ranks: tables with the columns `from,to,bytes`, and graphs in the METIS format.
//!
//! | format | content | recognised by |
//! |---|---|---|
//! | CSV | a row `from,to,bytes` for each message, in any order | its header |
//! | METIS | `vertices edges [format]`, then the neighbours of each vertex with the weights of the edges (Karypis) | numbers alone |
//!
//! An edge of a graph is listed at both of its ends. It becomes one message from the lower vertex to the higher one, with
//! the weight as the number of bytes.

use flowcast_network::csv::{CsvError, Table};
use flowcast_units::{Bytes, MOST_RANKS, Rank, plain_text};
use thiserror::Error;

use super::matrix::RankMessage;

/// Columns of a table.
const COLUMNS: [&str; 3] = ["from", "to", "bytes"];

/// Content of a matrix file: bytes between ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixFile {
    /// The highest rank plus one, or the number of vertices of a graph.
    pub ranks: usize,
    /// Messages in the order of the file.
    pub messages: Vec<RankMessage>,
}

/// Error for a rejected matrix file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}: {error}")]
pub struct MatrixFileError {
    /// Name of the file as given by the caller.
    pub file: String,
    /// Description and place of the error.
    pub error: CsvError,
}

/// Returns `true` if a text is meant as a matrix. The first line decides: it is the header of a table, or two to four
/// numbers.
pub fn is_matrix(text: &[u8]) -> bool {
    let text = plain_text(text);
    let text = String::from_utf8_lossy(&text);
    let Some(first) = first_line(&text) else {
        return false;
    };
    let columns: Vec<&str> = first.split(',').map(str::trim).collect();
    let words: Vec<&str> = first.split_whitespace().collect();
    let is_graph = (2..=4).contains(&words.len()) && words.iter().all(|word| is_number(word));
    is_graph || COLUMNS.iter().all(|name| columns.contains(name))
}

/// Returns the first line that is neither empty nor a comment.
fn first_line(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    lines.find(|line| !line.trim().is_empty() && !is_comment(line))
}

pub(super) fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_comment(line: &str) -> bool {
    line.starts_with(['#', '%'])
}

impl MatrixFile {
    /// Reads either format. `file` is the name of the file in errors.
    ///
    /// # Errors
    /// The first invalid line, with what was found and what was expected.
    pub fn read(file: &str, text: &[u8]) -> Result<MatrixFile, MatrixFileError> {
        let text = plain_text(text);
        let text = String::from_utf8_lossy(&text);
        let is_table = first_line(&text).is_none_or(|line| line.contains(','));
        let read = if is_table {
            from_table(&text)
        } else {
            from_metis(&text)
        };
        read.map_err(|error| MatrixFileError {
            file: file.to_owned(),
            error,
        })
    }
}

fn from_table(text: &str) -> Result<MatrixFile, CsvError> {
    let table = Table::parse(text)?;
    let (mut messages, mut ranks) = (Vec::new(), 0);
    for (line, [from, to, bytes]) in table.fields(COLUMNS)? {
        let [from, to] = [("from", from), ("to", to)].map(|(column, field)| {
            let number = field
                .trim()
                .parse()
                .ok()
                .filter(|rank: &u32| *rank < MOST_RANKS);
            number.ok_or_else(|| {
                CsvError::field(
                    line,
                    column,
                    field,
                    format!("a rank number below {MOST_RANKS}"),
                )
            })
        });
        let (from, to) = (from?, to?);
        let size = bytes.trim().parse();
        let size =
            size.map_err(|_| CsvError::field(line, "bytes", bytes, "a whole number of bytes"))?;
        ranks = ranks.max(from.max(to) as usize + 1);
        messages.push(RankMessage {
            from: Rank(from),
            to: Rank(to),
            bytes: Bytes(size),
        });
    }
    if messages.is_empty() {
        return Err(CsvError::no_row(&COLUMNS));
    }
    Ok(MatrixFile { ranks, messages })
}

/// Format of the lines of a graph.
struct MetisForm {
    vertices: u32,
    edges: usize,
    /// Count of numbers before the neighbours of a vertex.
    vertex_numbers: usize,
    has_weights: bool,
}

fn from_metis(text: &str) -> Result<MatrixFile, CsvError> {
    // A vertex without neighbours has an empty line.
    let mut lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !is_comment(line))
        .skip_while(|(line, _)| line.trim().is_empty());
    let (header, line) = lines.next().expect("the caller found a first line");
    let form = MetisForm::read(header, line)?;
    let mut ends: Vec<(u32, u32, u64)> = Vec::new();
    let mut last = line;
    for vertex in 0..form.vertices {
        let Some((content, line)) = lines.next() else {
            let found = format!("{vertex} vertices");
            let expected = format!("{}, as the first line says", form.vertices);
            return Err(CsvError::at(last, found, expected));
        };
        last = line;
        for (neighbour, weight) in form.neighbours(content, line)? {
            ends.push((vertex, neighbour, weight));
        }
    }
    if let Some((content, line)) = lines.find(|(content, _)| !content.trim().is_empty()) {
        let expected = format!("{} vertices, as the first line says", form.vertices);
        return Err(CsvError::at(line, format!("`{content}`"), expected));
    }
    let messages = both_ends(ends, last)?;
    if messages.len() != form.edges {
        let found = format!("{} edges", messages.len());
        let expected = format!("{}, as the first line says", form.edges);
        return Err(CsvError::at(last, found, expected));
    }
    Ok(MatrixFile {
        ranks: form.vertices as usize,
        messages,
    })
}

/// Returns the edges as messages. Each edge must be listed at both ends with the same weight.
fn both_ends(mut ends: Vec<(u32, u32, u64)>, line: usize) -> Result<Vec<RankMessage>, CsvError> {
    ends.sort_unstable_by_key(|(from, to, weight)| (*from.min(to), *from.max(to), *weight));
    let mut messages = Vec::with_capacity(ends.len() / 2);
    for pair in ends.chunks(2) {
        let (from, to, weight) = pair[0];
        if pair.get(1).copied() != Some((to, from, weight)) {
            let found = format!(
                "an edge between vertices {} and {} at only one of them, or twice, or with two weights",
                from + 1,
                to + 1
            );
            return Err(CsvError::at(line, found, "each edge once at each end"));
        }
        messages.push(RankMessage {
            from: Rank(from.min(to)),
            to: Rank(from.max(to)),
            bytes: Bytes(weight),
        });
    }
    Ok(messages)
}

impl MetisForm {
    fn read(header: &str, line: usize) -> Result<MetisForm, CsvError> {
        MetisForm::parsed(header).ok_or_else(|| {
            let expected = "`vertices edges [format [weights per vertex]]` of a METIS graph, with a format such as 001 for edge \
                            weights, or a table with the columns from,to,bytes";
            CsvError::at(line, format!("`{}`", header.trim()), expected)
        })
    }

    fn parsed(header: &str) -> Option<MetisForm> {
        let words = header.split_whitespace();
        let mut numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        numbers.resize(numbers.len().max(4), 0);
        let [vertices, edges, format, weights] = numbers[..] else {
            return None;
        };
        let weights = weights.max(1);
        let is_form = [0, 1, 10, 11, 100, 101, 110, 111].contains(&format);
        if !is_form || vertices == 0 || vertices > u64::from(MOST_RANKS) || weights > 64 {
            return None;
        }
        let sizes = usize::from(format >= 100);
        let of_vertex = if format / 10 % 10 == 1 { weights } else { 0 };
        Some(MetisForm {
            vertices: vertices as u32,
            edges: edges as usize,
            vertex_numbers: sizes + of_vertex as usize,
            has_weights: format % 10 == 1,
        })
    }

    fn neighbours(&self, content: &str, line: usize) -> Result<Vec<(u32, u64)>, CsvError> {
        let fail = |word: &str, expected: String| CsvError::at(line, format!("`{word}`"), expected);
        let mut words = content.split_whitespace().skip(self.vertex_numbers);
        let mut neighbours = Vec::new();
        while let Some(word) = words.next() {
            let vertex = word.parse().ok();
            let vertex = vertex.filter(|vertex| (1..=self.vertices).contains(vertex));
            let vertex = vertex
                .ok_or_else(|| fail(word, format!("a vertex from 1 to {}", self.vertices)))?;
            let weight = if self.has_weights {
                let word = words.next().unwrap_or("");
                let weight = word.parse();
                weight.map_err(|_| fail(word, "an edge weight, a whole number".to_owned()))?
            } else {
                1
            };
            neighbours.push((vertex - 1, weight));
        }
        Ok(neighbours)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str) -> (usize, Vec<(u32, u32, u64)>) {
        let file = MatrixFile::read("m", text.as_bytes()).unwrap();
        let messages = file.messages.iter();
        let rows = messages.map(|message| (message.from.0, message.to.0, message.bytes.0));
        (file.ranks, rows.collect())
    }

    fn refused(text: &str) -> String {
        let error = MatrixFile::read("m", text.as_bytes()).unwrap_err();
        error.to_string()
    }

    #[test]
    fn tables_and_graphs_are_read() {
        let table = "# bytes\nfrom,to,bytes\n0,3,10\n3,0,5\n";
        assert_eq!(rows(table), (4, vec![(0, 3, 10), (3, 0, 5)]));
        let triangle = "% a triangle and a vertex alone\n4 3 001\n2 7 3 8\n1 7 3 9\n1 8 2 9\n\n";
        assert_eq!(rows(triangle), (4, vec![(0, 1, 7), (0, 2, 8), (1, 2, 9)]));
        assert_eq!(rows("2 1\n2\n1\n"), (2, vec![(0, 1, 1)]));
        assert_eq!(rows("2 1 11 2\n5 6 2 4\n5 6 1 4\n"), (2, vec![(0, 1, 4)]));
        for text in [table, triangle, "from, to, bytes\n", "bytes,to,from,why\n"] {
            assert!(is_matrix(text.as_bytes()), "{text}");
        }
        for text in [
            "0 -> 1 4MB\n",
            "",
            "from,to\n",
            "#Paraver (1)\n",
            "1 2 3 4 5\n",
        ] {
            assert!(!is_matrix(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, error) in [
            (
                "from,to,bytes\n0,1,-1\n",
                "m: line 2: found bytes = `-1`, expected a whole number of bytes",
            ),
            (
                "from,to,bytes\n0,x,1\n",
                "m: line 2: found to = `x`, expected a rank number below 16777216",
            ),
            (
                "from,to,bytes\n",
                "m: found no row, expected the columns from,to,bytes and rows of numbers",
            ),
            (
                "2 1\n2\n",
                "m: line 2: found 1 vertices, expected 2, as the first line says",
            ),
            (
                "2 1\n3\n1\n",
                "m: line 2: found `3`, expected a vertex from 1 to 2",
            ),
            (
                "2 1 1\n2 3\n1 4\n",
                "m: line 3: found an edge between vertices 1 and 2 at only one",
            ),
            (
                "2 2\n2\n1\n",
                "m: line 3: found 1 edges, expected 2, as the first line says",
            ),
            (
                "2 1\n2\n1\n1\n",
                "m: line 4: found `1`, expected 2 vertices, as the first line says",
            ),
            (
                "2 1 7\n2\n1\n",
                "m: line 1: found `2 1 7`, expected `vertices edges [format",
            ),
        ] {
            let found = refused(text);
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([0-9]{1,3}|from,to,bytes|,| |\n|%|#|\\PC){0,40}") {
            let _ = MatrixFile::read("m", text.as_bytes());
            let _ = is_matrix(text.as_bytes());
        }
    }
}

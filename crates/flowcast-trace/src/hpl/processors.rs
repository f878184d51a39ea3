//! How fast the processors of a machine multiply: a table with a row for each.

use super::Processor;
use crate::TraceError;

/// The processors of each node, in the order of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeProcessors(Vec<Vec<Processor>>);

/// The columns that are read, in the order in which a row gives them.
const COLUMNS: [&str; 3] = ["node", "intercept_s", "s_per_mnk"];

impl NodeProcessors {
    /// Reads a table of comma-separated values with the columns `node`, `intercept_s` and `s_per_mnk`, in seconds, among others.
    /// Rows of one node follow one another.
    ///
    /// # Errors
    /// [`TraceError::At`] with file and line.
    pub fn parse(name: &str, text: &str) -> Result<NodeProcessors, TraceError> {
        let mut lines = (1..).zip(text.lines());
        let (_, header) = lines.next().unwrap_or((1, ""));
        let titles: Vec<&str> = header.split(',').map(str::trim).collect();
        let mut places = [0; COLUMNS.len()];
        for (place, column) in places.iter_mut().zip(COLUMNS) {
            let found = titles.iter().position(|title| *title == column);
            *place = found
                .ok_or_else(|| at(name, 1, header, &format!("a header with a column {column}")))?;
        }
        let mut nodes: Vec<(String, Vec<Processor>)> = Vec::new();
        for (line, row) in lines.filter(|(_, row)| !row.trim().is_empty()) {
            let values: Vec<&str> = row.split(',').map(str::trim).collect();
            if values.len() != titles.len() {
                let expected = format!("{} values, as the header has columns", titles.len());
                return Err(at(name, line, row, &expected));
            }
            let [node, intercept, per_mnk] = places.map(|place| values[place]);
            let processor = Processor {
                intercept: seconds(name, line, COLUMNS[1], intercept)?,
                per_mnk: seconds(name, line, COLUMNS[2], per_mnk)?,
            };
            match nodes.last_mut() {
                Some((last, processors)) if last == node => processors.push(processor),
                _ => nodes.push((node.to_owned(), vec![processor])),
            }
        }
        if nodes.is_empty() {
            return Err(at(name, 2, "", "a row for each processor"));
        }
        Ok(NodeProcessors(
            nodes
                .into_iter()
                .map(|(_, processors)| processors)
                .collect(),
        ))
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.0.len()
    }

    /// The processor of each of so many ranks, which fill one node after the other, and in each its processors by equal parts;
    /// none if there are too few nodes.
    #[must_use]
    pub fn of_ranks(&self, ranks: u32, ranks_per_node: u32) -> Option<Vec<Processor>> {
        (0..ranks)
            .map(|rank| {
                let processors = self.0.get((rank / ranks_per_node) as usize)?;
                let place = u64::from(rank % ranks_per_node) * processors.len() as u64;
                Some(processors[(place / u64::from(ranks_per_node)) as usize])
            })
            .collect()
    }
}

fn seconds(name: &str, line: usize, column: &str, text: &str) -> Result<f64, TraceError> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| {
            at(
                name,
                line,
                text,
                &format!("seconds in column {column}, such as 7.5e-11"),
            )
        })
}

fn at(name: &str, line: usize, found: &str, expected: &str) -> TraceError {
    TraceError::At {
        place: format!("{name}:{line}"),
        found: if found.is_empty() {
            "nothing".to_owned()
        } else {
            format!("`{}`", found.escape_default())
        },
        expected: expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "node,cpu,intercept_s,s_per_mnk\n1,0,1e-6,1e-10\n1,1,1e-6,2e-10\n7,0,1e-6,3e-10\n7,1,1e-6,4e-10\n";

    #[test]
    fn ranks_fill_nodes_and_their_processors_in_the_order_of_the_table() {
        let nodes = NodeProcessors::parse("table.csv", TABLE).unwrap();
        assert_eq!(nodes.nodes(), 2);
        let ranks = nodes.of_ranks(7, 4).unwrap();
        let tenths: Vec<f64> = ranks
            .iter()
            .map(|processor| (processor.per_mnk * 1e10).round())
            .collect();
        assert_eq!(tenths, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
        assert_eq!(nodes.of_ranks(9, 4), None);
    }

    #[test]
    fn errors_name_line_found_and_expected() {
        let error = |text: &str| {
            let parsed = NodeProcessors::parse("table.csv", text);
            parsed.unwrap_err().to_string()
        };
        assert_eq!(
            error("node,cpu\n"),
            "table.csv:1: found `node,cpu`, expected a header with a column intercept_s"
        );
        assert_eq!(
            error(&TABLE.replace("3e-10", "fast")),
            "table.csv:4: found `fast`, expected seconds in column s_per_mnk, such as 7.5e-11"
        );
        assert_eq!(
            error(&TABLE.replace("7,1,", "7,")),
            "table.csv:5: found `7,1e-6,4e-10`, expected 4 values, as the header has columns"
        );
        assert_eq!(
            error(""),
            "table.csv:1: found nothing, expected a header with a column node"
        );
        assert_eq!(
            error("node,intercept_s,s_per_mnk\n"),
            "table.csv:2: found nothing, expected a row for each processor"
        );
    }
}

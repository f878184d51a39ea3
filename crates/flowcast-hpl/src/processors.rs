//! Speed of a machine's processors in matrix products: a table with one row per processor.

use flowcast_network::csv::{CsvError, Table, number};
use flowcast_statistics::sample::sorted_places;

use super::Processor;

/// Processors of each node, in the order of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeProcessors(Vec<Vec<Processor>>);

/// Columns that the table must have: the node of a processor, and the times of its products in seconds.
const COLUMNS: [&str; 4] = ["node", "intercept_s", "s_per_mnk", "resid_per_mnk"];

impl NodeProcessors {
    /// Reads a table of comma-separated values with the columns `node`, `intercept_s`, `s_per_mnk` and `resid_per_mnk` (the
    /// spread of `s_per_mnk`), in seconds. Other columns are ignored. Rows of one node follow one another.
    ///
    /// # Errors
    /// A missing column, or a field that is not a time, with its line.
    pub fn parse(text: &str) -> Result<NodeProcessors, CsvError> {
        let mut nodes: Vec<(&str, Vec<Processor>)> = Vec::new();
        let table = Table::parse(text)?;
        for (line, [node, intercept, per_mnk, spread]) in table.fields(COLUMNS)? {
            let per_mnk = seconds(line, COLUMNS[2], per_mnk, 1e-18)?;
            let processor = Processor {
                intercept: seconds(line, COLUMNS[1], intercept, 0.0)?,
                per_mnk,
                spread: seconds(line, COLUMNS[3], spread, 0.0)? / per_mnk,
            };
            match nodes.last_mut() {
                Some((last, processors)) if *last == node => processors.push(processor),
                _ => nodes.push((node, vec![processor])),
            }
        }
        if nodes.is_empty() {
            return Err(CsvError::no_row(&COLUMNS));
        }
        let processors = nodes.into_iter().map(|(_, processors)| processors);
        Ok(NodeProcessors(processors.collect()))
    }

    /// Number of nodes with known processors.
    pub fn nodes(&self) -> usize {
        self.0.len()
    }

    /// Processors of the nodes with these indices.
    pub fn only(&self, places: &[usize]) -> NodeProcessors {
        NodeProcessors(places.iter().map(|place| self.0[*place].clone()).collect())
    }

    /// Processors after the node with the slowest processor was replaced by one as fast as the median node.
    pub fn without_slowest(&self) -> NodeProcessors {
        let slowest = self.0.iter().map(|node: &Vec<Processor>| {
            let times = node.iter().map(|one| one.per_mnk);
            times.fold(0.0, f64::max)
        });
        let order = sorted_places(&slowest.collect::<Vec<f64>>());
        let mut nodes = self.clone();
        if let Some(last) = order.last() {
            nodes.0[*last] = self.0[order[order.len() / 2]].clone();
        }
        nodes
    }

    /// Processor of each rank. Ranks fill one node after the other, and are spread evenly over the processors of a node.
    /// `None` if there are too few nodes.
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

fn seconds(line: usize, column: &str, text: &str, least: f64) -> Result<f64, CsvError> {
    let expected = "seconds, such as 7.5e-11";
    number(line, column, text, |seconds| seconds >= least, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "node,intercept_s,s_per_mnk,resid_per_mnk\n1,1e-6,1e-10,0\n1,1e-6,2e-10,0\n7,1e-6,3e-10,3e-12\n7,1e-6,4e-10,0\n";

    #[test]
    fn ranks_fill_nodes_and_their_processors_in_the_order_of_the_table() {
        let nodes = NodeProcessors::parse(TABLE).unwrap();
        assert_eq!(nodes.nodes(), 2);
        let tenths = |nodes: &NodeProcessors, ranks| -> Vec<f64> {
            let processors = nodes.of_ranks(ranks, 4).unwrap();
            let tenths = processors.iter();
            tenths
                .map(|processor| (processor.per_mnk * 1e10).round())
                .collect()
        };
        assert_eq!(tenths(&nodes, 7), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
        assert_eq!(tenths(&nodes.only(&[1]), 3), [3.0, 3.0, 4.0]);
        assert_eq!(nodes.of_ranks(9, 4), None);
    }

    #[test]
    fn errors_name_line_found_and_expected() {
        let error = |text: &str| NodeProcessors::parse(text).unwrap_err().to_string();
        assert_eq!(
            error(&TABLE.replace("3e-10", "fast")),
            "line 4: found s_per_mnk = `fast`, expected seconds, such as 7.5e-11"
        );
        assert!(error("node,cpu\n1,2\n").contains("found no column `intercept_s`"));
        assert!(error("node,intercept_s,s_per_mnk,resid_per_mnk\n").contains("found no row"));
    }
}

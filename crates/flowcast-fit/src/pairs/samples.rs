//! Times between all pairs: rows of the table of samples. The column `what` is `alone`, or `both` if a message of the same
//! size travelled in the other direction at the same time.

use std::collections::BTreeMap;

use flowcast_network::csv::CsvError;
use flowcast_units::{Bytes, Node, Time, named};

use super::{PairTimes, typical};
use crate::sample_table::{self, Sample, SampleForm};

const COLUMNS: [&str; 5] = ["what", "from", "to", "size_B", "time_us"];

const FORM: SampleForm = SampleForm {
    required: &COLUMNS,
    optional: &[],
};

named! {
    /// Other messages in flight between the two nodes.
    pub enum ConcurrentLoad {
        /// No other message: the message had both nodes to itself.
        Alone = "alone",
        /// A message of the same size in the other direction.
        Both = "both",
    }
}

/// All measured times, each above 0.
///
/// ```
/// use flowcast_fit::pairs::samples::PairSamples;
/// use flowcast_units::Bytes;
///
/// let text = "what,from,to,size_B,time_us\nalone,0,1,8,5\nalone,1,0,8,6\n";
/// assert_eq!(PairSamples::from_csv(text)?.sizes(), [Bytes(8)]);
/// # Ok::<(), flowcast_network::csv::CsvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PairSamples {
    /// Origin of the samples.
    pub provenance: BTreeMap<String, String>,
    times: BTreeMap<(Bytes, ConcurrentLoad), Repetitions>,
}

/// Times by sender and receiver.
type Repetitions = BTreeMap<(Node, Node), Vec<Time>>;

impl PairSamples {
    /// Adds the times of messages from one node to another.
    pub fn extend(
        &mut self,
        size: Bytes,
        company: ConcurrentLoad,
        from: Node,
        to: Node,
        times: impl IntoIterator<Item = Time>,
    ) {
        self.times
            .entry((size, company))
            .or_default()
            .entry((from, to))
            .or_default()
            .extend(times);
    }

    /// Returns `true` if messages from one node to another were measured with this concurrent load.
    pub fn has(&self, size: Bytes, company: ConcurrentLoad, from: Node, to: Node) -> bool {
        self.times
            .get(&(size, company))
            .is_some_and(|pairs| pairs.contains_key(&(from, to)))
    }

    /// Adds all times of other samples, but not their provenance.
    pub fn add(&mut self, other: &PairSamples) {
        for ((size, company), pairs) in &other.times {
            for ((from, to), times) in pairs {
                self.extend(*size, *company, *from, *to, times.iter().copied());
            }
        }
    }

    /// Returns the sizes in ascending order, each once.
    pub fn sizes(&self) -> Vec<Bytes> {
        let mut sizes: Vec<Bytes> = self.times.keys().map(|(size, _)| *size).collect();
        sizes.dedup();
        sizes
    }

    /// Returns the representative time of each pair ([`typical`]). `None` if this size was not measured with this concurrent
    /// load.
    pub fn typical(&self, size: Bytes, company: ConcurrentLoad) -> Option<PairTimes> {
        let pairs = self.times.get(&(size, company))?;
        Some(
            pairs
                .iter()
                .map(|(pair, times)| (*pair, typical(&mut times.clone())))
                .collect(),
        )
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Another schema, a missing, doubled or unknown column, no row, or an invalid field, with its line.
    pub fn from_csv(text: &str) -> Result<PairSamples, CsvError> {
        let mut samples = PairSamples::default();
        samples.provenance = sample_table::read(text, &FORM, |line, sample| {
            let company = ConcurrentLoad::from_name(sample.what)
                .ok_or_else(|| CsvError::field(line, "what", sample.what, "alone or both"))?;
            let [from, to] = sample.message(line)?;
            samples.extend(sample.size, company, from, to, [sample.time]);
            Ok(())
        })?;
        Ok(samples)
    }

    /// Returns the samples as the text of a CSV file, in the form that [`PairSamples::from_csv`] reads.
    pub fn to_csv(&self) -> String {
        self.head() + &self.rows()
    }

    /// Returns the part of a file before its rows.
    pub fn head(&self) -> String {
        sample_table::head(&self.provenance, &COLUMNS)
    }

    /// Returns only the rows, for appending them to a file.
    pub fn rows(&self) -> String {
        let mut text = String::new();
        for ((size, company), pairs) in &self.times {
            for ((from, to), times) in pairs {
                for time in times {
                    let sample = Sample {
                        what: company.name(),
                        ends: [*from, *to],
                        size: *size,
                        time: *time,
                        ..Sample::default()
                    };
                    sample.push(&COLUMNS, &mut text);
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_and_gives_typical_times() {
        let mut samples = PairSamples::default();
        samples.provenance.insert("host".into(), "a".into());
        let times = [3.0, 1.0, 2.5].map(Time::from_micros);
        samples.extend(Bytes(8), ConcurrentLoad::Alone, Node(0), Node(1), times);
        samples.extend(Bytes(8), ConcurrentLoad::Both, Node(1), Node(0), [times[0]]);
        let read = PairSamples::from_csv(&samples.to_csv()).unwrap();
        assert_eq!(read, samples);
        assert_eq!(
            read.typical(Bytes(8), ConcurrentLoad::Alone).unwrap()[&(Node(0), Node(1))],
            times[1]
        );
        assert_eq!(
            (read.sizes(), read.typical(Bytes(9), ConcurrentLoad::Alone)),
            (vec![Bytes(8)], None)
        );
    }

    #[test]
    fn invalid_rows_are_reported_with_their_lines() {
        for (row, told) in [
            (
                "0,0,1,alone,5",
                "line 2: found from node 0 to itself, expected two different nodes",
            ),
            (
                "0,1,1,twice,5",
                "line 2: found what = `twice`, expected alone or both",
            ),
            (
                "0,1,1,alone,0",
                "line 2: found time_us = `0`, expected a time above 0",
            ),
            (
                "a,1,1,alone,5",
                "line 2: found from = `a`, expected the number of a node",
            ),
        ] {
            let text = format!("from,to,size_B,what,time_us\n{row}\n");
            assert_eq!(PairSamples::from_csv(&text).unwrap_err().to_string(), told);
        }
    }
}

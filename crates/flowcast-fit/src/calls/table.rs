//! Tables of measured calls: a row for each cluster, experiment, call and size, as in SimGrid's calibration of platforms
//! (`PingPong`, `Isend` and `Recv`). Other columns are ignored.
//!
//! ```csv
//! cluster,experiment,call,bytes,samples,median_ns,p10_ns,p90_ns
//! taurus,Isend,MPI_Isend,1,1250,3598,3446,3874
//! ```

use std::{collections::BTreeMap, fmt};

use flowcast_network::csv::{CsvError, Table, number};
use flowcast_statistics::sample::median_in_place;
use flowcast_units::{Bytes, Time};

use crate::sample_table::Cell;

/// Key of a series of sizes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallName {
    /// The measured machine, as named in the file.
    pub cluster: String,
    /// The experiment: `PingPong`, `Isend` (the sender alone), `Recv` (of a message that has arrived), or any other.
    pub experiment: String,
    /// Timed function, as named in the file.
    pub call: String,
}

impl CallName {
    /// Creates a name from the fields of a row.
    pub fn new(cluster: &str, experiment: &str, call: &str) -> CallName {
        CallName {
            cluster: cluster.to_owned(),
            experiment: experiment.to_owned(),
            call: call.to_owned(),
        }
    }
}

impl fmt::Display for CallName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.cluster, self.experiment, self.call)
    }
}

/// The median time of each call and size.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallTimes {
    /// Times by call and size. A size with several rows has their median.
    pub calls: BTreeMap<CallName, BTreeMap<Bytes, Time>>,
}

impl CallTimes {
    /// Reads the columns cluster, experiment, call, bytes and `median_ns`.
    ///
    /// # Errors
    /// A missing or doubled column, no row, a size that is not a whole number, or a time outside 1e-9 to 1e24 ns, with its
    /// line.
    pub fn from_csv(text: &str) -> Result<CallTimes, CsvError> {
        let columns = ["cluster", "experiment", "call", "bytes", "median_ns"];
        let table = Table::parse(text)?;
        let mut all: BTreeMap<CallName, BTreeMap<Bytes, Vec<f64>>> = BTreeMap::new();
        for (line, [cluster, experiment, call, bytes, median]) in table.fields(columns)? {
            let size = Cell {
                line,
                name: "bytes",
                text: bytes,
            }
            .size()?;
            let sizes = all
                .entry(CallName::new(cluster, experiment, call))
                .or_default();
            sizes.entry(size).or_default().push(nanos(line, median)?);
        }
        if all.is_empty() {
            return Err(CsvError::no_row(&columns));
        }
        let calls = all.into_iter().map(|(name, sizes)| {
            (
                name,
                sizes
                    .into_iter()
                    .map(|(size, mut times): (Bytes, Vec<f64>)| {
                        (size, Time::from_nanos(median_in_place(&mut times)))
                    })
                    .collect(),
            )
        });
        Ok(CallTimes {
            calls: calls.collect(),
        })
    }

    /// Keeps only the calls of one cluster. Empty if there is no cluster with this name.
    #[must_use]
    pub fn of_cluster(mut self, cluster: &str) -> CallTimes {
        self.calls.retain(|name, _| name.cluster == cluster);
        self
    }
}

fn nanos(line: usize, field: &str) -> Result<f64, CsvError> {
    // Beyond these limits, quotients and sums are not finite numbers.
    let expected = "nanoseconds from 1e-9 to 1e24";
    number(
        line,
        "median_ns",
        field,
        |nanos| (1e-9..=1e24).contains(&nanos),
        expected,
    )
}

/// A table whose rows are to be predicted. It has the columns of measured calls, but times are not read.
#[derive(Debug, Clone, PartialEq)]
pub struct CallCases {
    table: Table,
    /// Rows to predict: line, call and size.
    pub rows: Vec<(usize, CallName, Bytes)>,
}

impl CallCases {
    /// Reads the columns cluster, experiment, call and bytes.
    ///
    /// # Errors
    /// A missing or doubled column, or a size that is not a whole number, with its line.
    pub fn from_csv(text: &str) -> Result<CallCases, CsvError> {
        let table = Table::parse(text)?;
        let rows = table
            .fields(["cluster", "experiment", "call", "bytes"])?
            .map(
                |(line, [cluster, experiment, call, bytes]): (usize, [&str; 4])| {
                    Ok((
                        line,
                        CallName::new(cluster, experiment, call),
                        Cell {
                            line,
                            name: "bytes",
                            text: bytes,
                        }
                        .size()?,
                    ))
                },
            )
            .collect::<Result<_, _>>()?;
        Ok(CallCases { rows, table })
    }

    /// Returns the table with the predictions of each row: median and interval in nanoseconds, or empty fields.
    pub fn with_predictions(&self, predicted: &[Option<super::CallTime>]) -> String {
        let values: Vec<[String; 3]> = predicted
            .iter()
            .map(|time: &Option<super::CallTime>| match time {
                Some(time) => [time.predicted, time.low, time.high]
                    .map(|time: Time| format!("{:.1}", time.as_nanos())),
                None => Default::default(),
            })
            .collect();
        self.table
            .with_columns(["predicted_ns", "low_ns", "high_ns"], &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_same_size_have_their_median() {
        let text = "bytes,call,experiment,cluster,median_ns\n8,c,e,k,3\n8,c,e,k,5\n0,c,e,k,2.5\n";
        let times = CallTimes::from_csv(text).unwrap();
        let sizes = BTreeMap::from([
            (Bytes(0), Time::from_nanos(2.5)),
            (Bytes(8), Time::from_nanos(4.0)),
        ]);
        assert_eq!(
            times.calls,
            BTreeMap::from([(CallName::new("k", "e", "c"), sizes)])
        );
        assert!(times.of_cluster("other").calls.is_empty());
    }

    #[test]
    fn invalid_rows_are_reported_with_their_lines() {
        let header = "cluster,experiment,call,bytes,median_ns\n";
        for (row, told) in [
            (
                "a,b,c,1,0",
                "line 2: found median_ns = `0`, expected nanoseconds from 1e-9 to 1e24",
            ),
            ("a,b,c,1,1e-320", "line 2: found median_ns = `1e-320`"),
            ("a,b,c,1,1e300", "line 2: found median_ns = `1e300`"),
            ("a,b,c,1,inf", "line 2: found median_ns = `inf`"),
            (
                "a,b,c,-1,4",
                "line 2: found bytes = `-1`, expected a whole number",
            ),
            ("", "found no row"),
        ] {
            let message = CallTimes::from_csv(&format!("{header}{row}\n"))
                .unwrap_err()
                .to_string();
            assert!(message.starts_with(told), "{message}");
        }
    }
}

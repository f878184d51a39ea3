//! Measured round trips: rows of the table of samples. The column `what` is `round-trip` or missing. The column `busy_us`
//! is present if the sender was timed.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use super::prtt::PrttPoint;
use crate::sample_table::{self, Sample, SampleForm};
use flowcast_network::csv::CsvError;
use flowcast_units::Time;

const ROUND_TRIP: &str = "round-trip";

const FORM: SampleForm = SampleForm {
    required: &["n", "d_us", "size_B", "time_us"],
    optional: &["what", "busy_us"],
};

const COLUMNS: [&str; 6] = ["what", "n", "d_us", "size_B", "time_us", "busy_us"];

/// Round trips, grouped by their parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrttSamples {
    /// Origin of the samples: the header's `key: value` pairs without the schema.
    pub provenance: BTreeMap<String, String>,
    points: BTreeMap<PrttPoint, Vec<Time>>,
    /// Times of the sender in the round trips of each point, in the same order. Empty if the sender was not timed.
    busy: BTreeMap<PrttPoint, Vec<Time>>,
}

impl PrttSamples {
    /// Adds a round trip.
    pub fn push(&mut self, point: PrttPoint, time: Time) {
        self.points.entry(point).or_default().push(time);
    }

    /// Adds a round trip with the time that its sender was busy, from its first send to the end of its last. Either all
    /// round trips of a point have this time or none.
    pub fn push_timed(&mut self, point: PrttPoint, time: Time, busy: Time) {
        self.push(point, time);
        self.busy.entry(point).or_default().push(busy);
    }

    /// Returns the time that the sender was busy in each round trip of a point. Empty if it was not timed.
    pub fn busy(&self, point: PrttPoint) -> &[Time] {
        self.busy.get(&point).map_or(&[], Vec::as_slice)
    }

    /// Returns the round trips of each point, in the order of n, d and size.
    pub fn points(&self) -> impl Iterator<Item = (PrttPoint, &[Time])> + Clone {
        self.points
            .iter()
            .map(|(point, times)| (*point, times.as_slice()))
    }

    /// Returns the round trips of one point.
    pub fn at(&self, point: PrttPoint) -> &[Time] {
        self.points.get(&point).map_or(&[], Vec::as_slice)
    }

    /// Number of round trips.
    pub fn len(&self) -> usize {
        self.points.values().map(Vec::len).sum()
    }

    /// Returns `true` if there are no round trips.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Removes messages of 0 bytes if at least `others` other sizes were measured. Returns `true` if it removed any.
    pub fn leave_out_empty(&mut self, others: usize) -> bool {
        let sizes = self.points.keys().map(|point| point.size.0);
        let sizes: BTreeSet<u64> = sizes.collect();
        let leaves_out = sizes.contains(&0) && sizes.len() > others;
        self.points
            .retain(|point, _| !leaves_out || point.size.0 > 0);
        self.busy.retain(|point, _| !leaves_out || point.size.0 > 0);
        leaves_out
    }

    /// Reads a samples file.
    ///
    /// # Errors
    /// Another schema, a missing, doubled or unknown column, a row of another length, or a number that is negative,
    /// not a number, or too large.
    pub fn from_csv(text: &str) -> Result<PrttSamples, CsvError> {
        let mut samples = PrttSamples::default();
        let timed = sample_table::has(text, "busy_us");
        samples.provenance = sample_table::read(text, &FORM, |line, sample| {
            if !["", ROUND_TRIP].contains(&sample.what) {
                return Err(CsvError::field(line, "what", sample.what, ROUND_TRIP));
            }
            let point = PrttPoint::new(sample.messages, sample.delay, sample.size);
            match timed {
                true => samples.push_timed(point, sample.time, sample.busy),
                false => samples.push(point, sample.time),
            }
            Ok(())
        })?;
        Ok(samples)
    }

    /// Returns the samples as a CSV file: their provenance, the names of the columns, and a row for each round trip.
    pub fn to_csv(&self) -> String {
        let rows = self.points().flat_map(|(point, times)| {
            let busy = self.busy(point).iter().copied().map(Some);
            let busy = busy.chain(iter::repeat(None));
            times
                .iter()
                .zip(busy)
                .map(move |(time, busy)| (point, *time, busy))
        });
        csv_header(&self.provenance, self.are_timed()) + &csv_rows(rows)
    }

    /// Returns `true` if the sender's processor time is known for the round trips.
    pub fn are_timed(&self) -> bool {
        !self.busy.is_empty()
    }
}

/// Returns times in nanoseconds.
pub(crate) fn nanos(times: &[Time]) -> Vec<f64> {
    times.iter().map(|time| time.as_nanos()).collect()
}

fn columns(timed: bool) -> &'static [&'static str] {
    &COLUMNS[..COLUMNS.len() - usize::from(!timed)]
}

/// Returns header lines and column names, including the sender's processor time if the rows are `timed`.
pub fn csv_header(provenance: &BTreeMap<String, String>, timed: bool) -> String {
    sample_table::head(provenance, columns(timed))
}

/// Returns the rows of round trips. The last field is the time that the sender was busy, if it is known.
pub fn csv_rows(times: impl IntoIterator<Item = (PrttPoint, Time, Option<Time>)>) -> String {
    let mut text = String::new();
    for (point, time, busy) in times {
        let sample = Sample {
            what: ROUND_TRIP,
            messages: point.messages,
            delay: point.delay,
            size: point.size,
            time,
            busy: busy.unwrap_or_default(),
            ..Sample::default()
        };
        sample.push(columns(busy.is_some()), &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_units::Bytes;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        PrttSamples::from_csv(text).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_found_by_name_and_the_header_is_kept() {
        let text = "# schema: flowcast/samples/2\n# host: a:b\n# free text\r\nprtt_us, n,size_B,d_us\n\n11.24,1,1,0\n";
        let samples = PrttSamples::from_csv(text).unwrap();
        assert_eq!(
            samples.at(PrttPoint::round_trip(Bytes(1))),
            [Time::from_nanos(11_240.0)]
        );
        assert_eq!(samples.provenance["host"], "a:b");
    }

    #[test]
    fn bad_lines_are_named_with_what_was_expected() {
        let columns = "n,d_us,size_B,prtt_us\n";
        assert_eq!(
            error(&format!("{columns}1,0,1,-3\n")),
            "line 2: found prtt_us = `-3`, expected microseconds, a finite number of 0 or more"
        );
        assert!(
            error(&format!("{columns}1,0,1,3\n1,0,1,nan\n"))
                .starts_with("line 3: found prtt_us = `nan`")
        );
        assert!(error(&format!("{columns}1,0,1,inf\n")).contains("`inf`"));
        assert!(error(&format!("{columns}0,0,1,3\n")).contains("n = `0`"));
        assert!(error(&format!("{columns}1,0,1.5,3\n")).contains("size_B = `1.5`"));
        assert!(error(&format!("{columns}1,0,1\n")).contains("found 3 fields, expected 4"));
        assert!(error(&format!("{columns}1,0,1,3m\n")).contains("prtt_us = `3m`"));
        assert!(error("n,size_B,prtt_us\n1,1,3\n").contains("line 1: found no column `d_us`"));
        assert!(error("n,n,d_us,size_B,prtt_us\n").contains("column `n` twice"));
        assert!(error("n,d_us,size,prtt_us\n").contains("column `size`"));
        assert!(error("# schema: other/1\n").contains("line 1: found schema `other/1`"));
        assert!(error("").contains("no column names"));
        assert!(error(columns).contains("no row"));
    }

    #[test]
    fn messages_without_data_are_left_out_if_enough_sizes_remain() {
        let text = "n,d_us,size_B,prtt_us\n1,0,0,5\n1,0,8,6\n1,0,64,7\n";
        let all = PrttSamples::from_csv(text).unwrap();
        let mut samples = all.clone();
        assert!(!samples.leave_out_empty(3));
        assert_eq!(samples, all);
        assert!(samples.leave_out_empty(2) && !samples.leave_out_empty(1));
        assert_eq!(samples.len(), 2);
    }

    #[test]
    fn the_sender_s_own_time_is_kept_with_its_round_trip() {
        let point = PrttPoint::round_trip(Bytes(9));
        let mut samples = PrttSamples::default();
        samples.push_timed(point, Time::from_micros(50.0), Time::from_micros(3.5));
        let text = samples.to_csv();
        assert!(
            text.ends_with("what,n,d_us,size_B,time_us,busy_us\nround-trip,1,0,9,50,3.5\n"),
            "{text}"
        );
        assert_eq!(PrttSamples::from_csv(&text).unwrap(), samples);
        assert!(error("n,d_us,size_B,prtt_us,busy_us\n1,0,9,50,-1\n").contains("busy_us = `-1`"));
    }

    proptest! {
        #[test]
        fn a_written_file_reads_back_equal(
            rows in prop::collection::vec((1u32..20, 0u64..1_000_000, 1u64..1 << 40, 0u64..1 << 50), 1..40),
            host in "[a-z ]{0,10}[a-z]",
        ) {
            let mut samples = PrttSamples::default();
            samples.provenance.insert("host".into(), host.trim().into());
            for (messages, delay, size, nanos) in rows {
                let point = PrttPoint::new(messages, Time::from_nanos(delay as f64), Bytes(size));
                samples.push(point, Time::from_nanos(nanos as f64));
            }
            prop_assert_eq!(PrttSamples::from_csv(&samples.to_csv()).unwrap(), samples);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(n,d_us,size_B,prtt_us\n)?[-0-9a-z.,#:\n ]{0,80}") {
            let _ = PrttSamples::from_csv(&text);
        }
    }
}

#![no_main]

use flowcast::calibrate::conflict_samples::ConflictSamples;
use flowcast::fit::benchmark_log::Benchmark;
use flowcast::fit::import::{self, ImportChoice};
use flowcast::fit::loggp::FitOptions;
use flowcast::fit::samples::PrttSamples;
use flowcast::scheduler::messages;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(samples) = PrttSamples::from_csv(text) {
        assert!(PrttSamples::from_csv(&samples.to_csv()).is_ok(), "written samples read back");
        let _ = flowcast::fit(&samples, &FitOptions { replicates: 3, ..FitOptions::default() });
    }
    if let Ok(samples) = ConflictSamples::from_csv(text) {
        assert!(ConflictSamples::from_csv(&samples.to_csv()).is_ok(), "written conflicts read back");
    }
    for test in [None, Some("osu_latency"), Some("sendrecv")] {
        // The first line names the sections, as `--section` does.
        let first = text.lines().next().unwrap_or_default().split(',');
        let chosen: Vec<usize> = first.filter_map(|line| line.trim().parse().ok()).collect();
        for sections in [Vec::new(), vec![1], chosen] {
            import(text, ImportChoice { test: test.map(str::to_owned), sections });
        }
    }
    let _ = messages::read(text);
});

/// A section is read or skipped, and all times that are read are above 0.
fn import(text: &str, choice: ImportChoice) {
    let Ok(imported) = import::read(text, &choice) else { return };
    let is_chosen = |line: &usize| imported.skipped.iter().all(|skipped| skipped.line != *line);
    // The calls of ReproMPI share the line of their table.
    let is_of_table = |line: &usize| imported.skipped.iter().any(|skipped| skipped.line == *line && skipped.benchmark == Benchmark::Reprompi);
    assert!(choice.sections.iter().all(|line| is_chosen(line) || is_of_table(line)), "a chosen section is read");
    if let Ok(samples) = import::samples([imported].iter()) {
        assert!(!samples.is_empty(), "samples have times");
        assert!(samples.points().all(|(_, times)| times.iter().all(|time| time.as_nanos() > 0.0)), "times are above 0");
    }
}

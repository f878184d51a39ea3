#![no_main]

use flowcast::calibrate::conflict_samples::ConflictSamples;
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
    if let Ok(imported) = import::read(text, &ImportChoice::default()) {
        let _ = import::samples([imported].iter());
    }
    let _ = messages::read(text);
});

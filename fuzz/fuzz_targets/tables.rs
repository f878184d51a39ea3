#![no_main]

use flowcast_tuning::allocations::Allocations;
use flowcast_tuning::cases::{cases, measured_cases};
use flowcast::fit::pairs::samples::PairSamples;
use flowcast::hpl::{measured_runs, settings};
use flowcast_tuning::library_rules::RuleForm;
use flowcast::model::csv::Table;
use flowcast::study::rows::ResultsPart;
use flowcast::hpl::NodeProcessors;

// All tables that no other target reads.
libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(pairs) = PairSamples::from_csv(text) {
        assert!(PairSamples::from_csv(&pairs.to_csv()).is_ok(), "written pairs read back");
    }
    if let Ok(allocations) = Allocations::from_csv(text) {
        let _ = allocations.only_job();
    }
    if let Ok(table) = Table::parse(text) {
        let _ = (cases(&table), measured_cases(&table), settings(&table), measured_runs(&table));
    }
    if let Ok(processors) = NodeProcessors::parse(text) {
        assert!(processors.nodes() > 0, "a table without nodes is refused");
        let _ = processors.without_slowest();
    }
    if let Ok(part) = ResultsPart::read("t", text) {
        assert!(part.whole <= text.len() && (part.sets == 0 || part.whole > 0));
    }
    let _ = RuleForm::Mpich41.write(&[], Some(text));
});

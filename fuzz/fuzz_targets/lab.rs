#![no_main]

use flowcast_measure::lab::{LabSpec, network_of};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(lab) = LabSpec::from_toml(text, &[]) {
        assert_eq!(LabSpec::from_toml(&lab.to_toml(), &[]).expect("a written lab reads back"), lab);
        let _ = network_of(&lab);
    }
});

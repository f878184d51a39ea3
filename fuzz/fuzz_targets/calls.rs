#![no_main]

use flowcast::fit::calls::fit_calls;
use flowcast::fit::calls::network::{CallNetworkOptions, to_network};
use flowcast::fit::calls::table::{CallCases, CallTimes};
use flowcast::units::Bytes;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = CallCases::from_csv(text);
    let Ok(times) = CallTimes::from_csv(text) else { return };
    // The time of a fit grows with the square of the number of sizes.
    if times.calls.values().any(|sizes| sizes.len() > 60) {
        return;
    }
    let Ok(fits) = fit_calls(&times, 3) else { return };
    for fit in fits.values() {
        for size in [0, 1, 1 << 16, u64::MAX] {
            assert!(fit.at(Bytes(size)).as_nanos() >= 0.0, "a time is a number and not negative");
            let _ = fit.predict(Bytes(size), 0.9);
        }
    }
    let options = CallNetworkOptions {
        name: "fuzzed",
        known: None,
        pieces: 3,
        replicates: 2,
        level: 0.9,
        seed: 1,
        provenance: Default::default(),
    };
    let _ = to_network(&fits, &options);
});

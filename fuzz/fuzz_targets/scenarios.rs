#![no_main]

use std::{io, path::Path};

use flowcast::Options;
use flowcast::graph::noise::ComputeNoise;
use flowcast::model::builtin;
use flowcast::trace::SharedBytes;
use flowcast::why::NoiseOptions;
use flowcast_io::{Reader, ScenarioDefaults, parse_overrides, parse_scenarios};

/// A reader without files.
struct NoFiles;

impl Reader for NoFiles {
    fn bytes(&mut self, _: &Path) -> io::Result<SharedBytes> {
        Err(io::ErrorKind::NotFound.into())
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let network = builtin::network("gige-tcp").expect("the network is built in");
    let options = Options::default();
    let exponential = ComputeNoise::parse("exponential:1us").expect("the distribution is valid");
    let noise = NoiseOptions { noise: exponential, runs: 3, seed: 1, level: 0.9, threads: 1 };
    let defaults = ScenarioDefaults { network: Some(&network), overrides: &[], options: &options, noise: &noise };
    let _ = parse_scenarios("t", text, &defaults, &mut NoFiles);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Ok(overrides) = parse_overrides(&lines) {
        let _ = network.clone().with_overrides(&overrides);
    }
});

#![no_main]

use flowcast::Parameter;
use flowcast::graph::{noise::ComputeNoise, selector::Selector};
use flowcast::scheduler::Rail;
use flowcast::units::{Bytes, Rate, Time, TimePerByte};

// Values of options, one in each line. Written values read back equal.
libfuzzer_sys::fuzz_target!(|text: &str| {
    for line in text.lines() {
        if let Ok(selector) = Selector::parse(line) {
            assert_eq!(Selector::parse(&selector.to_string()).expect("a written selector reads back").to_string(), selector.to_string());
        }
        if let Ok(time) = Time::parse(line) {
            assert_eq!(Time::parse(&time.to_string()).expect("a written time reads back"), time, "{line}");
        }
        if let Ok(size) = Bytes::parse(line) {
            assert_eq!(Bytes::parse(&size.to_string()).expect("a written size reads back"), size, "{line}");
        }
        if let Ok(rate) = Rate::parse(line) {
            assert!(Rate::parse(&rate.to_string()).is_ok(), "{line}: {rate}");
        }
        let _ = (TimePerByte::parse(line), ComputeNoise::parse(line), Rail::parse(line), flowcast::why::parse_noise(line, None));
        if let Some((name, range)) = line.split_once('=') {
            let _ = Parameter::parse(name, range);
        }
    }
});

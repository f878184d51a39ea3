#![no_main]

use flowcast::model::network::Network;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Network::from_toml(text, &[]) {
        Ok(network) => assert_eq!(Network::from_toml(&network.to_toml(), &[]).expect("a written network reads back"), network),
        // Errors name files of other tools and quote at most a part of a line.
        Err(error) if text.trim_start().starts_with('<') => {
            let error = error.to_string();
            assert!(error.lines().count() == 1 && error.len() < 1000, "{error}");
        }
        Err(_) => {}
    }
});

#![no_main]

use flowcast::model::network::Network;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(network) = Network::from_toml(text, &[]) {
        assert_eq!(Network::from_toml(&network.to_toml(), &[]).expect("a written network reads back"), network);
    }
});

#![no_main]

use flowcast::model::dimemas_cfg::{DimemasConfig, is_dimemas_cfg};

// Zero bytes separate the configuration and the files that it names.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.split(|byte| *byte == 0);
    let first = parts.next().unwrap_or_default();
    let _ = is_dimemas_cfg(first);
    let mut named = parts.map(<[u8]>::to_vec);
    let mut open = |_: &str| named.next().ok_or_else(|| std::io::ErrorKind::NotFound.into());
    if let Ok(config) = DimemasConfig::read(first, &mut open) {
        let _ = config.network.to_toml();
    }
});

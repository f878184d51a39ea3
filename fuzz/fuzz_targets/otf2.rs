#![no_main]

#[path = "../../crates/flowcast/tests/it/otf2_events/mod.rs"]
mod otf2_events;

// The library reads the bytes of an archive and can report anything.
libfuzzer_sys::fuzz_target!(|told: Vec<(u8, u8, u8, u8)>| otf2_events::read(&told));

#![no_main]

use flowcast::place::host_list::{compressed, hosts};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(listed) = hosts("t", text) else { return };
    let names: Vec<String> = listed.iter().map(|host| host.name.clone()).collect();
    let has_slots = listed[0].slots.is_some();
    assert!(listed.iter().all(|host| host.slots.is_some() == has_slots && host.slots != Some(0)), "slots of all or none");
    let again = hosts("t", &compressed(&names)).expect("a written list reads back");
    assert!(again.iter().map(|host| &host.name).eq(&names), "{names:?}");
});

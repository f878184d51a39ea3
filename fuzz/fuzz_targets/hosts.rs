#![no_main]

use flowcast_place::host_list::hosts;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(job) = hosts("t", text) else { return };
    assert!(job.slots.is_empty() || job.slots.len() == job.hosts.len(), "slots of all or none");
    assert!(!job.slots.contains(&0), "slots from 1");
    let again = hosts("t", &job.hosts.join(",")).expect("a written list reads back");
    assert_eq!(again.hosts, job.hosts);
});

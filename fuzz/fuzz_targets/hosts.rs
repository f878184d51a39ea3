#![no_main]

use flowcast_place::host_list::hosts;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(job) = hosts("t", text) else { return };
    assert!(job.slots.is_empty() || job.slots.len() == job.hosts.len(), "slots for all hosts or none");
    assert!(!job.slots.contains(&0), "at least 1 slot");
    let again = hosts("t", &job.hosts.join(",")).expect("a written list reads back");
    assert_eq!(again.hosts, job.hosts);
});

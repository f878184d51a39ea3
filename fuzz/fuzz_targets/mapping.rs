#![no_main]

use flowcast::model::machine::Mapping;
use flowcast_place::job::Job;
use flowcast_place::mapping_file::{self, MappingFormat};
use flowcast::units::Node;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let known = ["node0".to_owned(), "node1".to_owned(), "node2".to_owned()];
    for mut hosts in [Vec::new(), known.to_vec()] {
        let Ok(read) = mapping_file::read("t", text, &mut hosts) else { continue };
        // More ranks only take more time.
        let Mapping::List(nodes) = &read else { continue };
        if nodes.len() > 1000 {
            continue;
        }
        let node_of_rank = nodes.iter().copied().map(Node).collect();
        let job = Job { node_of_rank, hosts, ..Job::default() };
        for form in MappingFormat::ALL {
            let Ok(written) = mapping_file::write(form, &job) else { continue };
            let again = mapping_file::read("t", &written, &mut job.hosts.clone()).expect("a written mapping reads back");
            assert_eq!(again, read, "{form:?}");
        }
    }
});

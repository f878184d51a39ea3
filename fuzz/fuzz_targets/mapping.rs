#![no_main]

use flowcast::model::machine::Mapping;
use flowcast::place::mapping_file::{self, MappingFormat, RankPlaces};
use flowcast::units::Node;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let known = ["node0".to_owned(), "node1".to_owned(), "node2".to_owned()];
    for hosts in [&[][..], &known] {
        let Ok(read) = mapping_file::read("t", text, hosts) else { continue };
        // More ranks only take longer.
        let Mapping::List(nodes) = &read.mapping else { continue };
        if nodes.len() > 1000 {
            continue;
        }
        let nodes: Vec<Node> = nodes.iter().copied().map(Node).collect();
        let places = RankPlaces { nodes: &nodes, hosts: &read.hosts, sockets: &[] };
        for form in MappingFormat::ALL {
            let Ok(written) = mapping_file::write(form, &places) else { continue };
            let again = mapping_file::read("t", &written, &read.hosts).expect("a written mapping reads back");
            assert_eq!(again.mapping, read.mapping, "{form:?}");
        }
    }
});

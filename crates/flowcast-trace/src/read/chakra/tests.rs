use std::sync::Arc;

use super::*;
use crate::opcodes::Op;
use flowcast_units::Rank;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes_field(field: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

fn number_field(field: u8, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(u64::from(field) << 3, &mut out);
    varint(value, &mut out);
    out
}

fn attribute(name: &str, value: u64) -> Vec<u8> {
    bytes_field(
        10,
        &[bytes_field(1, name.as_bytes()), number_field(9, value)].concat(),
    )
}

fn node(id: u64, kind: u64, after: &[u64], rest: &[Vec<u8>]) -> Vec<u8> {
    let deps: Vec<Vec<u8>> = after
        .iter()
        .map(|earlier| number_field(5, *earlier))
        .collect();
    [
        number_field(1, id),
        number_field(3, kind),
        deps.concat(),
        rest.concat(),
    ]
    .concat()
}

fn file(nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in [&bytes_field(1, b"0.0.4")].into_iter().chain(nodes) {
        varint(message.len() as u64, &mut out);
        out.extend_from_slice(message);
    }
    out
}

fn program(files: &[Vec<u8>]) -> Result<Program, TraceError> {
    let parts: Vec<Part> = files
        .iter()
        .enumerate()
        .map(|(rank, bytes)| (format!("t.{rank}.et"), Arc::new(bytes.clone()) as _))
        .collect();
    read("t", &parts, ReadOptions::default())
}

fn ops(program: &Program, rank: u32) -> Vec<Op> {
    program.ops(Rank(rank)).map(|(_, op)| op).collect()
}

#[test]
fn computation_goes_on_beside_communication_that_it_does_not_depend_on() {
    let size = attribute("comm_size", 64);
    let sender = [node(0, 5, &[], &[attribute("comm_dst", 1), size.clone()])];
    let receiver = [
        node(0, 6, &[], &[attribute("comm_src", 0), size]),
        node(1, 4, &[], &[number_field(7, 3)]),
        node(2, 4, &[0, 1], &[number_field(7, 5)]),
    ];
    let program = program(&[file(&sender), file(&receiver)]).unwrap();
    assert_eq!((program.messages(), program.bytes().0), (1, 64));
    assert!(matches!(
        ops(&program, 1)[..],
        [Op::Irecv, Op::Compute(_), Op::WaitRecv(0), Op::Compute(_)]
    ));
}

#[test]
fn a_collective_that_nothing_goes_beside_blocks_and_its_group_is_who_names_it() {
    let all = || {
        file(&[node(
            3,
            7,
            &[],
            &[attribute("comm_type", 2), attribute("comm_size", 100)],
        )])
    };
    let program = program(&[all(), all()]).unwrap();
    assert!(matches!(ops(&program, 0)[..], [Op::Collective { .. }]));
    assert_eq!(
        (program.calls()[0].send.0, program.calls()[0].recv.0),
        (100, 200)
    );
    assert_eq!(program.communicators()[0].members.len(), 2);
}

#[test]
fn nodes_that_depend_on_each_other_are_counted() {
    let cycle = file(&[
        node(0, 4, &[1], &[]),
        node(1, 4, &[0], &[]),
        node(2, 4, &[9], &[]),
    ]);
    let program = program(&[cycle]).unwrap();
    let told: Vec<u64> = program
        .ignored()
        .iter()
        .map(|record| record.count)
        .collect();
    assert_eq!(told, [2, 1, 3], "{:?}", program.ignored());
}

#[test]
fn damaged_files_are_refused_with_the_byte() {
    let whole = file(&[node(0, 4, &[], &[])]);
    assert!(recognises(&whole) && !recognises(b"#DIMEMAS:") && !recognises(b""));
    let cut = program(&[whole[..whole.len() - 1].to_vec()])
        .unwrap_err()
        .to_string();
    assert!(
        cut.contains("t.0.et: byte 8") && cut.contains("beyond the end"),
        "{cut}"
    );
    let kind = program(&[file(&[node(0, 9, &[], &[])])])
        .unwrap_err()
        .to_string();
    assert!(
        kind.contains("type 9") && kind.contains("from 1 to 7"),
        "{kind}"
    );
    let twice = program(&[file(&[node(0, 4, &[], &[]), node(0, 4, &[], &[])])])
        .unwrap_err()
        .to_string();
    assert!(twice.contains("node 0 twice"), "{twice}");
    let peer = program(&[file(&[node(0, 5, &[], &[])])])
        .unwrap_err()
        .to_string();
    assert!(peer.contains("node 0 without comm_dst"), "{peer}");
}

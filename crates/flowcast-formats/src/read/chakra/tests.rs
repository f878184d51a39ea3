use std::sync::Arc;

use super::*;
use flowcast_program::opcodes::Op;
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
    let parts: Vec<TracePart> = files
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
fn computation_continues_during_communication_that_it_does_not_depend_on() {
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
fn a_collective_without_concurrent_work_blocks_and_its_group_is_the_ranks_that_name_it() {
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
    assert_eq!(told, [3, 1, 2], "{:?}", program.ignored());
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

fn text_attribute(name: &str, value: &str) -> Vec<u8> {
    // The field number 29 needs two bytes.
    let tagged = [&[0xEA, 0x01, value.len() as u8][..], value.as_bytes()].concat();
    bytes_field(10, &[bytes_field(1, name.as_bytes()), tagged].concat())
}

fn flags_attribute(name: &str, flags: &[u8]) -> Vec<u8> {
    let list = bytes_field(1, flags);
    let tagged = [&[0xE2, 0x01, list.len() as u8][..], &list].concat();
    bytes_field(10, &[bytes_field(1, name.as_bytes()), tagged].concat())
}

fn control(earlier: u64) -> Vec<u8> {
    number_field(4, earlier)
}

fn sum(id: u64, after: &[u64], bytes: u64, rest: &[Vec<u8>]) -> Vec<u8> {
    let own = [attribute("comm_type", 0), attribute("comm_size", bytes)];
    node(id, 7, after, &[&own[..], rest].concat())
}

fn group(name: &str) -> Vec<u8> {
    text_attribute("pg_name", name)
}

/// Returns the sizes of a rank's collectives, in the order in which they begin.
fn sizes(program: &Program, rank: u32) -> Vec<u64> {
    let calls = program.calls();
    ops(program, rank)
        .into_iter()
        .filter_map(|op| match op {
            Op::Collective { call, .. } => Some(calls[call as usize].send.0),
            _ => None,
        })
        .collect()
}

fn said(program: &Program) -> Vec<String> {
    program.ignored().iter().map(ToString::to_string).collect()
}

#[test]
fn ranks_with_equal_graphs_order_the_collectives_of_a_group_alike() {
    let of = |tensor: &str, data: &str| {
        file(&[
            sum(1, &[], 4096, &[group(tensor)]),
            sum(2, &[], 4096, &[group(data)]),
            sum(3, &[1], 8192, &[group(data)]),
            sum(4, &[2], 1, &[group(data)]),
        ])
    };
    let files = [("t0", "d0"), ("t0", "d1"), ("t1", "d0"), ("t1", "d1")];
    let program = program(&files.map(|(tensor, data)| of(tensor, data))).unwrap();
    for rank in 0..4 {
        assert_eq!(sizes(&program, rank), [4096, 4096, 8192, 1], "rank {rank}");
    }
    assert!(program.ignored().is_empty(), "{:?}", said(&program));
}

#[test]
fn node_numbers_order_communications_without_dependencies() {
    // Rank 0 computes before its first sum; the second sum is ready immediately.
    let late = file(&[
        sum(1, &[5], 8, &[]),
        sum(2, &[], 1 << 20, &[]),
        node(5, 4, &[], &[number_field(7, 3)]),
    ]);
    let early = file(&[sum(1, &[], 8, &[]), sum(2, &[], 1 << 20, &[])]);
    let program = program(&[late, early]).unwrap();
    assert_eq!(sizes(&program, 0), [8, 1 << 20]);
    // A dependency on a higher number takes precedence over the numbers.
    let reversed = || file(&[sum(1, &[2], 8, &[]), sum(2, &[], 1 << 20, &[])]);
    let program = self::program(&[reversed(), reversed()]).unwrap();
    assert_eq!(sizes(&program, 1), [1 << 20, 8]);
}

#[test]
fn messages_of_a_channel_keep_the_order_of_the_nodes() {
    let to = |id, after: &[u64], bytes| {
        let rest = [attribute("comm_dst", 1), attribute("comm_size", bytes)];
        node(id, 5, after, &rest)
    };
    let from = |id, bytes| {
        node(
            id,
            6,
            &[],
            &[attribute("comm_src", 0), attribute("comm_size", bytes)],
        )
    };
    let sender = file(&[
        to(1, &[5], 8),
        to(2, &[], 1 << 20),
        node(5, 4, &[], &[number_field(7, 3)]),
    ]);
    let receiver = file(&[from(1, 8), from(2, 1 << 20)]);
    assert_eq!(program(&[sender.clone(), receiver]).unwrap().messages(), 2);
    let receiver = file(&[from(1, 1 << 20), from(2, 8)]);
    let message = program(&[sender, receiver]).unwrap_err().to_string();
    assert!(
        message.contains(
            "t.1.et: found 1048576 bytes in node 1, expected 8 bytes as in node 1 of t.0.et"
        ),
        "{message}"
    );
}

#[test]
fn members_that_disagree_are_refused_with_both_nodes_and_files() {
    let file_of = |id, bytes| file(&[sum(id, &[], bytes, &[group("d")])]);
    let message = program(&[file_of(3, 8), file_of(3, 8), file_of(4, 1 << 20)])
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "t.2.et: found Allreduce of 1048576 bytes in node 4, expected Allreduce of 8 bytes as in node 3 of t.0.et, \
         which has the same position among the collectives of group `d`"
    );
    let shuffle = |bytes| {
        file(&[node(
            0,
            7,
            &[],
            &[attribute("comm_type", 6), attribute("comm_size", bytes)],
        )])
    };
    let uneven = program(&[shuffle(8), shuffle(16)]).unwrap();
    assert!(
        said(&uneven)[0].contains("different sizes"),
        "{:?}",
        said(&uneven)
    );
}

#[test]
fn all_attributes_that_select_participants_count() {
    let all = |rest: &[Vec<u8>]| file(&[sum(0, &[], 8, rest)]);
    let groups = |files: &[Vec<u8>]| -> Vec<usize> {
        let program = program(files).unwrap();
        let members = program.communicators().iter();
        members
            .map(|communicator| communicator.members.len())
            .collect()
    };
    let numbered = |number| all(&[attribute("comm_group", number)]);
    assert_eq!(
        groups(&[numbered(1), numbered(2), numbered(1), numbered(2)]),
        [2, 2]
    );
    let tagged = |tag| all(&[attribute("comm_tag", tag)]);
    assert_eq!(groups(&[tagged(1), tagged(1), tagged(2)]), [2, 1]);
    let involved = |flags: &[u8]| all(&[flags_attribute("involved_dim", flags)]);
    assert_eq!(groups(&[involved(&[1, 1]), involved(&[1, 1])]), [2]);
    let message = program(&[involved(&[1, 0]), involved(&[1, 0])])
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("node 0 with an involved_dim that omits dimensions"),
        "{message}"
    );
    let named = all(&[flags_attribute("involved_dim", &[1, 0]), group("a")]);
    assert_eq!(groups(&[named.clone(), named]), [2]);
    let told = program(&[all(&[attribute("comm_algo_ranks", 3)])]).unwrap();
    assert!(
        said(&told)[0].contains("`comm_algo_ranks`"),
        "{:?}",
        said(&told)
    );
    let some = program(&[all(&[]), all(&[group("a")])]).unwrap();
    let assumed = some.assumed();
    assert!(assumed[0].contains("without a group name"), "{assumed:?}");
    assert!(
        assumed[1].contains("the same group name form one group"),
        "{assumed:?}"
    );
}

#[test]
fn ranks_distinguish_groups_of_one_name_and_a_wrong_size_is_refused() {
    let of = |rest: &[Vec<u8>]| {
        let rest = [&[text_attribute("Process Group Name", "1")], rest].concat();
        file(&[sum(0, &[], 8, &rest)])
    };
    let listed = |ranks: &str| of(&[text_attribute("Process Group Ranks", ranks)]);
    let [first, second] = ["[0, 1]", "[2, 3]"].map(listed);
    let program = program(&[first.clone(), first, second.clone(), second]).unwrap();
    let members: Vec<usize> = program
        .communicators()
        .iter()
        .map(|group| group.members.len())
        .collect();
    assert_eq!(members, [2, 2]);
    assert!(program.assumed().is_empty(), "{:?}", program.assumed());
    let sized = || of(&[attribute("pg_size", 2)]);
    assert!(
        self::program(&[sized(), sized()])
            .unwrap()
            .assumed()
            .is_empty()
    );
    let message = self::program(&[sized(), sized(), sized(), sized()])
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "t.0.et: found a group of 2 ranks in node 0, expected 4, the number of ranks that name group `1`: different groups \
         need different names or lists of ranks (pg_ranks)"
    );
}

#[test]
fn peers_must_match_the_file_and_roots_come_from_the_node() {
    let send = |rest: &[Vec<u8>]| program(&[file(&[node(0, 5, &[], rest)])]);
    let message = send(&[attribute("comm_dst", 0), attribute("comm_src", 3)]).unwrap_err();
    assert!(
        message.to_string().contains("node 0 with comm_src 3"),
        "{message}"
    );
    let message = send(&[text_attribute("comm_dst", "one")]).unwrap_err();
    assert!(
        message
            .to_string()
            .contains("a value of another type as comm_dst"),
        "{message}"
    );
    let spread = |root| {
        let rest = [
            attribute("comm_type", 5),
            attribute("comm_size", 64),
            attribute("root", root),
        ];
        file(&[node(0, 7, &[], &rest)])
    };
    let from_last = program(&[spread(1), spread(1)]).unwrap();
    let roots: Vec<bool> = from_last.calls().iter().map(|call| call.is_root).collect();
    assert_eq!(roots, [false, true]);
    let message = program(&[spread(0), spread(1)]).unwrap_err().to_string();
    assert!(message.contains("with root 1 in node 0"), "{message}");
    let message = program(&[spread(7), spread(7)]).unwrap_err().to_string();
    assert!(message.contains("root 7"), "{message}");
}

#[test]
fn control_dependencies_order_nodes_except_those_of_pytorch() {
    let long = [number_field(7, 1000)];
    let nodes = |more: &[Vec<u8>]| {
        file(&[
            node(0, 4, &[], &long),
            sum(1, &[], 64, &[&[control(0)][..], more].concat()),
            node(2, 4, &[], &[&[control(1)][..], &long].concat()),
        ])
    };
    let kept = program(&[nodes(&[]), nodes(&[])]).unwrap();
    assert!(matches!(
        ops(&kept, 0)[..],
        [Op::Compute(_), Op::Collective { .. }, Op::Compute(_)]
    ));
    assert!(
        kept.assumed()[0].contains("control dependencies"),
        "{:?}",
        kept.assumed()
    );
    let callers = || nodes(&[attribute("rf_id", 3)]);
    let dropped = program(&[callers(), callers()]).unwrap();
    assert!(dropped.assumed().is_empty());
    assert!(
        said(&dropped)[0].contains("PyTorch"),
        "{:?}",
        said(&dropped)
    );
}

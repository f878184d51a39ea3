//! Traces of other tools, by hand.

use std::fmt::Write;

use super::{Files, each, one};

/// Two ranks that do something, further ones that do not.
pub(super) fn dim(ranks: usize, communicators: usize, first: &str, second: &str) -> Files {
    let each_rank = vec!["1"; ranks].join(",");
    let mut text = format!(
        "#DIMEMAS:\"t\":1,0:{ranks}({each_rank}),{}\n",
        communicators.max(1)
    );
    for i in 1..=communicators.max(1) {
        writeln!(text, "d:1:{i}:2:0:1").unwrap();
    }
    one(text + first + second)
}

/// The first rank sends to each of the others.
pub(super) fn dim_peers(n: usize) -> Files {
    let each_rank = vec!["1"; n + 1].join(",");
    let members: String = (0..=n).map(|i| format!(":{i}")).collect();
    one(format!(
        "#DIMEMAS:\"t\":1,0:{}({each_rank}),1\nd:1:1:{}{members}\n",
        n + 1,
        n + 1
    ) + &each(n, |i| format!("2:0:0:{}:-1:8:0:1:2", i + 1))
        + &each(n, |i| format!("3:{}:0:0:-1:8:0:1:0", i + 1)))
}

/// Two tasks with two threads each; their first threads have collectives on these communicators.
pub(super) fn dim_thread_communicators(n: usize) -> Files {
    let threads = |task: usize| {
        each(n, |i| format!("10:{task}:0:11:{}:0:0:8:8", i + 1)) + &format!("1:{task}:1:0.001\n")
    };
    one(format!("#DIMEMAS:\"t\":1,0:2(2,2),{n}\n")
        + &each(n, |i| format!("d:1:{}:2:0:1", i + 1))
        + &threads(0)
        + &threads(1))
}

/// An input, and a network of two nodes with this number of links in each direction.
pub(super) fn limited(mut files: Files, links: usize) -> Files {
    let network = format!(
        "schema = \"flowcast/network/2\"\nname = \"links\"\n[point_to_point]\nrule = \"dimemas\"\n\
         [nic]\nlatency = \"4us\"\nbandwidth = \"100MB/s\"\n\
         [[machine.nodes]]\ncount = 2\nin_links = {links}\nout_links = {links}\n"
    );
    files.push(("links.toml".into(), network.into_bytes()));
    files
}

/// Messages that are all in flight at the same time.
pub(super) fn in_flight_at_once(n: usize) -> Files {
    let posts = each(n, |_| "3:1:0:0:-1:8:0:1:1".to_owned());
    let waits = each(n, |_| "3:1:0:0:-1:8:0:1:2".to_owned());
    dim(2, 0, &sends(n, |_| 0), &(posts + &waits))
}

pub(super) fn ti(first: &str, second: &str) -> Files {
    vec![
        ("in".into(), b"r.0\nr.1\n".to_vec()),
        ("r.0".into(), format!("0 init\n{first}0 finalize\n").into()),
        ("r.1".into(), format!("1 init\n{second}1 finalize\n").into()),
    ]
}

pub(super) fn ti_ranks(n: usize) -> Files {
    let mut files = vec![("in".to_owned(), each(n, |i| format!("r.{i}")).into_bytes())];
    files.extend((0..n).map(|i| {
        (
            format!("r.{i}"),
            format!("{i} init\n{i} compute 1e6\n{i} allreduce 8 1e3\n{i} finalize\n").into_bytes(),
        )
    }));
    files
}

pub(super) fn goal(ranks: &[String]) -> Files {
    let mut text = format!("num_ranks {}\n", ranks.len());
    for (number, rank) in ranks.iter().enumerate() {
        write!(text, "rank {number} {{\n{rank}}}\n").unwrap();
    }
    one(text)
}

/// A call and its arguments.
type DumpiCall = (&'static str, String);

/// Each rank has some calls.
fn dumpi(ranks: usize, calls: impl Fn(usize) -> Vec<DumpiCall>) -> Files {
    let mut files = Vec::new();
    for rank in 0..ranks {
        let world = "MPI_Comm comm=2 (MPI_COMM_WORLD)\n";
        let mut all = vec![
            ("Init", String::new()),
            ("Comm_rank", format!("{world}int rank={rank}\n")),
            ("Comm_size", format!("{world}int size={ranks}\n")),
        ];
        all.extend(calls(rank));
        all.push(("Finalize", String::new()));
        let mut text = String::new();
        for (at, (name, arguments)) in (1..).zip(all) {
            let time = |part: u8| {
                format!(
                    "walltime {}.{:06}{part}00, cputime 0.000000001 seconds in thread 0.",
                    1 + at / 1_000_000,
                    at % 1_000_000
                )
            };
            write!(
                text,
                "MPI_{name} entering at {}\n{arguments}MPI_{name} returning at {}\n",
                time(0),
                time(1)
            )
            .unwrap();
        }
        files.push((format!("t-{rank:04}.txt"), text.into_bytes()));
    }
    let list = each(ranks, |rank| format!("t-{rank:04}.txt"));
    files.push(("in".into(), list.into_bytes()));
    files
}

/// The first rank sends messages, and the second receives them with these tags.
pub(super) fn dumpi_requests(n: usize, tag: impl Fn(usize) -> i64) -> Files {
    dumpi(2, |rank| {
        let request = |i: usize| {
            let (name, peer, tag) = match rank {
                0 => ("Isend", "int dest=1", i as i64),
                _ => ("Irecv", "int source=0", tag(i)),
            };
            let arguments = format!(
                "int count=8\nMPI_Datatype datatype=2 (MPI_CHAR)\n\
                 {peer}\nint tag={tag}\nMPI_Comm comm=2 (MPI_COMM_WORLD)\nMPI_Request request=[{}]\n",
                i + 4
            );
            (name, arguments)
        };
        let mut calls: Vec<DumpiCall> = (0..n).map(request).collect();
        let list: Vec<String> = (0..n).map(|i| (i + 4).to_string()).collect();
        let arguments = format!(
            "int count={n}\nMPI_Request requests[{n}]=[{}]\nMPI_Status statuses[{n}]=<IGNORED>\n",
            list.join(", ")
        );
        calls.push(("Waitall", arguments));
        calls
    })
}

/// Copies of the communicator of two ranks.
pub(super) fn dumpi_communicators(n: usize) -> Files {
    dumpi(2, |_| {
        let copy = |number: usize| {
            let new = format!("MPI_Comm newcomm={number} (user-defined-comm)\n");
            let old = "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)\n";
            let barrier = format!("MPI_Comm comm={number} (user-defined-comm)\n");
            [("Comm_dup", format!("{old}{new}")), ("Barrier", barrier)]
        };
        (4..n + 4).flat_map(copy).collect()
    })
}

/// Ranks whose communicator is split into pairs.
pub(super) fn dumpi_ranks(n: usize) -> Files {
    dumpi(n, |rank| {
        let split = format!(
            "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)\nint color={}\nint key={rank}\n\
             MPI_Comm newcomm=4 (user-defined-comm)\n",
            rank / 2
        );
        let barrier = "MPI_Comm comm=4 (user-defined-comm)\n".to_owned();
        vec![("Comm_split", split), ("Barrier", barrier)]
    })
}

/// Copies of the communicator of two ranks, which are used later.
pub(super) fn liballprof_communicators(n: usize) -> Files {
    let mut files = Vec::new();
    for rank in 0..2 {
        let copies = each(n, |i| {
            format!("MPI_Comm_dup:{i}:1140850688,{rank},2:{}:{i}", 4096 + 8 * i)
        });
        let barriers = each(n, |i| {
            let time = n + i;
            format!("MPI_Barrier:{time}:{},{rank},2:{time}", 2_000_000_000 + i)
        });
        let end = 2 * n;
        let text = format!("MPI_Init:-:0:0:0\n{copies}{barriers}MPI_Finalize:{end}:-:{end}\n");
        files.push((format!("t.{rank}"), text.into_bytes()));
    }
    files.push(("in".into(), b"t.0\nt.1\n".to_vec()));
    files
}

pub(super) fn liballprof(n: usize) -> Files {
    let mut files = Vec::new();
    for rank in 0..2 {
        let mut text = "MPI_Init:-:0:0:2\n".to_owned();
        let comm = format!("1140850688,{rank},2");
        let time = |i: usize| 10 + i;
        for i in 0..n {
            let name = if rank == 0 { "MPI_Isend" } else { "MPI_Irecv" };
            writeln!(
                text,
                "{name}:{}:256:8:2,1,1:{}:{i}:{comm}:{}:{}",
                time(i),
                1 - rank,
                4096 + 16 * i,
                time(i)
            )
            .unwrap();
        }
        for i in 0..n {
            writeln!(
                text,
                "MPI_Wait:{}:{}:1:{}",
                time(n + i),
                4096 + 16 * (n - 1 - i),
                time(n + i)
            )
            .unwrap();
        }
        writeln!(text, "MPI_Finalize:{}:-:{}", time(2 * n), time(2 * n)).unwrap();
        files.push((format!("t.{rank}"), text.into_bytes()));
    }
    files.push(("in".into(), b"t.0\nt.1\n".to_vec()));
    files
}

pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field of a message of Protocol Buffers: a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3, &mut out);
    varint(value, &mut out);
    out
}

/// A field of a message of Protocol Buffers: bytes.
fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(field << 3 | 2, &mut out);
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// A rank of a Chakra trace, from the fields of its nodes after their numbers.
fn chakra_rank(n: usize, fields: impl Fn(u64) -> Vec<Vec<u8>>) -> Vec<u8> {
    let nodes = (0..n as u64).map(|i| [number(1, i), fields(i).concat()].concat());
    let mut out = Vec::new();
    for content in std::iter::once(bytes(1, b"0.0.4")).chain(nodes) {
        varint(content.len() as u64, &mut out);
        out.extend(content);
    }
    out
}

/// A chain of nodes that compute.
pub(super) fn chakra(n: usize) -> Files {
    let rank = chakra_rank(n, |i| {
        let earlier = if i > 0 { number(5, i - 1) } else { Vec::new() };
        vec![number(3, 4), earlier, number(7, 5)]
    });
    vec![("t.0.et".into(), rank), ("in".into(), b"t.0.et\n".to_vec())]
}

/// Messages that are received in the opposite order.
pub(super) fn chakra_messages(n: usize) -> Files {
    let attribute =
        |name: &str, value| bytes(10, &[bytes(1, name.as_bytes()), number(9, value)].concat());
    let message = |kind, peer: &str, other, tag| {
        let [peer, tag, size] = [(peer, other), ("comm_tag", tag), ("comm_size", 8)]
            .map(|(name, value)| attribute(name, value));
        vec![number(3, kind), peer, tag, size]
    };
    let sender = chakra_rank(n, |i| message(5, "comm_dst", 1, i));
    let receiver = chakra_rank(n, |i| message(6, "comm_src", 0, n as u64 - 1 - i));
    vec![
        ("t.0.et".into(), sender),
        ("t.1.et".into(), receiver),
        ("in".into(), b"t.0.et\nt.1.et\n".to_vec()),
    ]
}

/// Messages with these tags, which are received at these times.
pub(super) fn prv(
    n: usize,
    tag: impl Fn(usize) -> usize,
    receive: impl Fn(usize) -> usize,
) -> Files {
    one(format!(
        "#Paraver (01/01/2026 at 00:00):{}_ns:1(2):1:2(1:1,1:1)\n",
        20 * n + 20
    ) + &each(n, |i| {
        let (sent, received, tag) = (10 * i, receive(i), tag(i));
        format!("3:1:1:1:1:{sent}:{sent}:2:1:2:1:{received}:{received}:8:{tag}")
    }))
}

/// The first rank sends messages with these tags.
pub(super) fn sends(n: usize, tag: impl Fn(usize) -> usize) -> String {
    each(n, |i| format!("2:0:0:1:-1:8:{}:1:2", tag(i)))
}

/// The second rank receives them.
pub(super) fn receives(n: usize, tag: impl Fn(usize) -> usize) -> String {
    each(n, |i| format!("3:1:0:0:-1:8:{}:1:0", tag(i)))
}

/// Messages that are received in the opposite order.
pub(super) fn tags(n: usize) -> Files {
    dim(2, 0, &sends(n, |i| i), &receives(n, |i| n - 1 - i))
}

pub(super) fn goal_tags(n: usize) -> [String; 2] {
    let receive = |i| format!("l{i}: recv 8b from 0 tag {}", n - 1 - i);
    [
        each(n, |i| format!("l{i}: send 8b to 1 tag {i}")),
        each(n, receive),
    ]
}

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

pub(super) fn dumpi(n: usize, communicators: bool) -> Files {
    let mut files = Vec::new();
    for rank in 0..2 {
        let mut at = 0;
        let mut text = String::new();
        let mut call = |name: &str, arguments: String| {
            at += 1;
            let time = |part| {
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
        };
        call("Init", String::new());
        call(
            "Comm_rank",
            format!("MPI_Comm comm=2 (MPI_COMM_WORLD)\nint rank={rank}\n"),
        );
        call(
            "Comm_size",
            "MPI_Comm comm=2 (MPI_COMM_WORLD)\nint size=2\n".into(),
        );
        if communicators {
            for i in 0..n {
                call(
                    "Comm_dup",
                    format!(
                        "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)\nMPI_Comm newcomm={} (user-defined-comm)\n",
                        i + 4
                    ),
                );
                call(
                    "Barrier",
                    format!("MPI_Comm comm={} (user-defined-comm)\n", i + 4),
                );
            }
        } else {
            for i in 0..n {
                let (name, peer) = if rank == 0 {
                    ("Isend", "int dest=1")
                } else {
                    ("Irecv", "int source=0")
                };
                call(
                    name,
                    format!(
                        "int count=8\nMPI_Datatype datatype=2 (MPI_CHAR)\n\
                         {peer}\nint tag={i}\nMPI_Comm comm=2 (MPI_COMM_WORLD)\nMPI_Request request=[{}]\n",
                        i + 4
                    ),
                );
            }
            let list: Vec<String> = (0..n).map(|i| (i + 4).to_string()).collect();
            call(
                "Waitall",
                format!(
                    "int count={n}\nMPI_Request requests[{n}]=[{}]\nMPI_Status statuses[{n}]=<IGNORED>\n",
                    list.join(", ")
                ),
            );
        }
        call("Finalize", String::new());
        files.push((format!("t-{rank:04}.txt"), text.into_bytes()));
    }
    files.push(("in".into(), b"t-0000.txt\nt-0001.txt\n".to_vec()));
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

/// Two chains of nodes that compute.
pub(super) fn chakra(n: usize) -> Files {
    let number = |field: u64, value: u64| {
        let mut out = Vec::new();
        varint(field << 3, &mut out);
        varint(value, &mut out);
        out
    };
    let bytes = |field: u64, content: &[u8]| {
        let mut out = Vec::new();
        varint(field << 3 | 2, &mut out);
        varint(content.len() as u64, &mut out);
        out.extend_from_slice(content);
        out
    };
    let mut out = Vec::new();
    let mut message = |content: Vec<u8>| {
        varint(content.len() as u64, &mut out);
        out.extend_from_slice(&content);
    };
    message(bytes(1, b"0.0.4"));
    for i in 0..n as u64 {
        let earlier = if i > 0 { number(5, i - 1) } else { Vec::new() };
        message([number(1, i), number(3, 4), earlier, number(7, 5)].concat());
    }
    vec![("t.0.et".into(), out), ("in".into(), b"t.0.et\n".to_vec())]
}

pub(super) fn prv(n: usize) -> Files {
    one(format!(
        "#Paraver (01/01/2026 at 00:00):{}_ns:1(2):1:2(1:1,1:1)\n",
        20 * n + 20
    ) + &each(n, |i| {
        format!(
            "3:1:1:1:1:{}:{}:2:1:2:1:{}:{}:8:{i}",
            10 * i,
            10 * i,
            10 * n + i,
            10 * n + i
        )
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

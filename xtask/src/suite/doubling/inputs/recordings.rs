//! Recordings, byte by byte as `flowcast_recording::format` has them.

use std::collections::HashMap;

use super::{Files, traces::varint};

/// A recording of two ranks.
pub(super) fn recording(calls: impl Fn(u64) -> Rank) -> Files {
    let mut files = vec![(
        "in/recording".to_owned(),
        b"#FLOWCAST-RECORDING 1\nranks 2\n".to_vec(),
    )];
    for rank in 0..2 {
        let head = format!(
            "#FLOWCAST-RANK 1\nrank {rank}\nranks 2\nhost vm\ncores 2\nlibrary Open MPI v4.1.4\nprogram t\npid 1\n\
             thread-level 0\nstart-unix-ns 1\ncpu-threshold-ns 50000\noverhead-ns 0\nrecorder 0.2.0\n\n"
        );
        let mut all = head.into_bytes();
        let mut rank_bytes = calls(rank);
        rank_bytes.call("Finalize", &[]);
        rank_bytes.0.extend([0, 12]);
        all.extend(b"FBLK");
        all.extend((rank_bytes.0.len() as u32).to_le_bytes());
        all.extend(rank_bytes.0);
        files.push((format!("in/rank-{rank:05}"), all));
    }
    files
}

/// Bytes, known functions and known signatures of a rank.
#[derive(Default)]
pub(super) struct Rank(Vec<u8>, Vec<String>, HashMap<Vec<i64>, u64>);

impl Rank {
    fn new() -> Rank {
        let mut rank = Rank::default();
        rank.communicator();
        rank.call("Init", &[]);
        rank
    }

    /// A communicator of both ranks.
    fn communicator(&mut self) {
        self.0.extend([0, 3, 0, 1, 0, 2, 2]);
    }

    fn name(&mut self, name: &str) {
        self.0.extend([0, 8]);
        varint(name.len() as u64, &mut self.0);
        self.0.extend(name.as_bytes());
    }

    fn call(&mut self, name: &str, words: &[i64]) {
        let function = self
            .1
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                self.0.extend([0, 1]);
                varint(name.len() as u64, &mut self.0);
                self.0.extend(name.as_bytes());
                self.1.push(name.to_owned());
                self.1.len() - 1
            });
        let words = [&[function as i64], words].concat();
        let next = self.2.len() as u64;
        let signature = match self.2.get(&words) {
            Some(known) => *known,
            None => {
                self.0.extend([0, 2]);
                varint(words.len() as u64, &mut self.0);
                for word in &words {
                    varint(((word << 1) ^ (word >> 63)) as u64, &mut self.0);
                }
                self.2.insert(words, next);
                next
            }
        };
        varint(signature + 1, &mut self.0);
        self.0.extend([100, 0, 50, 0]);
    }
}

pub(super) fn in_flight(rank: u64, n: usize, wild: bool) -> Rank {
    let mut out = Rank::new();
    for _ in 0..n {
        if rank == 0 {
            out.call("Isend", &[0, 1, 5, 8])
        } else {
            out.call("Irecv", &[0, 0, 5, i64::from(wild)])
        }
    }
    let matched = rank == 1 && wild;
    let slots: Vec<i64> = (0..n as i64)
        .flat_map(|i| {
            if matched {
                vec![4 * i + 1, 0, 5]
            } else {
                vec![4 * i]
            }
        })
        .collect();
    out.call("Waitall", &slots);
    out
}

pub(super) fn sizes(rank: u64, n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n as i64 {
        if rank == 0 {
            out.call("Send", &[0, 1, i, i])
        } else {
            out.call("Recv", &[0, 0, i, 0])
        }
    }
    out
}

/// As many functions that no table has.
pub(super) fn functions(n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n {
        out.call(&format!("T_{i}"), &[0]);
    }
    out
}

pub(super) fn communicators(n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n as i64 {
        out.communicator();
        out.call("Comm_dup", &[0, i + 2]);
        out.call("Barrier", &[i + 1, -1, 0, 0]);
    }
    out
}

pub(super) fn persistent(rank: u64, n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n as i64 {
        if rank == 0 {
            out.call("Send_init", &[0, 1, i, 8])
        } else {
            out.call("Recv_init", &[0, 0, i, 0])
        }
    }
    let slots: Vec<i64> = (0..n as i64).collect();
    out.call("Startall", &slots);
    let slots: Vec<i64> = (0..n as i64).map(|i| 4 * i).collect();
    out.call("Waitall", &slots);
    out
}

pub(super) fn regions(n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n as i64 {
        out.name(&format!("region {i}"));
        out.call("Pcontrol", &[1, i + 1]);
        out.call("Barrier", &[0, -1, 0, 0]);
        out.call("Pcontrol", &[-1, i + 1]);
    }
    out
}

pub(super) fn windows(n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n as i64 {
        out.0.extend([0, 4, 0]);
        out.call("Win_fence", &[i, -1, 0]);
        out.call("Put", &[i, 1, 8]);
        out.call("Win_fence", &[i, -1, 0]);
    }
    out
}

/// Two threads that take turns.
pub(super) fn thread_order(rank: u64, n: usize) -> Rank {
    let mut out = Rank::new();
    for i in 0..n as i64 {
        out.0.extend([0, 6, (i % 2) as u8]);
        if rank == 0 {
            out.call("Isend", &[0, 1, i % 2, 8])
        } else {
            out.call("Irecv", &[0, 0, i % 2, 0])
        }
        out.call("Wait", &[0]);
    }
    out.0.extend([0, 6, 0]);
    out
}

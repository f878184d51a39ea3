//! Memory of readers is proportional to the input, for any counts in its header. A global allocator counts, so this test is
//! a binary of its own.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use flowcast::{
    calibrate::conflict_samples::ConflictSamples,
    fit::samples::PrttSamples,
    formats::read,
    model::{
        algorithm::AlgorithmTable, cluster::pattern::Steps, dimemas_cfg::DimemasConfig,
        network::Network,
    },
    recording::format,
    trace::{ReadOptions, SharedBytes, Trace, compiled},
};
use flowcast_place::mapping_file;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Locked by each test, because allocations of other tests would be counted.
static ALONE: Mutex<()> = Mutex::new(());

// Sound: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Memory that a reader may use in addition to the input: tables of a fixed size, and a limited number of bytes for each
/// byte of the input.
const FIXED: usize = 8 << 20;
const FOR_EACH_BYTE: usize = 400;

/// Numbers that stand for a count in the inputs below.
const COUNTS: [&str; 5] = [
    "1000000",
    "16777215",
    "16777216",
    "4294967295",
    "18446744073709551615",
];

fn stays_small(what: &str, bytes: usize, read: impl FnOnce()) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    read();
    let taken = PEAK.load(Ordering::Relaxed) - before;
    assert!(
        taken <= FIXED + FOR_EACH_BYTE * bytes,
        "{what}: {taken} bytes for an input of {bytes}"
    );
}

fn read_trace(text: &[u8], open: &mut dyn FnMut(&str) -> io::Result<SharedBytes>) {
    let _ = read("t", Arc::new(text.to_vec()), open, ReadOptions::default());
}

/// Traces with N for a count that the input does not contain.
const TRACES: &[&str] = &[
    "#DIMEMAS:\"t\":0:N(1,1),0\n1:0:0:0.1\n",
    "#DIMEMAS:\"t\":0:2(N,N),0\n1:0:0:0.1\n",
    "#DIMEMAS:\"t\":0:2(1,1),N\nd:1:1:N:0:1\n1:0:0:0.1\n",
    "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:N:2:0:1\n2:0:0:N:-1:N:N:1:0\n",
    "#DIMEMAS:\"t\":0:2(1,1),1\nd:1:1:2:0:1\n10:0:0:N:1:N:0:N:N:1\n",
    "num_ranks N\nrank 0 {\nl1: calc 5\n}\n",
    "num_ranks 1\nrank 0 {\nlN: calc N\nlN requires lN\n}\n",
    "0 init\nN send 0 0 8\n",
    "N init\nN finalize\n",
    "0 init\n0 comm_size N\n0 allreduce N N\n",
    "MPI_Init:-:0:0:1\nMPI_Comm_size:0:N:0:N:1\n",
    "MPI_Init entering at walltime 1.0, cputime 0.1 seconds in thread 0.\nMPI_Init returned at walltime 1.1, cputime \
     0.1 seconds in thread 0.\nMPI_Comm_size entering at walltime 1.2, cputime 0.1 seconds in thread 0.\nint size=N\n",
    "#Paraver (01/01/2020 at 00:00):N_ns:1(N):1:N(N:1)\n1:1:1:1:1:0:5:1\n",
    "#Paraver (01/01/2020 at 00:00):9_ns:N(1):N:1(N:1)\n3:N:N:N:N:0:0:N:N:N:N:5:5:8:N\n",
];

#[test]
fn no_reader_allocates_memory_for_a_count_in_a_header() {
    let _alone = ALONE.lock();
    let mut none = |_: &str| Err(io::ErrorKind::NotFound.into());
    for count in COUNTS {
        for text in TRACES {
            let text = text.replace('N', count);
            stays_small(&text, text.len(), || read_trace(text.as_bytes(), &mut none));
        }
        let toml = |text: &str| text.replace('N', count);
        for text in [
            "N 0 1\n",
            "host:N\n",
            "rank N=+nN slot=N\n",
            "rank 0=+nN slot=0\n",
            "N\n",
            "N-per-node\n",
        ] {
            let text = toml(text);
            stays_small(&text, 1 << 18, || {
                drop(mapping_file::read("m", &text, &mut Vec::new()))
            });
        }
        for text in [
            "node 0..N rack a\n0 -> 1 4MB\n",
            "N -> 0 NB @ Ns\n",
            "0 -> N 1B\nstep\nN -> N 1B\n",
        ] {
            let text = toml(text);
            stays_small(&text, text.len(), || {
                drop(Steps::read("p", text.as_bytes()))
            });
        }
        for text in [
            "n,d_us,size_B,prtt_us\nN,N,N,N\n",
            "n,d_us,size_B,prtt_us\n1,0,N,1\n16,0,N,2\n",
        ] {
            let text = toml(text);
            stays_small(&text, text.len(), || drop(PrttSamples::from_csv(&text)));
            stays_small(&text, text.len(), || drop(ConflictSamples::from_csv(&text)));
        }
        let network = include_str!("../../flowcast-network/networks/gige-tcp.toml").to_owned();
        let machine = format!("{network}\n[[machine.nodes]]\ncount = {count}\ncpus = {count}\n");
        stays_small(&machine, machine.len(), || {
            drop(Network::from_toml(&machine, &[]))
        });
        let table = toml(
            "base = \"openmpi\"\n[rows]\nBcast = [\"ranks < N: knomial width N\", \"linear\"]\n",
        );
        stays_small(&table, table.len(), || {
            drop(AlgorithmTable::from_toml(&table))
        });
    }
}

#[test]
fn no_binary_reader_allocates_memory_for_a_count_in_a_header() {
    let _alone = ALONE.lock();
    let text = "#DIMEMAS:\"c\":0:2(1,1),1\nd:1:1:2:0:1\n10:0:0:7:1:0:0:8:8:1\n2:0:0:1:-1:80:7:1:0\n\
        10:1:0:7:1:0:0:8:8:1\n3:1:0:0:-1:80:7:1:0\n";
    let schedule = "num_ranks 2\nrank 0 {\nl1: calc 100\nl2: send 8b to 1 tag 3\nl2 requires l1\n}\n\
        rank 1 {\nl1: recv 8b from 0 tag 3\n}\n";
    let mut none = |_: &str| Err(io::ErrorKind::NotFound.into());
    for text in [text, schedule] {
        let trace = flowcast::read_text("c", text).unwrap();
        let file = compiled::parts(&trace).concat();
        let mut goal = Vec::new();
        if let Trace::Schedule(schedule) = &trace {
            flowcast::convert::goal_binary(schedule, &mut goal).unwrap();
        }
        for file in [file, goal] {
            let is_compiled = file.starts_with(b"FLOWCAST");
            for at in 0..file.len().saturating_sub(3) {
                for number in [0xffff_ffffu32, 0x00ff_ffff, 0x7fff_0000] {
                    let mut changed = file.clone();
                    changed[at..at + 4].copy_from_slice(&number.to_le_bytes());
                    if is_compiled && at >= 32 {
                        let sum = crc32fast::hash(&changed[32..]);
                        changed[12..16].copy_from_slice(&sum.to_le_bytes());
                    }
                    stays_small(&format!("byte {at}: {number}"), changed.len(), || {
                        read_trace(&changed, &mut none)
                    });
                }
            }
            // Digits of the tables.
            for at in (0..file.len()).filter(|at| file[*at].is_ascii_digit()) {
                let mut changed = file[..at].to_vec();
                changed.extend_from_slice(b"4294967295");
                changed.extend_from_slice(&file[at + 1..]);
                if is_compiled {
                    let behind = u64::from_le_bytes(changed[16..24].try_into().unwrap()) + 9;
                    changed[16..24].copy_from_slice(&behind.next_multiple_of(8).to_le_bytes());
                    let sum = crc32fast::hash(&changed[32..]);
                    changed[12..16].copy_from_slice(&sum.to_le_bytes());
                }
                stays_small(&format!("digit {at}"), changed.len(), || {
                    read_trace(&changed, &mut none)
                });
            }
        }
    }
}

#[test]
fn a_recording_allocates_no_memory_for_a_count_in_a_header() {
    let _alone = ALONE.lock();
    for ranks in ["2", "16777216"] {
        let lines = format!(
            "rank 0\nranks {ranks}\nhost a\ncores 8\ncpu-threshold-ns 50000\noverhead-ns 0\n"
        );
        let body = [
            0u8, 3, 0, 1, 0, 2, 2, 0, 1, 4, b'S', b'e', b'n', b'd', 0, 2, 5, 0, 0, 0, 14, 16, 1, 5,
            0, 5, 0, 0, 12,
        ];
        for at in 0..body.len() {
            // A number of the largest kind in place of each byte.
            let mut block = body[..at].to_vec();
            block.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
            block.extend_from_slice(&body[at + 1..]);
            let file = [
                format::header(&lines).as_bytes(),
                &format::head(&block),
                &block,
            ]
            .concat();
            stays_small(&format!("byte {at}"), file.len(), || {
                drop(flowcast::recording::decode::read("r", &file))
            });
        }
    }
}

#[test]
fn a_dimemas_configuration_allocates_no_memory_for_a_count() {
    let _alone = ALONE.lock();
    let text = include_str!("../../../tests/data/dimemas-cfg/every-record.cfg");
    let mut none = |_: &str| Err(io::ErrorKind::NotFound.into());
    for (at, digit) in text
        .char_indices()
        .filter(|(_, digit)| digit.is_ascii_digit())
    {
        for count in COUNTS {
            let changed = format!("{}{count}{}", &text[..at], &text[at + digit.len_utf8()..]);
            stays_small(&changed, changed.len(), || {
                drop(DimemasConfig::read(changed.as_bytes(), &mut none))
            });
        }
    }
}

//! Inputs of any size, in the forms that the command reads. The size is the number of parts of one kind.

mod recordings;
mod tables;
mod traces;

use recordings::*;
use tables::*;
use traces::*;

/// Files by their names in a folder.
pub(super) type Files = Vec<(String, Vec<u8>)>;

/// A command on an input with any number of parts of one kind.
#[derive(Debug)]
pub(super) struct Case {
    /// Its name in what the step prints.
    pub name: &'static str,
    /// Words behind `flowcast`.
    pub words: &'static [&'static str],
    /// Further words behind these.
    pub more: &'static [&'static str],
    /// Words of a command that runs before and is not counted; none if empty.
    pub before: &'static [&'static str],
    /// The input of a size.
    pub input: fn(usize) -> Files,
    /// A size that takes seconds to count.
    pub size: usize,
}

const fn case(
    name: &'static str,
    words: &'static [&'static str],
    input: fn(usize) -> Files,
    size: usize,
) -> Case {
    Case {
        name,
        words,
        more: &[],
        before: &[],
        input,
        size,
    }
}

impl Case {
    const fn after(self, before: &'static [&'static str]) -> Case {
        Case { before, ..self }
    }

    const fn with(self, more: &'static [&'static str]) -> Case {
        Case { more, ..self }
    }
}

const PREDICT: &[&str] = &[
    "predict",
    "in",
    "-n",
    "gige-tcp",
    "--json",
    "--model",
    "independent",
];
const FAIR: &[&str] = &[
    "predict", "in", "-n", "gige-tcp", "--json", "--model", "fair",
];
const LIMITS: &[&str] = &["predict", "in", "-n", "links.toml", "--json"];
const GOAL: &[&str] = &[
    "predict",
    "in",
    "--goal-params",
    "2000,500,700,1,65536",
    "--json",
];
const FIT: &[&str] = &["fit", "in", "-o", "out.toml", "--json"];
const PLACE: &[&str] = &[
    "place", "in", "-n", "gige-tcp", "--nodes", "2",
    // How far the search goes depends on the numbers, not only on how many there are.
    "--moves", "1", "--json",
];
const FIT_COLLECTIVES: &[&str] = &[
    "fit",
    "--collectives",
    "measured.csv",
    "--allocations",
    "nodes.csv",
    "--system",
    "s",
    "-o",
    "out.toml",
    "--json",
];
const PREDICT_COLLECTIVES: &[&str] = &[
    "collectives",
    "predict",
    "in",
    "--allocations",
    "nodes.csv",
    "-n",
    "out.toml",
    "-o",
    "out.csv",
];

#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("dim-messages", PREDICT, |n| dim(2, 0, &sends(n, |_| 0), &receives(n, |_| 0)), 2000),
    case("dim-compile", &["compile", "in", "-o", "out.fct"], |n| dim(2, 0, &sends(n, |_| 0), &receives(n, |_| 0)), 2000),
    case("compiled", &["predict", "in.fct", "-n", "gige-tcp", "--json", "--model", "independent"], tags, 2000)
        .after(&["compile", "in", "-o", "in.fct"]),
    case("dim-tags", PREDICT, tags, 2000),
    case("dim-in-flight", PREDICT, in_flight_at_once, 2000),
    case("dim-truncated", PREDICT, |n| dim(2, 0, &each(n, |i| format!("2:0:0:1:-1:16:{i}:1:2")), &receives(n, |i| i)), 2000),
    case("dim-rendezvous", PREDICT, |n| dim(2, 0, &each(n, |i| format!("2:0:0:1:-1:8:{i}:1:3")),
        &(each(n, |i| format!("3:1:0:0:-1:8:{}:1:1", n - 1 - i)) + &each(n, |i| format!("3:1:0:0:-1:8:{i}:1:2")))), 2000),
    case("dim-sizes", PREDICT, |n| dim(2, 0, &each(n, |i| format!("2:0:0:1:-1:{i}:0:1:2")),
        &each(n, |i| format!("3:1:0:0:-1:{i}:0:1:0"))), 2000),
    case("dim-unexpected", PREDICT,
        |n| dim(2, 0, &sends(n, |_| 0), &("1:1:0:1.0\n".to_owned() + &receives(n, |_| 0))), 2000),
    case("dim-communicators", &["compile", "in", "-o", "out.fct"],
        |n| dim(2, n, &each(n, |i| format!("10:0:0:11:{}:0:0:8:8", i + 1)),
            &each(n, |i| format!("10:1:0:11:{}:0:0:8:8", i + 1))), 2000),
    case("dim-communicators-expanded", PREDICT,
        |n| dim(2, n, &each(n, |i| format!("10:0:0:11:{}:0:0:8:8", i + 1)),
            &each(n, |i| format!("10:1:0:11:{}:0:0:8:8", i + 1))), 1000)
        .with(&["--collectives", "openmpi"]),
    case("dim-collectives", PREDICT, |n| dim(2, 1, &rep(n, "10:0:0:11:1:0:0:8:8"), &rep(n, "10:1:0:11:1:0:0:8:8")), 1000),
    case("dim-events", PREDICT, |n| dim(2, 0, &each(n, |i| format!("20:0:0:{}:{i}", 1000 + i)), ""), 2000),
    case("dim-silent-ranks", PREDICT, |n| dim(n, 0, &sends(1, |_| 0), &receives(1, |_| 0)), 2000),
    case("dim-threads", PREDICT,
        |n| one(format!("#DIMEMAS:\"t\":1,0:1({n}),1\nd:1:1:1:0\n") + &each(n, |i| format!("1:0:{i}:0.001"))), 2000),
    case("dim-thread-communicators", PREDICT, dim_thread_communicators, 1000),
    case("dim-peers", PREDICT, dim_peers, 2000),
    case("dim-explain", &["explain", "path", "in", "-n", "gige-tcp", "--model", "independent", "--json"], tags, 1000),
    case("dim-paraver", &["convert", "in", "-o", "out.prv", "-n", "gige-tcp"], tags, 1000),
    case("dim-goal", &["convert", "in", "-o", "out.goal"], tags, 2000),
    case("dim-fair", FAIR, dim_peers, 500),
    case("limits-in-flight", LIMITS, |n| limited(in_flight_at_once(n), 1), 2000),
    case("limits-links", LIMITS, |n| limited(in_flight_at_once(n), n), 2000),
    case("ti-messages", PREDICT, |n| ti(&rep(n, "0 send 1 0 8"), &rep(n, "1 recv 0 0 8")), 2000),
    case("ti-in-flight", PREDICT,
        |n| ti(&(rep(n, "0 isend 1 0 8") + "0 waitall\n"), &(rep(n, "1 irecv 0 0 8") + "1 waitall\n")), 2000),
    case("ti-waits", PREDICT, |n| ti(&each(n, |i| format!("0 isend 1 {i} 8")),
        &(each(n, |i| format!("1 irecv 0 {i} 8")) + &each(n, |i| format!("1 wait 0 1 {}", n - 1 - i)))), 2000),
    case("ti-ranks", PREDICT, ti_ranks, 250),
    case("goal-tags", GOAL, |n| goal(&goal_tags(n)), 2000),
    case("goal-ranks", GOAL, |n| goal(&vec!["a: calc 10\n".to_owned(); n]), 2000),
    case("goal-fan", GOAL,
        |n| goal(&[each(n, |i| format!("l{i}: calc 5")) + "e: calc 1\n" + &each(n, |i| format!("e requires l{i}"))]), 2000),
    case("goal-release", GOAL,
        |n| goal(&["e: calc 1\n".to_owned() + &each(n, |i| format!("l{i}: calc 5")) + &each(n, |i| format!("l{i} requires e"))]), 30_000),
    case("goal-binary", &["convert", "in", "-o", "out.bin", "--format", "goal-bin"], |n| goal(&goal_tags(n)), 2000),
    case("dumpi-in-flight", PREDICT, |n| dumpi_requests(n, |i| i as i64), 1000),
    case("dumpi-wildcards", PREDICT, |n| dumpi_requests(n, |_| -1), 1000),
    case("dumpi-communicators", PREDICT, dumpi_communicators, 500),
    case("dumpi-ranks", PREDICT, dumpi_ranks, 250),
    case("liballprof-in-flight", PREDICT, liballprof, 1000),
    case("liballprof-communicators", PREDICT, liballprof_communicators, 500),
    case("chakra-nodes", PREDICT, chakra, 2000),
    case("chakra-messages", PREDICT, chakra_messages, 2000),
    case("prv-messages", PREDICT, |n| prv(n, |i| i, |i| 10 * n + i), 2000),
    case("prv-overtaking", PREDICT, |n| prv(n, |_| 0, |i| 20 * n - i), 2000),
    case("recording-in-flight", PREDICT, |n| recording(|rank| in_flight(rank, n, false)), 2000),
    case("recording-wildcards", PREDICT, |n| recording(|rank| in_flight(rank, n, true)), 2000),
    case("recording-signatures", PREDICT, |n| recording(|rank| sizes(rank, n)), 2000),
    case("recording-communicators", PREDICT, |n| recording(|_| communicators(n)), 500),
    case("recording-persistent", PREDICT, |n| recording(|rank| persistent(rank, n)), 1000),
    case("recording-regions", PREDICT, |n| recording(|_| regions(n)), 1000),
    case("recording-windows", PREDICT, |n| recording(|_| windows(n)), 500),
    case("recording-order", PREDICT, |n| recording(|rank| thread_order(rank, n)), 1000),
    case("recording-functions", PREDICT, |n| recording(|_| functions(n)), 2000),
    case("recording-compare", &["compare", "in", "in", "--json"], |n| recording(|rank| sizes(rank, n)), 1000),
    case("pattern-flows", FAIR, |n| one(each(n, |i| format!("{i} -> {} 1MB", i + 1))), 500),
    case("pattern-late", FAIR, |n| one(each(n, |i| format!("{} -> {} 1MB @ {i}ms", 2 * i, 2 * i + 1))), 500),
    case("pattern-independent", PREDICT, |n| one(each(n, |i| format!("{} -> {} 1MB", 2 * i, 2 * i + 1))), 1000),
    case("matrix-entries", PLACE,
        |n| one("from,to,bytes\n".to_owned() + &each(n, |i| format!("{},{},1", i % 64, i / 64 % 64))), 4000)
        .with(&["--objective", "hops", "--ranks-per-node", "64"]),
    case("matrix-ranks", PLACE, |n| one(format!("from,to,bytes\n0,{},1\n", n - 1)), 2000)
        .with(&["--objective", "hops"]),
    case("mapping-nodes", &["mapping", "in", "--format", "openmpi"], |n| one(each(n, |i| (i % 100).to_string())), 2000),
    case("mapping-rankfile", &["mapping", "in"], |n| one(each(n, |i| format!("rank {i}=n{i} slot=0"))), 2000),
    case("mapping-mpich", &["mapping", "in"], |n| one(each(n, |i| format!("n{i}:1"))), 2000),
    case("mapping-slurm", &["mapping", "in"], |n| one(each(n, |i| format!("n{i}"))), 2000),
    case("mapping-hosts", &["mapping", "fill", "--ranks", "8", "--hosts", "in"],
        |n| one(each(n, |i| format!("node{i} slots=2"))), 2000),
    case("mapping-c", &["mapping", "in", "--format", "c"], |n| one(each(n, |i| (i % 100).to_string())), 1000),
    case("calls", &["fit", "in", "--json"], |n| one(calls(n)), 500),
    case("collectives-allocations", FIT_COLLECTIVES, measured, 1000),
    case("collectives-cases", PREDICT_COLLECTIVES, |n| collective_cases(n, 4), 64).after(FIT_COLLECTIVES),
    case("collectives-nodes", PREDICT_COLLECTIVES, |n| collective_cases(8, n), 64).after(FIT_COLLECTIVES),
    case("steps", PLACE, |n| one(rep(n, "0 -> 1 1MB\nstep")), 200),
    case("steps-flows", PLACE, |n| one(each(n, |i| format!("{i} -> {} 1MB", i + 1))), 50),
    case("samples", FIT,
        |n| one("# schema: flowcast/samples/2\nwhat,n,d_us,size_B,time_us\n".to_owned() + &each(n, sample)), 2000),
    case("osu", FIT, |n| one("# OSU MPI Latency Test v5.6.3\n# Size          Latency (us)\n".to_owned()
        + &each(n, |i| format!("{} {:.2}", 1 + i * 8, 5.0 + i as f64 * 0.008))), 500),
    case("imb", FIT, |n| one(imb(&each(n, |i| format!("{} 1000 {:.2} 1.0", 1 + i * 8, 5.0 + i as f64 * 0.008)))), 500),
    case("imb-sections", &["fit", "in", "--section", "2", "-o", "out.toml", "--json"],
        |n| one(imb("1 1000 5.0 1.0\n16 1000 6.0 1.0\n256 1000 7.0 1.0\n").repeat(n)), 500),
    case("osu-sections", &["fit", "in", "--section", "1", "-o", "out.toml", "--json"],
        |n| one(rep(n, "# OSU MPI Latency Test v5.6.3\n# Size          Latency (us)\n1 5.0\n16 6.0\n256 7.0")), 500),
];

fn rep(n: usize, line: &str) -> String {
    format!("{line}\n").repeat(n)
}

fn each(n: usize, line: impl Fn(usize) -> String) -> String {
    each_by(n, "\n", line)
}

fn each_by(n: usize, end: &str, line: impl Fn(usize) -> String) -> String {
    (0..n).map(|i| line(i) + end).collect()
}

fn one(text: String) -> Files {
    vec![("in".into(), text.into())]
}

/// Four sizes, one message, sixteen, and sixteen with computation between them.
fn sample(i: usize) -> String {
    let (size, kind) = ([1, 1024, 4096, 8192][i % 4], i / 4 % 3);
    let (n, d) = [(1, 0), (16, 0), (16, 50)][kind];
    let time = 110.0
        + f64::from(n - 1) * f64::from(d + 6)
        + f64::from(size * n) * 0.0827
        + (i % 7) as f64 / 8.0;
    format!("round-trip,{n},{d},{size},{time}")
}

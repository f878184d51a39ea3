//! The workloads: small, so that counting them takes seconds, and made by the command that is counted.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Result;

use crate::suite::programs;

/// Something that the command does many times over.
#[derive(Debug)]
pub(super) struct Workload {
    /// Its name in the file of counts.
    pub name: &'static str,
    pub thrice: Thrice,
    /// Arguments of the command beside what `thrice` says.
    pub arguments: &'static [&'static str],
    /// The field of the JSON that says how often a run does it, or lists it.
    pub counted: &'static str,
    /// The workload that is part of this one and counted on its own.
    pub contains: Option<&'static str>,
    /// Whether loads that wait for stores are counted, which takes as long as all other counts together.
    pub is_traced: bool,
}

/// How a workload is done once, and how it is done twice more.
#[derive(Debug, Clone, Copy)]
pub(super) enum Thrice {
    /// By `flowcast bench --repetitions`.
    Runs,
    /// By predictions of a trace and of one with three times as many iterations, which write this kind of file. Reading and
    /// replaying the trace counts as well.
    Iterations {
        written: &'static str,
        once: &'static str,
        thrice: &'static str,
    },
    /// By predictions of a pattern and of one with three times as many flows.
    Flows {
        once: &'static str,
        thrice: &'static str,
    },
}

impl Workload {
    /// Arguments of `flowcast` that run the workload this number of times.
    pub(super) fn words(&self, times: &str) -> Vec<String> {
        let mut words: Vec<String> = match self.thrice {
            Thrice::Runs => vec!["bench".to_owned()],
            Thrice::Iterations { once, thrice, .. } | Thrice::Flows { once, thrice } => {
                let trace = if times == "1" { once } else { thrice };
                vec!["predict".to_owned(), trace.to_owned()]
            }
        };
        words.extend(self.arguments.iter().copied().map(str::to_owned));
        words.push("--json".to_owned());
        match self.thrice {
            Thrice::Runs => words.extend(["--repetitions".to_owned(), times.to_owned()]),
            // Both are counted at the same time.
            Thrice::Iterations { written, .. } => {
                words.extend([
                    "--write".to_owned(),
                    format!("{written}=replayed{times}.prv"),
                ]);
            }
            Thrice::Flows { .. } => {}
        }
        words
    }
}

const fn replays(name: &'static str, arguments: &'static [&'static str]) -> Workload {
    Workload {
        name,
        thrice: Thrice::Runs,
        arguments,
        counted: "messages",
        contains: None,
        is_traced: false,
    }
}

/// From the bytes to the result, less what the result takes from the program that was read.
const fn reads(
    name: &'static str,
    arguments: &'static [&'static str],
    contains: &'static str,
) -> Workload {
    Workload {
        contains: Some(contains),
        ..replays(name, arguments)
    }
}

/// Parameters of LogGOPSim's rules.
const LOGGOPS: &str = "2000,500,700,1,65536";

/// All of them.
pub(super) const WORKLOADS: &[Workload] = &[
    replays(
        "walk-halo",
        &["replay", "halo.fct", "--network", "gige-tcp"],
    ),
    Workload {
        is_traced: true,
        ..replays(
            "walk-halo-short",
            &["replay", "short.fct", "--network", "gige-tcp"],
        )
    },
    replays(
        "walk-alltoall",
        &["replay", "alltoall.fct", "--network", "gige-tcp"],
    ),
    replays(
        "walk-chain",
        &["replay", "chain.fct", "--network", "gige-tcp"],
    ),
    replays(
        "walk-rendezvous",
        &[
            "replay",
            "chain.fct",
            "--network",
            "gige-tcp",
            "--set",
            "point_to_point.rendezvous_from=1KiB",
        ],
    ),
    replays(
        "walk-recording",
        &["replay", RECORDING, "--network", "gige-tcp"],
    ),
    replays(
        "sweep",
        &[
            "sweep",
            "halo.fct",
            "--network",
            "gige-tcp",
            "--count",
            "32",
        ],
    ),
    replays(
        "limits-halo",
        &["replay", "halo.fct", "--network", "links.toml"],
    ),
    replays(
        "limits-halo-16384",
        &["replay", "many.fct", "--network", "links16384.toml"],
    ),
    replays(
        "limits-alltoall",
        &["replay", "alltoall.fct", "--network", "links.toml"],
    ),
    replays(
        "loggops-halo",
        &["replay", "halo-goal.fct", "--goal-params", LOGGOPS],
    ),
    replays(
        "loggops-halo-16384",
        &["replay", "many-goal.fct", "--goal-params", LOGGOPS],
    ),
    replays(
        "fair-halo",
        &[
            "replay",
            "short.fct",
            "--network",
            "gige-tcp",
            "--model",
            "fair",
        ],
    ),
    replays(
        "fair-halo-in-step",
        &[
            "replay",
            "in-step.fct",
            "--network",
            "gige-tcp",
            "--model",
            "fair",
        ],
    ),
    replays(
        "fair-rows",
        &[
            "replay",
            "rows.fct",
            "--network",
            "gige-tcp",
            "--model",
            "fair",
        ],
    ),
    replays(
        "closed-loop-halo",
        &[
            "replay",
            "short.fct",
            "--network",
            "gige-tcp",
            "--model",
            "closed-loop",
        ],
    ),
    Workload {
        name: "packet",
        thrice: Thrice::Runs,
        arguments: &[
            "packet",
            "flows.pattern",
            "--network",
            "gige-lam",
            "--set",
            "sharing.congestion=cubic",
            "--unfold",
        ],
        counted: "packet_hops",
        contains: None,
        is_traced: false,
    },
    Workload {
        thrice: Thrice::Iterations {
            written: "paraver",
            once: "halo.fct",
            thrice: "long.fct",
        },
        ..replays(
            "write-paraver",
            &["--network", "gige-tcp", "--model", "independent"],
        )
    },
    Workload {
        thrice: Thrice::Flows {
            once: "random.pattern",
            thrice: "random3.pattern",
        },
        counted: "flows",
        ..replays(
            "closed-loop-rates",
            &["--network", "gige-tcp", "--model", "closed-loop"],
        )
    },
    reads(
        "read-dim",
        &["replay", "halo.dim", "--network", "gige-tcp", "--with-load"],
        "walk-halo",
    ),
    reads(
        "read-dim-alltoall",
        &[
            "replay",
            "alltoall.dim",
            "--network",
            "gige-tcp",
            "--with-load",
        ],
        "walk-alltoall",
    ),
    reads(
        "read-fct",
        &["replay", "halo.fct", "--network", "gige-tcp", "--with-load"],
        "walk-halo",
    ),
    reads(
        "read-goal",
        &[
            "replay",
            "halo.goal",
            "--goal-params",
            LOGGOPS,
            "--with-load",
        ],
        "loggops-halo",
    ),
    reads(
        "read-recording",
        &["replay", RECORDING, "--network", "gige-tcp", "--with-load"],
        "walk-recording",
    ),
];

/// A halo whose ranks do not stay in the caches.
const MANY_RANKS: &str = "16384";

/// A recording of four ranks, from the examples.
const RECORDING: &str = "heat.rec";

/// What is generated, by the name of the file and further arguments.
const GENERATED: &[(&str, &[&str])] = &[
    (
        "halo.dim",
        &["halo", "--ranks", "64", "--iterations", "160"],
    ),
    (
        "halo.goal",
        &[
            "halo",
            "--ranks",
            "64",
            "--iterations",
            "160",
            "--format",
            "goal",
        ],
    ),
    (
        "short.dim",
        &["halo", "--ranks", "64", "--iterations", "16"],
    ),
    (
        "in-step.dim",
        &[
            "halo",
            "--ranks",
            "64",
            "--iterations",
            "16",
            "--jitter",
            "0",
        ],
    ),
    (
        "long.dim",
        &["halo", "--ranks", "64", "--iterations", "480"],
    ),
    (
        "many.dim",
        &["halo", "--ranks", MANY_RANKS, "--iterations", "2"],
    ),
    (
        "many.goal",
        &[
            "halo",
            "--ranks",
            MANY_RANKS,
            "--iterations",
            "2",
            "--format",
            "goal",
        ],
    ),
    (
        "alltoall.dim",
        &["alltoall", "--ranks", "64", "--iterations", "10"],
    ),
    ("rows.dim", &["rows", "--ranks", "64", "--iterations", "8"]),
    (
        "chain.dim",
        &["chain", "--ranks", "64", "--iterations", "640"],
    ),
    (
        "flows.pattern",
        &["stream", "--ranks", "16", "--flows", "20", "--load", "0.6"],
    ),
    (
        "random.pattern",
        &["stream", "--ranks", "16", "--flows", "500", "--load", "3"],
    ),
    (
        "random3.pattern",
        &["stream", "--ranks", "16", "--flows", "1500", "--load", "3"],
    ),
];

/// What is compiled, by source and result.
const COMPILED: &[(&str, &str)] = &[
    ("halo.dim", "halo.fct"),
    ("halo.goal", "halo-goal.fct"),
    ("short.dim", "short.fct"),
    ("in-step.dim", "in-step.fct"),
    ("long.dim", "long.fct"),
    ("many.dim", "many.fct"),
    ("many.goal", "many-goal.fct"),
    ("alltoall.dim", "alltoall.fct"),
    ("rows.dim", "rows.fct"),
    ("chain.dim", "chain.fct"),
];

/// Writes the files of all workloads into a new folder.
pub(super) fn make(command: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder.join(RECORDING))?;
    let links = fs::read_to_string("examples/links64.toml")?;
    let of_many = links.replace("count = 64 ", &format!("count = {MANY_RANKS} "));
    fs::write(folder.join("links.toml"), links)?;
    fs::write(folder.join("links16384.toml"), of_many)?;
    for file in fs::read_dir(Path::new("examples").join(RECORDING))? {
        let file = file?;
        fs::copy(file.path(), folder.join(RECORDING).join(file.file_name()))?;
    }
    for (file, arguments) in GENERATED {
        run(
            command,
            folder,
            &[&["generate"], *arguments, &["-o", file]].concat(),
        )?;
    }
    COMPILED
        .iter()
        .try_for_each(|(source, result)| run(command, folder, &["compile", source, "-o", result]))
}

/// Compiles a halo on this number of ranks into a folder and returns its file.
pub(super) fn compiled_halo(
    command: &Path,
    folder: &Path,
    ranks: &str,
    iterations: &str,
) -> Result<PathBuf> {
    let [trace, compiled] = ["dim", "fct"].map(|ending| format!("halo{ranks}.{ending}"));
    run(
        command,
        folder,
        &[
            "generate",
            "halo",
            "--ranks",
            ranks,
            "--iterations",
            iterations,
            "-o",
            &trace,
        ],
    )?;
    run(command, folder, &["compile", &trace, "-o", &compiled])?;
    Ok(folder.join(compiled))
}

fn run(command: &Path, folder: &Path, arguments: &[&str]) -> Result<()> {
    programs::run(
        Command::new(command)
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::null()),
    )
}

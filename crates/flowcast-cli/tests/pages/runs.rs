//! Runs the commands of a page as a reader types them: each block in a shell, in order, in a folder of the page.
//!
//! Words after `sh` state the needs of a block (`lab`, `mpi`, `component`), that it may end with a finding (`finding`), or
//! the reason why no test runs it (`build`, `cluster`).

use std::{
    ffi::OsString,
    fs::{self, File},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use flowcast_measure::lab::check_machine;

use super::{Block, blocks, name, new_folder, root};

/// Words of blocks that no test runs, with the reason.
const ELSEWHERE: [(&str, &str); 2] = [
    (
        "build",
        "it builds or installs, as the steps `dist`, `openmpi` and `python` do",
    ),
    ("cluster", "it needs machines of a cluster"),
];
/// Words of blocks that run if their needs are met.
const NEEDS: [&str; 3] = ["lab", "mpi", "component"];
/// Word of a block that may end with the exit code of a finding.
const FINDING: &str = "finding";
/// Languages of blocks: commands, and others that no shell runs. The package's tests run `python`.
const LANGUAGES: [&str; 5] = ["sh", "console", "text", "python", "c"];
/// Time limit of a block, in seconds.
const LIMIT: &str = "120";
/// File name of the component for Open MPI, as cargo names it.
const COMPONENT: &str = "libmca_bml_flowcast.so";

/// Results of the blocks of a page.
#[derive(Default)]
pub(crate) struct Runs {
    pub(crate) passed: usize,
    /// Places of skipped blocks, with reasons.
    pub(crate) skipped: Vec<String>,
    /// Places of failed blocks, with the output of their commands.
    pub(crate) failed: Vec<String>,
}

/// Runs the blocks of a page whose output no session compares: the `sh` blocks, and those before them.
pub(crate) fn run(page: &Path) -> Runs {
    let blocks = read(page);
    let mut runs = Runs::default();
    let Some(last) = blocks.iter().rposition(|block| block.language() == "sh") else {
        return runs;
    };
    let folder = folder(page);
    let mut is_too_busy = false;
    for block in blocks[..=last].iter().filter(|block| block.is_run()) {
        let place = format!("{}:{}", name(page), block.line);
        let is_behind = is_too_busy && block.has_word("lab");
        let behind = is_behind.then(|| "a block before it found the machine too busy".to_owned());
        if let Some(why) = block.obstacle().or(behind) {
            runs.skipped.push(format!("{place}: {why}"));
            continue;
        }
        match block.execute(&folder) {
            Ok(()) => runs.passed += 1,
            Err(said) if said.contains("machine too busy") => {
                is_too_busy = true;
                runs.skipped.push(format!("{place}: {}", said.trim()));
            }
            Err(said) => runs.failed.push(format!("{place}: {said}")),
        }
    }
    end_labs(&folder);
    runs
}

/// Blocks with an unknown language or word, and commands outside of blocks that are run.
pub(crate) fn unknown(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).expect("a page");
    let indented = text.lines().enumerate().filter(|(_, line)| {
        ["    flowcast ", "    cargo ", "    mpirun "]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let mut unknown: Vec<String> = indented
        .filter(|(index, _)| !read(page).iter().any(|block| block.has_line(index + 1)))
        .map(|(index, _)| format!("{}:{}: a command outside of a fence", name(page), index + 1))
        .collect();
    for block in read(page) {
        let is_typed_text = block.language() == "text" && !block.typed().is_empty();
        if is_typed_text || !block.is_known() {
            unknown.push(format!(
                "{}:{}: `{}`",
                name(page),
                block.line,
                block.words.join(" ")
            ));
        }
    }
    unknown
}

fn read(page: &Path) -> Vec<Block> {
    blocks(&fs::read_to_string(page).expect("a page"))
}

impl Block {
    fn is_run(&self) -> bool {
        ["sh", "console"].contains(&self.language())
    }

    fn has_line(&self, line: usize) -> bool {
        (self.line..=self.line + self.lines.len()).contains(&line)
    }

    fn is_known(&self) -> bool {
        let is_word = |word: &str| {
            word == FINDING
                || NEEDS.contains(&word)
                || ELSEWHERE.iter().any(|(known, _)| *known == word)
        };
        LANGUAGES.contains(&self.language()) && self.words[1..].iter().all(|word| is_word(word))
    }

    fn has_word(&self, word: &str) -> bool {
        self.words[1..].iter().any(|own| own == word)
    }

    /// Reason why the block cannot run here.
    fn obstacle(&self) -> Option<String> {
        if let Some((_, why)) = ELSEWHERE.iter().find(|(word, _)| self.has_word(word)) {
            return Some((*why).to_owned());
        }
        NEEDS
            .iter()
            .filter(|word| self.has_word(word))
            .find_map(|word| match *word {
                "lab" => check_machine().err().map(|error| error.to_string()),
                "mpi" => missing_program(&["mpicc", "mpirun"]),
                _ => missing_program(&["ompi_info"]).or_else(|| {
                    let is_built = built().join(COMPONENT).is_file();
                    (!is_built).then(|| format!("cargo has not built {COMPONENT}"))
                }),
            })
    }

    /// Runs the block. The error is its output.
    fn execute(&self, folder: &Path) -> Result<(), String> {
        let lines: Vec<String> = self.typed().into_iter().map(|(_, line)| line).collect();
        let said = folder.join("said");
        let status = in_folder(folder, "timeout")
            .args(["--kill-after=5", LIMIT, "bash", "-eo", "pipefail", "-c"])
            .arg(lines.join("\n"))
            .stdin(File::open("/dev/null").expect("the null device"))
            .stdout(File::create(&said).expect("the folder of the page"))
            .stderr(File::options().append(true).open(&said).expect("just made"))
            .status()
            .expect("coreutils has it");
        let is_finding = self.has_word(FINDING) && status.code() == Some(1);
        if status.success() || is_finding {
            return Ok(());
        }
        let said = fs::read(&said).expect("just written");
        Err(format!("{status}\n{}", String::from_utf8_lossy(&said)))
    }
}

fn missing_program(programs: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing = |program: &&&str| {
        !std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    programs
        .iter()
        .find(is_missing)
        .map(|program| format!("found no {program}"))
}

/// Folder of the page with the content of a checkout: `examples`, `crates`, and cargo's build output.
fn folder(page: &Path) -> PathBuf {
    let folder = new_folder("page-runs", page);
    let links = [
        (root().join("crates"), "crates"),
        (built(), "target/release"),
        (
            built().join(COMPONENT),
            ".openmpi/components/mca_bml_flowcast.so",
        ),
    ];
    for (target, name) in links {
        let link = folder.join(name);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a new folder");
        symlink(target, link).expect("a new folder");
    }
    folder
}

/// Folder in which cargo puts its programs and libraries.
fn built() -> PathBuf {
    let flowcast = PathBuf::from(trycmd::cargo::cargo_bin!("flowcast"));
    flowcast
        .parent()
        .expect("a program is in a folder")
        .to_owned()
}

/// A program in the folder of a page. It finds `flowcast`, and the folder keeps the files that it stores.
fn in_folder(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path: OsString =
        std::env::join_paths([built()].into_iter().chain(std::env::split_paths(&path)))
            .expect("names of folders without colons");
    command.current_dir(folder).env("PATH", path);
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env(variable, folder);
    }
    // More ranks than processors, started by root, as in a container.
    for variable in [
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
        "OMPI_MCA_rmaps_base_oversubscribe",
    ] {
        command.env(variable, "1");
    }
    command
}

/// Ends the labs that a failed block left behind.
fn end_labs(folder: &Path) {
    for lab in fs::read_dir(folder.join("flowcast-lab"))
        .into_iter()
        .flatten()
    {
        let lab = lab.expect("an entry").file_name();
        let ended = in_folder(folder, "flowcast")
            .args(["lab", "down"])
            .arg(lab)
            .status();
        assert!(
            ended.is_ok_and(|status| status.success()),
            "a lab does not end"
        );
    }
}

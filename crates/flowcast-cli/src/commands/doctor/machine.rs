//! Checks of processors, clocks and memory, from files of the kernel.

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use super::{Check, Verdict};

/// Source of the checks: the files of this machine, or of a test.
#[derive(Debug)]
pub(super) struct Machine {
    root: PathBuf,
    /// Names and values of environment variables. The first entry of a name counts.
    pub variables: Vec<(String, String)>,
    /// Number of processors that this process may use.
    pub processors: usize,
}

impl Machine {
    /// This machine.
    pub(super) fn this() -> Machine {
        Machine {
            root: "/".into(),
            variables: env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Content of a file, without surrounding blanks.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path))
            .ok()
            .map(|text| text.trim().to_owned())
    }

    /// `true` if there is such a file or folder.
    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Names of a folder's entries, sorted.
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path))
            .into_iter()
            .flatten()
            .flatten();
        let names: BTreeSet<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.into_iter().collect()
    }

    /// Value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Extent of the measurement, as far as it is visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Loopback, namespaces or cores of this machine.
    OneMachine,
    /// Several machines, whose clocks and kernels may differ.
    SeveralMachines,
}

/// All checks of the machine.
pub(super) fn checks(machine: &Machine, extent: Extent) -> Vec<Check> {
    vec![
        governor(machine),
        clock_source(machine),
        time_sync(machine, extent),
        swap(machine),
        load(machine),
    ]
}

/// Problems that disturb a running measurement on one machine.
pub(super) fn disturbances(machine: &Machine) -> Vec<Check> {
    let all = checks(machine, Extent::OneMachine);
    all.into_iter()
        .filter(|check| check.verdict == Verdict::Bad)
        .collect()
}

fn governor(machine: &Machine) -> Check {
    const NAME: &str = "frequency governor";
    const FOLDER: &str = "sys/devices/system/cpu";
    let processors = machine.list(FOLDER).into_iter();
    let governors: BTreeSet<String> = processors
        .filter_map(|name| machine.read(&format!("{FOLDER}/{name}/cpufreq/scaling_governor")))
        .collect();
    let found: Vec<&str> = governors.iter().map(String::as_str).collect();
    match found[..] {
        [] => Check::unknown(NAME, "not visible (as in most virtual machines)"),
        ["performance"] => Check::good(NAME, "performance"),
        _ => Check::bad(
            NAME,
            found.join(", "),
            "processors change their frequency during a measurement: `cpupower frequency-set -g performance`",
        ),
    }
}

fn clock_source(machine: &Machine) -> Check {
    const NAME: &str = "clock source";
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let Some(source) = machine.read(&format!("{FOLDER}/current_clocksource")) else {
        return Check::unknown(NAME, "not visible");
    };
    if ["tsc", "arch_sys_counter", "kvm-clock"].contains(&source.as_str()) {
        return Check::good(NAME, source);
    }
    let available = machine
        .read(&format!("{FOLDER}/available_clocksource"))
        .unwrap_or_default();
    let advice = match available.split_whitespace().any(|source| source == "tsc") {
        true => {
            format!("each reading of the clock is slow: `echo tsc > /{FOLDER}/current_clocksource`")
        }
        false => format!("each reading of the clock is slow; this machine has only {available}"),
    };
    Check::bad(NAME, source, advice)
}

/// Process names of daemons that synchronise the clock.
const TIME_DAEMONS: [&str; 6] = [
    "chronyd",
    "ntpd",
    "ntpsec",
    "systemd-timesyn",
    "ptp4l",
    "openntpd",
];

fn time_sync(machine: &Machine, extent: Extent) -> Check {
    const NAME: &str = "time synchronisation";
    let processes = machine
        .list("proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let mut running = processes.filter_map(|process| machine.read(&format!("proc/{process}/comm")));
    match running.find(|name| TIME_DAEMONS.contains(&name.as_str())) {
        Some(daemon) => Check::good(NAME, daemon),
        None if machine.list("proc").is_empty() => Check::unknown(NAME, "not visible"),
        None if extent == Extent::OneMachine => Check::good(
            NAME,
            "no daemon synchronises the clock; a single machine needs none",
        ),
        None => Check::bad(
            NAME,
            "no daemon synchronises this machine's clock",
            "clocks of several machines drift apart: install chrony, or measure one machine only",
        ),
    }
}

fn swap(machine: &Machine) -> Check {
    const NAME: &str = "swap";
    let Some(text) = machine.read("proc/meminfo") else {
        return Check::unknown(NAME, "not visible");
    };
    let fields = ["SwapTotal:", "SwapFree:"].map(|name| -> Option<u64> {
        text.lines()
            .find_map(|line| line.strip_prefix(name))?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    });
    let [Some(total), Some(free)] = fields else {
        return Check::unknown(NAME, "not visible");
    };
    match total.saturating_sub(free) {
        0 if total == 0 => Check::good(NAME, "none"),
        0 => Check::good(NAME, "unused"),
        used => Check::bad(
            NAME,
            format!("{used} KiB in use"),
            "some memory is swapped to disk: end other programs, then `swapoff -a && swapon -a`",
        ),
    }
}

/// Load of other programs, per processor, above which they disturb.
const BUSY: f64 = 0.2;

fn load(machine: &Machine) -> Check {
    const NAME: &str = "other programs";
    let load = machine
        .read("proc/loadavg")
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    match load {
        None => Check::unknown(NAME, "not visible"),
        Some(load) if load > BUSY * machine.processors as f64 => Check::bad(
            NAME,
            format!(
                "a load of {load} on {} processors in the last minute",
                machine.processors
            ),
            "end them, or wait",
        ),
        Some(load) => Check::good(NAME, format!("a load of {load}")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::{super::Verdict, *};

    impl Machine {
        /// Machine whose files are below `root`.
        pub(crate) fn under(root: &Path, variables: &[(&str, &str)]) -> Machine {
            Machine {
                root: root.to_owned(),
                variables: variables
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                processors: 2,
            }
        }
    }

    /// Creates a file and its parent folders.
    pub(crate) fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn verdicts(files: &[(&str, &str)]) -> Vec<Verdict> {
        let folder = tempfile::tempdir().unwrap();
        files
            .iter()
            .for_each(|(path, text)| write(folder.path(), path, text));
        checks(&Machine::under(folder.path(), &[]), Extent::SeveralMachines)
            .iter()
            .map(|check| check.verdict)
            .collect()
    }

    #[test]
    fn a_machine_that_shows_nothing_is_unknown() {
        assert!(
            verdicts(&[])
                .iter()
                .all(|verdict| *verdict == Verdict::Unknown)
        );
    }

    #[test]
    fn a_single_machine_needs_no_time_daemon() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "proc/77/comm", "bash\n");
        let machine = Machine::under(folder.path(), &[]);
        assert_eq!(
            time_sync(&machine, Extent::OneMachine).verdict,
            Verdict::Good
        );
        assert_eq!(
            time_sync(&machine, Extent::SeveralMachines).verdict,
            Verdict::Bad
        );
    }

    #[test]
    fn a_tuned_machine_is_good() {
        let files = [
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc\n",
            ),
            ("proc/77/comm", "chronyd\n"),
            (
                "proc/meminfo",
                "MemTotal: 5 kB\nSwapTotal:  100 kB\nSwapFree: 100 kB\n",
            ),
            ("proc/loadavg", "0.05 0.1 0.2 1/99 1234\n"),
        ];
        assert!(
            verdicts(&files)
                .iter()
                .all(|verdict| *verdict == Verdict::Good)
        );
    }

    #[test]
    fn an_untuned_machine_is_bad_in_every_check() {
        let files = [
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet\n",
            ),
            ("proc/77/comm", "bash\n"),
            ("proc/meminfo", "SwapTotal:  100 kB\nSwapFree: 50 kB\n"),
            ("proc/loadavg", "1.5 0.1 0.2 1/99 1234\n"),
        ];
        assert!(
            verdicts(&files)
                .iter()
                .all(|verdict| *verdict == Verdict::Bad)
        );
    }
}

//! Check for interfaces that an MPI library would use although they lead nowhere, or only to containers.

use std::ffi::OsString;

use super::{Check, machine::Machine};

const NAME: &str = "interfaces";
const FOLDER: &str = "sys/class/net";

/// Settings of Open MPI in the options of a command (`--mca NAME VALUE`), as the equivalent variables. Options override
/// variables.
pub(super) fn settings_of(command: &[OsString]) -> Vec<(String, String)> {
    let words = command.iter().map(|word| word.to_string_lossy());
    let words: Vec<_> = words.collect();
    let settings = words.windows(3).filter_map(|three| {
        let is_setting = matches!(&*three[0], "--mca" | "-mca" | "--gmca" | "-gmca");
        is_setting.then(|| (format!("OMPI_MCA_{}", three[1]), three[2].to_string()))
    });
    settings.collect()
}

/// Checks interfaces. Open MPI's TCP uses every interface that is up, bridges of containers and virtual machines included.
pub(super) fn interfaces(machine: &Machine) -> Check {
    let up: Vec<String> = machine
        .list(FOLDER)
        .into_iter()
        .filter(|name| is_up(machine, name))
        .collect();
    let (unwanted, wanted): (Vec<&str>, Vec<&str>) = up
        .iter()
        .map(String::as_str)
        .partition(|name| is_virtual(machine, name));
    if up.is_empty() {
        return Check::unknown(NAME, "none is up");
    }
    let used: Vec<&str> = unwanted
        .iter()
        .copied()
        .filter(|name| !is_excluded(machine, name))
        .collect();
    if used.is_empty() {
        return Check::good(NAME, up.join(", "));
    }
    let found = format!("Open MPI would send messages over {}", used.join(", "));
    let setting = match wanted[..] {
        [] => format!("btl_tcp_if_exclude lo,{}", used.join(",")),
        _ => format!("btl_tcp_if_include {}", wanted.join(",")),
    };
    let advice = format!("bridges reach only containers: `--mca {setting}`");
    Check::bad(NAME, found, advice)
}

fn is_up(machine: &Machine, name: &str) -> bool {
    let flags = machine.read(&format!("{FOLDER}/{name}/flags"));
    let flags = flags
        .and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok())
        .unwrap_or(0);
    const UP: u32 = 1;
    const LOOPBACK: u32 = 8;
    flags & UP != 0 && flags & LOOPBACK == 0
}

fn is_virtual(machine: &Machine, name: &str) -> bool {
    machine.has(&format!("{FOLDER}/{name}/bridge"))
        || [
            "docker", "virbr", "veth", "br-", "cni", "flannel", "podman", "lxc",
        ]
        .iter()
        .any(|known| name.starts_with(known))
}

/// `true` if the visible settings of Open MPI exclude the interface.
fn is_excluded(machine: &Machine, name: &str) -> bool {
    const SETTINGS: [&str; 2] = ["btl_tcp_if_include", "btl_tcp_if_exclude"];
    let [include, exclude] = SETTINGS.map(|setting| setting_of(machine, setting));
    match (include, exclude) {
        (Some(include), _) => !names(&include, name),
        (None, Some(exclude)) => names(&exclude, name),
        (None, None) => false,
    }
}

fn names(list: &str, name: &str) -> bool {
    list.split(',').any(|listed| listed.trim() == name)
}

fn setting_of(machine: &Machine, setting: &str) -> Option<String> {
    if let Some(value) = machine.variable(&format!("OMPI_MCA_{setting}")) {
        return Some(value.to_owned());
    }
    let home = machine
        .variable("HOME")
        .unwrap_or("root")
        .trim_start_matches('/')
        .to_owned();
    let files = [
        format!("{home}/.openmpi/mca-params.conf"),
        "etc/openmpi/openmpi-mca-params.conf".to_owned(),
    ];
    files
        .iter()
        .filter_map(|file| machine.read(file))
        .find_map(|text| {
            let mut lines = text.lines().map(str::trim);
            let line = lines.find(|line| line.starts_with(setting))?;
            Some(line.split_once('=')?.1.trim().to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Verdict, machine::tests::write},
        *,
    };

    fn machine_with_bridge(variables: &[(&str, &str)]) -> Check {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "sys/class/net/lo/flags", "0x9");
        write(folder.path(), "sys/class/net/eth0/flags", "0x1003");
        write(folder.path(), "sys/class/net/docker0/flags", "0x1003");
        write(folder.path(), "sys/class/net/docker0/bridge/x", "");
        write(folder.path(), "sys/class/net/virbr9/flags", "0x1002");
        interfaces(&Machine::under(folder.path(), variables))
    }

    #[test]
    fn a_bridge_that_is_up_is_reported_with_an_alternative() {
        let check = machine_with_bridge(&[]);
        assert_eq!(
            (check.verdict, check.found.contains("docker0")),
            (Verdict::Bad, true)
        );
        assert!(!check.found.contains("virbr9"));
        assert!(check.advice.unwrap().contains("btl_tcp_if_include eth0"));
    }

    #[test]
    fn an_excluded_bridge_is_no_problem() {
        for setting in [
            ("OMPI_MCA_btl_tcp_if_include", "eth0"),
            ("OMPI_MCA_btl_tcp_if_exclude", "lo,docker0"),
        ] {
            assert_eq!(machine_with_bridge(&[setting]).verdict, Verdict::Good);
        }
    }

    #[test]
    fn the_options_of_a_command_are_settings_too() {
        let command = [
            "mpirun",
            "--mca",
            "btl_tcp_if_include",
            "eth0",
            "-np",
            "4",
            "./a",
        ]
        .map(OsString::from);
        let settings = settings_of(&command);
        assert_eq!(
            settings,
            [("OMPI_MCA_btl_tcp_if_include".to_owned(), "eth0".to_owned())]
        );
        let [(name, value)] = &settings[..] else {
            panic!("one setting")
        };
        assert_eq!(machine_with_bridge(&[(name, value)]).verdict, Verdict::Good);
        assert!(settings_of(&[]).is_empty());
    }

    #[test]
    fn a_machine_without_interfaces_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            interfaces(&Machine::under(folder.path(), &[])).verdict,
            Verdict::Unknown
        );
    }
}

//! `flowcast lab`: a virtual cluster on this machine.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, exit};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use flowcast::units::{Node, Rounded};
use flowcast_lab::{Check, Lab, LabError, LabSpec, PROFILES, TOLERANCE, megabits, profile, profile_text, self_test};
use serde_json::json;

use super::lab_cable::{CableCheckCommand, ServeCables, lateness};
use super::lab_network::LabNetwork;
use crate::exit::EnvironmentLacks;
use crate::files::read_text;
use crate::network_args::parse_overrides;
use crate::output::{print_out, println_out};
use crate::tables::table;

/// A virtual cluster on this machine, without root
///
/// Nodes are network namespaces; cables, switches and racks are shaped to the rates of a lab file. `run` builds one for
/// a single command, `up`, `exec` and `down` keep one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast lab run fair -- mpirun -np 8 ./program\n  \
                        flowcast lab up two-racks --name racks\n  flowcast lab exec racks --node 3 -- ip address\n  \
                        flowcast lab down racks")]
pub struct LabCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Up(Up),
    Exec(Exec),
    Run(Run),
    Down(Down),
    List(List),
    Profiles(Profiles),
    Network(LabNetwork),
    CableCheck(CableCheckCommand),
    #[command(hide = true)]
    ServeCables(ServeCables),
}

impl LabCommand {
    /// Runs the chosen action.
    pub fn run(self) -> Result<()> {
        match self.action {
            Action::Up(command) => command.run(),
            Action::Exec(command) => command.run(),
            Action::Run(command) => command.run(),
            Action::Down(command) => command.run(),
            Action::List(command) => command.run(),
            Action::Profiles(command) => command.run(),
            Action::Network(command) => command.run(),
            Action::CableCheck(command) => command.run(),
            Action::ServeCables(command) => command.run(),
        }
    }
}

/// Which lab.
#[derive(Debug, Args)]
struct Which {
    /// Built-in profile (see `flowcast lab profiles`) or lab file (TOML)
    #[arg(value_name = "PROFILE|FILE")]
    lab: String,
    #[command(flatten)]
    how: How,
}

/// How it is built.
#[derive(Debug, Args)]
struct How {
    /// Replace a field of the lab, such as nic.bandwidth=100Mbit/s (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Do not check that the lab delivers its rates
    #[arg(long)]
    no_self_test: bool,
}

/// Build a lab that stays until `flowcast lab down`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab up asymmetric --set cluster.nodes=8 --name eight")]
struct Up {
    #[command(flatten)]
    which: Which,
    /// The name for `exec` and `down` [default: the lab's own]
    #[arg(long)]
    name: Option<String>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// Run a command in a node of a lab that is up
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab exec racks --node 3 -- ping -c 1 node0")]
struct Exec {
    /// The lab's name
    name: String,
    /// The node
    #[arg(long, default_value_t = 0)]
    node: u32,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Run a command in node 0 of a lab, which is built for it unless one of that name is up
///
/// mpirun of Open MPI and of MPICH find the nodes by their environment. The exit code is that of the command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast lab run fair -- mpirun -np 8 ./program\n  \
                        flowcast lab run rails --set nic.bandwidth=100Mbit/s,10Mbit/s -- mpirun ./program")]
struct Run {
    /// Name of a lab that is up, built-in profile or lab file (TOML)
    #[arg(value_name = "NAME|PROFILE|FILE")]
    lab: String,
    #[command(flatten)]
    how: How,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// End a lab and everything that runs in it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab down racks")]
struct Down {
    /// The lab's name
    name: String,
}

/// List the labs that are up
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab list")]
struct List {
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

/// List the built-in labs, or print the file of one
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flowcast lab profiles\n  flowcast lab profiles bus > mine.toml")]
struct Profiles {
    /// A profile, or a lab file to check and print in full
    name: Option<String>,
    /// Replace a field, such as nic.bandwidth=100Mbit/s (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "name")]
    overrides: Vec<String>,
    /// Machine-readable output
    #[arg(long)]
    json: bool,
}

impl Up {
    fn run(self) -> Result<()> {
        let spec = load(&self.which.lab, &self.which.how.overrides)?;
        let name = self.name.unwrap_or_else(|| spec.name.clone());
        let lab = Lab::up_named(&spec, &name).map_err(explained)?;
        let checks = match checked(&lab, &self.which.how) {
            Ok(checks) => checks,
            Err(error) => {
                lab.down().map_err(explained)?;
                return Err(error);
            }
        };
        if self.json {
            println_out!("{}", description(&lab, &checks)?)
        } else {
            print_nodes(&lab)?
        }
        Ok(())
    }
}

impl Exec {
    fn run(self) -> Result<()> {
        let lab = Lab::open(&self.name).map_err(explained)?;
        let failure = command_in(&lab, Node(self.node), &self.command)?.exec();
        Err(EnvironmentLacks(format!("cannot start nsenter: {failure}")).into())
    }
}

impl Run {
    fn run(self) -> Result<()> {
        let status = match Lab::open(&self.lab) {
            Ok(lab) => command_in(&lab, Node(0), &self.command)?.status(),
            Err(LabError::NotUp(_) | LabError::Field { .. }) => {
                let lab = Lab::up(&load(&self.lab, &self.how.overrides)?).map_err(explained)?;
                checked(&lab, &self.how)?;
                // The lab ends here, before this process does.
                command_in(&lab, Node(0), &self.command)?.status()
            }
            Err(error) => return Err(explained(error)),
        };
        exit(code_of(status.context("cannot start nsenter")?))
    }
}

impl Down {
    fn run(self) -> Result<()> {
        Lab::open(&self.name).and_then(Lab::down).map_err(explained)
    }
}

impl List {
    fn run(self) -> Result<()> {
        let labs = Lab::list().map_err(explained)?;
        if self.json {
            let labs: Vec<_> = labs.iter().map(|(name, spec)| json!({ "name": name, "spec": spec })).collect();
            println_out!("{}", json!({ "schema": "flowcast/labs/1", "labs": labs }));
            return Ok(());
        }
        let mut table = table(&["name", ">nodes", ">racks", ">bandwidth", "what"]);
        for (name, spec) in &labs {
            table.add_row(row(name, spec));
        }
        println_out!("{table}");
        Ok(())
    }
}

impl Profiles {
    fn run(self) -> Result<()> {
        let Some(name) = &self.name else { return self.list() };
        if self.json {
            println_out!("{}", serde_json::to_string(&load(name, &self.overrides)?)?);
        } else if self.overrides.is_empty() && !Path::new(name).is_file() {
            print_out!("{}", profile_text(name)?);
        } else {
            print_out!("{}", load(name, &self.overrides)?.to_toml());
        }
        Ok(())
    }

    fn list(&self) -> Result<()> {
        let specs: Vec<LabSpec> = PROFILES.iter().map(|(name, _)| profile(name, &[])).collect::<Result<_, _>>()?;
        if self.json {
            println_out!("{}", json!({ "schema": "flowcast/lab-profiles/1", "profiles": specs }));
            return Ok(());
        }
        let mut table = table(&["name", ">nodes", ">racks", ">bandwidth", "what"]);
        for spec in &specs {
            table.add_row(row(&spec.name, spec));
        }
        println_out!("{table}");
        Ok(())
    }
}

fn row(name: &str, spec: &LabSpec) -> [String; 5] {
    let rails = 0..spec.nic.bandwidth.0.len();
    let rates: Vec<String> = rails.map(|rail| whole_megabits(spec.wire_rate(rail).as_bytes_per_second())).collect();
    let counts = [spec.cluster.nodes.to_string(), spec.cluster.racks.to_string()];
    let [nodes, racks] = counts;
    [name.to_owned(), nodes, racks, format!("{} Mbit/s", rates.join(" + ")), spec.title.clone()]
}

fn whole_megabits(bytes_per_second: f64) -> String {
    format!("{}", bytes_per_second * 8e-6)
}

/// A file if there is one of that name, else a built-in profile.
pub(crate) fn load(name: &str, overrides: &[String]) -> Result<LabSpec> {
    let (path, overrides) = (Path::new(name), parse_overrides(overrides)?);
    if path.is_file() {
        LabSpec::from_toml(&read_text(path)?, &overrides).with_context(|| name.to_owned())
    } else if name.contains(['/', '.']) {
        fs::metadata(path).map(drop).with_context(|| format!("cannot read the lab file {name}"))?;
        anyhow::bail!("{name}: expected a lab file")
    } else {
        Ok(profile(name, &overrides)?)
    }
}

fn checked(lab: &Lab, how: &How) -> Result<Vec<Check>> {
    if how.no_self_test { Ok(Vec::new()) } else { self_tested(lab) }
}

/// Runs the self-test and says what it saw.
pub(crate) fn self_tested(lab: &Lab) -> Result<Vec<Check>> {
    let checks = self_test(lab, TOLERANCE).map_err(explained)?;
    for Check { what, found, expected, lateness } in &checks {
        let late = lateness.map_or(String::new(), |late| format!(", {} late", Rounded(late.median)));
        eprintln!("flowcast: self-test: {what}: {} of {}{late}", megabits(*found), megabits(*expected));
    }
    Ok(checks)
}

fn command_in(lab: &Lab, node: Node, words: &[String]) -> Result<Command> {
    let (program, arguments) = words.split_first().expect("the command line asks for a command");
    let mut command = lab.command_in(node, program).map_err(explained)?;
    command.args(arguments).envs(lab.launcher_environment());
    Ok(command)
}

/// As shells have it: 128 and the signal for a command that was killed.
fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// With the exit code of its kind.
pub(crate) fn explained(error: LabError) -> anyhow::Error {
    if error.is_environment() { EnvironmentLacks(error.to_string()).into() } else { error.into() }
}

fn description(lab: &Lab, checks: &[Check]) -> Result<serde_json::Value> {
    let rails = lab.spec().nic.bandwidth.0.len();
    let node = |node: Node| -> Result<serde_json::Value> {
        let addresses = (0..rails).map(|rail| Ok(lab.address(node, rail)?.to_string()));
        Ok(json!({
            "node": node.0, "host": flowcast_lab::host(node), "rack": lab.spec().rack_of(node),
            "addresses": addresses.collect::<Result<Vec<_>>>()?, "control_address": lab.control_address(node)?.to_string(),
        }))
    };
    let check = |check: &Check| {
        let rate = |rate: flowcast::units::Rate| rate.as_bytes_per_second();
        json!({
            "what": check.what, "found_Bps": rate(check.found), "expected_Bps": rate(check.expected),
            "lateness_us": check.lateness.as_ref().map(lateness),
        })
    };
    let nodes: Vec<_> = lab.spec().nodes().map(node).collect::<Result<_>>()?;
    let checks: Vec<_> = checks.iter().map(check).collect();
    let provenance = crate::provenance::of_this_run();
    Ok(json!({
        "schema": "flowcast/lab-up/1", "name": lab.name(), "nodes": nodes, "self_test": checks, "spec": lab.spec(),
        "provenance": provenance,
    }))
}

fn print_nodes(lab: &Lab) -> Result<()> {
    let rails = lab.spec().nic.bandwidth.0.len();
    let mut columns = vec![">node".to_owned(), "host".into(), ">rack".into(), "control".into()];
    columns.extend((0..rails).map(flowcast_lab::interface));
    let mut table = table(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for node in lab.spec().nodes() {
        let mut row = vec![node.to_string(), flowcast_lab::host(node), lab.spec().rack_of(node).to_string()];
        row.push(lab.control_address(node)?.to_string());
        for rail in 0..rails {
            row.push(lab.address(node, rail)?.to_string());
        }
        table.add_row(row);
    }
    println_out!("{table}");
    println_out!("The lab `{0}` is up; `flowcast lab down {0}` ends it.", lab.name());
    Ok(())
}

//! `flowcast lab`: a virtual cluster on this machine.

mod cable;
mod network;

use std::{
    fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Command, ExitStatus, exit},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast::{
    table::{Document, Table, figure, json, rows},
    units::{Node, Rate, Rounded},
};
use flowcast_measure::lab::{
    Lab, LabError, LabSpec, PROFILES, TOLERANCE, WireCheck, host, interface, megabits, of_file,
    profile, profile_text, self_test,
};

use cable::{CableCheckCommand, ServeCables, quantiles};
use flowcast_terminal::{
    exit::EnvironmentLacks, files::read_text, network_args::parse_overrides, output::Format,
    print_out, println_out, provenance, say,
};
use network::LabNetwork;

subcommands! {
    /// Build a virtual cluster on this machine, without root
    ///
    /// Nodes are network namespaces. Links, switches and racks are shaped to the rates of a lab file. `run` builds a lab for
    /// a single command. `up`, `exec` and `down` build, use and end a lab that stays.
    #[command(after_help = "Examples:\n  flowcast lab run fair -- mpirun -np 8 ./program\n  \
                            flowcast lab up two-racks --name racks\n  flowcast lab exec racks --node 3 -- ip address\n  \
                            flowcast lab down racks")]
    LabCommand {
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
}

/// Profile or lab file, and options of the lab that is built from it.
#[derive(Debug, Args)]
struct LabSelection {
    /// Built-in profile (see `flowcast lab profiles`) or lab file (TOML)
    #[arg(value_name = "PROFILE|FILE")]
    lab: String,
    #[command(flatten)]
    how: BuildArgs,
}

/// Options for building a lab.
#[derive(Debug, Args)]
struct BuildArgs {
    /// Replace a field of the lab, such as nic.bandwidth=100Mbit/s (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Skip the check that the lab delivers its rates
    #[arg(long)]
    no_self_test: bool,
}

/// Build a lab that stays until `flowcast lab down`
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab up asymmetric --set cluster.nodes=8 --name eight")]
pub(crate) struct Up {
    #[command(flatten)]
    which: LabSelection,
    /// Name for `exec` and `down` [default: the lab's own]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Run a command in a node of a lab that is up
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab exec racks --node 3 -- ip -brief address")]
pub(crate) struct Exec {
    /// Name of the lab
    name: String,
    /// Number of the node
    #[arg(long, default_value_t = 0)]
    node: u32,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Run a command in node 0 of a lab, which is built if it is not up
///
/// If a lab of that name is up, the command runs in it. Otherwise a lab is built for the command. mpirun of Open MPI and of
/// MPICH find the nodes through environment variables. The exit code is the exit code of the command.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast lab run fair -- mpirun -np 8 ./program\n  \
                        flowcast lab run rails --set nic.bandwidth=100Mbit/s,10Mbit/s -- mpirun ./program"
)]
pub(crate) struct Run {
    /// Name of a lab that is up, built-in profile or lab file (TOML)
    #[arg(value_name = "NAME|PROFILE|FILE")]
    lab: String,
    #[command(flatten)]
    how: BuildArgs,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// End a lab and everything that runs in it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab down racks")]
pub(crate) struct Down {
    /// Name of the lab
    name: String,
}

/// List the labs that are up
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flowcast lab list")]
pub(crate) struct List {
    #[command(flatten)]
    format: Format,
}

/// List the built-in labs, or print the file of one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flowcast lab profiles\n  flowcast lab profiles bus > mine.toml"
)]
pub(crate) struct Profiles {
    /// Profile to print, or lab file to check and print in full
    name: Option<String>,
    /// Replace a field, such as nic.bandwidth=100Mbit/s (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "name")]
    overrides: Vec<String>,
    #[command(flatten)]
    format: Format,
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
        self.format.print(&built(&lab, &checks)?)
    }
}

impl Exec {
    fn run(self) -> Result<()> {
        let lab = Lab::open(&self.name).map_err(explained)?;
        let failure = command_in(&lab, Node(self.node), &self.command)?.exec();
        bail!(EnvironmentLacks(format!("cannot start nsenter: {failure}")))
    }
}

impl Run {
    fn run(self) -> Result<()> {
        let status = match Lab::open(&self.lab) {
            Ok(lab) => command_in(&lab, Node(0), &self.command)?.status(),
            Err(LabError::NotUp(_) | LabError::Field { .. }) => {
                let lab = Lab::up(&load(&self.lab, &self.how.overrides)?).map_err(explained)?;
                checked(&lab, &self.how)?;
                // The lab is destroyed before this process exits.
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
        let specs = rows(&labs)
            .field("name", |(name, _)| name)
            .field("spec", |(_, spec)| json(spec));
        let table = specs_table(labs.iter().map(|(name, spec)| (name.as_str(), spec)));
        self.format.print(
            &Document::new("labs")
                .field("labs", specs)
                .shown(table)
                .lines(labs.is_empty().then_some("no lab is up")),
        )
    }
}

impl Profiles {
    fn run(self) -> Result<()> {
        let Some(name) = &self.name else {
            return self.list();
        };
        if self.format.json {
            println_out!("{}", serde_json::to_string(&load(name, &self.overrides)?)?);
        } else if self.overrides.is_empty() && !Path::new(name).is_file() {
            print_out!("{}", profile_text(name)?);
        } else {
            print_out!("{}", load(name, &self.overrides)?.to_toml());
        }
        Ok(())
    }

    fn list(&self) -> Result<()> {
        let profiles: Vec<LabSpec> = PROFILES
            .iter()
            .map(|(name, _)| profile(name, &[]))
            .collect::<Result<_, _>>()?;
        self.format.print(
            &Document::new("lab-profiles")
                .field("profiles", json(&profiles))
                .shown(specs_table(
                    profiles.iter().map(|spec| (spec.name.as_str(), spec)),
                )),
        )
    }
}

fn specs_table<'a>(specs: impl Iterator<Item = (&'a str, &'a LabSpec)>) -> Table {
    rows(specs)
        .cell("name", |(name, _)| name)
        .cell("nodes", |(_, spec)| spec.cluster.nodes)
        .cell("ranks/node", |(_, spec)| spec.cluster.ranks_per_node)
        .cell("racks", |(_, spec)| spec.cluster.racks)
        .cell("bandwidth", |(_, spec)| {
            let rails = 0..spec.nic.bandwidth.0.len();
            let rates = rails.map(|rail| whole_megabits(spec.wire_rate(rail)));
            let rates = format!("{} Mbit/s", rates.collect::<Vec<_>>().join(" + "));
            figure(rates)
        })
        .cell("description", |(_, spec)| &spec.title)
        .into()
}

fn whole_megabits(rate: Rate) -> String {
    format!("{}", rate.as_bytes_per_second() * 8e-6)
}

/// Loads a lab file if there is one of that name, otherwise a built-in profile.
pub(crate) fn load(name: &str, overrides: &[String]) -> Result<LabSpec> {
    let (path, overrides) = (Path::new(name), parse_overrides(overrides)?);
    if path.is_file() {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        of_file(&read_text(path)?, &stem, &overrides).with_context(|| name.to_owned())
    } else if name.contains(['/', '.']) {
        fs::metadata(path)
            .map(drop)
            .with_context(|| format!("cannot read the lab file {name}"))?;
        bail!("{name}: found no regular file, expected a lab file")
    } else {
        Ok(profile(name, &overrides)?)
    }
}

fn checked(lab: &Lab, how: &BuildArgs) -> Result<Vec<WireCheck>> {
    if how.no_self_test {
        Ok(Vec::new())
    } else {
        self_tested(lab)
    }
}

/// Runs the self-test and prints its results.
pub(crate) fn self_tested(lab: &Lab) -> Result<Vec<WireCheck>> {
    let checks = self_test(lab, TOLERANCE).map_err(explained)?;
    for WireCheck {
        what,
        found,
        expected,
        lateness,
    } in &checks
    {
        let late = lateness.map_or(String::new(), |late| {
            format!(", {} late", Rounded(late.median))
        });
        say!(
            "flowcast: self-test: {what}: {} of {}{late}",
            megabits(*found),
            megabits(*expected)
        );
    }
    Ok(checks)
}

fn command_in(lab: &Lab, node: Node, words: &[String]) -> Result<Command> {
    let (program, arguments) = words
        .split_first()
        .expect("the command line contains a command");
    let mut command = lab.command_in(node, program).map_err(explained)?;
    command.args(arguments).envs(lab.launcher_environment());
    Ok(command)
}

/// Exit code as in shells: 128 plus the signal for a command that was killed.
fn code_of(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Error with the exit code of its kind.
pub(crate) fn explained(error: LabError) -> anyhow::Error {
    if error.is_environment() {
        EnvironmentLacks(error.to_string()).into()
    } else {
        error.into()
    }
}

/// Description of a lab that is up.
fn built(lab: &Lab, checks: &[WireCheck]) -> Result<Document> {
    let (spec, name) = (lab.spec(), lab.name());
    let rails = 0..spec.nic.bandwidth.0.len();
    let nodes = spec
        .nodes()
        .map(|node| -> Result<(Node, Vec<String>, String)> {
            let each = rails
                .clone()
                .map(|rail| Ok(lab.address(node, rail)?.to_string()));
            let control = lab.control_address(node)?.to_string();
            Ok((node, each.collect::<Result<_>>()?, control))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut table = rows(&nodes)
        .column("node", "node", |(node, ..)| node)
        .column("host", "host", |(node, ..)| host(*node))
        .column("rack", "rack", |(node, ..)| spec.rack_of(*node))
        .column("control_address", "control", |(_, _, control)| control)
        .field("addresses", |(_, addresses, _)| addresses);
    for rail in rails {
        table = table.cell(interface(rail), |(_, addresses, _)| &addresses[rail]);
    }
    let checks = rows(checks)
        .field("what", |check| &check.what)
        .field("found_Bps", |check| check.found)
        .field("expected_Bps", |check| check.expected)
        .field("lateness_us", |check| {
            check.lateness.as_ref().map(quantiles)
        });
    Ok(Document::new("lab-up")
        .field("name", name)
        .table("nodes", table)
        .field("self_test", checks)
        .field("spec", json(spec))
        .field("provenance", provenance::of_this_run())
        .line(format!(
            "The lab `{name}` is up; `flowcast lab down {name}` ends it."
        )))
}

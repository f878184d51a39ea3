//! `flowcast rails advise`: estimates the benefit of a second network, the messages that gain, and settings for other
//! libraries.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail, ensure};
use clap::Args;
use flowcast::{
    Options, advise_rails,
    model::{
        loggp::LogGp,
        network::{Network, ParameterInterval},
    },
    scheduler::{
        RailId,
        advise::{Advice, KnownRail, RailQuestion},
        policy::MessagePolicy,
    },
    statements::{DIVIDED, marked_name, of_networks},
    table::{Document, fixed, rows, shown},
    units::{Rounded, Time, TimePerByte},
};

use super::settings::{self, Settings};
use flowcast_io::ReplayRequest;

use flowcast_terminal::{
    network_args::{self, parse_overrides},
    output::Format,
    progress::Progress,
    trace_args::{Maps, open_trace, print_notes_beside, program_help, refuse_cut, threads},
};

/// Advise on the message size from which a second network helps
///
/// Also lists the best networks for each size, settings for MPI libraries, and the networks from which a program gains.
/// Without a trace, compares N messages sent in a burst over all networks (earliest delivery) with the same messages over
/// the best network alone. The interval of the gain comes from the intervals that `flowcast fit` wrote into the network
/// files. With a trace, predicts the program over each network alone, over all, and, with three or more, over all but one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowcast rails advise --network a.toml --network b.toml --name eth1 --name eth2
  flowcast rails advise lammps.rec --network a.toml --network b.toml --scheduler earliest-delivery --scheduler stock")]
pub(crate) struct Advise {
    #[arg(help = advised_help())]
    input: Option<PathBuf>,
    /// Built-in network (see `flowcast networks`), network file, or NAME=g,G,o,Lus with g, G per byte, o and L in
    /// microseconds (repeatable)
    #[arg(
        short,
        long = "network",
        visible_alias = "rail",
        value_name = "NET",
        required = true
    )]
    networks: Vec<String>,
    /// Names of the networks' interfaces, such as eth0, or of the ports of RDMA devices, such as mlx5_0:1, in the order of
    /// the networks [default: IFACE_1, IFACE_2 and on, to be replaced]
    #[arg(long = "name", value_name = "NAME", conflicts_with = "input")]
    interfaces: Vec<String>,
    /// Number of messages in a burst, sent one after another; at most 10000
    #[arg(
        value_parser = flowcast_terminal::shares::count::<usize>(..=10_000),
        long,
        default_value_t = 16,
        value_name = "COUNT",
        conflicts_with = "input"
    )]
    burst: usize,
    /// With a trace: scheduler, as for `flowcast predict --rail` (repeatable) [default: earliest-delivery and stock]
    #[arg(long = "scheduler", value_name = "SCHEDULER", requires = "input")]
    schedulers: Vec<MessagePolicy>,
    /// With a trace: replace a field of every network, such as nic.latency=5us (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "input")]
    overrides: Vec<String>,
    #[command(flatten)]
    replay: ReplayRequest,
    #[command(flatten)]
    format: Format,
}

impl Advise {
    /// Prints the advice.
    pub(crate) fn run(self) -> Result<()> {
        ensure!(self.burst > 0, "--burst: found 0, expected 1 or more");
        let overrides = parse_overrides(&self.overrides)?;
        let networks = network_args::load_rails(&self.networks, &overrides)?;
        if let Some(input) = &self.input {
            return self.about_program(input, &networks);
        }
        let nothing = Options {
            threads: threads(),
            ..Options::default()
        };
        ensure!(
            self.replay.options(&mut Maps::default())? == nothing,
            "--model, --mapping, --rendezvous-from, --collectives: found no trace, expected one"
        );
        let interfaces = self.interfaces(&networks)?;
        let rails: Vec<KnownRail> = networks.iter().map(known_rail).collect();
        let advice = RailQuestion::about(self.burst).answer(&rails)?;
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let settings = settings::nearest(&interfaces, &costs, &advice);
        self.format
            .print(&self.document(&networks, &interfaces, &advice, &settings))
    }

    /// Prints the gain of a program from the networks.
    fn about_program(&self, input: &Path, networks: &[Network]) -> Result<()> {
        let policies = match &self.schedulers[..] {
            [] => &[MessagePolicy::default(), MessagePolicy::Stock][..],
            given => given,
        };
        let trace = open_trace(input)?;
        refuse_cut(&trace)?;
        print_notes_beside(self.format, &trace.ignored());
        let progress = Progress::without_end("predicting".to_owned());
        let advice = advise_rails(
            &trace,
            networks,
            policies,
            &self.replay.options(&mut Maps::default())?,
        )?;
        drop(progress);
        self.format
            .print(&advice.document(&input.display().to_string()))
    }

    /// Given names, or placeholders, because a network does not name the interface of a node that leads to it.
    fn interfaces(&self, networks: &[Network]) -> Result<Vec<String>> {
        let (found, expected) = (self.interfaces.len(), networks.len());
        ensure!(
            found == 0 || found == expected,
            "--name: found {found} name{}, expected {expected}, one for each network",
            if found == 1 { "" } else { "s" }
        );
        let mut numbers = 1..found;
        let twice = numbers.find(|at| self.interfaces[..*at].contains(&self.interfaces[*at]));
        if let Some(at) = twice {
            bail!(
                "--name: found {} twice, expected a different name for each network",
                self.interfaces[at]
            );
        }
        Ok(if found == 0 {
            (1..=expected).map(|rail| format!("IFACE_{rail}")).collect()
        } else {
            self.interfaces.clone()
        })
    }

    /// Names of the interfaces, or of the networks, with asterisks. Networks with the same name are numbered.
    fn names_of(&self, networks: &[Network]) -> Vec<String> {
        networks
            .iter()
            .enumerate()
            .map(|(at, network)| {
                let marked = marked_name(network);
                let alike = networks.iter().filter(|other| other.name == network.name);
                match self.interfaces.get(at) {
                    Some(interface) => marked.replacen(&network.name, interface, 1),
                    None if alike.count() == 1 => marked,
                    None => format!("{marked} ({})", at + 1),
                }
            })
            .collect()
    }

    fn document(
        &self,
        networks: &[Network],
        interfaces: &[String],
        advice: &Advice,
        settings: &[Settings; 3],
    ) -> Document {
        let rails = self.names_of(networks);
        let names: Vec<String> = networks.iter().map(|of| of.name.clone()).collect();
        let named = match &self.interfaces[..] {
            [] => &names,
            given => given,
        };
        let (count, name) = (self.burst, |rail: RailId| rails[rail.index()].as_str());
        let together = match advice.together_from {
            Some(size) => format!("are faster over several rails from {} on", Rounded(size)),
            None => "have no certain gain from several rails".to_owned(),
        };
        let split = match advice.split_from {
            Some(size) => format!(
                "delivered earlier in pieces over several rails from {} on",
                Rounded(size)
            ),
            None => "never delivered earlier in pieces".to_owned(),
        };
        let mut sizes = rows(&advice.sizes)
            .column("size_B", "size", |at| at.size)
            .field("best_alone", |at| at.alone.0)
            .cell("best alone", |at| name(at.alone))
            .column("alone_us", "alone", |at| at.alone_takes)
            .column("together_us", "together", |at| at.together_takes)
            .field("messages_on", |at| &at.taken);
        for (rail, name) in rails.iter().enumerate() {
            sizes = sizes.cell(format!("on {name}"), |at| at.taken[rail]);
        }
        let sizes = sizes
            .column("gain", "gain", |at| fixed(at.gain, 3))
            .column("gain_interval", "interval", |at| {
                let (low, high) = at.interval;
                shown(at.interval, format!("{low:.3} to {high:.3}"))
            })
            .cell("use", |at| match advice.together_from {
                Some(from) if at.size >= from => "all",
                _ => name(at.alone),
            });
        let lines = settings.iter().map(|set| (set.of, set.lines.clone()));
        let pairs = interfaces.iter().zip(&rails);
        let pairs = pairs.map(|(interface, rail)| format!("{interface} for {rail}"));
        let placeholders = self.interfaces.is_empty().then(|| {
            format!(
                "\nReplace the placeholders in the settings by the names of your interfaces, or give the names with --name: {}.",
                pairs.collect::<Vec<_>>().join(", ")
            )
        });
        Document::new("rails-advice")
            .field("rails", named.to_vec())
            .field("messages", count)
            .field("together_from_B", advice.together_from)
            .field("split_from_B", advice.split_from)
            .field("settings", lines.collect::<BTreeMap<_, _>>())
            .line(format!("{count} concurrent messages {together}."))
            .line(format!("A single message is {split}."))
            .lines(advice.sizes.first().map(|small| {
                let best = name(small.alone);
                format!("The best single rail for the smallest messages is {best}.\n")
            }))
            .table("sizes", sizes)
            .lines(placeholders)
            .lines(
                settings
                    .iter()
                    .map(|set| format!("\n{}\n{}\n  {}", set.of, set.lines.join("\n"), set.remark)),
            )
            .line("")
            .noted([DIVIDED])
            .noted(of_networks(networks))
    }
}

fn advised_help() -> String {
    format!("Program to send over the networks. {}", program_help())
}

/// Parameters of a rail with their standard errors.
fn known_rail(network: &Network) -> KnownRail {
    let [latency, overhead, gap] = ["nic.latency", "nic.overhead", "nic.gap"]
        .map(|field| Time::from_nanos(standard_error(network, field)));
    let gap_per_byte = TimePerByte::from_nanos(standard_error(network, "nic.gap_per_byte"));
    KnownRail {
        cost: LogGp::from(&network.nic),
        error: LogGp {
            latency,
            overhead,
            gap,
            gap_per_byte,
        },
    }
}

/// Standard error as a bare number, in the unit of the field.
fn standard_error(network: &Network, field: &str) -> f64 {
    network
        .intervals
        .get(field)
        .map_or(0.0, ParameterInterval::standard_error)
}

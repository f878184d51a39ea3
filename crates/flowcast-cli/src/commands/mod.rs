//! One file for each subcommand.

/// Defines an enum of subcommands. Each of them must have a method `run`.
macro_rules! subcommands {
    ($(#[$own:meta])* $name:ident { $($(#[$attribute:meta])* $variant:ident($command:ty),)+ }) => {
        // The value is created once and not stored, so its size does not matter.
        #[allow(clippy::large_enum_variant)]
        #[derive(Debug, clap::Subcommand)]
        $(#[$own])*
        pub(crate) enum $name {
            $($(#[$attribute])* $variant($command),)+
        }

        impl $name {
            /// Runs the chosen command.
            pub(crate) fn run(self) -> anyhow::Result<()> {
                match self {
                    $($name::$variant(command) => command.run(),)+
                }
            }
        }
    };
}

mod bench;
mod collectives;
mod compare;
mod compare_work;
mod compile;
pub(crate) mod completions;
mod convert;
mod demo;
pub(crate) mod doctor;
mod explain;
mod fit;
mod fit_calls;
mod fit_collectives;
mod fit_conflicts;
mod fit_models;
mod fit_packets;
mod generate;
mod hpl;
pub(crate) mod lab;
mod mapping;
pub(crate) mod measure;
mod measure_clocks;
mod measure_conflicts;
mod measure_pairs;
mod merge;
mod mpi_rank;
mod networks;
#[cfg(test)]
mod option_tables;
mod place;
pub(crate) mod predict;
mod rails;
mod record;
mod samples_file;
mod sweep;
mod tcp_rank;
mod trace_question;
mod validate;

use std::ffi::OsString;

use anyhow::Result;
use clap::{
    Arg, Command, CommandFactory, FromArgMatches, Parser,
    builder::{Resettable, StyledStr},
};

use flowcast_terminal::{
    exit::{EXIT_CODES, end_with_answer},
    tables::TableForm,
    width::unbroken,
};

/// Measure, model, predict, place and schedule the communication of MPI programs.
#[derive(Debug, Parser)]
#[command(name = "flowcast", version = flowcast_terminal::provenance::VERSION, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Subcommands,
    /// Format of tables: text, markdown, or csv (all rows, other lines as comments)
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true,
        global = true
    )]
    tables: TableForm,
}

subcommands!(Subcommands {
    Demo(demo::Demo),
    Record(record::Record),
    Predict(predict::Predict),
    Sweep(sweep::Sweep),
    Merge(merge::Merge),
    Sensitivity(trace_question::Sensitivity),
    #[command(subcommand)]
    Explain(explain::Explain),
    Compare(compare::Compare),
    Compile(compile::Compile),
    Convert(convert::Convert),
    Generate(generate::Generate),
    #[command(subcommand)]
    Bench(bench::Bench),
    #[command(subcommand)]
    Measure(measure::Measure),
    Fit(fit::Fit),
    #[command(subcommand)]
    Lab(lab::LabCommand),
    #[command(subcommand)]
    Validate(validate::Validate),
    Place(place::Place),
    #[command(subcommand)]
    Collectives(collectives::Collectives),
    #[command(subcommand)]
    Hpl(hpl::Hpl),
    Mapping(mapping::Mapping),
    #[command(subcommand)]
    Rails(rails::Rails),
    Doctor(doctor::Doctor),
    Networks(networks::Networks),
    Completions(completions::Completions),
    Man(completions::Man),
    MpiRank(mpi_rank::MpiRank),
    TcpRank(tcp_rank::TcpRank),
});

/// Headings of options in the help of every command, the most important options first.
const HEADINGS: [(&str, &str); 8] = [
    ("Network", "inside model network rail set"),
    (
        "Program",
        "collectives compute compute-scale goal-params mapping noise period rendezvous-from \
         scenarios unfold",
    ),
    ("Scheduler", "processor scheduler split-from"),
    (
        "Where",
        "connect cores lab lab-set launcher listen node-per-rank over recorder rendezvous waiting",
    ),
    (
        "Output",
        "explain format json output report rows show tables write",
    ),
    (
        "Run",
        "adaptive executor moves no-run no-self-test resume shard threads time-limit",
    ),
    (
        "Precision",
        "level limit no-interval precision repetitions replicates robust seed threshold warm-ups",
    ),
    ("Special cases", "holdout incomplete strict"),
];

/// Commands by purpose, in the order of the help.
const GROUPS: [(&str, &str); 7] = [
    ("Try it", "demo"),
    (
        "Understand a program",
        "record predict explain compare sensitivity validate",
    ),
    ("Networks", "networks measure fit lab doctor"),
    (
        "Place and choose",
        "place mapping sweep merge collectives hpl",
    ),
    ("Rails", "rails"),
    ("Files", "compile convert generate"),
    ("This command", "bench completions man help"),
];

/// Help of the whole command, with its commands in [`GROUPS`].
fn grouped_help(command: &Command) -> String {
    let mut help = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        help += &format!("\n{heading}:\n");
        for name in names.split_whitespace() {
            let about = command
                .find_subcommand(name)
                .and_then(|command| command.get_about());
            let about = about.map_or(
                "Print this message or the help of a command".to_owned(),
                ToString::to_string,
            );
            help += &format!("  {name:11}  {about}\n");
        }
    }
    help += "\nOptions:\n{options}\n\nExit codes:\n";
    for (code, meaning) in EXIT_CODES.iter().enumerate() {
        help += &format!("  {code}  {meaning}\n");
    }
    help
}

/// Index of an option's heading in [`HEADINGS`]. `None` for options of single commands.
fn heading_of(option: &Arg) -> Option<usize> {
    let long = option.get_long()?;
    HEADINGS
        .iter()
        .position(|(_, options)| options.split(' ').any(|option| option == long))
}

/// The command with its options in the order of [`HEADINGS`].
fn with_headings(command: Command) -> Command {
    let mut arguments: Vec<Arg> = command.get_arguments().cloned().collect();
    arguments.sort_by_key(heading_of);
    let mut arguments = arguments.into_iter();
    command
        .mut_args(|first| {
            let argument = arguments.next().unwrap_or(first);
            match heading_of(&argument) {
                Some(place) => argument.help_heading(HEADINGS[place].0),
                None => argument,
            }
        })
        .mut_subcommands(with_headings)
}

/// The command with help texts whose command lines are never broken.
fn with_unbroken_help(command: Command) -> Command {
    let about = unbroken_text(command.get_about());
    let long_about = unbroken_text(command.get_long_about());
    let examples = unbroken_text(command.get_after_help());
    command
        .about(about)
        .long_about(long_about)
        .after_help(examples)
        .mut_args(|argument| {
            let help = unbroken_text(argument.get_help());
            argument.help(help)
        })
        .mut_subcommands(with_unbroken_help)
}

fn unbroken_text(text: Option<&StyledStr>) -> Resettable<StyledStr> {
    text.map(|text| StyledStr::from(unbroken(&text.to_string())))
        .into()
}

/// Replaces `sweep --merge`, the former spelling of `merge`.
fn renamed(mut words: Vec<OsString>) -> Vec<OsString> {
    let merges = words.iter().any(|word| word == "--merge");
    if let Some(command) = words.iter_mut().find(|word| merges && *word == "sweep") {
        *command = "merge".into();
        words.retain(|word| word != "--merge");
    }
    words
}

impl Cli {
    /// The whole command with all subcommands and options.
    pub(crate) fn described() -> Command {
        let command = with_headings(Cli::command());
        let help = grouped_help(&command);
        command.help_template(help)
    }

    /// Parses a command line. An error in it ends the process.
    pub(crate) fn from_words(words: impl Iterator<Item = OsString>) -> Cli {
        with_unbroken_help(Cli::described())
            .try_get_matches_from(renamed(words.collect()))
            .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches))
            .unwrap_or_else(|answer| end_with_answer(&answer, &Cli::described()))
    }

    /// Runs the chosen command.
    pub(crate) fn run(self) -> Result<()> {
        self.tables.choose();
        self.command.run()
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::*;

    const CASES: &str = include_str!("../../tests/limits/cases.txt");

    /// Command lines with counts at their limits.
    fn cases() -> impl Iterator<Item = &'static str> {
        let lines = CASES.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.trim_start_matches(['*', '?', ' ']))
    }

    /// A command, one of its options with a whole number, and the help of that option.
    struct Count {
        command: String,
        option: String,
        help: String,
    }

    impl Count {
        /// Limits in the cases of this command.
        fn limits(&self) -> impl Iterator<Item = &'static str> {
            let Count {
                command, option, ..
            } = self;
            // Options with two values are not followed by `=`.
            let forms = [format!(" --{option}="), format!(" --{option} 1000000 ")];
            let of_command = format!("{command} ");
            let of_command = cases().filter(move |case| case.starts_with(&of_command));
            of_command.filter_map(move |case| {
                let [one, two] = &forms;
                let limit = case
                    .split_once(one.as_str())
                    .or(case.split_once(two.as_str()))?
                    .1;
                limit.split(' ').next()
            })
        }

        /// `true` if the help states the limit. An option that allows all numbers of its type needs no statement.
        fn states(&self, limit: &str) -> bool {
            let limit: u64 = limit.parse().unwrap();
            let is_of_type = [u64::from(u8::MAX), u32::MAX.into(), u64::MAX].contains(&limit);
            let power = format!("2^{}", limit.trailing_zeros());
            let is_power = limit.is_power_of_two() && self.help.contains(&power);
            is_of_type || is_power || self.help.contains(&limit.to_string())
        }
    }

    fn counts(command: &Command, words: &str) -> Vec<Count> {
        let kinds = [
            TypeId::of::<u8>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
        ];
        let is_count = |option: &&Arg| {
            let kind = option.get_value_parser().type_id();
            kinds.iter().any(|count| kind == *count)
        };
        let own = command.get_arguments().filter(is_count);
        let own = own.filter_map(|option| {
            let help = option.get_long_help().or(option.get_help())?;
            Some(Count {
                command: words.to_owned(),
                option: option.get_long()?.to_owned(),
                help: help.to_string(),
            })
        });
        let commands = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let of_commands = commands
            .flat_map(|command| counts(command, format!("{words} {}", command.get_name()).trim()));
        own.chain(of_commands).collect()
    }

    #[test]
    fn the_former_spelling_of_merge_is_understood() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        for line in [
            "flowcast sweep --merge a b -o all",
            "flowcast sweep -o all --merge a --merge b",
        ] {
            let parsed = Cli::described().try_get_matches_from(renamed(words(line)));
            assert_eq!(parsed.unwrap().subcommand_name(), Some("merge"), "{line}");
        }
        let other = words("flowcast sweep a.dim --network gige-tcp -o all");
        assert_eq!(renamed(other.clone()), other);
    }

    #[test]
    fn each_count_has_a_case_at_its_limit_and_states_it() {
        let mut faults = Vec::new();
        for count in counts(&Cli::described(), "") {
            let Count {
                command, option, ..
            } = &count;
            if count.limits().next().is_none() {
                faults.push(format!("no case: {command} --{option}"));
            }
            let unsaid = count.limits().filter(|limit| !count.states(limit));
            faults.extend(
                unsaid.map(|limit| format!("{limit} is not in the help: {command} --{option}")),
            );
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn one_more_than_a_limit_is_refused() {
        for case in cases() {
            let words: Vec<&str> = case.split(' ').collect();
            for (place, word) in words.iter().enumerate() {
                let Some((option, limit)) = word
                    .split_once('=')
                    .filter(|(option, _)| option.starts_with("--"))
                else {
                    continue;
                };
                let more = limit.parse::<u128>().unwrap() + 1;
                let more = format!("{option}={more}");
                let mut line = vec!["flowcast"];
                line.extend(&words);
                line[place + 1] = &more;
                let parsed = Cli::described().try_get_matches_from(&line);
                assert!(parsed.is_err(), "{}", line.join(" "));
                line[place + 1] = word;
                let parsed = Cli::described().try_get_matches_from(&line);
                assert!(
                    parsed.is_ok(),
                    "{}: {}",
                    line.join(" "),
                    parsed.unwrap_err()
                );
            }
        }
    }
}

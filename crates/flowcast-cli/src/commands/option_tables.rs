//! Reference page of all commands. The options and their help are generated from the definitions.

use std::fmt::Write;

use clap::{Arg, Command};

use super::Cli;

const PAGE: &str = include_str!("../../../../docs/reference/commands.md");
const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/commands.md"
);

/// Text in one line, escaped for a cell of a table or a sentence.
fn in_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let escaped = words.replace('|', "\\|").replace('<', "&lt;");
    escaped.replace('*', "\\*")
}

/// Name of an argument: `-o`, `--output FILE`, or the name of a value.
fn name_of(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(|name| name.as_str()).collect();
    let values = values.join(" ").replace('|', "\\|");
    let Some(long) = argument.get_long() else {
        return format!("`{values}`");
    };
    let short = argument.get_short();
    let short = short.map_or(String::new(), |short| format!("`-{short}`, "));
    let value = match argument.get_action().takes_values() {
        true => format!(" {values}"),
        false => String::new(),
    };
    format!("{short}`--{long}{value}`")
}

fn described(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let mut text = help.map_or(String::new(), |help| in_line(&help.to_string()));
    let choices = argument.get_possible_values();
    if !choices.is_empty() && argument.get_action().takes_values() {
        let names: Vec<String> = choices
            .iter()
            .map(|choice| format!("`{}`", choice.get_name()))
            .collect();
        text += &format!(": {}", names.join(", "));
    }
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let defaults: Vec<_> = defaults
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        text += &format!(" (default {})", defaults.join(" "));
    }
    text
}

fn write_command(page: &mut String, command: &Command, words: &str) {
    let about = command
        .get_about()
        .map_or(String::new(), |about| in_line(&about.to_string()));
    let subcommands = command.get_subcommands();
    let subcommands: Vec<&Command> = subcommands
        .filter(|one| !one.is_hide_set() && one.get_name() != "help")
        .collect();
    if subcommands.is_empty() {
        writeln!(
            page,
            "\n## {words}\n\n{about}.\n\n| option | meaning |\n|---|---|"
        )
        .unwrap();
        let is_own = |argument: &&Arg| {
            !argument.is_hide_set()
                && !argument.is_global_set()
                && !["help", "version"].contains(&argument.get_id().as_str())
        };
        for argument in command.get_arguments().filter(is_own) {
            writeln!(page, "| {} | {} |", name_of(argument), described(argument)).unwrap();
        }
    }
    for command in subcommands {
        write_command(page, command, &format!("{words} {}", command.get_name()));
    }
}

#[test]
fn the_page_of_commands_is_printed_from_the_definitions() {
    let intro = PAGE.split("\n## ").next().unwrap();
    let mut page = format!("{}\n", intro.trim_end());
    write_command(&mut page, &Cli::described(), "flowcast");
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        std::fs::write(PATH, &page).unwrap();
        return;
    }
    assert_eq!(page, PAGE, "TRYCMD=overwrite prints the page anew");
}

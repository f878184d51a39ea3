//! Reference page of all commands. The options and their help are generated from the definitions.

use std::fmt::Write;

use clap::{Arg, Command};
use flowcast_terminal::exit::EXIT_CODES;

use super::Cli;

/// Folder of the reference pages.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

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
    let shows_defaults = !defaults.is_empty() && !argument.is_hide_default_value_set();
    if shows_defaults && argument.get_action().takes_values() {
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
        if words.matches(' ').count() > 1 {
            writeln!(page, "\n## {words}").unwrap();
        }
        writeln!(page, "\n{about}.\n\n| option | meaning |\n|---|---|").unwrap();
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

/// Compares a file with the text from the definitions. Writes the file before if `TRYCMD` is `overwrite`.
fn check(file: &str, text: &str) {
    let path = format!("{FOLDER}/{file}");
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "{file}: TRYCMD=overwrite prints it anew");
}

#[test]
fn pages_of_commands_are_printed_from_the_definitions() {
    let described = Cli::described();
    let index = std::fs::read_to_string(format!("{FOLDER}/commands.md")).unwrap();
    let intro = index.split("\n| command").next().unwrap();
    let mut index = format!("{intro}\n| command | use |\n|---|---|\n");
    let summary = std::fs::read_to_string(format!("{FOLDER}/../SUMMARY.md")).unwrap();
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    for command in described.get_subcommands().filter(is_shown) {
        let name = command.get_name();
        let mut page = format!("# Options of flowcast {name}\n");
        write_command(&mut page, command, &format!("flowcast {name}"));
        check(&format!("commands/{name}.md"), &page);
        let about = in_line(&command.get_about().unwrap().to_string());
        writeln!(index, "| [`{name}`](commands/{name}.md) | {about} |").unwrap();
        assert!(
            summary.contains(&format!("(reference/commands/{name}.md)")),
            "{name}"
        );
    }
    check("commands.md", &index);
}

#[test]
fn the_page_of_exit_codes_has_the_meanings_of_the_help() {
    let page = std::fs::read_to_string(format!("{FOLDER}/exit-codes.md")).unwrap();
    for (code, meaning) in EXIT_CODES.iter().enumerate() {
        assert!(
            page.contains(&format!("\n| {code} | {meaning} |")),
            "{code}"
        );
    }
}

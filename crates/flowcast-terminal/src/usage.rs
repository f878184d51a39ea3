//! Errors of command lines with options that exclude each other, or with an option that is given twice.

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// One-line text for an error of this kind; `None` for other errors. `command` contains all subcommands.
pub(super) fn explained(error: &Error, command: &Command) -> Option<String> {
    let (ErrorKind::ArgumentConflict, Some(ContextValue::String(found))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let others = match error.get(ContextKind::PriorArg)? {
        ContextValue::String(other) => std::slice::from_ref(other),
        ContextValue::Strings(others) => others,
        _ => return None,
    };
    let name = found.split(' ').next()?;
    if others.contains(found) {
        let usage = error.get(ContextKind::Usage)?.to_string();
        let other = name.replacen("--", "--other-", 1);
        let mut options = described_command(command, &usage).get_arguments();
        let hint = if options.any(|option| option.get_long() == other.strip_prefix("--")) {
            format!("use {other} for another")
        } else {
            "run the command once for each".to_owned()
        };
        return Some(format!("{name}: found more than one, expected one; {hint}"));
    }
    let others = others.iter().filter_map(|other| other.split(' ').next());
    let others: Vec<&str> = others.collect();
    Some(match others[..] {
        [other] => format!("{name} and {other} exclude each other: give one"),
        _ => format!(
            "{name} excludes {}: give only {name}, or leave it out",
            others.join(" and ")
        ),
    })
}

/// Subcommand that a usage such as `Usage: flowcast hpl choose [OPTIONS]` describes.
fn described_command<'a>(mut command: &'a Command, usage: &str) -> &'a Command {
    for name in usage.split_whitespace().skip(2) {
        match command.find_subcommand(name) {
            Some(below) => command = below,
            None => break,
        }
    }
    command
}

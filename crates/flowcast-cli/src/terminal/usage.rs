//! Command lines whose options exclude one another, or have one that stands there twice: what was found, what is expected, and
//! where several values go.

use clap::{
    Arg, ArgAction, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// One line for an error of this kind; none for another error. `command` has all subcommands.
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
        let way_out = way_out(command, asked(command, &usage), name);
        return Some(format!(
            "{name}: found more than one, expected one{way_out}"
        ));
    }
    let others = others.iter().filter_map(|other| other.split(' ').next());
    Some(format!(
        "{name}: found {} beside it, expected one without the other",
        others.collect::<Vec<_>>().join(", ")
    ))
}

/// The subcommand that a usage such as `Usage: flowcast hpl choose [OPTIONS]` is about.
fn asked<'a>(mut command: &'a Command, usage: &str) -> &'a Command {
    for name in usage.split_whitespace().skip(2) {
        match command.find_subcommand(name) {
            Some(below) => command = below,
            None => break,
        }
    }
    command
}

/// The commands whose option of this name takes several such values, and the command's own option for another one.
fn way_out(root: &Command, asked: &Command, name: &str) -> String {
    let named = |name: &str| {
        let long = name.trim_start_matches('-');
        asked
            .get_arguments()
            .find(|argument| argument.get_long() == Some(long))
    };
    let mut places = Vec::new();
    if let Some(option) = named(name) {
        find_several(root, "", option, &mut places);
    }
    let other = name.replacen("--", "--other-", 1);
    places.extend(named(&other).map(|_| other));
    match places.pop() {
        None => String::new(),
        Some(last) if places.is_empty() => format!("; several go to {last}"),
        Some(last) => format!("; several go to {} or {last}", places.join(", ")),
    }
}

fn find_several(command: &Command, above: &str, option: &Arg, places: &mut Vec<String>) {
    let path = format!("{above}{}", command.get_name());
    let takes_several = |own: &Arg| {
        own.get_long() == option.get_long()
            && own.get_value_names() == option.get_value_names()
            && matches!(own.get_action(), ArgAction::Append)
    };
    if command.get_arguments().any(takes_several) {
        places.push(format!("`{path}`"));
    }
    for below in command.get_subcommands() {
        find_several(below, &format!("{path} "), option, places);
    }
}

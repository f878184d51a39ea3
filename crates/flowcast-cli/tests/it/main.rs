//! Tests of the command, in one program. Its sessions (`cli`) are a separate program, because they change the working
//! folder.

#[macro_use]
mod recorder;

mod cable;
mod chaos;
mod conflicts;
mod documents;
mod encodings;
mod failed_runs;
mod formats;
mod help;
mod hostile;
mod hpl;
mod lab;
mod launchers;
mod libraries;
mod library_rules;
mod measure;
#[path = "../../../flowcast/tests/it/mpich_selection.rs"]
mod mpich_selection;
mod outcome;
mod outputs;
mod patterns;
mod place;
mod rails_live;
mod record;
mod recorded_traffic;
mod spawn;
mod statements;
mod sweep;
mod terminals;
mod untouched;
mod validate;
mod validate_app;

/// The command with the default effect of all signals. A shell starts background jobs with some signals ignored, and their
/// children inherit this.
fn interruptible() -> std::process::Command {
    let mut command = std::process::Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_flowcast")]);
    command
}

/// Texts in the format of an unfinished run: each after a line with its length and the checksum of all texts so far.
fn in_parts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = crc32fast::Hasher::new();
    let part = |text: &str| {
        hasher.update(text.as_bytes());
        format!(
            "# part {} {:08x}\n{text}",
            text.len(),
            hasher.clone().finalize()
        )
    };
    texts.into_iter().map(part).collect()
}

//! Ctrl-C during a run that keeps what it has finished: says where that is and how to go on.

use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::{Mutex, MutexGuard, Once};

/// The files that the next run can go on with.
static KEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// What shells call a command that the signal of Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// From now on an interrupt names this file.
pub(crate) fn keeps(path: &Path) {
    static HANDLER: Once = Once::new();
    // Without the handler an interrupt ends the run without a word, as it does any command.
    HANDLER.call_once(|| drop(ctrlc::set_handler(interrupted)));
    kept().push(path.to_owned());
}

/// The file is gone.
pub(crate) fn keeps_no_more(path: &Path) {
    kept().retain(|known| known != path);
}

fn kept() -> MutexGuard<'static, Vec<PathBuf>> {
    KEPT.lock().expect("nobody panics while he has it")
}

fn interrupted() {
    for path in kept().iter() {
        eprintln!(
            "\nflowcast: interrupted; {} holds what is finished: the same command with --resume goes on with it",
            path.display()
        );
    }
    exit(INTERRUPTED);
}

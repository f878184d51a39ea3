//! What is shown while a command works: how much is done, how fast, and how long the rest takes. It goes to the standard
//! error, is erased at the end, and is not shown where that is no terminal.

use std::{
    fmt,
    io::{self, Write},
    time::Duration,
};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// A line that shows how far the work is; erased when dropped.
pub struct Progress(ProgressBar);

/// How often a line without a known end is drawn.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Of work that consists of so many `units`.
    pub fn counted(what: impl Into<String>, units: &str, length: u64) -> Progress {
        let template = format!("{{msg}} [{{bar:30}}] {{pos}} of {{len}} {units}{{rest}}");
        Progress(drawn(&template, what)).with_length(length)
    }

    /// Of work that ends after so many seconds at most.
    pub fn for_seconds(what: impl Into<String>, seconds: f64) -> Progress {
        let progress = Progress(drawn(
            "{prefix} [{wide_bar}] {elapsed}, at most {eta} left{msg}",
            "",
        ));
        progress.0.set_prefix(what.into());
        progress.with_length(millis(seconds))
    }

    /// Of work whose end is not known: how long it has taken.
    pub fn without_end(what: impl Into<String>) -> Progress {
        Progress(drawn("{spinner} {msg}, {elapsed}", what)).ticking()
    }

    /// Of a file that is being written: bytes and rate.
    pub fn writing(path: &std::path::Path) -> Progress {
        Progress(drawn(
            "{spinner} writing {msg}, {bytes}, {bytes_per_sec}",
            path.display().to_string(),
        ))
        .ticking()
    }

    /// Drawn every so often, whether something has happened or not.
    fn ticking(self) -> Progress {
        if !self.0.is_hidden() {
            self.0.enable_steady_tick(TICK);
        }
        self
    }

    fn with_length(self, length: u64) -> Progress {
        self.0.set_length(length);
        self
    }

    /// So many more are done.
    pub fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// So many more are done, of as many in all.
    pub fn add_of(&self, count: u64, length: u64) {
        self.0.set_length(length);
        self.add(count);
    }

    /// So many are done already, from an earlier run: they do not count for the rate.
    pub fn begin_at(&self, done: u64) {
        self.0.set_position(done);
        self.0.reset_eta();
    }

    /// So many seconds are over.
    pub fn at_seconds(&self, seconds: f64) {
        self.0.set_position(millis(seconds));
    }

    /// Something to say beside it.
    pub fn say(&self, text: String) {
        self.0.set_message(text);
    }

    /// A writer that counts its bytes here.
    pub fn counting<W: Write>(&self, out: W) -> impl Write + use<'_, W> {
        Counting {
            progress: self,
            out,
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}

fn drawn(template: &str, message: impl Into<String>) -> ProgressBar {
    let style =
        ProgressStyle::with_template(template).expect("the templates above are well formed");
    let style = style.with_key("rest", |state: &ProgressState, out: &mut dyn fmt::Write| {
        // A line that cannot be written is not shown.
        let _ = write_rest(state, out);
    });
    ProgressBar::no_length()
        .with_style(style.progress_chars("=> "))
        .with_message(message.into())
}

/// The rate, and how long the rest takes at it, once there is one.
fn write_rest(state: &ProgressState, out: &mut dyn fmt::Write) -> fmt::Result {
    match state.per_sec() {
        rate if rate > 0.0 => write!(
            out,
            ", {rate:.1} a second, {} left",
            HumanDuration(state.eta())
        ),
        _ => Ok(()),
    }
}

struct Counting<'a, W> {
    progress: &'a Progress,
    out: W,
}

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.progress.add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_and_every_template_is_well_formed() {
        let progress = Progress::counted("carrying", "conflicts", 7);
        progress.begin_at(2);
        progress.add(3);
        assert_eq!(progress.0.position(), 5);
        let timed = Progress::for_seconds("measuring", 2.0);
        timed.at_seconds(0.5);
        timed.say(", round 3".to_owned());
        assert_eq!((timed.0.position(), timed.0.length()), (500, Some(2000)));
        drop(Progress::without_end("reading x"));
        let writing = Progress::writing(std::path::Path::new("x"));
        writing.counting(Vec::new()).write_all(b"four").unwrap();
        assert_eq!(writing.0.position(), 4);
    }
}

//! Progress display: the completed part of the work, its rate and the remaining time. It is written to the standard error
//! and erased at the end. It is not shown if the standard error is not a terminal.

use std::{
    fmt,
    io::{self, Write},
    time::Duration,
};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Line that shows the progress of some work. It is erased when dropped.
pub struct Progress(ProgressBar);

/// Period at which a line without a known end is redrawn.
const TICK: Duration = Duration::from_millis(200);

impl Progress {
    /// Progress of work that consists of `length` units.
    pub fn counted(what: impl Into<String>, units: &str, length: u64) -> Progress {
        let template = format!("{{msg}} [{{bar:30}}] {{pos}} of {{len}} {units}{{rest}}");
        Progress(drawn(&template, what)).with_length(length)
    }

    /// Progress of work that ends after at most this time.
    pub fn for_seconds(what: impl Into<String>, seconds: f64) -> Progress {
        let progress = Progress(drawn(
            "{prefix} [{wide_bar}] {elapsed}, at most {eta} left{msg}",
            "",
        ));
        progress.0.set_prefix(what.into());
        progress.with_length(millis(seconds))
    }

    /// Progress of work with an unknown end: shows the elapsed time.
    pub fn without_end(what: impl Into<String>) -> Progress {
        Progress(drawn("{spinner} {msg}, {elapsed}", what)).ticking()
    }

    /// Progress of writing a file: shows bytes and rate.
    pub fn writing(path: &std::path::Path) -> Progress {
        Progress(drawn(
            "{spinner} writing {msg}, {bytes}, {bytes_per_sec}",
            path.display().to_string(),
        ))
        .ticking()
    }

    /// Redraws the line periodically, even without progress.
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

    /// Adds `count` units to the completed ones.
    pub fn add(&self, count: u64) {
        self.0.inc(count);
    }

    /// Sets the units that an earlier run has completed. They do not count for the rate.
    pub fn begin_at(&self, done: u64) {
        self.0.set_position(done);
        self.0.reset_eta();
    }

    /// Sets the elapsed time in seconds.
    pub fn at_seconds(&self, seconds: f64) {
        self.0.set_position(millis(seconds));
    }

    /// Shows a message beside the progress.
    pub fn say(&self, text: String) {
        self.0.set_message(text);
    }

    /// Writer that counts its bytes as progress.
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

/// Writes the rate and the remaining time at this rate, if the rate is known.
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

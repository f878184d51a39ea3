//! Lost rails, which are reconnected while the others continue.

use std::{
    io,
    net::TcpStream,
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use flowcast_scheduler::RailId;

use super::RailPath;

/// Time between two attempts. It doubles after each failure, up to `MOST_WAIT`.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const MOST_WAIT: Duration = Duration::from_secs(1);

/// A rail that should be reconnected.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) rail: RailId,
    pub(super) path: RailPath,
    wait: Duration,
    attempt: Attempt,
}

#[derive(Debug)]
enum Attempt {
    /// Start of the next attempt.
    At(Instant),
    /// A separate thread connects, which may take seconds.
    Running(Receiver<io::Result<TcpStream>>),
}

impl Absent {
    /// Creates the state for a rail that was lost just now.
    pub(super) fn new(rail: RailId, path: RailPath) -> Absent {
        Absent {
            rail,
            path,
            wait: FIRST_WAIT,
            attempt: Attempt::At(Instant::now() + FIRST_WAIT),
        }
    }

    /// Returns the new connection as soon as there is one. Does not wait.
    pub(super) fn connection(&mut self) -> Option<TcpStream> {
        match &self.attempt {
            Attempt::At(begin) if Instant::now() < *begin => None,
            Attempt::At(_) => {
                self.attempt = self.begun();
                None
            }
            Attempt::Running(result) => match result.try_recv() {
                Ok(Ok(stream)) => Some(stream),
                Err(TryRecvError::Empty) => None,
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                    self.wait = (self.wait * 2).min(MOST_WAIT);
                    self.attempt = Attempt::At(Instant::now() + self.wait);
                    None
                }
            },
        }
    }

    fn begun(&self) -> Attempt {
        let (told, result) = channel();
        let path = self.path.path.clone();
        // If no thread can be started, the attempt fails, which the receiver detects.
        let _ = thread::Builder::new()
            .name("rail".to_owned())
            .spawn(move || told.send(path.connect()));
        Attempt::Running(result)
    }
}

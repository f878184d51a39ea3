//! Rails that were lost, and are connected anew while the others go on.

use std::{
    io,
    net::TcpStream,
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use flowcast_scheduler::RailId;

use super::RailPath;

/// Between two attempts; twice as long after each that failed, up to `MOST_WAIT`.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const MOST_WAIT: Duration = Duration::from_secs(1);

/// A rail that is to come back.
#[derive(Debug)]
pub(super) struct Absent {
    pub(super) rail: RailId,
    pub(super) path: RailPath,
    wait: Duration,
    attempt: Attempt,
}

#[derive(Debug)]
enum Attempt {
    /// The next begins then.
    At(Instant),
    /// A thread of its own connects, which may take seconds.
    Running(Receiver<io::Result<TcpStream>>),
}

impl Absent {
    /// A rail that was lost just now.
    pub(super) fn new(rail: RailId, path: RailPath) -> Absent {
        Absent {
            rail,
            path,
            wait: FIRST_WAIT,
            attempt: Attempt::At(Instant::now() + FIRST_WAIT),
        }
    }

    /// The new connection, once there is one. Does not wait.
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
        // Without a thread the attempt has failed, as the receiver sees.
        let _ = thread::Builder::new()
            .name("rail".to_owned())
            .spawn(move || told.send(path.connect()));
        Attempt::Running(result)
    }
}

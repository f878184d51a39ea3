//! A session with sockets and a clock, driven by the calls of its user.
//!
//! Every call that sends or receives also polls all connections: it writes pending frames, reads what arrived and accepts
//! new rails. A link that is not called makes no progress.

mod absent;
mod listener;

use std::{
    io::{self, ErrorKind, IoSlice, Read, Write},
    net::TcpStream,
    os::fd::AsFd,
    time::{Duration, Instant},
};

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{
    MAX_RAILS, RailId, RailSet, RailsError,
    clock::{ClockArithmetic, Ticks},
};
use flowcast_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use crate::{
    frame::{FrameHeader, FrameKind, RailFault, encode},
    lane::AT_ONCE,
    path::SessionPath,
    policy::Steering,
    session::{DeliveryOrder, Opening, Refused, Session, SessionCounts, SessionRule},
};
use absent::Absent;
pub use listener::Listener;
use listener::{Hello, Newcomer};

/// Time that an end without any rail waits for a new one.
const LINGER: Duration = Duration::from_secs(3);
/// Longest sleep. Acknowledgements and silent rails are checked in between.
const NAP: Duration = Duration::from_millis(1);
/// Number of messages after which a sender that never receives polls its rails.
const MESSAGES_UNATTENDED: u32 = 32;

/// Reason why a link cannot continue.
#[derive(Debug, Error)]
pub enum LinkError {
    /// Rails that cannot form a session.
    #[error(transparent)]
    Rails(#[from] RailsError),
    /// A message that was refused before it was sent, with the reason.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No rail is left, and no new one arrived for a while.
    #[error("all rails are closed")]
    Closed,
    /// Nothing arrived within the caller's timeout.
    #[error("nothing arrived for {0}")]
    Silent(Time),
    /// The operating system refused a call.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The attempted operation, as a verb with its object: `wait for the rails`.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// A rail and its path.
#[derive(Debug, Clone, PartialEq)]
pub struct RailPath {
    /// Cost of messages on the rail.
    pub cost: LogGp,
    /// Addresses and interface of the rail.
    pub path: SessionPath,
}

/// Method by which an end waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkWaiting {
    /// Sleeps until something arrives.
    Sleep,
    /// Polls for this duration before it sleeps; needs a dedicated processor.
    Poll(Duration),
}

/// One end of a conversation over several rails.
pub struct RailLink {
    session: Session,
    number: u64,
    wires: Vec<Option<LinkWire>>,
    door: Option<Listener>,
    waiting: LinkWaiting,
    start: Instant,
    alone_since: Option<Instant>,
    /// Path of each rail, at the end that connects.
    paths: Vec<Option<RailPath>>,
    absent: Vec<Absent>,
    /// Messages sent since anything was read.
    unattended: u32,
    faults: Vec<(RailId, RailFault)>,
}

struct LinkWire {
    stream: TcpStream,
    /// The socket buffer is full for now.
    full: bool,
}

impl RailLink {
    /// Connects over all rails. A rail that is lost later is reconnected automatically as soon as its path works again.
    ///
    /// # Errors
    /// No rail, too many rails, or a failed connection.
    pub fn connect(
        rails: &[RailPath],
        rule: SessionRule,
        waiting: LinkWaiting,
    ) -> Result<RailLink, LinkError> {
        let costs: Vec<LogGp> = rails.iter().map(|rail| rail.cost).collect();
        let number = std::process::id() as u64
            ^ (std::time::UNIX_EPOCH
                .elapsed()
                .map_or(0, |t| t.as_nanos() as u64)
                << 20);
        let mut link = RailLink::new(Session::new(rule, costs)?, number, None, waiting);
        for (rail, path) in (0..).zip(rails) {
            link.add_rail(RailId(rail), path)?;
        }
        Ok(link)
    }

    /// Waits for the first rail of the other end, for at most `timeout` if there is one.
    ///
    /// # Errors
    /// No connection arrived in time.
    pub fn accept(
        mut door: Listener,
        rule: SessionRule,
        waiting: LinkWaiting,
        timeout: Option<Duration>,
    ) -> Result<RailLink, LinkError> {
        let start = Instant::now();
        loop {
            let mut entered = door.entered(rule.token).into_iter();
            // A returning rail belongs to a conversation that has ended.
            if let Some(first) = entered.find(|one| !one.hello.returns) {
                let hello = first.hello;
                // Rails with lower numbers may still be connecting; their costs are unknown.
                let costs = vec![hello.cost; hello.rail.index() + 1];
                let mut link = RailLink::new(
                    Session::new(rule, costs)?,
                    hello.session,
                    Some(door),
                    waiting,
                );
                link.enter(first);
                entered.for_each(|one| drop(link.enter(one)));
                return Ok(link);
            }
            check_silence(start.elapsed(), timeout.unwrap_or(Duration::MAX))?;
            std::thread::sleep(NAP);
        }
    }

    /// Adds a rail, or replaces its connection, while the link is in use.
    ///
    /// # Errors
    /// A failed connection, or a rail number that leaves a gap.
    pub fn add_rail(&mut self, rail: RailId, to: &RailPath) -> Result<(), LinkError> {
        let stream = to
            .path
            .connect()
            .map_err(|error| failed(format!("connect to {}", to.path.to), error))?;
        self.absent.retain(|absent| absent.rail != rail);
        self.paths
            .resize_with(self.paths.len().max(rail.index() + 1), || None);
        self.paths[rail.index()] = Some(to.clone());
        self.introduce(rail, to.cost, stream, Opening::New)
    }

    /// Introduces a rail. A connection that breaks before it has introduced itself counts as a lost rail.
    fn introduce(
        &mut self,
        rail: RailId,
        cost: LogGp,
        mut stream: TcpStream,
        opening: Opening,
    ) -> Result<(), LinkError> {
        let token = self.session.rule().token;
        let hello = Hello {
            session: self.number,
            rail,
            returns: opening == Opening::Again,
            cost,
            token,
        };
        let mut frame = Vec::new();
        encode(
            &mut frame,
            &FrameHeader::bare(FrameKind::Hello),
            &hello.write(),
        );
        // The socket buffer of a new connection holds at least a hundred bytes.
        let written = stream.write_all(&frame);
        self.attach(rail, stream, cost, opening)?;
        if written.is_err() {
            self.lose(rail, RailFault::Closed);
        }
        Ok(())
    }

    /// Sends a message; blocks while the receiver grants no credit.
    ///
    /// # Errors
    /// A message that is too long, no rail left, or no credit while nothing arrives for `timeout`.
    pub fn send(
        &mut self,
        message: &[u8],
        delivery: DeliveryOrder,
        timeout: Duration,
    ) -> Result<(), LinkError> {
        self.check_alone()?;
        let start = self.now();
        while !self.session.has_credit() {
            self.progress(true)?;
            self.check_advance(start, timeout)?;
        }
        self.session
            .send(message, delivery, self.now())?
            .for_each(|rail| self.write(rail));
        self.unattended += 1;
        if self.unattended >= MESSAGES_UNATTENDED {
            self.progress(false)
        } else {
            Ok(())
        }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// No rail left, or no message for `timeout`.
    pub fn receive(&mut self, timeout: Duration) -> Result<Vec<u8>, LinkError> {
        if let Some(message) = self.session.receive() {
            return Ok(message);
        }
        let start = self.now();
        loop {
            self.progress(true)?;
            if let Some(message) = self.session.receive() {
                return Ok(message);
            }
            self.check_advance(start, timeout)?;
        }
    }

    /// Waits until all messages have arrived at the other end.
    ///
    /// # Errors
    /// No rail left, or the messages do not arrive within `timeout`.
    pub fn flush(&mut self, timeout: Duration) -> Result<(), LinkError> {
        let start = Instant::now();
        while self.session.outstanding() > 0 {
            self.progress(true)?;
            check_silence(start.elapsed(), timeout)?;
        }
        Ok(())
    }

    /// Acknowledges everything received, so that the other end need not wait. Dropping the link does the same.
    pub fn acknowledge(&mut self) {
        self.session.acknowledge_all();
        self.write_all();
    }

    /// Sends and receives whatever is possible now, without waiting.
    ///
    /// # Errors
    /// No rail left.
    pub fn poll(&mut self) -> Result<(), LinkError> {
        self.progress(false)
    }

    /// Chooses rails by `steering`, and only among `allowed`.
    ///
    /// # Errors
    /// Never for the rails of a session, although the type allows an error.
    pub fn steer(&mut self, steering: Steering, allowed: RailSet) -> Result<(), LinkError> {
        let now = self.now();
        Ok(self.session.steer(steering, allowed, now)?)
    }

    /// Takes a rail out of service. Its unacknowledged messages take the other rails.
    pub fn withdraw(&mut self, rail: RailId) {
        if let Some(path) = self.paths.get_mut(rail.index()) {
            *path = None;
        }
        self.absent.retain(|absent| absent.rail != rail);
        self.lose(rail, RailFault::Withdrawn);
    }

    /// Counters of messages, pieces and rails since the start of the session.
    pub fn counts(&self) -> SessionCounts {
        self.session.counts()
    }

    /// Lost rails with their faults.
    pub fn faults(&self) -> &[(RailId, RailFault)] {
        &self.faults
    }

    /// The protocol of the link.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The listener, for the next conversation.
    pub fn into_door(mut self) -> Option<Listener> {
        self.door.take()
    }

    fn new(
        session: Session,
        number: u64,
        door: Option<Listener>,
        waiting: LinkWaiting,
    ) -> RailLink {
        RailLink {
            session,
            number,
            wires: Vec::new(),
            door,
            waiting,
            start: Instant::now(),
            alone_since: None,
            paths: Vec::new(),
            absent: Vec::new(),
            unattended: 0,
            faults: Vec::new(),
        }
    }

    fn now(&self) -> Ticks {
        Ticks::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn attach(
        &mut self,
        rail: RailId,
        stream: TcpStream,
        cost: LogGp,
        opening: Opening,
    ) -> Result<(), RailsError> {
        let now = self.now();
        self.session.connected(rail, cost, opening, now)?;
        self.wires
            .resize_with(self.wires.len().max(rail.index() + 1), || None);
        self.wires[rail.index()] = Some(LinkWire {
            stream,
            full: false,
        });
        Ok(())
    }

    /// Accepts a connection of this session. Closes one of another session or with a number that leaves a gap. Returns a
    /// connection of the next conversation if no rail of this one is left.
    fn enter(&mut self, newcomer: Newcomer) -> Option<Newcomer> {
        let hello = newcomer.hello;
        if hello.session != self.number {
            let waits = !hello.returns && self.session.alive().is_empty();
            return waits.then_some(newcomer);
        }
        let opening = if hello.returns {
            Opening::Answered
        } else {
            Opening::New
        };
        if self
            .attach(hello.rail, newcomer.stream, hello.cost, opening)
            .is_ok()
        {
            self.session.began_with(hello.rail, newcomer.reader);
            self.alone_since = None;
            self.digest(hello.rail, 0);
        }
        None
    }

    fn progress(&mut self, waits: bool) -> Result<(), LinkError> {
        self.unattended = 0;
        let mut polling_since = None;
        loop {
            let moved = self.move_all()?;
            let now = self.now();
            for rail in self.session.attend(now) {
                self.lose(rail, RailFault::Silent);
            }
            self.write_all();
            if moved {
                return Ok(());
            }
            match self.waiting {
                _ if !waits => return Ok(()),
                LinkWaiting::Poll(long)
                    if polling_since.get_or_insert_with(Instant::now).elapsed() < long =>
                {
                    std::hint::spin_loop();
                }
                _ => {
                    self.sleep()?;
                    self.move_all()?;
                    return Ok(());
                }
            }
        }
    }

    /// Writes and reads on all connections. Returns `true` if anything arrived.
    fn move_all(&mut self) -> Result<bool, LinkError> {
        self.wires
            .iter_mut()
            .flatten()
            .for_each(|wire| wire.full = false);
        self.write_all();
        let mut any = false;
        for rail in self.session.alive() {
            any |= self.read(rail);
        }
        if let Some(mut door) = self.door.take() {
            // New rails are rare: look for them only when nothing else moves.
            if !any {
                let token = self.session.rule().token;
                let entered = door.entered(token).into_iter();
                door.keep(entered.filter_map(|one| self.enter(one)).collect());
            }
            self.door = Some(door);
        }
        self.bring_back()?;
        self.check_alone()?;
        Ok(any)
    }

    fn bring_back(&mut self) -> Result<(), LinkError> {
        let mut back = Vec::new();
        for absent in &mut self.absent {
            back.extend(
                absent
                    .connection()
                    .map(|stream| (absent.rail, absent.path.cost, stream)),
            );
        }
        for (rail, cost, stream) in back {
            self.absent.retain(|absent| absent.rail != rail);
            // The conversation may not have begun at the other end before its first answer.
            let opening = match self.session.has_heard() {
                true => Opening::Again,
                false => Opening::New,
            };
            self.introduce(rail, cost, stream, opening)?;
        }
        Ok(())
    }

    fn check_alone(&mut self) -> Result<(), LinkError> {
        if !self.session.alive().is_empty() || self.session.has_messages() {
            // A connection that closes again immediately does not count as a returned rail.
            self.alone_since
                .take_if(|since| since.elapsed() >= 2 * LINGER);
            return Ok(());
        }
        let since = *self.alone_since.get_or_insert_with(Instant::now);
        let door = self.door.as_ref();
        let may_come = door.map_or(!self.absent.is_empty(), |door| !door.has_waiting());
        if !may_come || since.elapsed() >= LINGER {
            Err(LinkError::Closed)
        } else {
            Ok(())
        }
    }

    fn write_all(&mut self) {
        for rail in self.session.alive() {
            self.write(rail);
        }
    }

    fn write(&mut self, rail: RailId) {
        while self.session.has_output(rail) {
            let Some(wire) = self.wires[rail.index()].as_mut().filter(|wire| !wire.full) else {
                return;
            };
            let mut slices = [IoSlice::new(&[]); AT_ONCE];
            let count = self.session.output(rail, &mut slices);
            match wire.stream.write_vectored(&slices[..count]) {
                Ok(bytes) => self.session.wrote(rail, bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_not_ready(&error) => wire.full = true,
                Err(_) => return self.lose(rail, RailFault::Closed),
            }
        }
    }

    /// Reads from a rail. Returns `true` if anything arrived.
    fn read(&mut self, rail: RailId) -> bool {
        let Some(wire) = self.wires[rail.index()].as_mut() else {
            return false;
        };
        let buffer = self.session.receive_buffer(rail);
        match wire.stream.read(buffer) {
            Ok(0) => self.lose(rail, RailFault::Closed),
            Ok(bytes) => {
                self.alone_since = None;
                return self.digest(rail, bytes);
            }
            Err(error) if is_not_ready(&error) || error.kind() == ErrorKind::Interrupted => {}
            Err(_) => self.lose(rail, RailFault::Closed),
        }
        false
    }

    fn digest(&mut self, rail: RailId, bytes: usize) -> bool {
        let now = self.now();
        if let Err(fault) = self.session.arrived(rail, bytes, now) {
            self.lose(rail, fault);
        }
        true
    }

    fn lose(&mut self, rail: RailId, fault: RailFault) {
        if self
            .wires
            .get_mut(rail.index())
            .and_then(Option::take)
            .is_some()
        {
            self.faults.push((rail, fault));
            let now = self.now();
            self.session.lost(rail, now);
            let path = self.paths.get(rail.index()).cloned().flatten();
            self.absent.extend(path.map(|path| Absent::new(rail, path)));
        }
    }

    /// Fails if nothing has arrived for `timeout` since `start` or since the last arrival, whichever is later.
    fn check_advance(&self, start: Ticks, timeout: Duration) -> Result<(), LinkError> {
        let last = start.later(self.session.advanced());
        let waited = self.now().since(last).time(());
        check_silence(Duration::from_secs_f64(waited.as_seconds()), timeout)
    }

    /// Sleeps until something arrives, a full socket buffer has drained, or a millisecond has passed.
    fn sleep(&mut self) -> Result<(), LinkError> {
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(MAX_RAILS);
        for (rail, wire) in (0..).zip(&self.wires) {
            let Some(wire) = wire else { continue };
            let writes = self.session.has_output(RailId(rail));
            let flags = if writes {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            polled.push(PollFd::from_borrowed_fd(wire.stream.as_fd(), flags));
        }
        let nap = Timespec {
            tv_sec: 0,
            tv_nsec: NAP.as_nanos() as i64,
        };
        match poll(&mut polled, Some(&nap)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed("wait for the rails".into(), error.into())),
        }
        Ok(())
    }
}

impl Drop for RailLink {
    fn drop(&mut self) {
        self.acknowledge();
    }
}

fn is_not_ready(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn check_silence(waited: Duration, timeout: Duration) -> Result<(), LinkError> {
    if waited < timeout {
        return Ok(());
    }
    let waited = Time::from_seconds(waited.as_secs_f64());
    Err(LinkError::Silent(waited))
}

fn failed(doing: String, source: io::Error) -> LinkError {
    LinkError::Io { doing, source }
}

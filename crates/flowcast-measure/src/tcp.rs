//! TCP transport: every message is sent immediately (no Nagle delay) and read completely.
//!
//! A receiver that sleeps must be woken, which costs its sender and the message several microseconds, but only if it has had
//! time to fall asleep. Overhead and latency then depend on earlier messages. A receiver that polls, like MPI libraries do,
//! shows the network alone, but needs a processor of its own. The caller chooses with [`Waiting`].

use std::{
    collections::VecDeque,
    hint,
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use flowcast_units::Time;

use crate::transport::{Transport, TransportError};

/// Time without a message after which the peer counts as dead.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which an end polls before it sleeps.
const POLL_FOR: Duration = Duration::from_micros(200);

/// Behaviour of an end while it waits for data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps until it is woken; suited to machines with busy processors.
    Sleep,
    /// Polls, and sleeps only if the wait becomes long.
    Poll,
}

/// Length of the secret with which a connection introduces itself, in bytes.
pub const TOKEN: usize = 16;

/// First bytes of an introduction.
const MAGIC: &[u8; 8] = b"FLOWPEER";
const INTRODUCTION: usize = MAGIC.len() + TOKEN;
/// Time limit for an introduction, after which the connection is closed.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(5);
/// Largest number of connections that have not introduced themselves, such as the ranks of a large program. Beyond it, the
/// oldest is closed.
const MOST_ARRIVING: usize = 256;

/// One end of a TCP connection.
#[derive(Debug)]
pub struct TcpTransport {
    stream: TcpStream,
    waiting: Waiting,
    start: Instant,
}

impl TcpTransport {
    /// Connects to `address`, such as `node7:7070`.
    ///
    /// # Errors
    /// The address cannot be resolved, or no process listens there.
    pub fn connect(address: &str, waiting: Waiting) -> Result<TcpTransport, TransportError> {
        let doing = format!("connect to {address}");
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        let candidates = address.to_socket_addrs();
        for candidate in candidates.map_err(|error| failed(doing.clone(), error))? {
            match TcpStream::connect_timeout(&candidate, TIMEOUT) {
                Ok(stream) => return TcpTransport::over(stream, waiting),
                Err(error) => last = error,
            }
        }
        Err(failed(doing, last))
    }

    /// Connects to a socket that requires an introduction ([`TcpEntry::admit`]).
    ///
    /// # Errors
    /// Same errors as [`TcpTransport::connect`].
    pub fn introduced(
        address: &str,
        token: &[u8; TOKEN],
        waiting: Waiting,
    ) -> Result<TcpTransport, TransportError> {
        let mut transport = TcpTransport::connect(address, waiting)?;
        transport.send(&introduction(token))?;
        Ok(transport)
    }

    /// Wraps an existing connection.
    ///
    /// # Errors
    /// The system refuses an option.
    pub fn over(stream: TcpStream, waiting: Waiting) -> Result<TcpTransport, TransportError> {
        let options = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(TIMEOUT)))
            .and_then(|()| stream.set_write_timeout(Some(TIMEOUT)))
            .and_then(|()| stream.set_nonblocking(waiting == Waiting::Poll));
        options.map_err(|source| failed("set up the connection".into(), source))?;
        Ok(TcpTransport {
            stream,
            waiting,
            start: Instant::now(),
        })
    }
}

/// Listening TCP socket that accepts one connection at a time.
#[derive(Debug)]
pub struct TcpEntry {
    listener: TcpListener,
}

impl TcpEntry {
    /// Listens at `address`; port 0 selects a free port.
    ///
    /// # Errors
    /// The address does not belong to this machine, or is in use.
    pub fn open(address: &str) -> Result<TcpEntry, TransportError> {
        let listener = TcpListener::bind(address)
            .map_err(|source| failed(format!("listen on {address}"), source))?;
        Ok(TcpEntry { listener })
    }

    /// Returns the address of the socket.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listener
            .local_addr()
            .map_err(|source| failed("get the listening address".into(), source))
    }

    /// Waits for the connection that shows this token. Other connections are closed, and silent ones do not delay it.
    ///
    /// # Errors
    /// The system refuses a call.
    pub fn admit(
        &self,
        token: &[u8; TOKEN],
        waiting: Waiting,
    ) -> Result<TcpTransport, TransportError> {
        let mut entrance = Entrance::new(&self.listener, *token)
            .map_err(|source| failed("accept a connection".into(), source))?;
        loop {
            if let Some(stream) = entrance.entered().into_iter().next() {
                return TcpTransport::over(stream, waiting);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for one connection.
    ///
    /// # Errors
    /// The system refuses a call.
    pub fn accept(&self, waiting: Waiting) -> Result<TcpTransport, TransportError> {
        let (stream, _) = self
            .listener
            .accept()
            .map_err(|source| failed("accept a connection".into(), source))?;
        TcpTransport::over(stream, waiting)
    }
}

/// Returns the first bytes of a connection.
fn introduction(token: &[u8; TOKEN]) -> [u8; INTRODUCTION] {
    let mut bytes = [0; INTRODUCTION];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[MAGIC.len()..].copy_from_slice(token);
    bytes
}

/// Shows the token at a connection to an [`Entrance`].
///
/// # Errors
/// The errors of the system.
pub fn introduce(mut stream: &TcpStream, token: &[u8; TOKEN]) -> io::Result<()> {
    stream.write_all(&introduction(token))
}

/// Filter for the connections of a listening socket, which admits those that show a token. Memory and open files are
/// bounded, for any number of connections.
pub struct Entrance<'a> {
    listener: &'a TcpListener,
    token: [u8; TOKEN],
    /// Connections that have not shown a token yet, the oldest first.
    arriving: VecDeque<Arriving>,
}

impl<'a> Entrance<'a> {
    /// Creates an entrance at a socket, which is non-blocking from now on.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn new(listener: &'a TcpListener, token: [u8; TOKEN]) -> io::Result<Entrance<'a>> {
        listener.set_nonblocking(true)?;
        Ok(Entrance {
            listener,
            token,
            arriving: VecDeque::new(),
        })
    }

    /// Returns the connections that have shown the token since the last call; they are non-blocking. Other connections are
    /// closed, and silent ones do not delay them.
    pub fn entered(&mut self) -> Vec<TcpStream> {
        // The limit ensures that no connection is closed before it has been examined.
        for _ in 0..MOST_ARRIVING {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // A stranger that has already left is not an error. If no more files can be opened, the oldest
                    // connection is closed to make room.
                    if error.kind() != ErrorKind::WouldBlock {
                        self.arriving.pop_front();
                    }
                    break;
                }
            };
            if stream.set_nonblocking(true).is_ok() {
                if self.arriving.len() == MOST_ARRIVING {
                    self.arriving.pop_front();
                }
                self.arriving.push_back(Arriving {
                    stream,
                    shown: Vec::new(),
                    since: Instant::now(),
                });
            }
        }
        let mut entered = Vec::new();
        for mut one in std::mem::take(&mut self.arriving) {
            match one.introduce(&self.token) {
                Some(true) => entered.push(one.stream),
                None if one.since.elapsed() < INTRODUCED_WITHIN => self.arriving.push_back(one),
                Some(false) | None => {}
            }
        }
        entered
    }
}

/// Connection that has not introduced itself.
struct Arriving {
    stream: TcpStream,
    shown: Vec<u8>,
    since: Instant,
}

impl Arriving {
    /// Returns `true` if the connection shows the token, and `None` if it has not sent enough yet.
    fn introduce(&mut self, token: &[u8; TOKEN]) -> Option<bool> {
        let mut bytes = [0; INTRODUCTION];
        match self.stream.read(&mut bytes[self.shown.len()..]) {
            Ok(0) => return Some(false),
            Ok(read) => self
                .shown
                .extend_from_slice(&bytes[self.shown.len()..][..read]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Some(false),
        }
        // A connection with other first bytes is closed immediately.
        let begins_so = self
            .shown
            .iter()
            .zip(MAGIC)
            .all(|(shown, own)| shown == own);
        if self.shown.len() < INTRODUCTION {
            return if begins_so { None } else { Some(false) };
        }
        // All bytes are compared, so the time does not reveal the position of a difference.
        let difference = token
            .iter()
            .zip(&self.shown[MAGIC.len()..])
            .fold(0, |all, (own, shown)| hint::black_box(all | (own ^ shown)));
        Some(begins_so && difference == 0)
    }
}

/// Returns both ends of a connection over loopback.
///
/// # Errors
/// The machine has no loopback or no free ports.
pub fn loopback_pair(waiting: Waiting) -> Result<(TcpTransport, TcpTransport), TransportError> {
    let door = TcpEntry::open(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).to_string())?;
    let client = TcpTransport::connect(&door.address()?.to_string(), waiting)?;
    Ok((client, door.accept(waiting)?))
}

impl Transport for TcpTransport {
    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as f64)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let mut sent = 0;
        while sent < message.len() {
            sent += self.transfer("send", |mut stream| stream.write(&message[sent..]))?;
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        let mut received = 0;
        while received < message.len() {
            received += self.transfer("receive", |mut stream| {
                stream.read(&mut message[received..])
            })?;
        }
        Ok(())
    }
}

impl TcpTransport {
    /// Repeats an attempt until it moves bytes.
    fn transfer(
        &self,
        doing: &str,
        mut attempt: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Result<usize, TransportError> {
        if self.waiting == Waiting::Poll {
            let mut waiting_since = None;
            while waiting_since.is_none_or(|since: Instant| since.elapsed() < POLL_FOR) {
                if let Some(bytes) = moved(attempt(&self.stream), doing)? {
                    return Ok(bytes);
                }
                waiting_since.get_or_insert_with(Instant::now);
                hint::spin_loop();
            }
        }
        self.sleep_until(doing, attempt)
    }

    fn sleep_until(
        &self,
        doing: &str,
        mut attempt: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Result<usize, TransportError> {
        let blocking = |blocking: bool| match self.waiting {
            Waiting::Sleep => Ok(()),
            Waiting::Poll => self.stream.set_nonblocking(!blocking).map_err(|error| {
                failed("change the blocking mode of the connection".into(), error)
            }),
        };
        blocking(true)?;
        let result = loop {
            match attempt(&self.stream) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        blocking(false)?;
        moved(result, doing)?
            .ok_or_else(|| TransportError::Silent(Time::from_seconds(TIMEOUT.as_secs_f64())))
    }
}

/// Returns the number of bytes moved, or `None` if the connection was not ready.
fn moved(result: io::Result<usize>, doing: &str) -> Result<Option<usize>, TransportError> {
    match result {
        Ok(0) => Err(TransportError::Closed),
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Err(TransportError::Closed),
            _ => Err(failed(doing.into(), error)),
        },
    }
}

fn failed(doing: String, source: io::Error) -> TransportError {
    TransportError::Io { doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cross_loopback_unchanged_and_in_order() {
        for waiting in [Waiting::Sleep, Waiting::Poll] {
            let (mut client, mut server) = loopback_pair(waiting).unwrap();
            client.send(b"first").unwrap();
            client.send(b"second").unwrap();
            let (mut first, mut second) = ([0; 5], [0; 6]);
            server.receive(&mut first).unwrap();
            server.receive(&mut second).unwrap();
            assert_eq!((&first, &second), (b"first", b"second"));
        }
    }

    #[test]
    fn unknown_and_silent_peers_are_not_admitted_and_do_not_block_others() {
        let door = TcpEntry::open("127.0.0.1:0").unwrap();
        let address = door.address().unwrap();
        let silent: Vec<TcpStream> = (0..80)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        std::thread::scope(|scope| {
            let admitted = scope.spawn(|| door.admit(&[7; TOKEN], Waiting::Sleep).unwrap());
            let _wrong =
                TcpTransport::introduced(&address.to_string(), &[8; TOKEN], Waiting::Sleep)
                    .unwrap();
            let mut right =
                TcpTransport::introduced(&address.to_string(), &[7; TOKEN], Waiting::Sleep)
                    .unwrap();
            right.send(b"hello").unwrap();
            let mut heard = [0; 5];
            admitted.join().unwrap().receive(&mut heard).unwrap();
            assert_eq!(&heard, b"hello");
        });
        drop(silent);
    }

    #[test]
    fn a_long_wait_of_a_polling_end_ends_with_the_message() {
        let (mut client, mut server) = loopback_pair(Waiting::Poll).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                client.compute(Time::from_nanos(4.0 * POLL_FOR.as_nanos() as f64));
                client.send(&[9; 100_000]).unwrap();
            });
            let mut message = vec![0; 100_000];
            server.receive(&mut message).unwrap();
            assert!(message.iter().all(|byte| *byte == 9));
        });
    }

    #[test]
    fn computing_lasts_for_the_requested_time() {
        let (mut client, _server) = loopback_pair(Waiting::Sleep).unwrap();
        let before = client.now();
        client.compute(Time::from_micros(300.0));
        assert!(client.now() - before >= Time::from_micros(300.0));
    }

    #[test]
    fn a_closed_connection_and_an_unused_port_are_errors() {
        let (mut client, server) = loopback_pair(Waiting::Sleep).unwrap();
        drop(server);
        assert!(matches!(
            client.receive(&mut [0; 1]),
            Err(TransportError::Closed)
        ));
        let unused = {
            let door = TcpEntry::open("127.0.0.1:0").unwrap();
            door.address().unwrap().to_string()
        };
        let error = TcpTransport::connect(&unused, Waiting::Sleep)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("cannot connect to {unused}")),
            "{error}"
        );
    }
}

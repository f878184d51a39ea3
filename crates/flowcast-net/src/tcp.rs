//! TCP: every message is written at once (no Nagle delay) and read in full.
//!
//! Both ends poll, as MPI libraries do. A receiver that sleeps has to be woken, which costs its sender and the message
//! several microseconds, and only when it has had time to fall asleep: overhead and latency would depend on what went
//! before.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use flowcast::units::Time;

use crate::transport::{Transport, TransportError};

/// A peer that says nothing for this long is taken for dead.
const PATIENCE: Duration = Duration::from_secs(30);
/// After this long without a byte a poll may pause: nothing is being measured, or it takes so long that a pause does
/// not show.
const POLL_CLOSELY: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_micros(100);

/// One end of a TCP connection.
#[derive(Debug)]
pub struct TcpTransport {
    stream: TcpStream,
    start: Instant,
}

impl TcpTransport {
    /// Connects to `address`, such as `node7:7070`.
    ///
    /// # Errors
    /// An address that cannot be resolved, or nobody listening there.
    pub fn connect(address: &str) -> Result<TcpTransport, TransportError> {
        let refused = |source| failed(format!("connect to {address}"), source);
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for candidate in address.to_socket_addrs().map_err(refused)? {
            match TcpStream::connect_timeout(&candidate, PATIENCE) {
                Ok(stream) => return TcpTransport::over(stream),
                Err(error) => last = error,
            }
        }
        Err(refused(last))
    }

    fn over(stream: TcpStream) -> Result<TcpTransport, TransportError> {
        let options = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        options.map_err(|source| failed("set up the connection".into(), source))?;
        Ok(TcpTransport { stream, start: Instant::now() })
    }
}

/// Waits for connections.
#[derive(Debug)]
pub struct TcpDoor {
    listener: TcpListener,
}

impl TcpDoor {
    /// Listens at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// An address that is not this machine's or is taken.
    pub fn open(address: &str) -> Result<TcpDoor, TransportError> {
        let listener = TcpListener::bind(address).map_err(|source| failed(format!("listen at {address}"), source))?;
        Ok(TcpDoor { listener })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system cannot tell.
    pub fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listener.local_addr().map_err(|source| failed("tell the listening address".into(), source))
    }

    /// Waits for one connection.
    ///
    /// # Errors
    /// The system refuses.
    pub fn accept(&self) -> Result<TcpTransport, TransportError> {
        let (stream, _) = self.listener.accept().map_err(|source| failed("accept a connection".into(), source))?;
        TcpTransport::over(stream)
    }
}

/// Both ends of a connection over loopback.
///
/// # Errors
/// A machine without loopback or free ports.
pub fn loopback_pair() -> Result<(TcpTransport, TcpTransport), TransportError> {
    let door = TcpDoor::open(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).to_string())?;
    let client = TcpTransport::connect(&door.address()?.to_string())?;
    Ok((client, door.accept()?))
}

impl Transport for TcpTransport {
    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as f64)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let mut sent = 0;
        while sent < message.len() {
            sent += polled("send", || self.stream.write(&message[sent..]))?;
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        let mut received = 0;
        while received < message.len() {
            received += polled("receive", || self.stream.read(&mut message[received..]))?;
        }
        Ok(())
    }
}

/// Repeats a transfer until it moves bytes.
fn polled(doing: &str, mut transfer: impl FnMut() -> io::Result<usize>) -> Result<usize, TransportError> {
    let mut waiting_since = None;
    loop {
        match transfer() {
            Ok(0) => return Err(TransportError::Closed),
            Ok(bytes) => return Ok(bytes),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let waited = waiting_since.get_or_insert_with(Instant::now).elapsed();
                wait(waited)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(doing, error)),
        }
    }
}

fn wait(waited: Duration) -> Result<(), TransportError> {
    if waited > PATIENCE {
        return Err(TransportError::Silent(Time::from_seconds(PATIENCE.as_secs_f64())));
    }
    if waited > POLL_CLOSELY {
        thread::sleep(PAUSE);
    } else {
        // Both ends may share one processor.
        thread::yield_now();
    }
    Ok(())
}

fn failed(doing: String, source: io::Error) -> TransportError {
    TransportError::Io { doing, source }
}

fn broken(doing: &str, error: io::Error) -> TransportError {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => TransportError::Closed,
        _ => failed(doing.into(), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cross_loopback_unchanged_and_in_order() {
        let (mut client, mut server) = loopback_pair().unwrap();
        client.send(b"first").unwrap();
        client.send(b"second").unwrap();
        let (mut first, mut second) = ([0; 5], [0; 6]);
        server.receive(&mut first).unwrap();
        server.receive(&mut second).unwrap();
        assert_eq!((&first, &second), (b"first", b"second"));
    }

    #[test]
    fn computing_lasts_as_long_as_asked() {
        let (mut client, _server) = loopback_pair().unwrap();
        let before = client.now();
        client.compute(Time::from_micros(300.0));
        assert!(client.now() - before >= Time::from_micros(300.0));
    }

    #[test]
    fn a_closed_connection_and_an_unused_port_are_errors() {
        let (mut client, server) = loopback_pair().unwrap();
        drop(server);
        assert!(matches!(client.receive(&mut [0; 1]), Err(TransportError::Closed)));
        let unused = {
            let door = TcpDoor::open("127.0.0.1:0").unwrap();
            door.address().unwrap().to_string()
        };
        let error = TcpTransport::connect(&unused).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot connect to {unused}")), "{error}");
    }
}

//! Entry of new rails, and the introduction by which a connection names its rail and its conversation.

use std::{
    collections::VecDeque,
    io::Read,
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use flowcast_network::loggp::LogGp;
use flowcast_scheduler::{MAX_RAILS, RailId};

use super::{LinkError, failed, is_not_ready};
use crate::{
    frame::{FrameHeader, FrameKind, FrameReader, HEADER},
    path::{listen, prepare},
    token::{TOKEN, Token},
};

const MAGIC: &[u8; 8] = b"FLOWRAI2";
/// Bit beside the rail number that marks a returning rail.
const RETURNS: u8 = 0x80;
const HELLO: usize = 8 + 8 + 1 + 32 + TOKEN;
/// Time within which a connection has to introduce itself. It is closed otherwise.
const INTRODUCED_WITHIN: Duration = Duration::from_secs(5);
/// Largest number of connections that may be about to introduce themselves. Beyond it the oldest is closed.
const MOST_ARRIVING: usize = 2 * MAX_RAILS;

/// Listening sockets at which an end accepts rails.
#[derive(Debug)]
pub struct Listener {
    listeners: Vec<TcpListener>,
    /// Connections that have not introduced themselves yet, oldest first.
    arriving: VecDeque<ArrivingStranger>,
    /// Rails of the next conversation that arrived before the end of the current one.
    waiting: Vec<Newcomer>,
}

/// A connection that has introduced itself.
#[derive(Debug)]
pub(super) struct Newcomer {
    pub stream: TcpStream,
    /// Reader of the connection; it may contain bytes that followed the introduction.
    pub reader: FrameReader,
    pub hello: Hello,
}

/// A connection that has not introduced itself.
#[derive(Debug)]
struct ArrivingStranger {
    stream: TcpStream,
    reader: FrameReader,
    since: Instant,
}

/// Introduction of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hello {
    pub session: u64,
    pub rail: RailId,
    /// `true` if the rail existed before and was lost: it belongs to a conversation that has begun.
    pub returns: bool,
    pub cost: LogGp,
    pub token: Token,
}

impl Listener {
    /// Listens at all of these addresses.
    ///
    /// # Errors
    /// An address does not belong to this machine or is in use.
    pub fn open(addresses: &[SocketAddr]) -> Result<Listener, LinkError> {
        Ok(Listener {
            listeners: addresses
                .iter()
                .map(|at| listen(*at).map_err(|error| failed(format!("listen on {at}"), error)))
                .collect::<Result<_, _>>()?,
            arriving: VecDeque::new(),
            waiting: Vec::new(),
        })
    }

    /// Addresses at which it listens.
    ///
    /// # Errors
    /// The system cannot report an address.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, LinkError> {
        self.listeners
            .iter()
            .map(|listener: &TcpListener| {
                listener
                    .local_addr()
                    .map_err(|error| failed("get the listening address".into(), error))
            })
            .collect()
    }

    /// Keeps rails of the next conversation until the next call of `entered`.
    pub(super) fn keep(&mut self, waiting: Vec<Newcomer>) {
        self.waiting = waiting;
    }

    /// Returns `true` if rails of the next conversation wait.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the connections that have introduced themselves with this token.
    pub(super) fn entered(&mut self, token: Token) -> Vec<Newcomer> {
        for listener in &self.listeners {
            // Accepts no more connections than there is room for, so that none is closed before it was examined.
            for _ in 0..MOST_ARRIVING {
                let Ok((stream, _)) = listener.accept() else {
                    break;
                };
                let Ok(stream) = prepare(stream) else {
                    continue;
                };
                if self.arriving.len() == MOST_ARRIVING {
                    self.arriving.pop_front();
                }
                self.arriving.push_back(ArrivingStranger {
                    stream,
                    reader: FrameReader::default(),
                    since: Instant::now(),
                });
            }
        }
        let mut entered = std::mem::take(&mut self.waiting);
        for mut arriving in std::mem::take(&mut self.arriving) {
            match introduced(&mut arriving.stream, &mut arriving.reader) {
                Ok(Some(hello)) if hello.token == token => {
                    let ArrivingStranger { stream, reader, .. } = arriving;
                    entered.push(Newcomer {
                        stream,
                        reader,
                        hello,
                    });
                }
                Ok(None) if arriving.since.elapsed() < INTRODUCED_WITHIN => {
                    self.arriving.push_back(arriving)
                }
                Ok(_) | Err(()) => {}
            }
        }
        entered
    }
}

/// Reads the introduction. An error means a foreign connection.
fn introduced(stream: &mut TcpStream, reader: &mut FrameReader) -> Result<Option<Hello>, ()> {
    match stream.read(reader.space(HEADER + HELLO)) {
        Ok(0) => return Err(()),
        Ok(bytes) => reader.filled(bytes),
        Err(error) if is_not_ready(&error) => return Ok(None),
        Err(_) => return Err(()),
    }
    match reader.next(HELLO, 0) {
        Ok(None) => Ok(None),
        Ok(Some((
            FrameHeader {
                kind: FrameKind::Hello,
                ..
            },
            text,
        ))) => Hello::read(text).map(Some).ok_or(()),
        _ => Err(()),
    }
}

impl Hello {
    pub(super) fn write(&self) -> Vec<u8> {
        let mut text = MAGIC.to_vec();
        text.extend_from_slice(&self.session.to_le_bytes());
        text.push(self.rail.0 | if self.returns { RETURNS } else { 0 });
        for number in self.cost.as_nanos() {
            text.extend_from_slice(&number.to_le_bytes());
        }
        text.extend_from_slice(self.token.bytes());
        text
    }

    fn read(text: &[u8]) -> Option<Hello> {
        let text: &[u8; HELLO] = text.try_into().ok()?;
        let mut nanos = [0.0; 4];
        for (own, bytes) in nanos.iter_mut().zip(text[17..].as_chunks().0) {
            *own = f64::from_le_bytes(*bytes);
            if !(own.is_finite() && *own >= 0.0) {
                return None;
            }
        }
        let cost = LogGp::from_nanos(nanos);
        let (rail, returns) = (RailId(text[16] & !RETURNS), text[16] & RETURNS != 0);
        let known = &text[..8] == MAGIC && rail.index() < MAX_RAILS;
        let token = Token::new(std::array::from_fn(|index| text[HELLO - TOKEN + index]));
        known.then_some(Hello {
            session: u64::from_le_bytes(*text[8..].first_chunk()?),
            rail,
            returns,
            cost,
            token,
        })
    }
}

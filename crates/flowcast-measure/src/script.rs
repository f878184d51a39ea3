//! Control messages between the two ends of a round-trip experiment.
//!
//! After a greeting, the measuring end sends scripts. A script is a list of exchanges, each with a number of messages and
//! their size. Both ends execute it without control messages between the exchanges. The answering end sends one byte when it
//! is ready for the script. An empty script ends the session.

use flowcast_units::Bytes;

use crate::{clocks, error::PrttError, transport::Transport};

/// Largest message for which the answering end provides memory.
pub const MAX_SIZE: Bytes = Bytes(1 << 26);
/// Largest number of messages before an answer.
pub const MAX_MESSAGES: u32 = 1 << 12;
/// Largest number of exchanges in a script.
const MAX_EXCHANGES: u32 = 1 << 16;

const GREETING: [u8; 16] = *b"flowcast-prtt/1\n";

/// Number of messages before the answer, and the size of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptExchange {
    pub messages: u32,
    pub size: Bytes,
}

/// Sends the greeting and expects the same one.
pub(crate) fn greet(transport: &mut impl Transport) -> Result<(), PrttError> {
    transport.send(&GREETING)?;
    expect_greeting(transport)
}

/// Request of the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guest {
    /// Round trips: the other end measures them and sends scripts.
    RoundTrips,
    /// Time: the other end requests it repeatedly.
    Clock,
}

/// Answers a greeting. A request for the time needs no answer.
pub(crate) fn answer_greeting(transport: &mut impl Transport) -> Result<Guest, PrttError> {
    match greeting(transport)? {
        GREETING => Ok(transport.send(&GREETING).map(|()| Guest::RoundTrips)?),
        clocks::GREETING => Ok(Guest::Clock),
        other => Err(stranger(&other)),
    }
}

/// Sends a script and waits until the other end is ready for it.
pub(crate) fn send_script(
    transport: &mut impl Transport,
    exchanges: &[ScriptExchange],
) -> Result<(), PrttError> {
    transport.send(&(exchanges.len() as u32).to_le_bytes())?;
    if exchanges.is_empty() {
        return Ok(());
    }
    let pairs = exchanges
        .iter()
        .flat_map(|exchange| [exchange.messages, exchange.size.0 as u32]);
    transport.send(&pairs.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
    Ok(transport.receive(&mut [0; 1])?)
}

/// Receives a script; an empty one ends the session.
pub(crate) fn receive_script(
    transport: &mut impl Transport,
) -> Result<Vec<ScriptExchange>, PrttError> {
    let mut count = [0; 4];
    transport.receive(&mut count)?;
    let count = within("exchanges", u32::from_le_bytes(count), 0..=MAX_EXCHANGES)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; count as usize * 8];
    transport.receive(&mut bytes)?;
    let (pairs, _) = bytes.as_chunks::<8>();
    let script = pairs.iter().map(read_exchange).collect::<Result<_, _>>()?;
    transport.send(&[1])?;
    Ok(script)
}

fn read_exchange(pair: &[u8; 8]) -> Result<ScriptExchange, PrttError> {
    let [a, b, c, d, e, f, g, h] = *pair;
    let messages = within(
        "messages",
        u32::from_le_bytes([a, b, c, d]),
        1..=MAX_MESSAGES,
    )?;
    let size = within(
        "bytes",
        u32::from_le_bytes([e, f, g, h]),
        1..=MAX_SIZE.0 as u32,
    )?;
    Ok(ScriptExchange {
        messages,
        size: Bytes(size.into()),
    })
}

fn within(
    what: &'static str,
    found: u32,
    allowed: std::ops::RangeInclusive<u32>,
) -> Result<u32, PrttError> {
    if allowed.contains(&found) {
        Ok(found)
    } else {
        Err(PrttError::Script {
            what,
            found,
            least: *allowed.start(),
            most: *allowed.end(),
        })
    }
}

fn expect_greeting(transport: &mut impl Transport) -> Result<(), PrttError> {
    let found = greeting(transport)?;
    if found == GREETING {
        Ok(())
    } else {
        Err(stranger(&found))
    }
}

fn greeting(transport: &mut impl Transport) -> Result<[u8; GREETING.len()], PrttError> {
    let mut found = [0; GREETING.len()];
    transport.receive(&mut found)?;
    Ok(found)
}

fn stranger(greeting: &[u8]) -> PrttError {
    PrttError::Stranger(greeting.escape_ascii().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_network::connect;
    use flowcast_network::loggp::LogGp;

    #[test]
    fn a_script_arrives_as_it_was_sent() {
        let (mut client, mut server) = connect(LogGp::default());
        let script = [
            ScriptExchange {
                messages: 16,
                size: Bytes(2049),
            },
            ScriptExchange {
                messages: 1,
                size: Bytes(1),
            },
        ];
        let received = std::thread::scope(|scope| {
            let received = scope.spawn(move || receive_script(&mut server));
            send_script(&mut client, &script).unwrap();
            received.join().unwrap().unwrap()
        });
        assert_eq!(received, script);
    }

    #[test]
    fn too_large_a_script_and_an_unknown_greeting_are_refused() {
        let (mut client, mut server) = connect(LogGp::default());
        client.send(&1u32.to_le_bytes()).unwrap();
        client.send(&[1, 0, 0, 0, 255, 255, 255, 255]).unwrap();
        let error = receive_script(&mut server).unwrap_err().to_string();
        assert_eq!(
            error,
            "the other end requested 4294967295 bytes, expected 1 to 67108864"
        );
        client.send(b"GET / HTTP/1.1\r\n").unwrap();
        assert!(matches!(
            answer_greeting(&mut server),
            Err(PrttError::Stranger(_))
        ));
    }
}

//! Orders and replies as lines of JSON, and the loop of a rank that follows them.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use super::{
    MpiError,
    carry::{CarriedMessage, MOST_FLOWS, MpiCarrier},
    library::{Mpi, ROOT},
};
use crate::wire::line_of;

/// Bytes of a host name in an exchange.
const HOST: usize = 256;

/// Order to rank 0: messages to carry between ranks.
///
/// ```
/// use flowcast_measure::mpi::{CarriedMessage, Order};
///
/// let order = Order::parse("[[0, 1, 4000000, 250]]").unwrap();
/// assert_eq!(order.0, [CarriedMessage { from: 0, to: 1, bytes: 4_000_000, start: 250 }]);
/// assert!(Order::parse("stop").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order(pub Vec<CarriedMessage>);

impl Order {
    /// Reads a line.
    ///
    /// # Errors
    /// The line is not a list of messages, or the list is too long.
    pub fn parse(line: &str) -> Result<Order, MpiError> {
        serde_json::from_str(line)
            .ok()
            .filter(|order: &Order| order.0.len() <= MOST_FLOWS)
            .ok_or_else(|| MpiError::Order(line.to_owned()))
    }
}

/// Reply of rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// Version of the library.
    Ready(String),
    /// Host of each rank.
    Hosts(Vec<String>),
    /// Start and end of each message, in ns since the common start.
    FlowTimes(Vec<(u64, u64)>),
}

/// Runs a rank until the input ends. Rank 0 follows the orders of `input`, and all other ranks follow rank 0.
///
/// # Errors
/// A missing MPI library, a failed call of MPI, an invalid order, or broken streams.
pub fn serve(host: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<(), MpiError> {
    let mpi = Mpi::start()?;
    let hosts = gather_hosts(&mpi, host)?;
    if mpi.rank == ROOT {
        say(output, &Reply::Ready(mpi.version.clone()))?;
        say(output, &Reply::Hosts(hosts))?;
    }
    let mut carrier = MpiCarrier::new(&mpi);
    while let Some(order) = next_order(&mpi, input)? {
        let times = carrier.carry(&order.0)?;
        if mpi.rank == ROOT {
            say(output, &Reply::FlowTimes(times))?;
        }
    }
    mpi.finish()
}

fn say(output: &mut dyn Write, reply: &Reply) -> io::Result<()> {
    output.write_all(line_of(reply).as_bytes())?;
    output.flush()
}

/// Collects the host of each rank at rank 0. Returns an empty list at the other ranks.
fn gather_hosts(mpi: &Mpi, host: &str) -> Result<Vec<String>, MpiError> {
    const TAG: i32 = MOST_FLOWS as i32 + 2;
    let own = &host.as_bytes()[..host.len().min(HOST)];
    if mpi.rank != ROOT {
        let mut name = [0; HOST];
        name[..own.len()].copy_from_slice(own);
        mpi.wait(mpi.isend(&name, ROOT, TAG)?, super::library::GENTLY)?;
        return Ok(Vec::new());
    }
    let mut hosts = vec![host.to_owned()];
    for rank in mpi.others() {
        let mut name = [0; HOST];
        mpi.wait(mpi.irecv(&mut name, rank, TAG)?, super::library::GENTLY)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(HOST);
        hosts.push(String::from_utf8_lossy(&name[..end]).into_owned());
    }
    Ok(hosts)
}

/// Returns the next line of rank 0's input on all ranks, or `None` at the end of the input. Rank 0 broadcasts the length and
/// then the bytes.
fn next_order(mpi: &Mpi, input: &mut dyn BufRead) -> Result<Option<Order>, MpiError> {
    let mut line = String::new();
    if mpi.rank == ROOT {
        input.read_line(&mut line)?;
    }
    let mut length = (line.len() as u64).to_le_bytes();
    mpi.broadcast(&mut length)?;
    let mut bytes = line.into_bytes();
    bytes.resize(u64::from_le_bytes(length) as usize, 0);
    if bytes.is_empty() {
        return Ok(None);
    }
    mpi.broadcast(&mut bytes)?;
    let order = Order::parse(String::from_utf8_lossy(&bytes).trim_end())?;
    let most = order
        .0
        .iter()
        .map(|message| message.from.max(message.to))
        .max()
        .unwrap_or(0);
    if most >= mpi.size {
        return Err(MpiError::Order(format!("rank {most} of {}", mpi.size)));
    }
    Ok(Some(order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_replies_read_back_equal() {
        let message = |from: u32, start: u64| CarriedMessage {
            from,
            to: from + 1,
            bytes: 4_000_000,
            start,
        };
        let order = Order(vec![message(1, 0), message(2, 50_000_000)]);
        assert_eq!(Order::parse(&line_of(&order)).unwrap(), order);
        let short = "[[1,2,4000000,0],[2,3,4000000,50000000]]";
        assert_eq!(Order::parse(short).unwrap(), order);
        for reply in [
            Reply::Ready("Open MPI v4".into()),
            Reply::Hosts(vec!["a".into(), "b".into()]),
            Reply::FlowTimes(vec![(0, 700_000_000), (5, 0)]),
        ] {
            assert_eq!(
                serde_json::from_str::<Reply>(&line_of(&reply)).unwrap(),
                reply
            );
        }
    }

    #[test]
    fn an_invalid_order_is_refused_with_the_expected_form() {
        for line in [
            "",
            "stop",
            "[1, 2, 3]",
            "[[1, 2, 3]]",
            "[[1, 2, \"x\", 4]]",
            "[[5000000000, 2, 3, 4]]",
        ] {
            let refused = Order::parse(line).unwrap_err().to_string();
            assert!(refused.contains("four numbers for each message"), "{line}");
        }
        assert!(serde_json::from_str::<Reply>("mpirun: hello").is_err());
    }
}

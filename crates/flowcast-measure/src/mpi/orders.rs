//! Orders and replies as lines of text, and the loop of a rank that follows them.

use std::fmt::{self, Write as _};
use std::io::{BufRead, Write};

use flowcast_model::cluster::flow::Flow;
use flowcast_units::{Bytes, Node, Time};

use super::MpiError;
use super::carry::{Carrier, MOST_FLOWS, Passage};
use super::library::{Mpi, ROOT};

/// Bytes of a host's name that are exchanged.
const HOST: usize = 256;

/// What rank 0 is asked to do: carry flows between ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Order(pub Vec<Flow>);

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("carry")?;
        self.0.iter().try_for_each(|flow| {
            let start = flow.start.as_nanos().round() as u64;
            write!(f, " {} {} {} {start}", flow.src, flow.dst, flow.size.0)
        })
    }
}

impl Order {
    /// Reads a line.
    ///
    /// # Errors
    /// Another word, or numbers that make no flows.
    pub fn parse(line: &str) -> Result<Order, MpiError> {
        let refused = || MpiError::Order(line.to_owned());
        let mut words = line.split_whitespace();
        let is_carry = words.next() == Some("carry");
        let numbers = words
            .map(str::parse)
            .collect::<Result<Vec<u64>, _>>()
            .map_err(|_| refused())?;
        let is_carry = is_carry && numbers.len().is_multiple_of(4);
        if !is_carry || numbers.len() / 4 > MOST_FLOWS {
            return Err(refused());
        }
        let rank = |number: u64| u32::try_from(number).map(Node).map_err(|_| refused());
        let flow = |(chunk, id): (&[u64], u32)| {
            let start = Time::from_nanos(chunk[3] as f64);
            Ok(Flow {
                id,
                src: rank(chunk[0])?,
                dst: rank(chunk[1])?,
                size: Bytes(chunk[2]),
                start,
            })
        };
        numbers
            .chunks(4)
            .zip(1..)
            .map(flow)
            .collect::<Result<_, _>>()
            .map(Order)
    }
}

/// What rank 0 answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The version of the library.
    Ready(String),
    /// The host of each rank.
    Hosts(Vec<String>),
    /// Start and end of each flow.
    Carried(Vec<Passage>),
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Ready(version) => write!(f, "ready {version}"),
            Reply::Hosts(hosts) => write!(f, "hosts {}", hosts.join(" ")),
            Reply::Carried(passages) => {
                let nanos = |time: &Time| time.as_nanos().round() as u64;
                let mut text = "carried".to_owned();
                for (start, end) in passages {
                    write!(text, " {} {}", nanos(start), nanos(end))?;
                }
                f.write_str(&text)
            }
        }
    }
}

impl Reply {
    /// Reads a line; `None` if it is no reply.
    pub fn parse(line: &str) -> Option<Reply> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" => Some(Reply::Ready(rest.to_owned())),
            "hosts" => Some(Reply::Hosts(
                rest.split_whitespace().map(str::to_owned).collect(),
            )),
            "carried" => {
                let numbers = rest
                    .split_whitespace()
                    .map(str::parse)
                    .collect::<Result<Vec<u64>, _>>()
                    .ok()?;
                let time = |nanos: u64| Time::from_nanos(nanos as f64);
                let pairs = numbers
                    .chunks_exact(2)
                    .map(|pair| (time(pair[0]), time(pair[1])));
                numbers
                    .len()
                    .is_multiple_of(2)
                    .then(|| Reply::Carried(pairs.collect()))
            }
            _ => None,
        }
    }
}

/// A rank: rank 0 follows the orders of `input`, the others follow rank 0, until the input ends.
///
/// # Errors
/// No MPI, a call of it that fails, an order that is none, or streams that break.
pub fn serve(host: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<(), MpiError> {
    let mpi = Mpi::start()?;
    let hosts = tell_hosts(&mpi, host)?;
    if mpi.rank == ROOT {
        writeln!(
            output,
            "{}\n{}",
            Reply::Ready(mpi.version.clone()),
            Reply::Hosts(hosts)
        )?;
        output.flush()?;
    }
    let mut carrier = Carrier::new(&mpi);
    while let Some(order) = next_order(&mpi, input)? {
        let passages = carrier.carry(&order.0)?;
        if mpi.rank == ROOT {
            writeln!(output, "{}", Reply::Carried(passages))?;
            output.flush()?;
        }
    }
    mpi.finish()
}

/// Each rank's host in turn, to all.
fn tell_hosts(mpi: &Mpi, host: &str) -> Result<Vec<String>, MpiError> {
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

/// The next line of rank 0's input, broadcast to all ranks: its length, then its bytes; no length at the end.
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
        .map(|flow| flow.src.0.max(flow.dst.0))
        .max()
        .unwrap_or(0);
    if most >= mpi.size {
        return Err(MpiError::Order(format!(
            "carry, rank {most} of {}",
            mpi.size
        )));
    }
    Ok(Some(order))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_replies_read_back_equal() {
        let flow = |id: u32, start: f64| Flow {
            id,
            src: Node(id),
            dst: Node(id + 1),
            size: Bytes(4_000_000),
            start: Time::from_nanos(start),
        };
        let order = Order(vec![flow(1, 0.0), flow(2, 5e7)]);
        assert_eq!(
            order.to_string(),
            "carry 1 2 4000000 0 2 3 4000000 50000000"
        );
        assert_eq!(Order::parse(&order.to_string()).unwrap(), order);
        let carried = Reply::Carried(vec![
            (Time::ZERO, Time::from_nanos(7e8)),
            (Time::from_nanos(5.0), Time::ZERO),
        ]);
        for reply in [
            Reply::Ready("Open MPI v4".into()),
            Reply::Hosts(vec!["a".into(), "b".into()]),
            carried,
        ] {
            assert_eq!(Reply::parse(&reply.to_string()), Some(reply));
        }
    }

    #[test]
    fn what_is_no_order_is_told() {
        for line in [
            "",
            "stop",
            "carry 1 2 3",
            "carry 1 2 x 4",
            "carry 5000000000 2 3 4",
        ] {
            assert!(
                Order::parse(line)
                    .unwrap_err()
                    .to_string()
                    .contains("four numbers for each flow"),
                "{line}"
            );
        }
        assert_eq!(Reply::parse("mpirun: hello"), None);
        assert_eq!(Reply::parse("carried 1 2 3"), None);
    }
}

//! Live rails on the command line, `NAME=ADDRESS:PORT,network=NET`, and the waiting of both ends.

use std::{
    io::ErrorKind,
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use flowcast::{
    model::loggp::LogGp,
    scheduler::{
        Rail,
        discipline::{Discipline, SchedulerName},
    },
    units::Time,
};
use flowcast_rails::{
    link::{LinkError, LinkWaiting, RailPath},
    path::SessionPath,
    policy::Steering,
    session::SessionRule,
    token::Token,
};

use flowcast_terminal::{exit::EnvironmentLacks, network_args};

/// A rail is given up after this time of silence if the other end answers on another rail.
const SILENCE: Time = Time::from_nanos(2e9);

/// A rail with its name and its path.
#[derive(Debug, Clone)]
pub(crate) struct LiveRail {
    /// Name in tables: the network's name, numbered if several rails have the same.
    pub name: String,
    /// LogGP parameters and addresses of the rail.
    pub path: RailPath,
}

/// Method by which an end waits for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitingKind {
    /// Sleep until a message arrives, for busy processors
    Sleep,
    /// Poll, for ends with a processor of their own
    Poll,
}

impl WaitingKind {
    /// Waiting method of the transport.
    pub(super) fn waiting(self) -> LinkWaiting {
        match self {
            WaitingKind::Sleep => LinkWaiting::Sleep,
            WaitingKind::Poll => LinkWaiting::Poll(Duration::from_micros(200)),
        }
    }
}

/// Settings that both ends share.
pub(super) fn session_rule(token: Token) -> SessionRule {
    SessionRule {
        window: 1024,
        longest: 1 << 24,
        acknowledge_within: Time::from_micros(1000.0),
        silence: SILENCE,
        steering: Steering::Fixed(SchedulerName::new(Discipline::EarliestDelivery)),
        token,
    }
}

/// Error of a broken link, which is an error of the environment.
pub(super) fn environment_error(error: LinkError) -> anyhow::Error {
    EnvironmentLacks(error.to_string()).into()
}

/// Parses an address such as `10.0.1.2:7400`.
pub(super) fn address(text: &str) -> Result<SocketAddr> {
    text.to_socket_addrs()
        .and_then(|mut found| found.next().ok_or(ErrorKind::NotFound.into()))
        .with_context(|| format!("found `{text}`, expected ADDRESS:PORT such as 10.0.1.2:7400"))
}

/// Parses `a=10.0.1.2:7400,from=10.0.1.1,device=eth1,network=a.toml`, with `loggp=g/G/o/Lus` as alternative to a network.
pub(super) fn live_rail(text: &str) -> Result<LiveRail> {
    let expected = || {
        anyhow!(
            "rail: found `{text}`, expected NAME=ADDRESS:PORT,network=NET, with loggp=g/G/o/Lus as an alternative to the \
             network, and optionally with from=ADDRESS and device=INTERFACE"
        )
    };
    let (name, rest) = text.split_once('=').ok_or_else(expected)?;
    let mut parts = rest.split(',');
    let mut path = SessionPath::to(address(parts.next().unwrap_or_default())?);
    let mut cost = None;
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(expected)?;
        match key {
            "from" => {
                path.from =
                    Some(value.parse().with_context(|| {
                        format!("from: found `{value}`, expected an IP address")
                    })?)
            }
            "device" => path.device = Some(value.to_owned()),
            "network" => cost = Some(LogGp::from(&network_args::load(value, &[])?.nic)),
            "loggp" => {
                cost = Some(Rail::parse(&format!("{name}={}", value.replace('/', ",")))?.cost)
            }
            _ => bail!("rail: found `{key}`, expected from, device, network or loggp"),
        }
    }
    let cost = cost.ok_or_else(expected)?;
    Ok(LiveRail {
        name: name.to_owned(),
        path: RailPath { cost, path },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_rail_has_a_path_and_parameters() {
        let rail =
            live_rail("b=127.0.0.2:7400,from=127.0.0.1,device=eth1,loggp=1.4/0.00103/1.4/2.82us")
                .unwrap();
        assert_eq!(
            (rail.name.as_str(), rail.path.path.device.as_deref()),
            ("b", Some("eth1"))
        );
        assert_eq!(rail.path.cost.gap, Time::from_micros(1.4));
        let rail = live_rail("a=127.0.0.1:7400,network=gige-tcp").unwrap();
        assert!(
            (rail.path.cost.latency - Time::from_micros(65.4))
                .as_nanos()
                .abs()
                < 1e-6
        );
    }

    #[test]
    fn a_rail_without_parameters_or_with_unknown_ones_is_refused() {
        for text in [
            "a",
            "a=127.0.0.1:7400",
            "a=127.0.0.1,network=gige-tcp",
            "a=127.0.0.1:1,colour=red",
        ] {
            assert!(live_rail(text).is_err(), "{text}");
        }
    }
}

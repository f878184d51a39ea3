//! `flowcast rails serve`: the answering end of `flowcast rails bench`.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use clap::Args;
use flowcast::units::Time;
use flowcast_rails::{
    exchange::{ExchangeError, answer},
    link::{Listener, RailLink},
};

use super::live::{WaitingKind, address, environment_error, session_rule};
use flowcast_terminal::{exit::EnvironmentLacks, println_out, say, token::TokenArgs};

/// Answer `flowcast rails bench` over several networks
///
/// Prints its addresses, one per line, then `token` and the token that `bench` must present. It answers one conversation
/// after the other. A rail is given up if it is silent for two seconds while the other end answers on another rail.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flowcast rails serve --listen 10.0.1.2:7400 --listen 10.0.2.2:7400"
)]
pub(crate) struct Serve {
    /// Address to listen on, one for each rail or one for all (repeatable); port 0 selects a free one
    #[arg(long = "listen", value_name = "ADDRESS:PORT", required = true, value_parser = address)]
    listen: Vec<SocketAddr>,
    /// Method by which this end waits for messages
    #[arg(long, value_enum, default_value_t = WaitingKind::Sleep)]
    waiting: WaitingKind,
    /// End after one conversation
    #[arg(long)]
    once: bool,
    /// End a conversation if nothing arrives for this time between two measurements
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = Time::parse)]
    time_limit: Time,
    #[command(flatten)]
    token: TokenArgs,
}

/// Longest time limit: a day, in seconds.
const MOST_IDLE: f64 = 86_400.0;

impl Serve {
    /// Answers until the process is ended.
    pub(crate) fn run(self) -> Result<()> {
        let mut door = Listener::open(&self.listen).map_err(environment_error)?;
        for address in door.addresses().map_err(environment_error)? {
            println_out!("{address}");
        }
        let token = self.token.given_or_new()?;
        println_out!("token {token}");
        let idle = Duration::from_secs_f64(self.time_limit.as_seconds().min(MOST_IDLE));
        loop {
            let mut link =
                RailLink::accept(door, session_rule(token), self.waiting.waiting(), None)
                    .map_err(environment_error)?;
            say!("flowcast: conversation started");
            let result = answer(&mut link, idle);
            for (rail, fault) in link.faults() {
                say!("flowcast: rail {rail}: {fault}");
            }
            match result {
                Ok(()) => say!("flowcast: conversation ended without errors"),
                Err(error) if self.once => return Err(exchange_error(error)),
                Err(error) => say!("flowcast: conversation ended: {error}"),
            }
            if self.once {
                return Ok(());
            }
            door = link.into_door().map_or_else(
                || Listener::open(&self.listen).map_err(environment_error),
                Ok,
            )?;
        }
    }
}

/// A failed link is an error of the environment; wrong content on it is not.
pub(super) fn exchange_error(error: ExchangeError) -> anyhow::Error {
    match error {
        ExchangeError::Link(_) | ExchangeError::Interrupted { .. } => {
            EnvironmentLacks(error.to_string()).into()
        }
        ExchangeError::Protocol { .. } => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_rails::link::LinkError;

    #[test]
    fn a_failed_link_is_an_environment_error_with_the_number_of_arrived_messages() {
        let interrupted = ExchangeError::Interrupted {
            source: LinkError::Closed,
            arrived: 652,
            messages: 1000,
        };
        let error = exchange_error(interrupted);
        assert!(error.is::<EnvironmentLacks>());
        assert_eq!(
            error.to_string(),
            "all rails are closed: 652 of 1000 messages had arrived"
        );
    }
}

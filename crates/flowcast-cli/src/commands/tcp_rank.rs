//! `flowcast tcp-rank`: a rank that carries patterns over TCP for another process of this program.

use std::net::{IpAddr, TcpStream};

use anyhow::{Context, Result, bail};
use clap::Args;
use flowcast_measure::lab::{Introduction, serve_host};

use flowcast_terminal::{
    exit::EnvironmentLacks,
    launcher::{Place, TIMEOUT, place_of_rank, retried},
    provenance,
    token::TokenArgs,
};

/// Carry patterns over TCP
///
/// Started by `measure conflicts --over tcp` under a launcher.
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:\n  mpirun -np 2 flowcast tcp-rank node0:40123"
)]
pub(crate) struct TcpRank {
    /// Host and port of the measuring process
    driver: String,
    /// Address in the network that messages use
    #[arg(long, value_name = "ADDR")]
    via: Option<IpAddr>,
    #[command(flatten)]
    token: TokenArgs,
}

impl TcpRank {
    /// Executes orders until there are no more.
    pub(crate) fn run(self) -> Result<()> {
        let Some(Place { rank, size }) = place_of_rank() else {
            bail!(EnvironmentLacks(
                "found no launcher, expected to run under mpirun or srun".into()
            ));
        };
        let expected =
            "found no token, expected FLOWCAST_TOKEN or --token FILE from the measuring process";
        let token = *self.token.given()?.context(expected)?.bytes();
        let host = provenance::host();
        let control = self.reach(&host)?;
        let own = Introduction {
            rank,
            size,
            host,
            via: self.via,
            token,
        };
        serve_host(&control, &own)
            .map_err(|error| EnvironmentLacks(format!("rank {rank}: {error}")).into())
    }

    fn reach(&self, host: &str) -> Result<TcpStream> {
        // A machine may be unable to resolve its own name.
        let driver = match self.driver.rsplit_once(':') {
            Some((name, port)) if name == host => format!("127.0.0.1:{port}"),
            _ => self.driver.clone(),
        };
        retried(TIMEOUT, || TcpStream::connect(&driver))
            .map_err(|error| EnvironmentLacks(format!("cannot reach {driver}: {error}")).into())
    }
}

//! Measurement over loopback: both ends are threads of this process with real sockets between them.

use std::{ops::ControlFlow, thread};

use flowcast_fit::{
    error::FitError,
    loggp::{FitOptions, LogGpFit, fit_loggp},
    samples::PrttSamples,
};
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{
    budget::{BudgetBatch, BudgetPlan, BudgetedRun, measure_budgeted},
    prtt::{PrttError, answer},
    tcp::{TcpTransport, Waiting, loopback_pair},
};

/// Largest number of messages of a short measurement. The next constant is the required precision of its intervals.
const MESSAGES: u32 = 50_000;
const PRECISION: f64 = 0.02;

/// Error of a measurement over loopback.
#[derive(Debug, Error)]
pub enum LoopbackError {
    /// The round trips could not be measured.
    #[error(transparent)]
    Measure(#[from] PrttError),
    /// The samples do not determine the parameters.
    #[error(transparent)]
    Fit(#[from] FitError),
}

/// Runs a measuring end over loopback, with the answering end in a thread of its own.
///
/// # Errors
/// The errors of the measuring end, or a machine without loopback.
pub fn with_loopback<R>(
    waiting: Waiting,
    measuring: impl FnOnce(&mut TcpTransport) -> Result<R, PrttError>,
) -> Result<R, PrttError> {
    let (mut client, mut server) = loopback_pair(waiting)?;
    thread::scope(|scope| {
        // An error here also shows as a closed connection at the measuring end.
        scope.spawn(move || answer(&mut server));
        let measured = measuring(&mut client);
        // The connection must be closed before the scope waits for the answering end, which would otherwise wait for the
        // next script.
        drop(client);
        measured
    })
}

/// Measures loopback briefly within a budget ([`crate::budget`]) and fits the parameters.
///
/// The ends poll for half of the time and sleep for the other half. The result is the mode with the lower time per byte:
/// polling if each end has a processor, sleeping if the ends share one or others need it.
///
/// # Errors
/// The errors of [`measure_budgeted`], or samples that do not determine the parameters in either mode.
pub fn measure_and_fit_loopback(
    max_time: Time,
    observe: &mut dyn FnMut(&BudgetBatch) -> ControlFlow<()>,
) -> Result<(BudgetedRun, LogGpFit), LoopbackError> {
    let plan = BudgetPlan {
        messages: MESSAGES,
        max_time: max_time * 0.5,
        precision: PRECISION,
        ..BudgetPlan::default()
    };
    let tried = [Waiting::Poll, Waiting::Sleep].map(
        |waiting| -> Result<(BudgetedRun, LogGpFit), LoopbackError> {
            let measured = with_loopback(waiting, |client| {
                measure_budgeted(client, &plan, PrttSamples::default(), observe)
            })?;
            let fit = fit_loggp(&measured.samples, &FitOptions::default())?;
            Ok((measured, fit))
        },
    );
    match tried {
        [Ok(polling), Ok(sleeping)] => {
            Ok(if way_of_a_byte(&polling.1) <= way_of_a_byte(&sleeping.1) {
                polling
            } else {
                sleeping
            })
        }
        [Ok(only), Err(_)] | [Err(_), Ok(only)] => Ok(only),
        [Err(_), Err(error)] => Err(error),
    }
}

fn way_of_a_byte(fit: &LogGpFit) -> Time {
    fit.parameters.one_way(Bytes(1))
}

//! A measurement over loopback: both ends are threads of this process with real sockets between them.

use std::{ops::ControlFlow, thread};

use flowcast_fit::{
    error::FitError,
    loggp::{FitOptions, LogGpFit, fit_loggp},
    samples::PrttSamples,
};
use flowcast_units::{Bytes, Time};
use thiserror::Error;

use crate::{
    budget::{BudgetBatch, BudgetPlan, Budgeted, measure_budgeted},
    prtt::{PrttError, answer},
    tcp::{TcpTransport, Waiting, loopback_pair},
};

/// What a short measurement may cost at most, in messages, and how narrow its intervals are to be.
const MESSAGES: u32 = 50_000;
const PRECISION: f64 = 0.02;

/// Why loopback has no parameters.
#[derive(Debug, Error)]
pub enum LoopbackError {
    /// The round trips could not be measured.
    #[error(transparent)]
    Measure(#[from] PrttError),
    /// The samples give no parameters.
    #[error(transparent)]
    Fit(#[from] FitError),
}

/// Runs a measuring end over loopback with the answering end in a thread of its own.
///
/// # Errors
/// Those of the measuring end, or a machine without loopback.
pub fn with_loopback<R>(
    waiting: Waiting,
    measuring: impl FnOnce(&mut TcpTransport) -> Result<R, PrttError>,
) -> Result<R, PrttError> {
    let (mut client, mut server) = loopback_pair(waiting)?;
    thread::scope(|scope| {
        // Its error, if any, is the closed connection that the measuring end sees too.
        scope.spawn(move || answer(&mut server));
        let measured = measuring(&mut client);
        // Closed before the scope waits for the answering end, which otherwise would wait for the next script.
        drop(client);
        measured
    })
}

/// A short measurement of loopback within a budget ([`crate::budget`]), and its fit.
///
/// Half of the time the ends poll, half of it they sleep, and the way that carries a byte faster is the one reported:
/// polling where each end has a processor, sleeping where they share one or others need it.
///
/// # Errors
/// As [`measure_budgeted`], or samples that give no parameters in either way.
pub fn measure_and_fit_loopback(
    max_time: Time,
    observe: &mut dyn FnMut(&BudgetBatch) -> ControlFlow<()>,
) -> Result<(Budgeted, LogGpFit), LoopbackError> {
    let plan = BudgetPlan {
        messages: MESSAGES,
        max_time: max_time * 0.5,
        precision: PRECISION,
        ..BudgetPlan::default()
    };
    let tried = [Waiting::Poll, Waiting::Sleep].map(
        |waiting| -> Result<(Budgeted, LogGpFit), LoopbackError> {
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

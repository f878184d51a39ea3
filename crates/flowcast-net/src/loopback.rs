//! The network that every machine has: both ends in this process, over real sockets.

use std::ops::ControlFlow;
use std::thread;

use flowcast::fit::loggp::{FitOptions, LogGpFit, fit_loggp};
use flowcast::fit::samples::PrttSamples;
use flowcast::fit::verdict::FitError;
use flowcast::units::{Bytes, Time};
use thiserror::Error;

use crate::prtt::{Measured, PrttError, PrttPlan, Round, answer, measure, stepped_sizes};
use crate::tcp::loopback_pair;

/// Why loopback has no parameters.
#[derive(Debug, Error)]
pub enum LoopbackError {
    /// Measuring failed.
    #[error(transparent)]
    Measure(#[from] PrttError),
    /// The samples give no parameters.
    #[error(transparent)]
    Fit(#[from] FitError),
}

/// Measures loopback with the answering end in a thread of its own.
///
/// # Errors
/// As [`measure`], or a machine without loopback.
pub fn measure_loopback(
    plan: &PrttPlan,
    previous: PrttSamples,
    observe: &mut dyn FnMut(&Round) -> ControlFlow<()>,
) -> Result<Measured, PrttError> {
    let (mut client, mut server) = loopback_pair()?;
    thread::scope(|scope| {
        // Its error, if any, is the closed connection that the measuring end sees too.
        scope.spawn(move || answer(&mut server));
        let measured = measure(&mut client, plan, previous, observe);
        // Closed before the scope waits for the answering end, which otherwise would wait for the next script.
        drop(client);
        measured
    })
}

/// A short measurement of loopback and its fit: fewer sizes than the full plan, over within `max_time` and a round.
///
/// # Errors
/// As [`measure_loopback`], or samples that give no parameters.
pub fn measure_and_fit_loopback(
    max_time: Time,
    observe: &mut dyn FnMut(&Round) -> ControlFlow<()>,
) -> Result<(Measured, LogGpFit), LoopbackError> {
    let plan = PrttPlan { sizes: stepped_sizes(Bytes(1 << 16), Bytes(4096)), max_time, ..PrttPlan::default() };
    let measured = measure_loopback(&plan, PrttSamples::default(), observe)?;
    let fit = fit_loggp(&measured.samples, &FitOptions::default())?;
    Ok((measured, fit))
}

//! Work in the background of Python: without its lock, and abandoned after an interrupt.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use anyhow::Result;
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::errors::raised;

/// Interval between checks for signals.
const EVERY: Duration = Duration::from_millis(20);

/// Runs work on another thread while this one waits without the lock. After an interrupt the exception is raised
/// immediately; the thread runs to its end, and its result is dropped.
pub(crate) fn run_in_background<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    thread::spawn(move || {
        // After an interrupt, the caller no longer waits.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    loop {
        let waited;
        (waited, receiver) = py.detach(move || (receiver.recv_timeout(EVERY), receiver));
        match waited {
            Ok(Ok(result)) => return result.map_err(|error| raised(py, &error)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "internal error of flowcast: please report the output above",
                ));
            }
        }
    }
}

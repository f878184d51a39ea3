//! Sets that are replayed by the workers of a Dask cluster. The Python package distributes them and returns their lines.
//!
//! The child gets the job as a line of JSON and the compiled trace. It ends when its standard input closes, at the latest
//! when this process ends.

use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    process::{Child, Command, Stdio},
    str::FromStr,
};

use anyhow::{Context, Result, anyhow, bail};
use flowcast::{
    study::Lines,
    trace::{Trace, compiled},
};
use serde_json::{Value, json};

use flowcast_terminal::exit::EnvironmentLacks;

/// Python interpreter that has the package.
const PYTHON: &str = "python3";
/// Number of lines that are passed on together.
const AT_ONCE: usize = 64;

/// `dask:ADDRESS`, the address of a scheduler.
#[derive(Debug, Clone)]
pub(super) struct Executor {
    address: String,
}

impl FromStr for Executor {
    type Err = String;

    fn from_str(text: &str) -> Result<Executor, String> {
        match text.split_once(':') {
            Some(("dask", address)) if !address.is_empty() => Ok(Executor { address: address.to_owned() }),
            _ => Err("expected dask:ADDRESS with the address of a scheduler, such as dask:tcp://node1:8786".into()),
        }
    }
}

impl Executor {
    /// Refuses to start without the package and Dask.
    pub(super) fn look_for_package(&self) -> Result<()> {
        let mut python = Command::new(PYTHON);
        python
            .args(["-c", "import flowcast_hpc, distributed"])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        if python.status().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        bail!(
            "--executor dask:{}: found no {PYTHON} with the packages flowcast and distributed, expected them here and at \
             the workers: {PYTHON} -m pip install ./python distributed, in a checkout of this version",
            self.address
        )
    }

    /// Replays the ascending sets of the study that `job` describes. `done` gets the lines of several sets at a time.
    pub(super) fn run(
        &self,
        trace: &Trace,
        sets: &[usize],
        mut job: Value,
        mut done: impl FnMut(Lines) -> Result<()>,
    ) -> Result<()> {
        if sets.is_empty() {
            return Ok(());
        }
        let mut content = Vec::new();
        compiled::write(trace, &mut content)?;
        job["address"] = self.address.as_str().into();
        job["flowcast"] = env!("CARGO_PKG_VERSION").into();
        job["trace_bytes"] = content.len().into();
        job["ranges"] = ranges(sets).into();
        let mut worker = Worker::start()?;
        worker.send_job(&job, &content)?;
        let mut lines = Lines::new();
        let mut expected = sets.iter();
        for line in worker.lines()? {
            let line = line?;
            if let Some(fault) = line.strip_prefix('!') {
                return Err(self.fault(fault));
            }
            let set = expected.next().context("found more lines than sets")?;
            lines.push((*set, line + "\n"));
            if lines.len() == AT_ONCE {
                done(std::mem::take(&mut lines))?;
            }
        }
        done(lines)?;
        match expected.len() {
            0 => Ok(()),
            missing => Err(self.fault(&format!(
                "3 {PYTHON} ended before {missing} of {} sets were done",
                sets.len()
            ))),
        }
    }

    /// Converts a line `CODE MESSAGE` of the package to an error.
    fn fault(&self, text: &str) -> anyhow::Error {
        let (code, message) = text.split_once(' ').unwrap_or(("", text));
        let said = format!("--executor dask:{}: {message}", self.address);
        match code {
            "2" => anyhow!(said),
            _ => EnvironmentLacks(said).into(),
        }
    }
}

/// Ranges of consecutive sets: the first set of each range, and the set after its last.
fn ranges(sets: &[usize]) -> Vec<[usize; 2]> {
    sets.chunk_by(|one, next| one + 1 == *next)
        .map(|row| [row[0], row[0] + row.len()])
        .collect()
}

/// Child process, which does not outlive its owner.
struct Worker(Child);

impl Worker {
    fn start() -> Result<Worker> {
        let mut python = Command::new(PYTHON);
        python
            .args(["-m", "flowcast_hpc._remote"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        Ok(Worker(
            python
                .spawn()
                .with_context(|| format!("cannot run {PYTHON}"))?,
        ))
    }

    fn send_job(&mut self, job: &Value, content: &[u8]) -> Result<()> {
        let input = self
            .0
            .stdin
            .as_mut()
            .context("the child has a standard input")?;
        let told = writeln!(input, "{job}")
            .and_then(|()| input.write_all(content))
            .and_then(|()| input.flush());
        match told {
            // A child that has ended gives the reason in its lines.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn lines(&mut self) -> Result<impl Iterator<Item = std::io::Result<String>> + use<>> {
        let output = self
            .0
            .stdout
            .take()
            .context("the child has a standard output")?;
        Ok(BufReader::new(output).lines())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The child may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Parameters of a study and its replay options, for the package.
pub(super) fn job(
    sweep: &super::Sweep,
    trace: &str,
    study: &flowcast::study::Study,
) -> Result<Value> {
    let options = study.options();
    let mappings: Vec<Value> = options
        .iter()
        .enumerate()
        .map(|(at, one)| json!([sweep.mapping.get(at), one.mapping]))
        .collect();
    Ok(json!({
        "trace": trace,
        "networks": study.networks().iter().map(|network| network.to_toml()).collect::<Vec<_>>(),
        "grid": sweep.grid,
        "mappings": mappings,
        "model": sweep.model,
        "rendezvous_from": sweep.rendezvous_from.map(|size| size.to_string()),
        "collectives": sweep.collectives.as_deref().map(absolute).transpose()?,
        "level": sweep.level,
        "json": sweep.json,
    }))
}

/// Value of the collectives option with an absolute path, because workers run elsewhere.
fn absolute(how: &str) -> Result<String> {
    let Some(file) = how.strip_prefix("algorithm:") else {
        return Ok(how.to_owned());
    };
    let path = std::fs::canonicalize(file).with_context(|| file.to_owned())?;
    Ok(format!("algorithm:{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executor_has_a_kind_and_an_address() {
        assert_eq!(
            "dask:tcp://node1:8786".parse::<Executor>().unwrap().address,
            "tcp://node1:8786"
        );
        for text in ["dask", "dask:", "ray:node1", ""] {
            assert!(
                text.parse::<Executor>()
                    .unwrap_err()
                    .contains("dask:ADDRESS"),
                "{text}"
            );
        }
    }

    #[test]
    fn finished_sets_divide_the_remaining_ones() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [[0, 3], [5, 6], [7, 9]]);
        assert!(ranges(&[]).is_empty());
    }
}

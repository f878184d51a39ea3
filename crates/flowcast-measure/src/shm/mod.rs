//! Shared memory: two processes of one machine, each on a core of its own, exchange bytes through two rings in memory that
//! both map. The measurement covers the path of a message within a node: one copy in, one copy out, and the transfer of
//! cache lines between the cores.
//!
//! Both ends poll, like MPI libraries within a node. On a machine with busy processors, an end that waits for long yields
//! its processor.

pub mod one_way;
#[expect(unsafe_code, reason = "bytes that another process writes")]
mod ring;

use std::{
    fs,
    fs::{File, OpenOptions},
    hint, io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use flowcast_units::Time;
use memmap2::{MmapOptions, MmapRaw};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::transport::{Transport, TransportError};
use ring::{LENGTH, Ring};

/// Time without a message after which the peer counts as dead.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which an end polls before it yields between two polls.
const POLL_FOR: Duration = Duration::from_micros(500);
/// Number of polls between two readings of the clock.
const LOOKS: u32 = 256;

/// One end of two rings in memory that two processes share, one ring for each direction.
#[derive(Debug)]
pub struct ShmTransport {
    outgoing: Ring,
    incoming: Ring,
    start: Instant,
    /// Memory that contains the rings.
    _memory: MmapRaw,
}

/// Memory that the other end can open while this value exists.
#[derive(Debug)]
pub struct SharedMemory(File);

impl SharedMemory {
    /// Allocates memory for both directions, without a name in any file system.
    ///
    /// # Errors
    /// The system refuses the memory.
    pub fn new() -> Result<SharedMemory, TransportError> {
        let file = memfd_create("flowcast-measure", MemfdFlags::CLOEXEC)
            .map(File::from)
            .map_err(io::Error::from);
        let file = file.and_then(|file| file.set_len(2 * LENGTH as u64).map(|()| file));
        Ok(SharedMemory(
            file.map_err(|error| failed("create shared memory", error))?,
        ))
    }

    /// Returns the path under which another process of this user can open the memory.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }

    /// Returns the measuring end.
    ///
    /// # Errors
    /// The memory cannot be mapped, or the measuring end is already in use.
    pub fn measuring_end(&self) -> Result<ShmTransport, TransportError> {
        ShmTransport::over(&self.0, [0, LENGTH])
    }
}

impl ShmTransport {
    /// Opens the answering end of another process's memory ([`SharedMemory::path`]).
    ///
    /// # Errors
    /// The memory does not exist, or the answering end is already in use.
    pub fn answering_end(path: &Path) -> Result<ShmTransport, TransportError> {
        let doing = format!("open {}", path.display());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| failed(&doing, error))?;
        let length = file
            .metadata()
            .map_err(|error| failed(&doing, error))?
            .len();
        if length != 2 * LENGTH as u64 {
            let problem = format!("found {length} bytes, expected {}", 2 * LENGTH);
            return Err(failed(&doing, io::Error::other(problem)));
        }
        ShmTransport::over(&file, [LENGTH, 0])
    }

    fn over(file: &File, [outgoing, incoming]: [usize; 2]) -> Result<ShmTransport, TransportError> {
        let memory = MmapOptions::new()
            .len(2 * LENGTH)
            .map_raw(file)
            .map_err(|error| failed("map memory", error))?;
        #[expect(unsafe_code, reason = "the rings are made of the mapping")]
        // SAFETY: a mapping begins at a page, and the rings are whole pages long. The mapping lives as long as the rings.
        // Each ring has one writer, which claims it below before it writes, and therefore one reader: the end that writes to
        // the other ring.
        let [outgoing, incoming] =
            unsafe { [outgoing, incoming].map(|at| Ring::new(memory.as_mut_ptr().add(at))) };
        if !outgoing.claim() {
            return Err(failed(
                "attach to an end of shared memory",
                io::Error::other("another transport uses this end"),
            ));
        }
        Ok(ShmTransport {
            outgoing,
            incoming,
            start: Instant::now(),
            _memory: memory,
        })
    }

    /// Moves bytes until all `total` bytes are moved; `step` returns how many more it moved.
    fn until_done(
        &self,
        total: usize,
        mut step: impl FnMut(usize) -> usize,
    ) -> Result<(), TransportError> {
        let (mut done, mut looks, mut since) = (0, 0u32, None::<Instant>);
        while done < total {
            let moved = step(done);
            done += moved;
            if moved > 0 {
                (looks, since) = (0, None);
                continue;
            }
            looks += 1;
            hint::spin_loop();
            if looks % LOOKS == 0 {
                let waited = since.get_or_insert_with(Instant::now).elapsed();
                // Data that the other end wrote before it left are still available.
                self.check(waited).or_else(|error| {
                    done += step(done);
                    if done < total { Err(error) } else { Ok(()) }
                })?;
            }
        }
        Ok(())
    }

    /// Yields the processor after a while. Fails if the peer is gone or silent.
    fn check(&self, waited: Duration) -> Result<(), TransportError> {
        if self.incoming.is_closed() || self.outgoing.is_closed() {
            return Err(TransportError::Closed);
        }
        if waited > TIMEOUT {
            return Err(TransportError::Silent(Time::from_seconds(
                waited.as_secs_f64(),
            )));
        }
        if waited > POLL_FOR {
            thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        self.outgoing.close();
        self.incoming.close();
    }
}

impl Transport for ShmTransport {
    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as f64)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let outgoing = self.outgoing;
        self.until_done(message.len(), |done| outgoing.write(&message[done..]))
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        let incoming = self.incoming;
        self.until_done(message.len(), |done| incoming.read(&mut message[done..]))
    }
}

/// Two cores, with a description of their distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cores {
    /// Core of the measuring end, by the kernel's number.
    pub measuring: usize,
    /// Core of the answering end, by the kernel's number.
    pub answering: usize,
}

impl Cores {
    /// Chooses two cores that this process may use, on different physical cores if possible.
    ///
    /// # Errors
    /// The process may use only one core, or the system does not list them.
    pub fn choose() -> Result<Cores, TransportError> {
        let mut all = usable_cores()?.into_iter();
        let measuring = all.next().unwrap_or(0);
        let others: Vec<usize> = all.collect();
        let apart = others.iter().find(|cpu| place(**cpu) != place(measuring));
        let found = apart.or(others.first()).copied();
        let answering = found.ok_or_else(|| {
            failed(
                "measure between two cores",
                io::Error::other("this process may use only one core"),
            )
        })?;
        Ok(Cores {
            measuring,
            answering,
        })
    }

    /// Returns the relation of the cores, such as `two cores of one package`; `two cores` if the system does not report it.
    pub fn distance(self) -> &'static str {
        match (place(self.measuring), place(self.answering)) {
            (Some(one), Some(other)) if one == other => "two threads of one core",
            (Some((one, _)), Some((other, _))) if one == other => "two cores of one package",
            (Some(_), Some(_)) => "cores of two packages",
            _ => "two cores",
        }
    }
}

/// Returns the cores that this process may use, in ascending order.
///
/// # Errors
/// The system does not list them.
pub fn usable_cores() -> Result<Vec<usize>, TransportError> {
    let allowed = sched_getaffinity(None)
        .map_err(|error| failed("read the list of usable cores", error.into()))?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect())
}

/// Unit that a group of cores shares, according to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreUnit {
    /// Package, also called socket.
    Package,
    /// Third-level cache, the system's `cache/index3`.
    Cache,
}

/// Returns a name of the unit that a core belongs to, which is equal for all cores of the unit. Returns `None` if the system
/// does not report it.
pub fn unit_of(core: usize, unit: CoreUnit) -> Option<String> {
    let file = match unit {
        CoreUnit::Package => "topology/physical_package_id",
        CoreUnit::Cache => "cache/index3/shared_cpu_list",
    };
    Some(
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{core}/{file}"))
            .ok()?
            .trim()
            .to_owned(),
    )
}

/// Binds this process to a core.
///
/// # Errors
/// The process may not use this core.
pub fn pin(core: usize) -> Result<(), TransportError> {
    let doing = format!("run on core {core}");
    if core >= CpuSet::MAX_CPU {
        return Err(failed(&doing, io::Error::other("there is no such core")));
    }
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).map_err(|error| failed(&doing, error.into()))
}

/// Returns the package and the core of a processor.
fn place(cpu: usize) -> Option<(u32, u32)> {
    let [package, core] = ["physical_package_id", "core_id"].map(|name| {
        let text =
            fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()?;
        text.trim().parse().ok()
    });
    Some((package?, core?))
}

fn failed(doing: &str, source: io::Error) -> TransportError {
    TransportError::Io {
        doing: doing.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prtt::{PrttPlan, answer, measure};
    use flowcast_fit::samples::PrttSamples;
    use flowcast_units::Bytes;
    use std::ops::ControlFlow;

    fn pair() -> (ShmTransport, ShmTransport) {
        let memory = SharedMemory::new().unwrap();
        (
            memory.measuring_end().unwrap(),
            ShmTransport::answering_end(&memory.path()).unwrap(),
        )
    }

    #[test]
    fn messages_larger_than_the_ring_arrive_whole_in_both_directions() {
        let (mut one, mut other) = pair();
        let long: Vec<u8> = (0..3 * LENGTH).map(|at| (at % 253) as u8).collect();
        let expected = long.clone();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut found = vec![0; expected.len()];
                other.receive(&mut found).unwrap();
                assert!(found == expected);
                other.send(&found).unwrap();
            });
            one.send(&long).unwrap();
            let mut back = vec![0; long.len()];
            one.receive(&mut back).unwrap();
            assert!(back == long);
        });
    }

    #[test]
    fn bytes_sent_before_an_end_closed_are_received_before_the_error() {
        let (mut one, mut other) = pair();
        other.send(&[1, 2, 3]).unwrap();
        drop(other);
        let mut found = [0; 3];
        one.receive(&mut found).unwrap();
        assert_eq!(found, [1, 2, 3]);
        assert!(matches!(
            one.receive(&mut found),
            Err(TransportError::Closed)
        ));
    }

    #[test]
    fn round_trips_are_measured() {
        let (mut client, mut server) = pair();
        let plan = PrttPlan {
            sizes: vec![Bytes(1), Bytes(4096), Bytes(65_536)],
            max_time: Time::from_seconds(0.5),
            ..PrttPlan::default()
        };
        let measured = thread::scope(|scope| {
            scope.spawn(move || answer(&mut server));
            let measured = measure(
                &mut client,
                &plan,
                PrttSamples::default(),
                &mut |_: &crate::prtt::Round<'_>| ControlFlow::Continue(()),
            );
            drop(client);
            measured.unwrap()
        });
        assert!(measured.samples.points().count() >= 7);
    }

    #[test]
    fn an_end_accepts_only_one_transport() {
        let memory = SharedMemory::new().unwrap();
        let _end = memory.measuring_end().unwrap();
        assert!(
            memory
                .measuring_end()
                .unwrap_err()
                .to_string()
                .contains("another transport uses this end")
        );
    }

    #[test]
    fn memory_of_another_size_and_missing_cores_are_refused() {
        let refused = ShmTransport::answering_end(Path::new("/dev/null"))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("found 0 bytes, expected"), "{refused}");
        assert!(
            pin(usize::MAX)
                .unwrap_err()
                .to_string()
                .contains("run on core")
        );
    }
}

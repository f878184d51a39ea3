//! Process that runs the link emulators of a lab.

use std::{
    collections::VecDeque,
    convert::Infallible,
    hint, io,
    num::NonZeroU64,
    time::{Duration, Instant, SystemTime},
};

use flowcast_units::{Bytes, Time};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    thread::set_current_timer_slack,
};

use super::{
    queue::{Fate, VirtualQueue},
    socket::{ReceiveBuffers, Received, StampedSocket},
};
use crate::lab::{error::LabError, spec::LabSpec};

/// Size of a frame's header with the tag of a virtual network, in bytes.
const HEADER: u64 = 18;
/// Largest plausible age of a timestamp. An older timestamp was made before the system's clock was set.
const OLDEST: Duration = Duration::from_millis(100);

/// Runs a lab's link emulators in the network namespace of its switch until the process is killed. Calls `ready` once all
/// sockets receive.
///
/// # Errors
/// An interface is missing, or the system refuses packet sockets.
pub fn serve_cables(spec: &LabSpec, ready: impl FnOnce()) -> Result<Infallible, LabError> {
    forward(spec, ready).map_err(|source| LabError::System {
        what: "forwarding the frames of a cable",
        source,
    })
}

fn forward(spec: &LabSpec, ready: impl FnOnce()) -> io::Result<Infallible> {
    let mut cables = Cables::open(spec)?;
    // Without this setting, waking up takes another 50 us. If the system refuses it, polling must cover that time.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    if cables.spin == Time::ZERO {
        precede_ranks();
    }
    ready();
    loop {
        cables.step()?;
    }
}

/// Gives this process a real-time priority, if the system allows it. Waiting ranks poll, and each takes its turn before a
/// process of equal priority delivers a frame.
#[expect(unsafe_code, reason = "no safe function sets the priority")]
fn precede_ranks() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest) };
}

struct Cables {
    start: Instant,
    spin: Time,
    batch: ReceiveBuffers,
    ports: Vec<StampedSocket>,
    /// The direction with index k carries frames from port k to the port beside it: k with its last bit flipped.
    directions: Vec<ServeDirection>,
}

struct ServeDirection {
    queue: VirtualQueue,
    due: VecDeque<(Time, Vec<u8>)>,
}

impl Cables {
    fn open(spec: &LabSpec) -> io::Result<Cables> {
        let spin = spec.cable.as_ref().map_or(Time::ZERO, |cable| cable.spin);
        let (mut ports, mut directions) = (Vec::new(), Vec::new());
        for (names, both) in spec.carried() {
            for (name, direction) in names.iter().zip(both) {
                ports.push(StampedSocket::on_interface(name)?);
                directions.push(ServeDirection {
                    queue: VirtualQueue::new(direction),
                    due: VecDeque::new(),
                });
            }
        }
        let batch = ReceiveBuffers::new((spec.nic.mtu.0 + HEADER) as usize);
        Ok(Cables {
            start: Instant::now(),
            spin,
            batch,
            ports,
            directions,
        })
    }

    fn step(&mut self) -> io::Result<()> {
        for port in 0..self.ports.len() {
            self.take_in(port)?;
        }
        self.give_out();
        self.wait()
    }

    fn take_in(&mut self, port: usize) -> io::Result<()> {
        loop {
            let received = self.ports[port].receive(&mut self.batch)?;
            if received.is_empty() {
                return Ok(());
            }
            let (now, system_now) = (self.now(), SystemTime::now());
            for frame in received {
                let at = now - age(&frame, system_now);
                match self.directions[port]
                    .queue
                    .arrive(at, Bytes(frame.bytes.len() as u64))
                {
                    Fate::Delivered(due) => self.directions[port].due.push_back((due, frame.bytes)),
                    Fate::Overflowed | Fate::Lost => self.batch.recycle(frame.bytes),
                }
            }
        }
    }

    fn give_out(&mut self) {
        let now = self.now();
        for (index, direction) in self.directions.iter_mut().enumerate() {
            while direction.due.front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, frame)) = direction.due.pop_front() else {
                    break;
                };
                // A frame that the node cannot accept is lost, as at an interface without memory.
                let _ = self.ports[index ^ 1].send(&frame);
                self.batch.recycle(frame);
            }
        }
    }

    /// Waits until a frame arrives or until the next delivery is near; then it returns, and the caller polls.
    fn wait(&mut self) -> io::Result<()> {
        let next = self
            .directions
            .iter()
            .filter_map(|direction| direction.due.front())
            .map(|(due, _)| *due)
            .min();
        let sleep = next.map(|due| due - self.spin - self.now());
        if sleep.is_some_and(|sleep| sleep <= Time::ZERO) {
            hint::spin_loop();
            return Ok(());
        }
        let timeout = sleep.map(|sleep| Timespec {
            tv_sec: (sleep.as_nanos() / 1e9) as i64,
            tv_nsec: (sleep.as_nanos() % 1e9) as _,
        });
        let mut ports: Vec<PollFd<'_>> = self
            .ports
            .iter()
            .map(|port| PollFd::new(port, PollFlags::IN))
            .collect();
        match poll(&mut ports, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as f64)
    }
}

/// Returns the time since the system received a frame.
fn age(frame: &Received, now: SystemTime) -> Time {
    let age = frame
        .at
        .and_then(|at| now.duration_since(at).ok())
        .filter(|age| *age <= OLDEST);
    Time::from_nanos(age.unwrap_or_default().as_nanos() as f64)
}

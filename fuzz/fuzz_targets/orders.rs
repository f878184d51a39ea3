#![no_main]

use std::time::Duration;

use flowcast::units::Time;
use flowcast_measure::lab::orders;
use flowcast_measure::mpi;
use flowcast_measure::prtt;
use flowcast_measure::transport::{Transport, TransportError};

/// A peer that sends these bytes and then nothing.
struct Peer<'a> {
    says: &'a [u8],
    now: Duration,
}

impl Transport for Peer<'_> {
    fn now(&self) -> Time {
        Time::from_nanos(self.now.as_nanos() as f64)
    }

    fn send(&mut self, _: &[u8]) -> Result<(), TransportError> {
        self.now += Duration::from_micros(10);
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> Result<(), TransportError> {
        self.now += Duration::from_micros(10);
        let (now, later) = self.says.split_at_checked(message.len()).ok_or(TransportError::Closed)?;
        message.copy_from_slice(now);
        self.says = later;
        Ok(())
    }

    fn compute(&mut self, duration: Time) {
        self.now += Duration::from_nanos(duration.as_nanos().min(1e9) as u64);
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = prtt::answer(&mut Peer { says: &[b"flowcast-prtt/1\n", bytes].concat(), now: Duration::ZERO });
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // A line contains no other line ends.
    for line in text.split(['\n', '\r']) {
        let _ = serde_json::from_str::<orders::HostOrder>(line);
        let _ = serde_json::from_str::<orders::HostReply>(line);
        let _ = mpi::Order::parse(line);
        let _ = serde_json::from_str::<mpi::Reply>(line);
    }
});

//! The low level: a custom observer, here a histogram of the times that ranks wait for messages.
//!
//! `cargo run --release -p flowcast --example own_observer`

use flowcast::{
    Options, PreparedProgram,
    model::builtin,
    replay::observer::{Observer, ReceivedMessage},
    trace::{Trace, slot::Slot},
    units::Rank,
};

/// NAS LU, class S, four ranks.
const TRACE: &[u8] = include_bytes!("data/lu.S.4.dim.gz");

/// Number of receives, by the power of two of the nanoseconds between call and return.
struct Waits([u64; 64]);

impl Observer for Waits {
    fn received(&mut self, _rank: Rank, _slot: Slot, received: ReceivedMessage) {
        let nanos = (received.end - received.call).as_nanos() as u64;
        self.0[nanos.checked_ilog2().unwrap_or(0) as usize] += 1;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Trace::Program(program) = flowcast::read_text("lu.S.4.dim.gz", TRACE)? else {
        return Err("a .dim file holds a program".into());
    };
    let network = builtin::network("gige-tcp")?;
    let mut waits = Waits([0; 64]);
    PreparedProgram::new(&program, &network, &Options::default())?.observe(&mut waits)?;
    for (power, count) in waits.0.iter().enumerate().filter(|(_, count)| **count > 0) {
        println!("{:>10} ns and longer: {count}", 1u64 << power);
    }
    Ok(())
}

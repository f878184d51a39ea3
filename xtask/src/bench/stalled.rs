//! Loads that wait for a store before them.
//!
//! A processor hands a value on from a store to a load behind it only if the store wrote all that the load reads. Else the load
//! waits until the store has reached the cache, ten cycles or more, and what depends on it waits as well. So state that is
//! written in parts and read as a whole halves the speed of a loop that executes no instruction more. Valgrind's lackey
//! prints all accesses, among which such loads are counted.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read},
    ops::Range,
};

use anyhow::{Context, Result};

/// Number of accesses after which a store is assumed to have reached the cache.
const RECENT: usize = 32;

/// Counts them in what lackey prints.
///
/// # Errors
/// It cannot be read.
pub(super) fn count(trace: impl Read) -> Result<f64> {
    let (mut trace, mut line) = (BufReader::with_capacity(1 << 16, trace), Vec::new());
    let mut accesses = Accesses::default();
    while trace.read_until(b'\n', &mut line)? > 0 {
        match line.first_chunk() {
            Some(b" L ") => accesses.load(&place(&line)?),
            Some(b" S ") => accesses.store(place(&line)?),
            Some(b" M ") => {
                accesses.load(&place(&line)?);
                accesses.store(place(&line)?);
            }
            _ => {}
        }
        line.clear();
    }
    Ok(accesses.stalled as f64)
}

/// The addresses in a line such as ` L 1ffeffe7e0,8`.
fn place(line: &[u8]) -> Result<Range<u64>> {
    let text = String::from_utf8_lossy(&line[3..]);
    let both = text.trim().split_once(',').and_then(|(address, size)| {
        Some((
            u64::from_str_radix(address, 16).ok()?,
            size.parse::<u64>().ok()?,
        ))
    });
    let (address, size) =
        both.with_context(|| format!("found {text:?}, expected an address and a size"))?;
    Ok(address..address + size)
}

/// The last accesses, of loads nothing.
#[derive(Default)]
struct Accesses {
    recent: VecDeque<Range<u64>>,
    stalled: u64,
}

impl Accesses {
    fn load(&mut self, read: &Range<u64>) {
        let meets = |written: &&Range<u64>| written.start < read.end && read.start < written.end;
        let last = self.recent.iter().rev().find(meets);
        let holds_all =
            |written: &Range<u64>| written.start <= read.start && read.end <= written.end;
        self.stalled += u64::from(last.is_some_and(|written| !holds_all(written)));
        self.push(0..0);
    }

    fn store(&mut self, written: Range<u64>) {
        self.push(written);
    }

    fn push(&mut self, access: Range<u64>) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(access);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalled(trace: &str) -> f64 {
        count(trace.as_bytes()).unwrap()
    }

    #[test]
    fn a_load_waits_for_a_store_to_a_part_of_it() {
        assert_eq!(
            stalled("I  04001000,3\n S 1000,4\n S 1004,4\n L 1000,8\n"),
            1.0
        );
        assert_eq!(stalled(" S 1000,8\n L 1004,4\n L 1000,8\n L 1008,8\n"), 0.0);
        assert_eq!(stalled(" M 1000,4\n L ffc,8\n"), 1.0);
    }

    #[test]
    fn the_last_store_decides_and_old_ones_are_in_the_cache() {
        assert_eq!(stalled(" S 1000,4\n S 1000,8\n L 1000,8\n"), 0.0);
        assert_eq!(
            stalled(&format!(
                " S 1000,4\n{} L 1000,8\n",
                " L 2000,8\n".repeat(RECENT)
            )),
            0.0
        );
    }

    #[test]
    fn a_line_without_an_access_is_an_error() {
        assert!(count(&b" L what,8\n"[..]).is_err());
    }
}

//! Results from rank 0 to all others, along a binary tree.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::{
    MeasuredLinks, ready, route,
    wire::{HEADER, WireHeader, WireKind},
};
use crate::bindings::ProcessName;

/// Those who have not got the results from this rank yet.
static UNSENT: Mutex<Vec<(ProcessName, WireHeader, String)>> = Mutex::new(Vec::new());
/// Whether there are any: whoever makes progress looks there, also when all is sent, and should not take a lock.
static WAITING: AtomicBool = AtomicBool::new(false);

/// To the two ranks below this one; those that may not be reached yet get it when [`go_on`] finds them ready.
pub(super) fn share(own: ProcessName, text: &str) {
    let Some(links) = super::LINKS.get() else {
        return;
    };
    // SAFETY: the library's.
    let size = u32::try_from(unsafe { (links.library.world_size)() }).unwrap_or(0);
    let header = WireHeader {
        kind: WireKind::Results,
        from: own,
        round: 0,
        of: 1,
        body: text.len() as u32,
    };
    let to =
        children(own.vpid, size).map(|vpid| (ProcessName { vpid, ..own }, header, text.to_owned()));
    unsent().extend(to);
    go_on(links);
}

/// Whether somebody waits for results from this rank.
#[inline]
pub(super) fn is_waiting() -> bool {
    WAITING.load(Ordering::Relaxed)
}

/// Sends results to whom they may be sent by now.
pub(super) fn go_on(links: &MeasuredLinks) {
    // Sending may make progress, which leads here again: the list is not locked meanwhile.
    let all = std::mem::take(&mut *unsent());
    let (reached, waiting): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(to, ..)| ready::may_be_reached(&links.library, *to));
    for (to, header, text) in reached {
        if let Some(route) = route(links, to, None) {
            route.send(header, text.as_bytes(), HEADER);
        }
    }
    let mut unsent = unsent();
    unsent.extend(waiting);
    WAITING.store(!unsent.is_empty(), Ordering::Relaxed);
}

fn unsent() -> MutexGuard<'static, Vec<(ProcessName, WireHeader, String)>> {
    UNSENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn children(rank: u32, size: u32) -> impl Iterator<Item = u32> {
    [1, 2]
        .into_iter()
        .filter_map(move |child| rank.checked_mul(2)?.checked_add(child))
        .filter(move |rank| *rank < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_reach_every_rank_once() {
        for size in [1, 2, 3, 8, 100] {
            let mut reached: Vec<u32> = (0..size)
                .flat_map(|rank| children(rank, size))
                .chain([0])
                .collect();
            reached.sort_unstable();
            assert_eq!(reached, (0..size).collect::<Vec<u32>>());
        }
        assert_eq!(children(u32::MAX, u32::MAX).count(), 0);
    }
}

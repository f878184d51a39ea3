//! Distribution of results from rank 0 to all other ranks, along a binary tree.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::{
    MeasuredLinks, ready, route,
    wire::{HEADER, WireHeader, WireKind},
};
use crate::bindings::ProcessName;

/// Results not sent yet, with their receivers.
static UNSENT: Mutex<Vec<(ProcessName, WireHeader, String)>> = Mutex::new(Vec::new());
/// `true` if `UNSENT` is not empty. It is read at each progress call, even after everything is sent, and avoids a lock
/// there.
static WAITING: AtomicBool = AtomicBool::new(false);

/// Sends the results to the two ranks below this one. A rank that may not be reached yet gets them when [`go_on`] finds it
/// ready.
pub(super) fn share(own: ProcessName, text: &str) {
    let Some(links) = super::LINKS.get() else {
        return;
    };
    // SAFETY: a function of the library.
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

/// Returns `true` if a rank waits for results from this one.
#[inline]
pub(super) fn is_waiting() -> bool {
    WAITING.load(Ordering::Relaxed)
}

/// Sends results to the ranks that may be reached by now.
pub(super) fn go_on(links: &MeasuredLinks) {
    // Sending may make progress, which calls this function again. The list must not be locked meanwhile.
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

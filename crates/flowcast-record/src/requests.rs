//! Requests, and the operations that their handles stand for.
//!
//! A library may use one handle for several operations that are already complete. Both MPICH and Open MPI do so for short
//! messages. The oldest of the requests with the same handle is completed first. Slots are numbered as the reader of a
//! recording numbers them: a new request gets the lowest free slot.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::handles::Handles;

/// Properties of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PendingRequest {
    /// `true` if the request is persistent.
    pub persistent: bool,
    /// `true` if the request has been started and not completed.
    pub active: bool,
    /// `true` for a receive from any source or with any tag.
    pub wildcard: bool,
    pub cancelled: bool,
    /// Address at which the handle of a new communicator will be stored, or 0.
    pub new_communicator: usize,
}

impl PendingRequest {
    /// Returns `true` if the status of the request must be read.
    pub(crate) fn needs_status(self) -> bool {
        self.wildcard || self.cancelled
    }
}

/// Number of requests in flight whose status must be read.
static WANTED: AtomicI32 = AtomicI32::new(0);

/// Returns `true` if the status of any request in flight must be read.
#[inline]
pub(crate) fn wants_statuses() -> bool {
    WANTED.load(Ordering::Relaxed) > 0
}

/// Changes the number of requests in flight whose status must be read.
#[inline]
pub(crate) fn want_statuses(more: i32) {
    if more != 0 {
        WANTED.fetch_add(more, Ordering::Relaxed);
    }
}

const NO_SLOT: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    /// Oldest slot of each handle.
    heads: Handles,
    slots: Vec<PendingRequest>,
    /// Next younger slot of the same handle.
    next: Vec<u32>,
    /// Bit set of the slots in use.
    used: Vec<u64>,
    /// Index of the first word that may have a free slot.
    first: usize,
}

impl PendingRequests {
    /// Adds a request and returns its slot.
    #[inline]
    pub(crate) fn add(&mut self, handle: u64, request: PendingRequest) -> u32 {
        let slot = self.lowest_free();
        self.slots[slot as usize] = request;
        self.next[slot as usize] = NO_SLOT;
        match self.heads.get(handle) {
            None => self.heads.set(handle, slot),
            Some(mut last) => {
                while self.next[last as usize] != NO_SLOT {
                    last = self.next[last as usize];
                }
                self.next[last as usize] = slot;
            }
        }
        slot
    }

    #[inline]
    fn lowest_free(&mut self) -> u32 {
        let free = self.used[self.first..]
            .iter()
            .position(|word| *word != u64::MAX);
        let word = free.map_or(self.used.len(), |free| self.first + free);
        if word == self.used.len() {
            self.used.push(0);
            self.slots
                .resize(self.used.len() * 64, PendingRequest::default());
            self.next.resize(self.used.len() * 64, NO_SLOT);
        }
        self.first = word;
        let bit = self.used[word].trailing_ones();
        self.used[word] |= 1 << bit;
        (word * 64) as u32 + bit
    }

    /// Returns the oldest slot of a handle.
    #[inline]
    pub(crate) fn slot(&self, handle: u64) -> Option<u32> {
        self.heads.get(handle)
    }

    #[inline]
    pub(crate) fn get(&mut self, slot: u32) -> &mut PendingRequest {
        &mut self.slots[slot as usize]
    }

    /// Frees the oldest slot of a handle.
    #[inline]
    pub(crate) fn remove(&mut self, handle: u64) {
        let Some(slot) = self.heads.get(handle) else {
            return;
        };
        match self.next[slot as usize] {
            NO_SLOT => self.heads.remove(handle),
            younger => self.heads.set(handle, younger),
        }
        let word = slot as usize / 64;
        self.used[word] &= !(1 << (slot % 64));
        self.first = self.first.min(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_request_has_the_lowest_free_slot() {
        let mut requests = PendingRequests::default();
        assert_eq!(
            [1, 2, 3].map(|handle| requests.add(handle, PendingRequest::default())),
            [0, 1, 2]
        );
        requests.remove(2);
        requests.remove(1);
        assert_eq!(
            [8, 9, 10].map(|handle| requests.add(handle, PendingRequest::default())),
            [0, 1, 3]
        );
        assert_eq!(
            (100..200)
                .map(|handle| requests.add(handle, PendingRequest::default()))
                .max(),
            Some(103)
        );
    }

    #[test]
    fn the_oldest_of_equal_handles_is_used_first() {
        let mut requests = PendingRequests::default();
        for handle in [5, 5, 6, 5] {
            requests.add(handle, PendingRequest::default());
        }
        let mut order = Vec::new();
        while let Some(slot) = requests.slot(5) {
            order.push(slot);
            requests.remove(5);
        }
        assert_eq!(order, [0, 1, 3]);
        assert_eq!(requests.slot(6), Some(2));
    }
}

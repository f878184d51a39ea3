//! Map from ob1's endpoint to the process behind it and the process's endpoint on every rail.
//!
//! It is an open-addressing table of atomic words. Readers take no lock and may run in any thread; writers take one. A
//! larger table replaces one that fills up. The old one is kept, because a reader may still use it. All old tables together
//! are no larger than the current one.

use std::{
    collections::BTreeSet,
    ptr::{self, NonNull},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicPtr, AtomicU16, AtomicU32, Ordering},
    },
};

use flowcast_scheduler::{MAX_RAILS, RailId, RailSet};

use crate::{
    bindings::{BmlEndpoint, Endpoint},
    connections::{AddressKey, PeerPath},
};

/// A process that is reached over several rails.
#[derive(Debug)]
pub(crate) struct RailPeer {
    endpoints: [*mut Endpoint; MAX_RAILS],
    usable: AtomicU16,
    /// Rails that have written parts of long messages into the memory of the process.
    puts: AtomicU16,
    /// Rails that are stuck on the way to the process.
    stuck: AtomicU16,
    /// Address of the process on each rail, once it is known.
    addresses: [AtomicU32; MAX_RAILS],
    /// The framework's endpoint of the process.
    pub bml_endpoint: *mut BmlEndpoint,
}

// SAFETY: endpoints are only passed back to the library that made them, which has its own locks.
unsafe impl Send for RailPeer {}
// SAFETY: the same as above; all mutable fields are atomic.
unsafe impl Sync for RailPeer {}

impl RailPeer {
    pub(crate) fn new(
        endpoints: &[(RailId, *mut Endpoint)],
        bml_endpoint: *mut BmlEndpoint,
    ) -> RailPeer {
        let mut all = [ptr::null_mut(); MAX_RAILS];
        let mut usable = RailSet::NONE;
        for (rail, endpoint) in endpoints {
            all[rail.index()] = *endpoint;
            usable = usable.with(*rail);
        }
        RailPeer {
            endpoints: all,
            usable: AtomicU16::new(usable.bits()),
            puts: AtomicU16::new(0),
            stuck: AtomicU16::new(0),
            addresses: Default::default(),
            bml_endpoint,
        }
    }

    /// Endpoint of the process on a rail; null if the rail does not reach it.
    #[inline]
    pub(crate) fn endpoint(&self, rail: RailId) -> *mut Endpoint {
        self.endpoints[rail.index() & (MAX_RAILS - 1)]
    }

    /// Rails that reach the process.
    #[inline]
    pub(crate) fn usable(&self) -> RailSet {
        RailSet::from_bits(self.usable.load(Ordering::Relaxed))
    }

    /// Stops new messages over this rail. The endpoint stays known for messages in flight.
    pub(crate) fn lose(&self, rail: RailId) {
        self.usable
            .fetch_and(!RailSet::NONE.with(rail).bits(), Ordering::Relaxed);
    }

    /// Stores the address of the process on a rail.
    pub(crate) fn is_at(&self, rail: RailId, address: AddressKey) {
        self.addresses[rail.index() & (MAX_RAILS - 1)].store(address.0, Ordering::Relaxed);
    }

    /// Marks the rails of stuck paths to this process. If its address is unknown, a stuck path may lead to it and therefore
    /// counts.
    pub(crate) fn avoid(&self, stuck: &BTreeSet<PeerPath>) {
        let rails = stuck
            .iter()
            .filter(|path| {
                let far = self.addresses[path.rail.index()].load(Ordering::Relaxed);
                far == 0 || far == path.far.0
            })
            .fold(RailSet::NONE, |set, path| set.with(path.rail));
        self.stuck.store(rails.bits(), Ordering::Relaxed);
    }

    /// Rails that are stuck on the way to the process.
    #[inline]
    pub(crate) fn stuck(&self) -> RailSet {
        RailSet::from_bits(self.stuck.load(Ordering::Relaxed))
    }

    /// Records rails that write parts of long messages into the memory of the process.
    pub(crate) fn has_puts_on(&self, rails: RailSet) {
        self.puts.fetch_or(rails.bits(), Ordering::Relaxed);
    }

    /// Rails that have ever written parts of long messages into the memory of the process.
    pub(crate) fn rails_with_puts(&self) -> RailSet {
        RailSet::from_bits(self.puts.load(Ordering::Relaxed))
    }

    fn known_endpoints(&self) -> impl Iterator<Item = *mut Endpoint> {
        self.endpoints
            .into_iter()
            .filter(|endpoint| !endpoint.is_null())
    }
}

/// Peers, keyed by endpoint.
#[derive(Debug)]
pub(crate) struct EndpointMap {
    slots: AtomicPtr<PeerSlots>,
    writing: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    used: usize,
    peers: Vec<NonNull<RailPeer>>,
}

// SAFETY: the pointers point to peers, which any thread may use.
unsafe impl Send for Written {}

#[derive(Debug)]
struct PeerSlots(Box<[PeerSlot]>);

#[derive(Debug, Default)]
struct PeerSlot {
    endpoint: AtomicPtr<Endpoint>,
    /// Null if the peer was removed.
    peer: AtomicPtr<RailPeer>,
}

impl PeerSlots {
    fn new(count: usize) -> *mut PeerSlots {
        debug_assert!(count.is_power_of_two());
        Box::into_raw(Box::new(PeerSlots(
            (0..count).map(|_| PeerSlot::default()).collect(),
        )))
    }

    /// Returns the slot of `endpoint`, or the free slot for it. There always is a free one.
    #[inline]
    fn slot(&self, endpoint: *mut Endpoint) -> (&PeerSlot, *mut Endpoint) {
        let mask = self.0.len() - 1;
        // Fibonacci hashing; the lowest bits of an allocation's address are always the same.
        let mut at = ((endpoint as usize >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & mask;
        loop {
            let slot = &self.0[at];
            let found = slot.endpoint.load(Ordering::Acquire);
            if found == endpoint || found.is_null() {
                return (slot, found);
            }
            at = (at + 1) & mask;
        }
    }
}

impl Default for EndpointMap {
    fn default() -> EndpointMap {
        EndpointMap::with_slots(256)
    }
}

impl EndpointMap {
    fn with_slots(count: usize) -> EndpointMap {
        let written = Written {
            used: 0,
            peers: Vec::new(),
        };
        EndpointMap {
            slots: AtomicPtr::new(PeerSlots::new(count)),
            writing: Mutex::new(written),
        }
    }

    /// Returns the process behind an endpoint, if it is reached over several rails.
    #[inline]
    pub(crate) fn find(&self, endpoint: *mut Endpoint) -> Option<&RailPeer> {
        let (slot, found) = self.slots().slot(endpoint);
        if found.is_null() {
            return None;
        }
        // SAFETY: null or a peer that `insert` stored; MPI does not allow sends to a process that is being removed.
        unsafe { slot.peer.load(Ordering::Acquire).as_ref() }
    }

    /// Adds a process. It replaces one with the same endpoint.
    pub(crate) fn insert(&self, peer: RailPeer) {
        let mut written = self.lock();
        let peer = NonNull::from(Box::leak(Box::new(peer)));
        // SAFETY: just created, and freed only by `remove` under this lock.
        for endpoint in unsafe { peer.as_ref() }.known_endpoints() {
            self.put(&mut written, endpoint, peer.as_ptr());
        }
        written.peers.push(peer);
    }

    /// Removes the process behind an endpoint.
    pub(crate) fn remove(&self, endpoint: *mut Endpoint) {
        let mut written = self.lock();
        let Some(peer) = self.find(endpoint).map(NonNull::from) else {
            return;
        };
        // SAFETY: in the table, so not freed yet.
        for endpoint in unsafe { peer.as_ref() }.known_endpoints() {
            self.slots()
                .slot(endpoint)
                .0
                .peer
                .store(ptr::null_mut(), Ordering::Release);
        }
        written.peers.retain(|known| *known != peer);
        // SAFETY: created by `insert`, and no longer in the table or the list.
        drop(unsafe { Box::from_raw(peer.as_ptr()) });
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&RailPeer)) {
        let written = self.lock();
        // SAFETY: peers are freed only under the lock that is held here.
        written
            .peers
            .iter()
            .for_each(|peer| visit(unsafe { peer.as_ref() }));
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn slots(&self) -> &PeerSlots {
        // SAFETY: never null, never freed.
        unsafe { &*self.slots.load(Ordering::Acquire) }
    }

    fn put(&self, written: &mut Written, endpoint: *mut Endpoint, peer: *mut RailPeer) {
        if (written.used + 1) * 2 > self.slots().0.len() {
            self.grow(written);
        }
        let (slot, found) = self.slots().slot(endpoint);
        slot.peer.store(peer, Ordering::Release);
        if found.is_null() {
            slot.endpoint.store(endpoint, Ordering::Release);
            written.used += 1;
        }
    }

    fn grow(&self, written: &mut Written) {
        let old = self.slots();
        let larger = PeerSlots::new(old.0.len() * 2);
        written.used = 0;
        for slot in &old.0 {
            let (endpoint, peer) = (
                slot.endpoint.load(Ordering::Relaxed),
                slot.peer.load(Ordering::Relaxed),
            );
            if !peer.is_null() {
                // SAFETY: just created, and no other thread has it yet.
                let (new, _) = unsafe { &*larger }.slot(endpoint);
                new.peer.store(peer, Ordering::Relaxed);
                new.endpoint.store(endpoint, Ordering::Relaxed);
                written.used += 1;
            }
        }
        self.slots.store(larger, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn endpoint(number: usize) -> *mut Endpoint {
        ptr::without_provenance_mut(0x1000 + 16 * number)
    }

    fn peer(first: usize, second: usize) -> RailPeer {
        RailPeer::new(
            &[(RailId(0), endpoint(first)), (RailId(3), endpoint(second))],
            ptr::null_mut(),
        )
    }

    #[test]
    fn a_process_is_found_by_each_of_its_endpoints() {
        let map = EndpointMap::default();
        map.insert(peer(1, 2));
        for number in [1, 2] {
            let found = map.find(endpoint(number)).unwrap();
            assert_eq!(found.endpoint(RailId(3)), endpoint(2));
            assert_eq!(
                found.usable(),
                RailSet::NONE.with(RailId(0)).with(RailId(3))
            );
        }
        assert!(map.find(endpoint(3)).is_none());
    }

    #[test]
    fn a_lost_rail_is_not_used_but_its_endpoint_stays_known() {
        let peer = peer(1, 2);
        peer.lose(RailId(3));
        assert_eq!(peer.usable(), RailSet::NONE.with(RailId(0)));
        assert_eq!(peer.endpoint(RailId(3)), endpoint(2));
    }

    #[test]
    fn a_stuck_path_is_avoided_for_its_peer() {
        let path = |rail, far| PeerPath {
            rail: RailId(rail),
            far: AddressKey(far),
        };
        let stuck = BTreeSet::from([path(3, 77)]);
        let (known, unknown) = (peer(1, 2), peer(3, 4));
        known.is_at(RailId(3), AddressKey(78));
        for peer in [&known, &unknown] {
            peer.avoid(&stuck);
        }
        assert!(known.stuck().is_empty());
        assert_eq!(unknown.stuck(), RailSet::NONE.with(RailId(3)));
        known.is_at(RailId(3), AddressKey(77));
        known.avoid(&stuck);
        assert_eq!(known.stuck(), RailSet::NONE.with(RailId(3)));
        known.avoid(&BTreeSet::new());
        assert!(known.stuck().is_empty());
    }

    proptest! {
        #[test]
        fn the_table_contains_the_same_as_a_sorted_map(
            changes in prop::collection::vec((any::<bool>(), 0usize..200), 0..600)
        ) {
            let map = EndpointMap::with_slots(4);
            let mut slow = BTreeMap::new();
            for (adds, number) in changes {
                let (first, second) = (2 * number, 2 * number + 1);
                if adds && !slow.contains_key(&first) {
                    map.insert(peer(first, second));
                    slow.insert(first, second);
                } else {
                    map.remove(endpoint(second));
                    slow.remove(&first);
                }
            }
            for first in (0..400).step_by(2) {
                let found = map.find(endpoint(first)).map(|peer| peer.endpoint(RailId(3)));
                prop_assert_eq!(found, slow.get(&first).map(|second| endpoint(*second)));
            }
            let mut count = 0;
            map.for_each(|_| count += 1);
            prop_assert_eq!(count, slow.len());
        }
    }

    #[test]
    fn readers_find_old_peers_while_new_ones_are_added() {
        let map = EndpointMap::with_slots(4);
        map.insert(peer(0, 1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..2000).for_each(|number| map.insert(peer(2 * number, 2 * number + 1)))
            });
            for _ in 0..3 {
                scope.spawn(|| (0..20_000).for_each(|_| assert!(map.find(endpoint(1)).is_some())));
            }
        });
        assert!((0..4000).all(|number| map.find(endpoint(number)).is_some()));
    }
}

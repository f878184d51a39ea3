//! State of the hooks: rails, peers, scheduler. Each process has one, created when the component starts.

use std::{
    collections::BTreeSet,
    sync::{
        OnceLock,
        atomic::{AtomicU16, Ordering},
    },
};

use flowcast_scheduler::{RailId, RailSet, split::Split};
use flowcast_units::Bytes;

use crate::{
    accounts::Accounts,
    bindings::{
        Alloc, BmlEndpoint, BmlModule, BtlArray, BtlModule, Endpoint, Free, OmpiProc,
        PROC_ENDPOINT_TAG_BML, PrepareSource, ProcessName, Put, Send as SendFunction,
        SendImmediate,
    },
    connections::{AddressKey, PeerPath},
    counters::Counters,
    library::OpenMpiLibrary,
    parameters::ComponentSettings,
    peers::{EndpointMap, RailPeer},
    polling::EventLoop,
    scheduler::ComponentScheduler,
};

static STATE: OnceLock<State> = OnceLock::new();

/// A network that shares BTL and exclusivity with another network.
#[derive(Debug)]
pub(crate) struct RailModule {
    pub module: *mut BtlModule,
    /// Name for messages to the user, and the key of the rail's parameters.
    pub name: String,
    /// Functions that the hooks replaced.
    pub original: Original,
    /// Longest message that the network sends in one piece, in bytes: its eager limit. Beyond it `btl_prepare_src` may take
    /// only a part.
    pub longest: usize,
    pub counters: Counters,
}

// SAFETY: a module belongs to its BTL, which has its own locks.
unsafe impl Send for RailModule {}
// SAFETY: the same as above.
unsafe impl Sync for RailModule {}

/// The functions of a BTL module that the hooks replace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Original {
    pub alloc: Alloc,
    pub free: Free,
    pub prepare_src: PrepareSource,
    pub send: SendFunction,
    pub sendi: Option<SendImmediate>,
    pub put: Option<Put>,
}

impl Original {
    /// Returns `None` for a network that lacks a function that every rail needs.
    pub(crate) fn read(module: &BtlModule) -> Option<Original> {
        Some(Original {
            alloc: module.btl_alloc?,
            free: module.btl_free?,
            prepare_src: module.btl_prepare_src?,
            send: module.btl_send?,
            sendi: module.btl_sendi,
            put: module.btl_put,
        })
    }
}

impl RailModule {
    /// Returns `None` for a network that lacks a function that every rail needs.
    ///
    /// # Safety
    /// `module` is an initialised BTL module.
    pub(crate) unsafe fn new(module: *mut BtlModule, name: String) -> Option<RailModule> {
        // SAFETY: guaranteed by the caller.
        let fields = unsafe { &*module };
        Some(RailModule {
            module,
            name,
            original: Original::read(fields)?,
            longest: fields.btl_eager_limit,
            counters: Counters::default(),
        })
    }

    /// Returns `true` if the rail writes into another process without a registration handle. Any rail of its kind can then
    /// write for it.
    pub(crate) fn writes_by_address(&self) -> bool {
        // SAFETY: an initialised module.
        self.original.put.is_some() && unsafe { (*self.module).btl_registration_handle_size } == 0
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub library: OpenMpiLibrary,
    /// `r2`, which finds the endpoints of processes.
    pub r2: BmlModule,
    pub settings: ComponentSettings,
    /// The rails, in the scheduler's order.
    pub rails: Vec<RailModule>,
    /// Processes that are reached over several rails.
    pub peers: EndpointMap,
    pub scheduler: ComponentScheduler,
    /// Address of this process on each rail.
    pub own_addresses: Vec<AddressKey>,
    /// Load of each rail, shared by the processes of this node.
    pub accounts: Accounts,
    /// Event loop whose sockets epoll waits for; `None` if Open MPI uses epoll itself or should poll them.
    pub event_loop: Option<EventLoop>,
    /// Rails that are gone.
    pub lost: AtomicU16,
    /// Source of the parameters in use, for the table.
    pub source: std::sync::Mutex<String>,
}

/// Stores the state of this process, which has none yet.
pub(crate) fn keep(state: State) -> &'static State {
    STATE.get_or_init(|| state)
}

/// The state, if the component schedules.
#[inline]
pub(crate) fn state() -> Option<&'static State> {
    STATE.get()
}

impl State {
    #[inline]
    pub(crate) fn rail_of(&self, module: *mut BtlModule) -> Option<RailId> {
        self.rails
            .iter()
            .position(|rail| rail.module == module)
            .map(|index| RailId(index as u8))
    }

    #[inline]
    pub(crate) fn rail(&self, rail: RailId) -> &RailModule {
        &self.rails[rail.index()]
    }

    /// Chooses the rail of a first fragment that ob1 requested for `asked`.
    #[inline]
    pub(crate) fn choose(&self, peer: &RailPeer, asked: RailId, size: usize) -> RailId {
        let usable = self.usable(peer, size);
        let rail = self
            .scheduler
            .pick(Bytes(size as u64), usable)
            .unwrap_or(asked);
        self.rail(asked).counters.ask();
        self.rail(rail).counters.eager(size as u64);
        rail
    }

    /// Returns `true` if messages of this size are divided. Their rails are chosen when they are sent.
    #[inline]
    pub(crate) fn divides(&self, size: usize) -> bool {
        self.settings.split_from.is_some_and(|from| size >= from) && self.scheduler.divides()
    }

    /// Divides and accounts for a message that is long enough. Returns `None` for others.
    #[inline]
    pub(crate) fn split(&self, peer: &RailPeer, size: u64) -> Option<Split> {
        if !self.divides(size as usize) {
            return None;
        }
        self.scheduler.split(Bytes(size), self.reaching(peer))
    }

    /// Rails that reach a process. Stuck ones are omitted if there are others.
    #[inline]
    pub(crate) fn reaching(&self, peer: &RailPeer) -> RailSet {
        let lost = RailSet::from_bits(!self.lost.load(Ordering::Relaxed));
        let reaching = peer.usable().and(lost);
        let moving = reaching.and(RailSet::from_bits(!peer.stuck().bits()));
        if moving.is_empty() { reaching } else { moving }
    }

    /// Returns the rail that ob1 chose, or another one if that is stuck.
    #[inline]
    pub(crate) fn moving(&self, peer: &RailPeer, asked: RailId) -> RailId {
        if !peer.stuck().contains(asked) {
            return asked;
        }
        let mut others = self.reaching(peer);
        others.next().unwrap_or(asked)
    }

    /// Sets the stuck paths; all others count as moving.
    pub(crate) fn avoid(&self, stuck: &BTreeSet<PeerPath>) {
        self.peers.for_each(|peer| peer.avoid(stuck));
    }

    /// Stores the address of another process on the rail by which its message arrived. Returns `false` if this process does
    /// not send to it yet.
    pub(crate) fn introduce(&self, name: ProcessName, by: *mut BtlModule, at: AddressKey) -> bool {
        let Some(rail) = self.rail_of(by) else {
            return false;
        };
        // SAFETY: the library's process, whose endpoint is null or r2's.
        let peer = unsafe {
            let process = (self.library.process_by_name)(name);
            if process.is_null() {
                return false;
            }
            bml_endpoint(process).as_ref().and_then(|endpoint| {
                self.peers
                    .find(entries(&endpoint.btl_send).first()?.btl_endpoint)
            })
        };
        peer.is_some_and(|peer| {
            peer.is_at(rail, at);
            true
        })
    }

    /// Rails that reach a process and send a message of this size in one piece.
    #[inline]
    pub(crate) fn usable(&self, peer: &RailPeer, size: usize) -> RailSet {
        self.reaching(peer).fold(RailSet::NONE, |set, rail| {
            if size <= self.rail(rail).longest {
                set.with(rail)
            } else {
                set
            }
        })
    }

    /// Learns the endpoints of a process that `r2` has added.
    ///
    /// # Safety
    /// `process` is a process of the library.
    pub(crate) unsafe fn add(&self, process: *mut OmpiProc) {
        // SAFETY: guaranteed by the caller; the endpoint is null or r2's.
        let Some(endpoint) = (unsafe { bml_endpoint(process).as_mut() }) else {
            return;
        };
        // SAFETY: arrays of an endpoint that r2 has filled.
        let routes = unsafe { self.routes(&endpoint.btl_send) };
        if routes.len() < 2 || self.peers.find(routes[0].1).is_some() {
            return;
        }
        self.peers.insert(RailPeer::new(&routes, endpoint));
        self.weigh(endpoint);
    }

    /// # Safety
    /// `array` is an array of an endpoint that r2 has filled.
    unsafe fn routes(&self, array: &BtlArray) -> Vec<(RailId, *mut Endpoint)> {
        // SAFETY: guaranteed by the caller.
        let entries = unsafe { entries(array) };
        entries
            .iter()
            .filter_map(|entry| Some((self.rail_of(entry.btl)?, entry.btl_endpoint)))
            .collect()
    }

    /// Removes a process, before `r2` frees its endpoints.
    ///
    /// # Safety
    /// `process` is a process of the library.
    pub(crate) unsafe fn forget(&self, process: *mut OmpiProc) {
        // SAFETY: guaranteed by the caller.
        let Some(endpoint) = (unsafe { bml_endpoint(process).as_ref() }) else {
            return;
        };
        // SAFETY: arrays of an endpoint that r2 has filled.
        unsafe { entries(&endpoint.btl_send) }
            .iter()
            .for_each(|entry| self.peers.remove(entry.btl_endpoint));
    }

    /// Sets the weights of all processes such that long messages are split in proportion to the rails' bandwidths.
    pub(crate) fn weigh_all(&self) {
        // SAFETY: the framework's endpoint lives until `forget`.
        self.peers.for_each(|peer| unsafe {
            if let Some(endpoint) = peer.bml_endpoint.as_mut() {
                self.weigh(endpoint);
            }
        });
    }

    /// Sets the weights of a process's networks. ob1 gives each network a share of a long message in proportion to its
    /// weight. `r2` takes the weights from the user's settings, and 100 Mbit/s for every TCP interface otherwise.
    fn weigh(&self, endpoint: &mut BmlEndpoint) {
        if !self.settings.stripe {
            return;
        }
        for array in [&endpoint.btl_eager, &endpoint.btl_send, &endpoint.btl_rdma] {
            // SAFETY: arrays of an endpoint that r2 has filled; changing a weight while ob1 runs only shifts a share.
            let entries = unsafe { entries_mut(array) };
            let bandwidths = entries.iter().map(|entry| {
                let rail = self.rail_of(entry.btl)?;
                Some(1.0 / self.scheduler.costs()[rail.index()].gap_per_byte.as_nanos())
            });
            let all: Option<Vec<f64>> = bandwidths.collect();
            let Some(all) = all.filter(|all| all.iter().all(|one| one.is_finite())) else {
                continue;
            };
            let sum: f64 = all.iter().sum();
            entries
                .iter_mut()
                .zip(&all)
                .for_each(|(entry, own)| entry.btl_weight = (own / sum) as f32);
        }
    }
}

/// # Safety
/// `process` is a process of the library.
pub(crate) unsafe fn bml_endpoint(process: *mut OmpiProc) -> *mut BmlEndpoint {
    // SAFETY: guaranteed by the caller.
    unsafe { (*process).proc_endpoints[PROC_ENDPOINT_TAG_BML].cast() }
}

/// # Safety
/// `array` is an array that r2 has filled.
pub(crate) unsafe fn entries(array: &BtlArray) -> &[crate::bindings::BmlBtl] {
    if array.bml_btls.is_null() {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(array.bml_btls, array.arr_size) }
}

/// # Safety
/// The same as for [`entries`], and no other reference to them exists.
#[expect(
    clippy::mut_from_ref,
    reason = "the entries are not the array's but r2's"
)]
unsafe fn entries_mut(array: &BtlArray) -> &mut [crate::bindings::BmlBtl] {
    if array.bml_btls.is_null() {
        return &mut [];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts_mut(array.bml_btls, array.arr_size) }
}

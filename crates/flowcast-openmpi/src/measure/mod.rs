//! Parameters measured while MPI starts (Lichei, section 5.4.2): parametrised round trips between rank 0 and the first
//! rank that it reaches over several rails.
//!
//! Rank 0 measures after ob1 has registered its handlers and before the barrier at the end of `MPI_Init`, so no other rank
//! sends yet. Its partner is in that barrier, where it polls only every 100 us; after an invitation it polls continuously
//! until it is dismissed. Both give up at the deadline. The results reach all ranks along a binary tree, in which each rank
//! forwards them to two others. A rank uses Open MPI's defaults until they arrive. No rank connects to one that is not ready
//! for it (`ready`).

mod backoff;
mod equal_rails;
mod plan;
mod ready;
mod round_trips;
mod stored_check;
mod tree;
mod watch;
mod wire;

use std::{
    collections::BTreeSet,
    ffi::c_int,
    fs,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use flowcast_network::{loggp::LogGp, network::Network};
use flowcast_scheduler::{Rail, RailId};

use crate::{
    NoPanic,
    bindings::{BmlEndpoint, BmlModule, ProcessName, SUCCESS},
    connections::PeerPath,
    costs::{self, CostOrigin},
    library::{self, OpenMpiLibrary},
    parameters::When,
    peers::RailPeer,
    state::{self, RailModule, State},
    store::CostStore,
};
use backoff::{Backoff, exactly};
use round_trips::Partner;
use stored_check::StoredCheck;
use watch::RailWatch;
use wire::{WireHeader, WireKind, WireReceived, WireRoute};

/// Largest number of ranks that rank 0 tries in search of one that it reaches over several rails.
const MOST_CANDIDATES: u32 = 1024;
/// Time that the partner waits beyond the measurement of rank 0.
const GRACE: Duration = Duration::from_millis(100);

/// State that every rank needs to forward results, even if it schedules nothing itself.
struct MeasuredLinks {
    library: OpenMpiLibrary,
    r2: BmlModule,
}

static LINKS: OnceLock<MeasuredLinks> = OnceLock::new();
/// `true` if this rank no longer waits for results, or if all parameters were given.
static FINISHED: AtomicBool = AtomicBool::new(false);
static ANSWERING: AtomicBool = AtomicBool::new(false);
/// The watched rails, from the start on.
static WATCH: OnceLock<RailWatch> = OnceLock::new();
/// `true` while this rank is rank 0 and measures.
static MEASURING_HERE: AtomicBool = AtomicBool::new(false);

/// Receives messages of the measurement from here on, and handles them whenever the library makes progress.
pub(crate) fn listen(library: &OpenMpiLibrary, r2: BmlModule) {
    if LINKS
        .set(MeasuredLinks {
            library: *library,
            r2,
        })
        .is_ok()
    {
        wire::listen(library);
        // SAFETY: a function of the library; our function stays loaded.
        unsafe { (library.progress_register)(progress) };
    }
}

/// Sets whether results are expected. `complete` is `true` if the user gave every parameter.
pub(crate) fn expect(complete: bool) {
    FINISHED.store(complete, Ordering::Relaxed);
}

pub(crate) fn stop(library: &OpenMpiLibrary) {
    // SAFETY: registered by `listen`.
    unsafe { (library.progress_unregister)(progress) };
}

/// Announces that this rank is ready. Rank 0 measures, or loads the results of an earlier run, and sends them to the other
/// ranks.
pub(crate) fn at_start(state: &State) {
    ready::announce(own_name(&state.library));
    if FINISHED.swap(true, Ordering::Relaxed) {
        return;
    }
    let own = own_name(&state.library);
    if own.vpid != 0 || state.settings.measure == When::Never {
        return;
    }
    let Some((mut rails, origin)) = find_out(state, own) else {
        return;
    };
    equal_rails::even_out(&mut rails);
    let text = costs::text_of(rails.iter().map(|rail| (rail.name.as_str(), rail.cost)));
    apply(state, &text, origin);
    tree::share(own, &text);
}

fn find_out(state: &State, own: ProcessName) -> Option<(Vec<Rail>, CostOrigin)> {
    let deadline = Instant::now() + state.settings.measure_for;
    let peer = partner(state, own, deadline)?;
    MEASURING_HERE.store(true, Ordering::Relaxed);
    let found = exactly(|| {
        ask(
            state,
            &mut Partner::new(state, own, peer, deadline),
            deadline,
        )
    });
    MEASURING_HERE.store(false, Ordering::Relaxed);
    found
}

fn ask(
    state: &State,
    partner: &mut Partner<'_>,
    deadline: Instant,
) -> Option<(Vec<Rail>, CostOrigin)> {
    let Some(to) = partner.invite() else {
        log(
            state,
            "no answer in time from the partner of the measurement; the networks take Open MPI's own parameters",
        );
        return None;
    };
    let (from, version) = (host(), library::version().unwrap_or_default());
    let store = state
        .settings
        .store
        .as_ref()
        .map(|folder| CostStore::new(folder, &from, &to, &version));
    let stored = store
        .as_ref()
        .filter(|_| state.settings.measure == When::Stored);
    let known =
        stored.and_then(|store| store.load(state.rails.iter().map(|rail| rail.name.as_str())));
    let holds = known
        .as_ref()
        .is_some_and(|rails| all_hold(state, partner, rails, deadline));
    let mut measured = || {
        let results = measure_all(state, partner, &to, deadline)?;
        if let Some(store) = &store {
            keep(state, store, &results);
        }
        Some((
            results.into_iter().map(|result| result.rail).collect(),
            CostOrigin::Measured,
        ))
    };
    let measured = if holds { None } else { measured() };
    // The results of an earlier run are still better than nothing.
    let found = measured.or_else(|| Some((known?, CostOrigin::Stored)));
    partner.dismiss();
    if found.is_none() {
        log(
            state,
            "no result in time; the networks take Open MPI's own parameters",
        );
    }
    found
}

/// Returns `true` if all rails still match their stored parameters. The check may take half of the time. The other half
/// remains for measuring the rails again.
fn all_hold(state: &State, partner: &mut Partner<'_>, stored: &[Rail], deadline: Instant) -> bool {
    let time =
        deadline.saturating_duration_since(Instant::now()) / (2 * stored.len().max(1) as u32);
    stored.iter().enumerate().all(|(index, rail)| {
        let what = match partner.holds(RailId(index as u8), &rail.cost, time) {
            StoredCheck::Holds | StoredCheck::Unknown => return true,
            StoredCheck::Slower => "slower",
            StoredCheck::Faster => "faster",
        };
        log(
            state,
            &format!(
                "{} is {what} than in the stored results of an earlier run; the networks are measured again",
                rail.name
            ),
        );
        false
    })
}

struct MeasuredRail {
    rail: Rail,
    /// `None` for rough values, which are not worth storing.
    network: Option<Network>,
}

fn keep(state: &State, store: &CostStore, results: &[MeasuredRail]) {
    for MeasuredRail { rail, network } in results {
        let saved = network
            .as_ref()
            .map(|network| store.save(&rail.name, network));
        let problem = match saved {
            None => "the time was too short for an accurate measurement".to_owned(),
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) => continue,
        };
        log(state, &format!("{} is not stored: {problem}", rail.name));
    }
}

/// Measures one rail after the other. Each gets an equal share of the remaining time.
fn measure_all(
    state: &State,
    partner: &mut Partner<'_>,
    to: &str,
    deadline: Instant,
) -> Option<Vec<MeasuredRail>> {
    let (from, version) = (host(), library::version().unwrap_or_default());
    let mut results = Vec::new();
    for (index, rail) in state.rails.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        // A tenth is reserved for round trips that take longer than planned.
        let end = Instant::now() + left.mul_f64(0.9) / (state.rails.len() - index) as u32;
        let (cost, fit) = partner.measure(RailId(index as u8), end)?;
        let network = fit.map(|fit| {
            let mut network = fit.to_network(
                &rail.name,
                round_trips::provenance(&from, to, &rail.name, &version),
            );
            network.intervals.clear();
            network
        });
        results.push(MeasuredRail {
            rail: costs::rail(&rail.name, cost),
            network,
        });
    }
    Some(results)
}

/// Returns the first rank that is reached over several rails, once it is ready.
fn partner(state: &State, own: ProcessName, deadline: Instant) -> Option<&RailPeer> {
    let (name, peer) = candidate(state, own)?;
    let backoff = Backoff::new();
    while !ready::may_be_reached(&state.library, name) {
        if Instant::now() > deadline {
            return None;
        }
        // SAFETY: a function of the library.
        unsafe { (state.library.progress)() };
        backoff.wait();
    }
    Some(peer)
}

fn candidate(state: &State, own: ProcessName) -> Option<(ProcessName, &RailPeer)> {
    // SAFETY: functions of the library; ob1 adds processes in the same way when it first sends to them.
    let size = u32::try_from(unsafe { (state.library.world_size)() }).ok()?;
    (1..size.min(MOST_CANDIDATES)).find_map(|vpid| {
        let name = ProcessName { vpid, ..own };
        let endpoint = endpoint(&state.library, &state.r2, name)?;
        // SAFETY: an endpoint that r2 has filled.
        let entries = unsafe { state::entries(&(*endpoint).btl_send) };
        Some((name, state.peers.find(entries.first()?.btl_endpoint)?))
    })
}

/// Returns the endpoint of a process, which is added if necessary.
fn endpoint(
    library: &OpenMpiLibrary,
    r2: &BmlModule,
    name: ProcessName,
) -> Option<*mut BmlEndpoint> {
    // SAFETY: the library's process; r2 may add a known process again without harm.
    unsafe {
        let process = (library.process_by_name)(name);
        if process.is_null() {
            return None;
        }
        if state::bml_endpoint(process).is_null() && r2.bml_add_proc?(process) != SUCCESS {
            return None;
        }
        if let Some(state) = state::state() {
            state.add(process);
        }
        Some(state::bml_endpoint(process)).filter(|endpoint| !endpoint.is_null())
    }
}

/// Returns a route to a process, over the network `by` if that reaches it.
fn route(
    links: &MeasuredLinks,
    name: ProcessName,
    by: Option<*mut crate::bindings::BtlModule>,
) -> Option<WireRoute> {
    let endpoint = endpoint(&links.library, &links.r2, name)?;
    // SAFETY: an endpoint that r2 has filled.
    unsafe {
        let entries = state::entries(&(*endpoint).btl_send);
        let entry = entries
            .iter()
            .find(|entry| Some(entry.btl) == by)
            .or(entries.first())?;
        WireRoute::new(entry.btl, entry.btl_endpoint)
    }
}

/// Handles arrived messages and occasionally looks at the rails. Called whenever the library makes progress.
unsafe extern "C-unwind" fn progress() -> c_int {
    let _no_panic = NoPanic;
    if let Some(state) = state::state() {
        look(state);
    }
    // Rank 0 receives its answers itself while it measures, and answering calls this function again.
    let idle = !wire::is_waiting() && !tree::is_waiting();
    if idle || MEASURING_HERE.load(Ordering::Relaxed) || ANSWERING.swap(true, Ordering::Acquire) {
        return 0;
    }
    if let Some(links) = LINKS.get().filter(|links| ready::is_here(&links.library)) {
        exactly(|| answer(links));
        tree::go_on(links);
    }
    ANSWERING.store(false, Ordering::Release);
    1
}

/// Handles the messages that have arrived. After an invitation it continues until rank 0 dismisses this rank.
fn answer(links: &MeasuredLinks) {
    let mut until: Option<Instant> = None;
    let mut pings = 0;
    let mut backoff = Backoff::new();
    loop {
        while let Some(received) = wire::take() {
            backoff = Backoff::new();
            match received.header.kind {
                WireKind::Invite => {
                    until = Some(Instant::now() + time_for_measuring() + GRACE);
                    reply(links, &received, WireKind::Ready, host().as_bytes());
                }
                WireKind::Ping => {
                    pings += 1;
                    if pings == received.header.of {
                        pings = 0;
                        reply(links, &received, WireKind::Pong, &[]);
                    }
                }
                WireKind::Done => until = None,
                WireKind::Results => pass_on(&received),
                WireKind::Ready | WireKind::Pong => {}
            }
        }
        if until.is_none_or(|until| Instant::now() > until) {
            return;
        }
        // SAFETY: a function of the library, which may be called from within its callbacks.
        unsafe { (links.library.progress)() };
        backoff.wait();
    }
}

fn time_for_measuring() -> Duration {
    state::state().map_or(Duration::from_millis(200), |state| {
        state.settings.measure_for
    })
}

/// Replies over the network by which the question arrived.
fn reply(links: &MeasuredLinks, received: &WireReceived, kind: WireKind, body: &[u8]) {
    let header = WireHeader {
        kind,
        from: own_name(&links.library),
        body: body.len() as u32,
        ..received.header
    };
    if let Some(route) = route(links, received.header.from, Some(received.by)) {
        route.send(header, body, received.size);
    }
}

fn pass_on(received: &WireReceived) {
    let Ok(text) = std::str::from_utf8(&received.body) else {
        return;
    };
    if let Some(state) = state::state() {
        FINISHED.store(true, Ordering::Relaxed);
        apply(state, text, CostOrigin::Measured);
    }
    if let Some(links) = LINKS.get() {
        tree::share(own_name(&links.library), text);
    }
}

fn apply(state: &State, text: &str, origin: CostOrigin) {
    let costs = costs::rails_in(text)
        .and_then(|found| costs::with_measured(&state.rails, &state.settings, &found));
    let Ok(costs) = costs else { return };
    // Parameters given by the user are not measured again.
    let measured = state.settings.rails.is_empty() && state.settings.network.is_empty();
    if go_on_with(state, &costs, origin) && state.settings.remeasure && measured {
        watch(state).measure_again(&costs);
    }
}

fn go_on_with(state: &State, costs: &[LogGp], origin: CostOrigin) -> bool {
    if state.scheduler.set_costs(costs).is_err() {
        return false;
    }
    *state
        .source
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = origin.to_string();
    state.weigh_all();
    true
}

fn watch(state: &State) -> &'static RailWatch {
    WATCH.get_or_init(|| RailWatch::new(&state.rails, state.accounts))
}

/// Replaces the parameters if the rails have changed since they were measured, and avoids stuck rails.
#[inline]
fn look(state: &'static State) {
    let Some(found) = watch(state).look(&state.rails, state.scheduler.costs()) else {
        return;
    };
    if let Some(event_loop) = &state.event_loop {
        event_loop.take_events();
    }
    let tells = state.settings.verbose > 1 || own_name(&state.library).vpid == 0;
    if let Some(stuck) = found.stuck {
        state.avoid(&stuck);
        if tells {
            report_stuck(state, &stuck);
        }
    }
    if let Some(costs) = found.costs
        && go_on_with(state, &costs, CostOrigin::Watched)
        && tells
    {
        let all: Vec<String> = state
            .rails
            .iter()
            .zip(&costs)
            .map(|(rail, cost): (&RailModule, &LogGp)| {
                format!("{} {:.3} ns/B", rail.name, cost.gap_per_byte.as_nanos())
            })
            .collect();
        log(
            state,
            &format!("the networks have changed; now {}", all.join(", ")),
        );
    }
}

fn report_stuck(state: &State, stuck: &BTreeSet<PeerPath>) {
    let names: BTreeSet<&str> = stuck
        .iter()
        .map(|path| state.rail(path.rail).name.as_str())
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    log(
        state,
        &if names.is_empty() {
            "every network moves again".to_owned()
        } else {
            format!(
                "nothing moves on {} connections over {}; they get no new messages until it does",
                stuck.len(),
                names.join(", ")
            )
        },
    );
}

fn own_name(library: &OpenMpiLibrary) -> ProcessName {
    // SAFETY: this process, which the library knows before it looks for networks.
    unsafe { (*(library.local_process)()).proc_name }
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}

fn log(state: &State, what: &str) {
    if state.settings.verbose > 0 {
        library::say(&format!("bml flowcast: {what}"));
    }
}

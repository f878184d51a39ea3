//! The BML module: `r2` does the work, and we learn which processes are reached over several rails.

use std::{
    ffi::{c_int, c_void},
    sync::atomic::Ordering,
};

use flowcast_scheduler::RailSet;

use crate::{
    bindings::{BmlComponent, BmlModule, BtlModule, ErrorCallback, OmpiProc, SUCCESS},
    hooks, measure,
    polling::EventLoop,
    state::{State, state},
    table,
};

/// Builds the module for the framework: `r2`'s module, with replacements for the functions whose calls we have to see.
pub(crate) fn over(r2: &BmlModule, component: *const BmlComponent) -> BmlModule {
    BmlModule {
        bml_component: component,
        bml_add_proc: Some(add_proc),
        bml_add_procs: Some(add_procs),
        bml_del_procs: Some(del_procs),
        bml_del_btl: Some(del_btl),
        bml_del_proc_btl: Some(del_proc_btl),
        bml_register_error: Some(register_error),
        bml_finalize: Some(finalize),
        ..*r2
    }
}

fn known() -> &'static State {
    state().expect("the module is handed out when there is a state")
}

/// Returns all events to Open MPI's loop, so that connections may be removed until the guard is dropped.
fn give_events_back(state: &State) -> Option<impl Drop> {
    state.event_loop.as_ref().map(EventLoop::give_back)
}

/// Called when ob1 first sends to a process.
pub(crate) unsafe extern "C" fn add_proc(process: *mut OmpiProc) -> c_int {
    let state = known();
    let Some(original) = state.r2.bml_add_proc else {
        return SUCCESS;
    };
    // SAFETY: the framework's process.
    unsafe {
        let done = original(process);
        if done == SUCCESS {
            state.add(process);
        }
        done
    }
}

unsafe extern "C" fn add_procs(
    count: usize,
    processes: *mut *mut OmpiProc,
    reachable: *mut c_void,
) -> c_int {
    let state = known();
    let Some(original) = state.r2.bml_add_procs else {
        return SUCCESS;
    };
    // SAFETY: the framework's processes; those that r2 could not add have no endpoint.
    unsafe {
        let done = original(count, processes, reachable);
        (0..count).for_each(|index| state.add(*processes.add(index)));
        done
    }
}

unsafe extern "C" fn del_procs(count: usize, processes: *mut *mut OmpiProc) -> c_int {
    let state = known();
    let _none_taken = give_events_back(state);
    // SAFETY: the framework's processes, which are removed here before r2 frees their endpoints.
    unsafe {
        (0..count).for_each(|index| state.forget(*processes.add(index)));
        state
            .r2
            .bml_del_procs
            .map_or(SUCCESS, |original| original(count, processes))
    }
}

/// Called when a network is gone for one process.
unsafe extern "C" fn del_proc_btl(process: *mut OmpiProc, module: *mut BtlModule) -> c_int {
    let state = known();
    let _none_taken = give_events_back(state);
    // SAFETY: the framework's process.
    unsafe {
        if let (Some(rail), Some(endpoint)) = (
            state.rail_of(module),
            crate::state::bml_endpoint(process).as_ref(),
        ) {
            let entries = crate::state::entries(&endpoint.btl_send);
            entries
                .iter()
                .filter_map(|entry| state.peers.find(entry.btl_endpoint))
                .for_each(|peer| peer.lose(rail));
        }
        let done = state
            .r2
            .bml_del_proc_btl
            .map_or(SUCCESS, |original| original(process, module));
        state.weigh_all();
        done
    }
}

/// Called when a network is gone for all processes; `r2` closes it.
unsafe extern "C" fn del_btl(module: *mut BtlModule) -> c_int {
    let state = known();
    let _none_taken = give_events_back(state);
    if let Some(rail) = state.rail_of(module) {
        state
            .lost
            .fetch_or(RailSet::NONE.with(rail).bits(), Ordering::Relaxed);
        // SAFETY: r2 closes the module after this.
        unsafe { hooks::remove(state.rail(rail)) };
    }
    // SAFETY: the framework's module.
    unsafe {
        state
            .r2
            .bml_del_btl
            .map_or(SUCCESS, |original| original(module))
    }
}

/// Last call of ob1 after it has added processes. ob1 has registered its handlers by now, and no process has passed the
/// barrier at the end of `MPI_Init` yet.
unsafe extern "C" fn register_error(callback: Option<ErrorCallback>) -> c_int {
    let state = known();
    // SAFETY: ob1's callback.
    let done = unsafe {
        state
            .r2
            .bml_register_error
            .map_or(SUCCESS, |original| original(callback))
    };
    measure::at_start(state);
    done
}

unsafe extern "C" fn finalize() -> c_int {
    let state = known();
    measure::stop(&state.library);
    table::report(state);
    let _none_taken = give_events_back(state);
    let lost = RailSet::from_bits(state.lost.load(Ordering::Relaxed));
    for (index, rail) in state.rails.iter().enumerate() {
        if !lost.contains(flowcast_scheduler::RailId(index as u8)) {
            // SAFETY: the module exists until its BTL closes.
            unsafe { hooks::remove(rail) };
        }
    }
    // SAFETY: the framework's call.
    unsafe { state.r2.bml_finalize.map_or(SUCCESS, |original| original()) }
}

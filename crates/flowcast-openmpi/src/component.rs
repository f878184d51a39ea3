//! Definition of the component for the framework and `ompi_info`, and its start.

use std::ffi::{c_char, c_int};

use flowcast_scheduler::MAX_RAILS;

use crate::{
    Refusal, accounts,
    bindings::{
        BmlComponent, BmlModule, BtlModule, Component, ComponentData, ListItem, SUCCESS,
        SelectedBtl,
    },
    connections::{self, AddressKey},
    costs::{self, CostOrigin},
    hooks, interfaces,
    library::{self, OpenMpiLibrary},
    measure, module,
    parameters::{self, ComponentSettings},
    peers::EndpointMap,
    pieces,
    polling::EventLoop,
    scheduler::ComponentScheduler,
    state::{self, RailModule, State},
};

/// Priority of the component. Open MPI uses only the BML component with the highest priority.
const PRIORITY: c_int = 200;

/// Symbol that Open MPI looks up in `mca_bml_flowcast.so`.
#[unsafe(no_mangle)]
pub(crate) static mca_bml_flowcast_component: BmlComponent = BmlComponent {
    bml_version: Component {
        mca_major_version: 2,
        mca_minor_version: 1,
        mca_release_version: 0,
        mca_project_name: name(b"ompi"),
        mca_project_major_version: 4,
        mca_project_minor_version: 1,
        mca_project_release_version: 4,
        mca_type_name: name(b"bml"),
        mca_type_major_version: 2,
        mca_type_minor_version: 0,
        mca_type_release_version: 0,
        mca_component_name: name(b"flowcast"),
        mca_component_major_version: 0,
        mca_component_minor_version: 1,
        mca_component_release_version: 0,
        mca_open_component: Some(succeed),
        mca_close_component: Some(succeed),
        mca_query_component: None,
        mca_register_component_params: Some(register),
        mca_component_flags: 0,
        reserved: [0; 28],
    },
    // MCA_BASE_METADATA_PARAM_CHECKPOINT, the same as in r2.
    bml_data: ComponentData {
        param_field: 2,
        reserved: [0; 32],
    },
    bml_init: Some(init),
};

// SAFETY: the only instance is constant; C reads it from any thread.
unsafe impl Sync for BmlComponent {}

const fn name<const LENGTH: usize>(text: &[u8]) -> [c_char; LENGTH] {
    assert!(text.len() < LENGTH, "a name ends with a zero");
    let mut name = [0; LENGTH];
    let mut at = 0;
    while at < text.len() {
        name[at] = text[at] as c_char;
        at += 1;
    }
    name
}

pub(crate) fn address() -> *const BmlComponent {
    &raw const mca_bml_flowcast_component
}

unsafe extern "C" fn register() -> c_int {
    parameters::register(address());
    SUCCESS
}

/// Opening and closing require no work.
unsafe extern "C" fn succeed() -> c_int {
    SUCCESS
}

/// Returns our module, or `r2`'s module if we step aside. Returns null if the framework has opened `r2` itself, or if `r2`
/// cannot be started.
unsafe extern "C" fn init(
    priority: *mut c_int,
    progress_threads: bool,
    mpi_threads: bool,
) -> *mut BmlModule {
    let r2 = match start_r2(priority, progress_threads, mpi_threads) {
        Ok(r2) => r2,
        Err(refusal) => {
            step_aside(&refusal);
            return std::ptr::null_mut();
        }
    };
    // SAFETY: the framework's place for our priority.
    unsafe { *priority = PRIORITY };
    begin(r2).unwrap_or_else(|refusal| {
        step_aside(&refusal);
        r2
    })
}

/// Prints one line from the first rank if the user requested the component. An installed component is opened in every run,
/// so it stays silent otherwise.
fn step_aside(refusal: &Refusal) {
    let wanted =
        std::env::var("OMPI_MCA_bml").is_ok_and(|selection| selection.contains("flowcast"));
    if !wanted || std::env::var("OMPI_COMM_WORLD_RANK").is_ok_and(|rank| rank != "0") {
        return;
    }
    library::say(&format!(
        "bml flowcast steps aside, only r2 works: {refusal}"
    ));
}

fn start_r2(
    priority: *mut c_int,
    progress_threads: bool,
    mpi_threads: bool,
) -> Result<*mut BmlModule, Refusal> {
    if library::r2_is_open()? {
        return Err(Refusal::R2Open);
    }
    let component = library::open_r2()?;
    library::stay_loaded();
    // SAFETY: the component has the MCA version that both sides use, or our own would not have been loaded. The framework
    // would make the same calls in the same order.
    let module = unsafe {
        if let Some(register) = (*component).bml_version.mca_register_component_params {
            register();
        }
        (*component).bml_init.map_or(std::ptr::null_mut(), |init| {
            init(priority, progress_threads, mpi_threads)
        })
    };
    if module.is_null() {
        Err(Refusal::NoR2)
    } else {
        Ok(module)
    }
}

fn begin(r2: *mut BmlModule) -> Result<*mut BmlModule, Refusal> {
    if state::state().is_some() {
        return Err(Refusal::SecondStart);
    }
    let library = OpenMpiLibrary::find()?;
    // SAFETY: the module of r2, with the layout of the series checked above. Where the framework's part of it is shorter,
    // private fields of r2 follow.
    let r2 = unsafe { *r2 };
    measure::listen(&library, r2);
    pieces::listen(&library);
    let settings = ComponentSettings::read()?;
    let rails = rails(&library)?;
    let (costs, origin) = costs::known_costs(&rails, &settings)?;
    let names: Vec<&str> = rails.iter().map(|rail| rail.name.as_str()).collect();
    let accounts = accounts::of_job_on_node(&names);
    let scheduler = ComponentScheduler::new(settings.scheduler, &costs, accounts)
        .map_err(|error| Refusal::parameter("rails", error))?;
    let own_addresses = connections::addresses(&names)
        .into_iter()
        .map(|address| address.map(AddressKey::from).unwrap_or_default())
        .collect();
    let source = std::sync::Mutex::new(origin.to_string());
    let lost = std::sync::atomic::AtomicU16::new(0);
    let event_loop = settings.epoll.then(EventLoop::find).flatten();
    let complete = origin == CostOrigin::Given;
    let state = State {
        library,
        r2,
        settings,
        rails,
        peers: EndpointMap::default(),
        scheduler,
        own_addresses,
        accounts,
        event_loop,
        lost,
        source,
    };
    let state = state::keep(state);
    // SAFETY: initialised modules that the state contains.
    state
        .rails
        .iter()
        .for_each(|rail| unsafe { hooks::install(rail) });
    measure::expect(complete);
    Ok(Box::into_raw(Box::new(module::over(&r2, address()))))
}

/// Returns the networks that share BTL and exclusivity with another network: they reach a process at the same time.
///
/// Networks of different BTLs reach a process at the same time if users set their exclusivities accordingly. ob1 still
/// chooses among those: a message that ob1 had prepared for shared memory and that was sent over TCP was observed to hang.
fn rails(library: &OpenMpiLibrary) -> Result<Vec<RailModule>, Refusal> {
    let modules = modules(library);
    let together: Vec<*mut BtlModule> = modules
        .iter()
        .filter(|module: &&*mut BtlModule| {
            modules
                .iter()
                .filter(|other| kind(other) == kind(module))
                .count()
                > 1
        })
        .copied()
        .take(MAX_RAILS)
        .collect();
    let names = interfaces::names(library, &together);
    // SAFETY: initialised modules.
    let rails: Vec<RailModule> = together
        .into_iter()
        .zip(names)
        .filter_map(|(module, name)| unsafe { RailModule::new(module, name) })
        .collect();
    if rails.len() < 2 {
        let all: Vec<String> = modules
            .iter()
            .map(|module| interfaces::component_name(*module))
            .collect();
        let found = if all.is_empty() {
            "no network".to_owned()
        } else {
            all.join(", ")
        };
        return Err(Refusal::OneRail(found));
    }
    Ok(rails)
}

fn kind(module: &*mut BtlModule) -> (String, u32) {
    // SAFETY: an initialised module.
    (interfaces::component_name(*module), unsafe {
        (**module).btl_exclusivity
    })
}

/// Returns the modules of all BTLs except the one for messages to the process itself.
fn modules(library: &OpenMpiLibrary) -> Vec<*mut BtlModule> {
    let mut modules = Vec::new();
    // SAFETY: a list of the library; its sentinel closes the ring.
    unsafe {
        let end = (&raw const (*library.btl_modules).opal_list_sentinel).cast_mut();
        let mut item: *mut ListItem = (*end).opal_list_next;
        while item != end && !item.is_null() {
            modules.push((*item.cast::<SelectedBtl>()).btl_module);
            item = (*item).opal_list_next;
        }
    }
    modules.retain(|module| interfaces::component_name(*module) != "self");
    modules
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn the_component_contains_its_name() {
        let version = &mca_bml_flowcast_component.bml_version;
        // SAFETY: the name ends with a zero.
        let text = |name: &[c_char]| unsafe { CStr::from_ptr(name.as_ptr()) };
        assert_eq!(text(&version.mca_component_name), c"flowcast");
        assert_eq!(text(&version.mca_type_name), c"bml");
    }
}

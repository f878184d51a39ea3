//! Parameters of the component, which `ompi_info --all` lists and `--mca bml_flowcast_NAME VALUE` sets.

use std::{
    ffi::{CStr, c_char, c_int},
    path::PathBuf,
    ptr,
    time::Duration,
};

use flowcast_scheduler::{RailsError, discipline::SchedulerName};

use crate::{
    Refusal,
    bindings::{BmlComponent, INFO_LEVEL_3, VAR_SCOPE_READONLY, VAR_TYPE_INT, VAR_TYPE_STRING},
    library,
};

/// Longest duration of the measurement at start-up, in milliseconds.
const LONGEST_MEASUREMENT: c_int = 200;

/// Default length from which messages are divided if that delivers them earlier, in bytes, including headers of ob1.
const SPLIT_FROM: c_int = 8192;

/// Storage of the values. Open MPI writes them while the component registers, before anything else runs.
static mut VALUES: ParameterValues = ParameterValues {
    scheduler: c"earliest-delivery".as_ptr(),
    rails: c"".as_ptr(),
    network: c"".as_ptr(),
    measure: c"stored".as_ptr(),
    store: c"".as_ptr(),
    counters: c"".as_ptr(),
    measure_ms: LONGEST_MEASUREMENT,
    stripe: 1,
    split_from: SPLIT_FROM,
    remeasure: 1,
    epoll: 1,
    verbose: 0,
};

#[derive(Clone, Copy)]
struct ParameterValues {
    scheduler: *const c_char,
    rails: *const c_char,
    network: *const c_char,
    measure: *const c_char,
    store: *const c_char,
    counters: *const c_char,
    measure_ms: c_int,
    stripe: c_int,
    split_from: c_int,
    remeasure: c_int,
    epoll: c_int,
    verbose: c_int,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Only if no earlier result is stored.
    Stored,
    Always,
    Never,
}

/// The user's settings, read from the registered parameters and checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ComponentSettings {
    pub scheduler: SchedulerName,
    /// Parameters of each rail: `eth1=g,G,o,Lus; ...`.
    pub rails: String,
    /// Network files of the rails: `eth1=FILE, ...`.
    pub network: String,
    pub measure: When,
    /// Longest duration of the measurement.
    pub measure_for: Duration,
    /// Folder for results of measurements.
    pub store: Option<PathBuf>,
    /// Prefix of the files for the final counts; the rank is appended.
    pub counters: Option<PathBuf>,
    /// `true` if long messages are split by the rails' bandwidths.
    pub stripe: bool,
    /// Length from which messages are divided, in bytes, headers of ob1 included; `None` if no message is divided.
    pub split_from: Option<usize>,
    /// `true` if measured networks are watched and estimated again from their traffic.
    pub remeasure: bool,
    /// `true` if epoll waits for sockets that Open MPI would poll.
    pub epoll: bool,
    /// Verbosity: no output, actions of rank 0, actions of every rank.
    pub verbose: c_int,
}

/// Registers the parameters with Open MPI, which immediately sets them from the command line, the environment and its files.
pub(crate) fn register(component: *const BmlComponent) {
    let values = &raw mut VALUES;
    let text = |name: &CStr, help: &CStr, place: *mut *const c_char| {
        variable(component, name, help, VAR_TYPE_STRING, place.cast());
    };
    let number = |name: &CStr, help: &CStr, place: *mut c_int| {
        variable(component, name, help, VAR_TYPE_INT, place.cast())
    };
    // SAFETY: places in a static that only this thread uses now.
    unsafe {
        let values = &mut *values;
        text(c"scheduler", c"Scheduler that chooses the network of a message: any of `flowcast rails simulate`, such as earliest-delivery, latency, vft, wfq, round-robin", &raw mut values.scheduler);
        text(c"rails", c"LogGP parameters by interface: NAME=g,G,o,Lus in microseconds (per byte for G), separated by semicolons", &raw mut values.rails);
        text(c"network", c"LogGP parameters by file: NAME=FILE with a Flowcast network file (flowcast fit -o FILE), separated by commas", &raw mut values.network);
        text(c"measure", c"Measure missing parameters while MPI starts: stored (unless an earlier result is stored), always, never", &raw mut values.measure);
        number(
            c"measure_ms",
            c"Longest time of the measurement at start-up, in milliseconds, at most 200",
            &raw mut values.measure_ms,
        );
        text(c"store", c"Folder of stored results; `none` stores nothing (default: $XDG_DATA_HOME/flowcast/networks or ~/.local/share/flowcast/networks)", &raw mut values.store);
        number(
            c"stripe",
            c"Split long messages over the networks in proportion to their bandwidths; \
              0 leaves the shares to Open MPI's btl_tcp_bandwidth",
            &raw mut values.stripe,
        );
        number(
            c"split_from",
            c"Smallest message, in bytes, that is split over several networks if that delivers it earlier \
              (only earliest-delivery); 0 splits no messages",
            &raw mut values.split_from,
        );
        number(
            c"remeasure",
            c"Measure the networks again from the traffic while the program runs; 0 keeps the results of start-up",
            &raw mut values.remeasure,
        );
        number(
            c"epoll",
            c"Wait for the sockets with one epoll instance if Open MPI would poll them one by one; \
              0 leaves them to Open MPI",
            &raw mut values.epoll,
        );
        number(
            c"verbose",
            c"1: rank 0 reports the origin of the parameters and, at the end, the traffic of each network; \
              2: every rank does",
            &raw mut values.verbose,
        );
        text(
            c"counters",
            c"Write the traffic of each network to FILE.RANK.json at the end",
            &raw mut values.counters,
        );
    }
}

fn variable(
    component: *const BmlComponent,
    name: &CStr,
    help: &CStr,
    kind: c_int,
    place: *mut std::ffi::c_void,
) {
    let Some(register) = library::register_variable() else {
        return;
    };
    // SAFETY: C strings; the component begins with the common part; the place has the type that `kind` names.
    unsafe {
        register(
            component.cast(),
            name.as_ptr(),
            help.as_ptr(),
            kind,
            ptr::null_mut(),
            0,
            0,
            INFO_LEVEL_3,
            VAR_SCOPE_READONLY,
            place,
        );
    }
}

impl ComponentSettings {
    /// Reads the user's settings.
    ///
    /// # Errors
    /// An unknown scheduler, or an invalid value of a parameter.
    pub(crate) fn read() -> Result<ComponentSettings, Refusal> {
        // SAFETY: registered before; C strings or null.
        unsafe {
            let values = VALUES;
            let text = |place: *const c_char| {
                if place.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(place).to_string_lossy().trim().to_owned()
                }
            };
            Ok(ComponentSettings {
                scheduler: scheduler(&text(values.scheduler))?,
                rails: text(values.rails),
                network: text(values.network),
                measure: when(&text(values.measure))?,
                measure_for: measure_for(values.measure_ms)?,
                store: match text(values.store).as_str() {
                    "none" => None,
                    "" => default_store(|name| std::env::var_os(name).map(PathBuf::from)),
                    folder => Some(folder.into()),
                },
                counters: path(text(values.counters)),
                stripe: values.stripe != 0,
                split_from: usize::try_from(values.split_from)
                    .ok()
                    .filter(|from| *from > 0),
                remeasure: values.remeasure != 0,
                epoll: values.epoll != 0,
                verbose: values.verbose,
            })
        }
    }
}

fn path(text: String) -> Option<PathBuf> {
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn scheduler(text: &str) -> Result<SchedulerName, Refusal> {
    text.parse()
        .map_err(|error: RailsError| Refusal::parameter("scheduler", error))
}

fn when(text: &str) -> Result<When, Refusal> {
    match text {
        "stored" => Ok(When::Stored),
        "always" => Ok(When::Always),
        "never" => Ok(When::Never),
        _ => Err(Refusal::parameter(
            "measure",
            format!("found `{text}`, expected stored, always or never"),
        )),
    }
}

fn measure_for(millis: c_int) -> Result<Duration, Refusal> {
    match u64::try_from(millis) {
        Ok(millis) if millis <= LONGEST_MEASUREMENT as u64 => Ok(Duration::from_millis(millis)),
        _ => {
            let problem =
                format!("found {millis}, expected 0 to {LONGEST_MEASUREMENT} milliseconds");
            Err(Refusal::parameter("measure_ms", problem))
        }
    }
}

fn default_store(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    Some(data?.join("flowcast").join("networks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_refused_with_the_valid_ones() {
        assert!(
            scheduler("fastest")
                .unwrap_err()
                .to_string()
                .contains("bml_flowcast_scheduler: scheduler: found")
        );
        assert!(
            when("often")
                .unwrap_err()
                .to_string()
                .contains("`often`, expected stored")
        );
        assert!(
            measure_for(201)
                .unwrap_err()
                .to_string()
                .contains("found 201")
        );
        assert!(measure_for(-1).is_err());
        assert_eq!(measure_for(0), Ok(Duration::ZERO));
    }

    #[test]
    fn results_are_stored_where_networks_are_kept() {
        assert_eq!(
            default_store(|name: &str| (name == "HOME").then(|| PathBuf::from("/home/me"))),
            Some("/home/me/.local/share/flowcast/networks".into())
        );
        assert_eq!(
            default_store(|name: &str| {
                Some(PathBuf::from(if name == "HOME" {
                    "/home/me"
                } else {
                    "/data"
                }))
            }),
            Some("/data/flowcast/networks".into())
        );
        assert_eq!(default_store(|_| None), None);
    }
}

//! Replay and rail schedulers for C programs. `include/flowcast.h` documents the functions.
//!
//! The header is maintained by hand beside this file. `tests/example.rs` compiles a program with it and compares its output
//! with the library's results. A panic of the library becomes an error.

#![expect(unsafe_code, reason = "pointers that C hands over")]

use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    ptr::{null, null_mut, slice_from_raw_parts},
};

use anyhow::{Context, Result, anyhow};
use flowcast::{
    model::network::Network,
    replay::outcome::Outcome,
    scheduler::{
        MAX_RAILS, Rail, RailSet,
        clock::Ticks,
        discipline::{BoxedScheduler, SchedulerName},
        turns::Shares,
    },
    study::grid::full_name,
    trace::Trace,
    units::Bytes,
};
use flowcast_io::{
    ReplayRequest, Request, WholeFileReader, first_of_folder, load_network, open_trace, text_of,
    whole_recording,
};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Times of a rank, by activity: `flowcast_rank`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RankTimes {
    /// Finish time, in seconds.
    pub end_s: f64,
    /// Time in the program's own computation, in seconds.
    pub compute_s: f64,
    /// Time waiting for messages and receivers, in seconds.
    pub blocked_s: f64,
    /// Processor time for messages, in seconds.
    pub overhead_s: f64,
}

/// Scheduler, used by one thread at a time: `flowcast_rails`.
pub struct Rails(BoxedScheduler<Ticks>);

/// Predicted times of a trace on a network, with notes: `flowcast_prediction`.
pub struct NotedOutcome {
    outcome: Outcome,
    notes: CString,
}

/// JSON document of an answer: `flowcast_answer`.
pub struct AnswerText(CString);

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("NUL characters were replaced")
}

/// Returns the result of the work as an object that C owns. Stores the error for this thread if the work fails; null is
/// returned then.
fn given<T>(work: impl FnOnce() -> Result<T>) -> *mut T {
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(anyhow!("internal error of flowcast")));
    let (value, text) = match result {
        Ok(value) => (Box::into_raw(Box::new(value)), String::new()),
        Err(error) => (null_mut(), text_of(&error)),
    };
    ERROR.set(c_text(&text));
    value
}

/// # Safety
/// `text` must be null or a text that ends with a zero.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str> {
    anyhow::ensure!(!text.is_null(), "{name}: found NULL, expected a string");
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .ok()
        .with_context(|| format!("{name}: found bytes that are not UTF-8, expected a UTF-8 string"))
}

/// # Safety
/// `object` must be null or returned by a function of this library, and not freed.
unsafe fn object<'a, T>(object: *const T, name: &str) -> Result<&'a T> {
    // SAFETY: as the caller promises.
    unsafe { object.as_ref() }.with_context(|| format!("{name}: found NULL, expected an object"))
}

/// # Safety
/// `object` must be null or returned by a function of this library, and not used any more.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: as the caller promises; it was boxed here.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// Version of the library as text that ends in a zero byte. It is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn flowcast_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Error of this thread's last call.
#[unsafe(no_mangle)]
pub extern "C" fn flowcast_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// Reads a trace. An incomplete recording is refused.
///
/// # Safety
/// `path` must be a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_trace_open(path: *const c_char) -> *mut Trace {
    given(|| {
        // SAFETY: as the caller promises.
        let path = Path::new(unsafe { text(path, "path") }?);
        let first = if path.is_dir() {
            first_of_folder(path)?
        } else {
            path.to_owned()
        };
        let trace = open_trace(&first, &first.display().to_string(), &mut WholeFileReader)?;
        whole_recording(&trace)?;
        Ok(trace)
    })
}

/// Frees a trace.
///
/// # Safety
/// The trace must come from this library and must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_trace_free(trace: *mut Trace) {
    // SAFETY: as the caller promises.
    unsafe { free(trace) }
}

/// Loads a network by name.
///
/// # Safety
/// `name` must be a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_network_load(name: *const c_char) -> *mut Network {
    // SAFETY: as the caller promises.
    given(|| Ok(load_network(unsafe { text(name, "name") }?, &[], &mut WholeFileReader)?.network))
}

/// Copy of a network with another value of a field.
///
/// # Safety
/// The network must come from this library; the texts must end with zeroes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_network_with(
    network: *const Network,
    field: *const c_char,
    value: *const c_char,
) -> *mut Network {
    given(|| {
        // SAFETY: as the caller promises.
        let (network, field, value) = unsafe {
            (
                object(network, "network")?,
                text(field, "field")?,
                text(value, "value")?,
            )
        };
        Ok(network.with_overrides(&[(full_name(field), value.to_owned())])?)
    })
}

/// Frees a network.
///
/// # Safety
/// The network must come from this library and must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_network_free(network: *mut Network) {
    // SAFETY: as the caller promises.
    unsafe { free(network) }
}

/// Replays a trace on a network.
///
/// # Safety
/// Trace and network must come from this library; `model` must be null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_predict(
    trace: *const Trace,
    network: *const Network,
    model: *const c_char,
) -> *mut NotedOutcome {
    given(|| {
        // SAFETY: as the caller promises.
        let (trace, network) = unsafe { (object(trace, "trace")?, object(network, "network")?) };
        // SAFETY: as the caller promises.
        let model = if model.is_null() {
            None
        } else {
            Some(unsafe { text(model, "model") }?.to_owned())
        };
        let request = ReplayRequest {
            model,
            ..ReplayRequest::default()
        };
        let options = request.options(&mut WholeFileReader)?;
        let prediction = flowcast::predict(trace, network, &options)?;
        Ok(NotedOutcome {
            notes: c_text(&prediction.notes.join("\n")),
            outcome: prediction.outcome,
        })
    })
}

/// Answers a request. The document is JSON text that ends in a zero byte.
///
/// # Safety
/// Trace and network must come from this library, or the network is null; `request` must be a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_answer(
    trace: *const Trace,
    network: *const Network,
    request: *const c_char,
) -> *mut AnswerText {
    given(|| {
        // SAFETY: as the caller promises.
        let (trace, network, request) = unsafe {
            (
                object(trace, "trace")?,
                network.as_ref(),
                text(request, "request")?,
            )
        };
        let request = Request::from_json(request)?;
        let answer = request.answer(|| Ok(trace), network, usize::MAX, &mut WholeFileReader)?;
        Ok(AnswerText(c_text(&answer.json()?.to_string())))
    })
}

/// Text of an answer; null without an answer.
///
/// # Safety
/// The answer must come from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_answer_json(answer: *const AnswerText) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { answer.as_ref() }.map_or(null(), |found| found.0.as_ptr())
}

/// Frees an answer.
///
/// # Safety
/// The answer must come from this library and must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_answer_free(answer: *mut AnswerText) {
    // SAFETY: as the caller promises.
    unsafe { free(answer) }
}

/// Finish time of the last rank, in seconds; NaN without a prediction.
///
/// # Safety
/// The prediction must come from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_makespan_s(prediction: *const NotedOutcome) -> f64 {
    // SAFETY: as the caller promises.
    unsafe { prediction.as_ref() }.map_or(f64::NAN, |found| found.outcome.makespan().as_seconds())
}

/// Number of ranks; 0 without a prediction.
///
/// # Safety
/// The prediction must come from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_ranks(prediction: *const NotedOutcome) -> usize {
    // SAFETY: as the caller promises.
    unsafe { prediction.as_ref() }.map_or(0, |found| found.outcome.ranks.len())
}

/// Writes the times of a rank. Returns 0, or -1 for an invalid rank or a null pointer.
///
/// # Safety
/// The prediction must come from this library; `times` must have room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_rank_times(
    prediction: *const NotedOutcome,
    rank: usize,
    times: *mut RankTimes,
) -> c_int {
    // SAFETY: as the caller promises.
    let found = unsafe { prediction.as_ref() }.and_then(|found| found.outcome.ranks.get(rank));
    let Some(found) = found.filter(|_| !times.is_null()) else {
        return -1;
    };
    let [end_s, compute_s, blocked_s, overhead_s] =
        [found.end, found.compute, found.blocked, found.overhead].map(|time| time.as_seconds());
    // SAFETY: as the caller promises.
    unsafe {
        times.write(RankTimes {
            end_s,
            compute_s,
            blocked_s,
            overhead_s,
        })
    };
    0
}

/// Notes of a prediction, one per line: omissions and assumptions of the replay. Null without a prediction.
///
/// # Safety
/// The prediction must come from this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_notes(prediction: *const NotedOutcome) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { prediction.as_ref() }.map_or(null(), |found| found.notes.as_ptr())
}

/// Frees a prediction.
///
/// # Safety
/// The prediction must come from this library and must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_prediction_free(prediction: *mut NotedOutcome) {
    // SAFETY: as the caller promises.
    unsafe { free(prediction) }
}

/// Creates a scheduler over rails.
///
/// # Safety
/// `rails` must be `count` texts that end with zeroes, as must `scheduler`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_rails_new(
    rails: *const *const c_char,
    count: usize,
    scheduler: *const c_char,
) -> *mut Rails {
    given(|| {
        anyhow::ensure!(
            !rails.is_null(),
            "rails: found NULL, expected an array of strings"
        );
        anyhow::ensure!(
            (1..=MAX_RAILS).contains(&count),
            "rails: found {count}, expected 1 to {MAX_RAILS}"
        );
        // SAFETY: as the caller promises.
        let (rails, name) = unsafe {
            (
                &*slice_from_raw_parts(rails, count),
                text(scheduler, "scheduler")?,
            )
        };
        // SAFETY: as the caller promises.
        let costs = rails
            .iter()
            .map(|rail| Ok(Rail::parse(unsafe { text(*rail, "rails") }?)?.cost))
            .collect::<Result<Vec<_>>>()?;
        let name: SchedulerName = name.parse()?;
        Ok(Rails(name.scheduler::<Ticks>(
            &costs,
            Shares::by_bandwidth(&costs)?,
            (),
        )?))
    })
}

/// Picks the rail of a message. Returns -1 if there is none.
///
/// # Safety
/// The scheduler must come from this library, and no other thread may use it at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_rails_pick(
    rails: *mut Rails,
    now_ns: u64,
    size: u64,
    usable: u16,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(Rails(scheduler)) = (unsafe { rails.as_mut() }) else {
        return -1;
    };
    let rail = scheduler.pick(
        Ticks::from_nanos(now_ns),
        Bytes(size),
        RailSet::from_bits(usable),
    );
    rail.map_or(-1, |rail| c_int::from(rail.0))
}

/// Frees a scheduler.
///
/// # Safety
/// The scheduler must come from this library and must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flowcast_rails_free(rails: *mut Rails) {
    // SAFETY: as the caller promises.
    unsafe { free(rails) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_number_of_rails_is_refused_before_the_list_is_read() {
        let rails = [c"ib=1.4,0.00103,1.4,2.82us".as_ptr()];
        for count in [0, MAX_RAILS + 1, usize::MAX] {
            // SAFETY: the list is not read.
            let made = unsafe { flowcast_rails_new(rails.as_ptr(), count, c"gap".as_ptr()) };
            assert!(made.is_null(), "{count}");
        }
        // SAFETY: a list of one text, and the object that was made from it.
        unsafe { flowcast_rails_free(flowcast_rails_new(rails.as_ptr(), 1, c"gap".as_ptr())) };
    }

    fn error() -> String {
        // SAFETY: the text stays until the next call of this thread.
        unsafe { CStr::from_ptr(flowcast_error()) }
            .to_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn any_time_size_and_set_picks_an_existing_rail_or_none() {
        let texts = [
            c"a=1.4,0.001,1.4,2.8us",
            c"b=5,0.02,5,30us",
            c"c=0,1e24,0,1e24us",
        ];
        let rails = texts.map(CStr::as_ptr);
        let ends = [0, 1, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        for name in SchedulerName::every() {
            let name = CString::new(name.to_string()).unwrap();
            for count in 1..=rails.len() {
                // SAFETY: the list has `count` texts.
                let made = unsafe { flowcast_rails_new(rails.as_ptr(), count, name.as_ptr()) };
                assert!(!made.is_null(), "{name:?}: {}", error());
                // The header forbids decreasing times, but they must not cause a failure.
                for now in ends.into_iter().chain(ends.into_iter().rev()) {
                    for (size, usable) in ends.into_iter().zip([0, 1, 4, 0xfff8, u16::MAX]) {
                        // SAFETY: no other thread uses it.
                        let rail = unsafe { flowcast_rails_pick(made, now, size, usable) };
                        let is_there = (0..count as c_int).contains(&rail);
                        assert!(
                            rail == -1 || is_there && usable >> rail & 1 == 1,
                            "{name:?}: {rail} of {usable:b}"
                        );
                    }
                }
                // SAFETY: it was made here.
                unsafe { flowcast_rails_free(made) };
            }
        }
    }

    #[test]
    fn missing_and_invalid_strings_are_errors() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ring.dim");
        let (path, gige) = (CString::new(path).unwrap(), c"gige-tcp");
        // SAFETY: texts that end with zeroes, null pointers, and objects of this library.
        unsafe {
            let null = null();
            for text in [
                null,
                c"\xff\xfe".as_ptr(),
                c"".as_ptr(),
                c"/".as_ptr(),
                c"/nowhere/\n".as_ptr(),
            ] {
                assert!(flowcast_trace_open(text).is_null() && !error().is_empty());
                assert!(flowcast_network_load(text).is_null() && !error().is_empty());
            }
            let (trace, network) = (
                flowcast_trace_open(path.as_ptr()),
                flowcast_network_load(gige.as_ptr()),
            );
            for (field, value) in [
                (null, null),
                (c"nic.latency".as_ptr(), null),
                (c"nic.latency".as_ptr(), c"NaN".as_ptr()),
            ] {
                assert!(
                    flowcast_network_with(network, field, value).is_null() && !error().is_empty()
                );
            }
            assert!(
                flowcast_network_with(std::ptr::null(), c"nic.latency".as_ptr(), c"1us".as_ptr())
                    .is_null()
            );
            assert!(
                flowcast_predict(std::ptr::null(), network, null).is_null() && !error().is_empty()
            );
            assert!(
                flowcast_predict(trace, std::ptr::null(), null).is_null() && !error().is_empty()
            );
            assert!(
                flowcast_predict(trace, network, c"\xff".as_ptr()).is_null() && !error().is_empty()
            );
            let prediction = flowcast_predict(trace, network, null);
            assert_eq!((error(), flowcast_ranks(prediction)), (String::new(), 3));
            let mut times = RankTimes {
                end_s: -1.0,
                compute_s: 0.0,
                blocked_s: 0.0,
                overhead_s: 0.0,
            };
            for (of, rank, into) in [
                (prediction.cast_const(), 3, &raw mut times),
                (prediction, usize::MAX, &raw mut times),
                (prediction, 0, null_mut()),
                (std::ptr::null(), 0, &raw mut times),
            ] {
                assert_eq!(
                    (flowcast_rank_times(of, rank, into), times.end_s),
                    (-1, -1.0)
                );
            }
            assert!(
                flowcast_makespan_s(std::ptr::null()).is_nan()
                    && flowcast_ranks(std::ptr::null()) == 0
                    && flowcast_notes(std::ptr::null()).is_null()
            );
            assert_eq!(flowcast_rails_pick(null_mut(), 0, 0, 1), -1);
            assert!(flowcast_rails_new([null].as_ptr(), 1, c"gap".as_ptr()).is_null());
            flowcast_prediction_free(prediction);
            flowcast_network_free(network);
            flowcast_trace_free(trace);
            // Freeing a null pointer does nothing.
            flowcast_prediction_free(null_mut());
            flowcast_network_free(null_mut());
            flowcast_trace_free(null_mut());
            flowcast_rails_free(null_mut());
        }
    }

    #[test]
    fn notes_say_what_the_replay_assumes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heat.rec");
        let path = CString::new(path).unwrap();
        // SAFETY: texts that end with zeroes, and objects of this library.
        unsafe {
            let trace = flowcast_trace_open(path.as_ptr());
            let network = flowcast_network_load(c"gige-tcp".as_ptr());
            let prediction = flowcast_predict(trace, network, std::ptr::null());
            let notes = CStr::from_ptr(flowcast_notes(prediction)).to_str().unwrap();
            let noted = |note: &str| note.starts_with("computation is measured in thread CPU time");
            assert!(notes.lines().any(noted), "{notes}");
            flowcast_prediction_free(prediction);
            flowcast_network_free(network);
            flowcast_trace_free(trace);
        }
    }

    #[test]
    fn a_recording_that_was_cut_is_refused() {
        let folder = std::env::temp_dir().join(format!("flowcast-c-cut-{}", std::process::id()));
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/heat.rec");
        std::fs::create_dir_all(&folder).unwrap();
        for file in std::fs::read_dir(example).unwrap() {
            let file = file.unwrap();
            let mut bytes = std::fs::read(file.path()).unwrap();
            if file.file_name() == "rank-00001" {
                bytes.truncate(bytes.len() - 40);
            }
            std::fs::write(folder.join(file.file_name()), bytes).unwrap();
        }
        let path = CString::new(folder.to_str().unwrap()).unwrap();
        // SAFETY: a text that ends with a zero.
        assert!(unsafe { flowcast_trace_open(path.as_ptr()) }.is_null());
        assert!(error().contains("not recorded to their end"), "{}", error());
        std::fs::remove_dir_all(folder).unwrap();
    }
}

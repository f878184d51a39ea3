//! Callbacks for the library, which pass on each definition and event.
//!
//! The types of the arguments are those of the callbacks in OTF2's headers. No function here can panic.

use std::ffi::{CStr, c_char, c_int, c_void};

use flowcast::formats::otf2::{Collective, Definitions, Event, Events, Peer};

use super::library::Callback;

type Named = (&'static CStr, fn() -> Callback);

macro_rules! named {
    ($($name:literal => $function:ident),* $(,)?) => { [$(($name, || $function as *const () as Callback)),*] };
}

/// Setters of definition callbacks, with our functions.
pub(crate) const DEFINITIONS: [Named; 7] = named![
    c"OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback" => clock,
    c"OTF2_GlobalDefReaderCallbacks_SetStringCallback" => string,
    c"OTF2_GlobalDefReaderCallbacks_SetRegionCallback" => region,
    c"OTF2_GlobalDefReaderCallbacks_SetGroupCallback" => group,
    c"OTF2_GlobalDefReaderCallbacks_SetCommCallback" => communicator,
    c"OTF2_GlobalDefReaderCallbacks_SetInterCommCallback" => between,
    c"OTF2_GlobalDefReaderCallbacks_SetLocationCallback" => location,
];

/// Setters of event callbacks, with our functions.
pub(crate) const EVENTS: [Named; 17] = named![
    c"OTF2_EvtReaderCallbacks_SetEnterCallback" => enter,
    c"OTF2_EvtReaderCallbacks_SetLeaveCallback" => leave,
    c"OTF2_EvtReaderCallbacks_SetMpiSendCallback" => send,
    c"OTF2_EvtReaderCallbacks_SetMpiIsendCallback" => isend,
    c"OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback" => isend_complete,
    c"OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback" => irecv_posted,
    c"OTF2_EvtReaderCallbacks_SetMpiRecvCallback" => recv,
    c"OTF2_EvtReaderCallbacks_SetMpiIrecvCallback" => irecv,
    c"OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback" => cancelled,
    c"OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback" => collective,
    c"OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback" => collective_posted,
    c"OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback" => collective_complete,
    c"OTF2_EvtReaderCallbacks_SetMeasurementOnOffCallback" => measurement,
    c"OTF2_EvtReaderCallbacks_SetProgramBeginCallback" => program_begin,
    c"OTF2_EvtReaderCallbacks_SetProgramEndCallback" => program_end,
    c"OTF2_EvtReaderCallbacks_SetThreadBeginCallback" => thread_begin,
    c"OTF2_EvtReaderCallbacks_SetThreadEndCallback" => thread_begin,
];

const GO_ON: c_int = 0;
const MEASUREMENT_ON: u8 = 1;

fn define(data: *mut c_void, define: impl FnOnce(&mut Definitions)) -> c_int {
    // SAFETY: this is the data that was registered with these callbacks; nothing else uses it during a call.
    define(unsafe { &mut *data.cast::<Definitions>() });
    GO_ON
}

fn on_event(data: *mut c_void, location: u64, time: u64, event: Event) -> c_int {
    // SAFETY: this is the data that was registered with these callbacks; nothing else uses it during a call.
    unsafe { &mut *data.cast::<Events<'_>>() }.event(location, time, event);
    GO_ON
}

extern "C" fn clock(
    data: *mut c_void,
    ticks: u64,
    _offset: u64,
    _length: u64,
    _real: u64,
) -> c_int {
    define(data, |definitions| definitions.clock(ticks))
}

extern "C" fn string(data: *mut c_void, number: u32, text: *const c_char) -> c_int {
    // SAFETY: the library's text ends in a zero.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    define(data, |definitions| definitions.string(number, &text))
}

#[allow(clippy::too_many_arguments)]
extern "C" fn region(
    data: *mut c_void,
    number: u32,
    name: u32,
    _canonical: u32,
    _description: u32,
    _role: u8,
    paradigm: u8,
    _flags: u32,
    _file: u32,
    _begin: u32,
    _end: u32,
) -> c_int {
    define(data, |definitions| {
        definitions.region(number, name, paradigm)
    })
}

#[allow(clippy::too_many_arguments)]
extern "C" fn group(
    data: *mut c_void,
    number: u32,
    _name: u32,
    kind: u8,
    paradigm: u8,
    _flags: u32,
    count: u32,
    members: *const u64,
) -> c_int {
    let members = if members.is_null() {
        &[]
    } else {
        // SAFETY: the library's list has `count` members.
        unsafe { std::slice::from_raw_parts(members, count as usize) }
    };
    define(data, |definitions| {
        definitions.group(number, kind, paradigm, members)
    })
}

extern "C" fn communicator(
    data: *mut c_void,
    number: u32,
    _name: u32,
    group: u32,
    _parent: u32,
) -> c_int {
    define(data, |definitions| {
        definitions.communicator(number, Some(group))
    })
}

extern "C" fn between(data: *mut c_void, number: u32, _name: u32, own: u32, other: u32) -> c_int {
    define(data, |definitions| {
        definitions.intercommunicator(number, [own, other])
    })
}

extern "C" fn location(
    data: *mut c_void,
    number: u64,
    _name: u32,
    kind: u8,
    _events: u64,
    group: u32,
) -> c_int {
    define(data, |definitions| {
        definitions.location(number, kind, group)
    })
}

macro_rules! events {
    ($($function:ident($($argument:ident: $type:ty),*) => $event:expr;)*) => {
        $(#[allow(clippy::too_many_arguments)]
        extern "C" fn $function(
            location: u64,
            time: u64,
            _position: u64,
            data: *mut c_void,
            _attributes: *mut c_void,
            $($argument: $type),*
        ) -> c_int {
            on_event(data, location, time, $event)
        })*
    };
}

events! {
    enter(region: u32) => Event::Enter(region);
    leave(region: u32) => Event::Leave(region);
    send(rank: u32, communicator: u32, tag: u32, bytes: u64) => Event::Send { to: Peer { rank, communicator, tag }, bytes };
    isend(rank: u32, communicator: u32, tag: u32, bytes: u64, request: u64) =>
        Event::Isend { to: Peer { rank, communicator, tag }, bytes, request };
    isend_complete(request: u64) => Event::IsendComplete(request);
    irecv_posted(request: u64) => Event::IrecvPosted(request);
    recv(rank: u32, communicator: u32, tag: u32, _bytes: u64) => Event::Recv(Peer { rank, communicator, tag });
    irecv(rank: u32, communicator: u32, tag: u32, _bytes: u64, request: u64) =>
        Event::Irecv { from: Peer { rank, communicator, tag }, request };
    cancelled(request: u64) => Event::Cancelled(request);
    collective(operation: u8, communicator: u32, root: u32, sent: u64, received: u64) =>
        Event::Collective(Collective { operation, communicator, root, sent, received });
    collective_posted(request: u64) => Event::CollectivePosted(request);
    collective_complete(operation: u8, communicator: u32, root: u32, sent: u64, received: u64, request: u64) =>
        Event::CollectiveComplete(Collective { operation, communicator, root, sent, received }, request);
    measurement(mode: u8) => Event::Measurement(mode == MEASUREMENT_ON);
    program_begin(_name: u32, _count: u32, _arguments: *const u32) => Event::Other;
    program_end(_status: i64) => Event::Other;
    thread_begin(_contingent: u32, _sequence: u64) => Event::Other;
}

//! What a call did, as the words of its signature; the words of each kind are listed in the library's `form`.

use flowcast_recording::format::{ANY_SOURCE, ANY_TAG, CANCELLED, MATCHED};

use crate::arguments::Arguments;
use crate::communicators::{Group, Key};
use crate::completions::{Completion, is_wildcard};
use crate::encoder::Times;
use crate::functions::{Kind, NONE, Shape};
use crate::requests::{Request, want_statuses};
use crate::session::{Message, Session};
use crate::threads::Thread;

/// A call that has returned.
pub(crate) struct Made<'a> {
    pub arguments: Arguments<'a>,
    pub times: Times,
    /// Whether it said that it failed.
    pub failed: bool,
    /// The requests that it was given to complete.
    pub completion: Option<Completion>,
    /// The handle that it has replaced or freed.
    pub before: Option<Key>,
}

/// Whether a function takes a handle away that has to be looked at before.
#[inline]
pub(crate) fn takes_handle(kind: Kind) -> bool {
    use Kind::*;
    matches!(
        kind,
        RequestFree | CommFree | WinFree | FileClose | Mrecv | Imrecv
    )
}

/// The handle that such a function is given, before it is gone.
pub(crate) fn handle_before(arguments: &Arguments<'_>) -> Key {
    let at = &arguments.function.at;
    let place = [
        at.message,
        at.request,
        at.communicator,
        at.window,
        at.new_file,
    ];
    arguments.key_behind(place.into_iter().find(|place| *place != NONE).unwrap_or(0))
}

pub(crate) fn note(session: &mut Session, thread: &Thread, call: Made<'_>) {
    let function = call.arguments.function;
    if session.off_since.is_some() {
        return note_off(session, &call);
    }
    if session.over {
        return;
    }
    let number = session.encoder.function(function.number, function.name);
    session.words.clear();
    session.words.push(number);
    if call.failed {
        return session.record(thread, call.times);
    }
    let is_done = match function.kind {
        Kind::Send | Kind::Ssend => send(session, &call.arguments),
        Kind::Recv => recv(session, &call.arguments),
        kind if kind.completes() => complete(session, &call),
        _ => rarer(session, &call),
    };
    if is_done {
        session.record(thread, call.times);
    } else {
        session.poll(thread, number, call.times);
    }
}

/// Whether a call has to be known of even while recording is off, because later ones refer to what it made.
pub(crate) fn always_counts(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Comm | Kind::CommFree | Kind::Win | Kind::File | Kind::TypeFree
    )
}

/// While recording is off, what later calls refer to has to be known all the same.
fn note_off(session: &mut Session, call: &Made<'_>) {
    let kind = call.arguments.function.kind;
    if !call.failed && always_counts(kind) {
        session.words.clear();
        rarer(session, call);
    }
}

fn rarer(session: &mut Session, call: &Made<'_>) -> bool {
    let arguments = &call.arguments;
    match arguments.function.kind {
        kind @ (Kind::Isend | Kind::Issend | Kind::SendInit | Kind::SsendInit) => {
            send(session, arguments);
            let persistent = matches!(kind, Kind::SendInit | Kind::SsendInit);
            make_request(
                session,
                arguments,
                Request {
                    persistent,
                    active: !persistent,
                    ..Request::default()
                },
            );
        }
        Kind::Irecv | Kind::RecvInit => irecv(session, arguments),
        Kind::Sendrecv => sendrecv(session, arguments),
        Kind::Probe | Kind::Iprobe | Kind::Mprobe | Kind::Improbe => {
            return probe(session, arguments);
        }
        Kind::Mrecv | Kind::Imrecv => mrecv(session, call),
        Kind::Start | Kind::Startall => start(session, arguments),
        Kind::RequestFree => request_free(session, call.before),
        Kind::Cancel => cancel(session, arguments),
        Kind::Collective | Kind::CollectiveInit => collective(session, arguments),
        Kind::Neighbor | Kind::NeighborInit => between_neighbours(session, arguments),
        Kind::Comm | Kind::Icomm => new_communicator(session, arguments),
        Kind::CommFree => comm_free(session, call.before),
        Kind::TypeFree => session.forget_types(),
        Kind::Rma | Kind::Irma | Kind::Win | Kind::WinFree | Kind::WinSync | Kind::WinTest => {
            return one_sided(session, call);
        }
        Kind::File | Kind::FileClose | Kind::FileSync | Kind::Io | Kind::Iio => file(session, call),
        _ => {}
    }
    true
}

fn bytes(session: &mut Session, arguments: &Arguments<'_>, (count, datatype): (u8, u8)) -> i64 {
    let count = if count == NONE {
        1
    } else {
        arguments.count(count)
    };
    // A count of 0 may come with any datatype.
    if count == 0 || datatype == NONE {
        return 0;
    }
    count.saturating_mul(session.type_size(arguments.key(datatype))) as i64
}

#[inline]
fn send(session: &mut Session, arguments: &Arguments<'_>) -> bool {
    let at = &arguments.function.at;
    let communicator = session.communicator(arguments.key(at.communicator));
    let peer = arguments.peer(arguments.int(at.peer));
    let bytes = bytes(session, arguments, (at.count, at.datatype));
    let tag = i64::from(arguments.int(at.tag));
    session
        .words
        .extend_from_slice(&[i64::from(communicator.number), peer, tag, bytes]);
    true
}

/// Source, tag and flags of a receive; `status` tells what a wildcard matched, if it has.
fn received(arguments: &Arguments<'_>, (source, tag): (u8, u8), status: Option<usize>) -> [i64; 3] {
    let library = arguments.library;
    let (source, tag) = (arguments.int(source), arguments.int(tag));
    let any_source = if source == library.any_source {
        ANY_SOURCE
    } else {
        0
    };
    let any_tag = if tag == library.any_tag { ANY_TAG } else { 0 };
    let flags = any_source | any_tag;
    if flags == 0 || source == library.proc_null {
        return [arguments.peer(source), i64::from(tag), 0];
    }
    match status {
        Some(status) => {
            // SAFETY: a receive from any source was given a status, the program's or a stand-in.
            let (source, tag, _) = unsafe { library.status(status, 0) };
            [arguments.peer(source), i64::from(tag), flags]
        }
        None => [
            if any_source != 0 {
                -1
            } else {
                arguments.peer(source)
            },
            if any_tag != 0 { -1 } else { i64::from(tag) },
            flags,
        ],
    }
}

fn recv(session: &mut Session, arguments: &Arguments<'_>) -> bool {
    receive(
        session,
        arguments,
        Some(arguments.word(arguments.function.at.status)),
    );
    true
}

/// Communicator, source, tag and flags.
fn receive(session: &mut Session, arguments: &Arguments<'_>, status: Option<usize>) -> [i64; 4] {
    let at = &arguments.function.at;
    let communicator = i64::from(session.communicator(arguments.key(at.communicator)).number);
    let [source, tag, flags] = received(arguments, (at.peer, at.tag), status);
    let words = [communicator, source, tag, flags];
    session.words.extend_from_slice(&words);
    words
}

fn irecv(session: &mut Session, arguments: &Arguments<'_>) {
    let at = &arguments.function.at;
    let [.., flags] = receive(session, arguments, None);
    let persistent = arguments.function.kind == Kind::RecvInit;
    let wildcard = is_wildcard(arguments, (at.peer, at.tag)) && flags != 0;
    want_statuses(i32::from(wildcard));
    make_request(
        session,
        arguments,
        Request {
            persistent,
            active: !persistent,
            wildcard,
            ..Request::default()
        },
    );
}

fn sendrecv(session: &mut Session, arguments: &Arguments<'_>) {
    send(session, arguments);
    let at = &arguments.function.at;
    let status = Some(arguments.word(at.status));
    session
        .words
        .extend_from_slice(&received(arguments, (at.source, at.source_tag), status));
}

fn make_request(session: &mut Session, arguments: &Arguments<'_>, request: Request) -> u32 {
    let key = arguments.key_behind(arguments.function.at.request);
    session.requests.add(key.0, request)
}

fn start(session: &mut Session, arguments: &Arguments<'_>) {
    let at = &arguments.function.at;
    let count = if at.length == NONE {
        1
    } else {
        arguments.count(at.length) as usize
    };
    for index in 0..count {
        // SAFETY: the list has `count` requests.
        let key = unsafe { arguments.key_at(arguments.word(at.request), index) };
        if let Some(slot) = session.requests.slot(key.0) {
            session.requests.get(slot).active = true;
            session.words.push(i64::from(slot));
        }
    }
}

fn request_free(session: &mut Session, freed: Option<Key>) {
    let Some(key) = freed else { return };
    if let Some(slot) = session.requests.slot(key.0) {
        if session.requests.get(slot).needs_status() {
            want_statuses(-1);
        }
        session.requests.remove(key.0);
        session.words.push(i64::from(slot));
    }
}

fn cancel(session: &mut Session, arguments: &Arguments<'_>) {
    let key = arguments.key_behind(arguments.function.at.request);
    if let Some(slot) = session.requests.slot(key.0) {
        let needed = session.requests.get(slot).needs_status();
        session.requests.get(slot).cancelled = true;
        want_statuses(i32::from(!needed));
        session.words.push(i64::from(slot));
    }
}

fn complete(session: &mut Session, call: &Made<'_>) -> bool {
    let Some(completion) = &call.completion else {
        return true;
    };
    completion.completed(&call.arguments, |index, status| {
        complete_one(session, &call.arguments, (completion.key(index), status));
    })
}

fn complete_one(session: &mut Session, arguments: &Arguments<'_>, (key, status): (Key, usize)) {
    let Some(slot) = session.requests.slot(key.0) else {
        return;
    };
    let request = *session.requests.get(slot);
    if !request.active {
        return;
    }
    let word = i64::from(slot) * 4;
    let statuses = arguments.word(arguments.function.at.status);
    // SAFETY: the call was given statuses, the program's or stand-ins.
    let told = request
        .needs_status()
        .then(|| unsafe { arguments.library.status(statuses, status) });
    match told {
        Some((.., true)) => session.words.push(word + CANCELLED),
        Some((source, tag, _)) if request.wildcard => {
            session.words.extend_from_slice(&[
                word + MATCHED,
                arguments.peer(source),
                i64::from(tag),
            ]);
        }
        _ => session.words.push(word),
    }
    if request.new_communicator != 0 {
        // SAFETY: the program keeps the variable until the operation is complete.
        let key = unsafe { arguments.key_at(request.new_communicator, 0) };
        session.communicator(key);
    }
    settle(session, key, slot);
}

/// A completed request is gone unless it is persistent.
fn settle(session: &mut Session, key: Key, slot: u32) {
    let request = session.requests.get(slot);
    if request.persistent {
        request.active = false;
        if request.cancelled {
            request.cancelled = false;
            let wildcard = request.wildcard;
            want_statuses(-i32::from(!wildcard));
        }
        return;
    }
    if request.needs_status() {
        want_statuses(-1);
    }
    session.requests.remove(key.0);
}

fn probe(session: &mut Session, arguments: &Arguments<'_>) -> bool {
    let at = &arguments.function.at;
    if at.flag != NONE && arguments.out_int(at.flag, 0) == 0 {
        return false;
    }
    let [communicator, source, tag, _] =
        receive(session, arguments, Some(arguments.word(at.status)));
    if at.message != NONE {
        let handle = arguments.key_behind(at.message).0;
        session.messages.push(Message {
            handle,
            communicator,
            source,
            tag,
        });
    }
    true
}

/// The receive of a message that was probed for: what it matched is known.
fn mrecv(session: &mut Session, call: &Made<'_>) {
    let handle = call.before.unwrap_or(Key(0)).0;
    let found = session
        .messages
        .iter()
        .position(|message| message.handle == handle);
    let unknown = Message {
        handle,
        communicator: 0,
        source: -1,
        tag: -1,
    };
    let Message {
        communicator,
        source,
        tag,
        ..
    } = found.map_or(unknown, |place| session.messages.remove(place));
    session
        .words
        .extend_from_slice(&[communicator, source, tag, 0]);
    if call.arguments.function.kind == Kind::Imrecv {
        make_request(
            session,
            &call.arguments,
            Request {
                active: true,
                ..Request::default()
            },
        );
    }
}

fn collective(session: &mut Session, arguments: &Arguments<'_>) {
    let at = &arguments.function.at;
    let group = session.communicator(arguments.key(at.communicator));
    let root = if at.root == NONE {
        -1
    } else {
        i64::from(arguments.int(at.root))
    };
    let (send, recv) = if group.between {
        (0, 0)
    } else {
        volume(session, arguments, group)
    };
    session
        .words
        .extend_from_slice(&[i64::from(group.number), root, send, recv]);
    if at.request != NONE {
        let persistent = arguments.function.kind == Kind::CollectiveInit;
        make_request(
            session,
            arguments,
            Request {
                persistent,
                active: !persistent,
                ..Request::default()
            },
        );
    }
}

/// Without its neighbours if they are not known.
fn between_neighbours(session: &mut Session, arguments: &Arguments<'_>) {
    let at = &arguments.function.at;
    let key = arguments.key(at.communicator);
    let number = session.communicator(key).number;
    session.words.push(i64::from(number));
    if let Some(neighbours) = session.neighbours(key) {
        let is_rank = |rank: &i32| arguments.peer(*rank) >= 0;
        session.words.push(
            neighbours
                .destinations
                .iter()
                .filter(|rank| is_rank(rank))
                .count() as i64,
        );
        for (index, rank) in neighbours
            .destinations
            .iter()
            .enumerate()
            .filter(|(_, rank)| is_rank(rank))
        {
            let bytes = bytes_for(session, arguments, index);
            session.words.extend_from_slice(&[i64::from(*rank), bytes]);
        }
        session.words.extend(
            neighbours
                .sources
                .iter()
                .filter(|rank| is_rank(rank))
                .map(|rank| i64::from(*rank)),
        );
    }
    if at.request != NONE {
        let persistent = arguments.function.kind == Kind::NeighborInit;
        make_request(
            session,
            arguments,
            Request {
                persistent,
                active: !persistent,
                ..Request::default()
            },
        );
    }
}

/// Bytes for the neighbour at a place of the counts.
fn bytes_for(session: &mut Session, arguments: &Arguments<'_>, index: usize) -> i64 {
    let at = &arguments.function.at;
    if at.counts == NONE {
        return bytes(session, arguments, (at.count, at.datatype));
    }
    let count = arguments.count_at(at.counts, index);
    if count == 0 {
        return 0;
    }
    let datatype = match arguments.function.shape {
        // SAFETY: the list has a datatype for each neighbour.
        Shape::Alltoallw => unsafe { arguments.key_at(arguments.word(at.datatype), index) },
        _ => arguments.key(at.datatype),
    };
    count.saturating_mul(session.type_size(datatype)) as i64
}

/// Bytes that this rank sends and receives in a collective, all peers together.
fn volume(session: &mut Session, arguments: &Arguments<'_>, group: Group) -> (i64, i64) {
    let at = &arguments.function.at;
    let size = i64::from(group.size);
    let is_root = at.root != NONE && arguments.int(at.root) == group.rank;
    let (here, there) = (
        arguments.is_in_place(at.buffer),
        arguments.is_in_place(at.recv_buffer),
    );
    let out = |session: &mut Session| bytes(session, arguments, (at.count, at.datatype));
    let into = |session: &mut Session| match at.recv_counts {
        NONE => bytes(session, arguments, (at.recv_count, at.recv_datatype)),
        counts => sum(session, arguments, (counts, at.recv_datatype, group.size)),
    };
    // A vector of counts is for all ranks already.
    let many = if at.recv_counts == NONE { size } else { 1 };
    match arguments.function.shape {
        Shape::Barrier => (0, 0),
        Shape::Bcast | Shape::Reduce => {
            let bytes = out(session);
            (bytes, bytes)
        }
        Shape::Gather => {
            let all = if is_root { into(session) * many } else { 0 };
            (if here { all / size } else { out(session) }, all)
        }
        Shape::Scatter => {
            let all = match (is_root, at.counts) {
                (false, _) => 0,
                (true, NONE) => out(session) * size,
                (true, counts) => sum(session, arguments, (counts, at.datatype, group.size)),
            };
            (all, if there { all / size } else { into(session) })
        }
        Shape::Allgather => {
            let all = into(session) * many;
            (if here { all / size } else { out(session) }, all)
        }
        Shape::Alltoall | Shape::Alltoallw => {
            let all = into(session) * many;
            let sent = match at.counts {
                _ if here => all,
                NONE => out(session) * size,
                counts => sum(session, arguments, (counts, at.datatype, group.size)),
            };
            (sent, all)
        }
        Shape::ReduceScatter => match at.recv_counts {
            NONE => {
                let own = into(session);
                (own * size, own)
            }
            counts => {
                let rank = group.rank.max(0) as usize;
                let own = arguments.count_at(counts, rank)
                    * session.type_size(arguments.key(at.recv_datatype));
                (into(session), own as i64)
            }
        },
    }
}

/// Bytes of a vector of counts, of one datatype or of one for each rank.
fn sum(
    session: &mut Session,
    arguments: &Arguments<'_>,
    (counts, datatype, ranks): (u8, u8, u32),
) -> i64 {
    let each = arguments.function.shape == Shape::Alltoallw;
    let mut sum = 0u64;
    for rank in 0..ranks as usize {
        let count = arguments.count_at(counts, rank);
        if each && count > 0 {
            // SAFETY: the list has a datatype for each rank.
            let key = unsafe { arguments.key_at(arguments.word(datatype), rank) };
            sum = sum.saturating_add(count.saturating_mul(session.type_size(key)));
        } else {
            sum = sum.saturating_add(count);
        }
    }
    let unit = if each || sum == 0 {
        1
    } else {
        session.type_size(arguments.key(datatype))
    };
    sum.saturating_mul(unit) as i64
}

fn new_communicator(session: &mut Session, arguments: &Arguments<'_>) {
    let at = &arguments.function.at;
    let old = i64::from(session.communicator(arguments.key(at.communicator)).number);
    if arguments.function.kind == Kind::Icomm {
        session.words.extend_from_slice(&[old, 0]);
        let new_communicator = arguments.word(at.new_communicator);
        make_request(
            session,
            arguments,
            Request {
                active: true,
                new_communicator,
                ..Request::default()
            },
        );
        return;
    }
    let key = arguments.key_behind(at.new_communicator);
    let handle = crate::communicators::c_handle(key, arguments.library);
    let new = if handle == arguments.library.no_communicator {
        0
    } else {
        // The handle may be that of one that was freed unseen.
        session.communicators.forget(key);
        session.communicators.forget(Key::c(handle));
        i64::from(session.communicator(key).number) + 1
    };
    session.words.extend_from_slice(&[old, new]);
}

fn comm_free(session: &mut Session, freed: Option<Key>) {
    let Some(key) = freed else { return };
    if let Some(group) = session.communicators.get(key) {
        session.words.push(i64::from(group.number));
        session.communicators.forget(key);
    }
}

fn one_sided(session: &mut Session, call: &Made<'_>) -> bool {
    let arguments = &call.arguments;
    let at = &arguments.function.at;
    if at.flag != NONE && arguments.out_int(at.flag, 0) == 0 {
        return false;
    }
    if at.new_window != NONE {
        let communicator = session.communicator(arguments.key(at.communicator)).number;
        let window = session.window(arguments.key_behind(at.new_window), Some(communicator));
        let bytes = if arguments.fortran == 1 || at.window_bytes == NONE {
            0
        } else {
            arguments.word(at.window_bytes)
        };
        session.words.extend_from_slice(&[window, -1, bytes as i64]);
        return true;
    }
    let key = call.before.unwrap_or_else(|| arguments.key(at.window));
    let window = session.window(key, None);
    let target = if at.peer == NONE {
        -1
    } else {
        arguments.peer(arguments.int(at.peer))
    };
    let mut moved = bytes(session, arguments, (at.count, at.datatype));
    if at.recv_count != NONE {
        // A fetch moves data both ways.
        moved += bytes(session, arguments, (at.recv_count, at.recv_datatype));
    }
    session.words.extend_from_slice(&[window, target, moved]);
    if at.lock != NONE {
        session
            .words
            .extend(arguments.library.lock_type(arguments.int(at.lock)));
    }
    if at.group != NONE {
        let (library, key) = (arguments.library, arguments.key(at.group));
        let group = key
            .as_fortran()
            .map_or(key.0 as usize, |number| library.group_of_fortran(number));
        let ranks = library.ranks_in_world(group);
        session.words.push(ranks.len() as i64);
        session.words.extend(ranks.into_iter().map(i64::from));
    }
    if at.request != NONE {
        make_request(
            session,
            arguments,
            Request {
                active: true,
                ..Request::default()
            },
        );
    }
    true
}

fn file(session: &mut Session, call: &Made<'_>) {
    let arguments = &call.arguments;
    let at = &arguments.function.at;
    let number = match arguments.function.kind {
        Kind::File => {
            let communicator = session.communicator(arguments.key(at.communicator)).number;
            session.file(arguments.key_behind(at.new_file), Some(communicator))
        }
        _ => session.file(call.before.unwrap_or_else(|| arguments.key(at.file)), None),
    };
    let moved = bytes(session, arguments, (at.count, at.datatype));
    session.words.extend_from_slice(&[number, moved]);
    if at.request != NONE {
        make_request(
            session,
            arguments,
            Request {
                active: true,
                ..Request::default()
            },
        );
    }
}

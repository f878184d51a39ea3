//! The `.pcf` file: names of states and events, and their colours.

use flowcast_units::CollectiveOp;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use super::{super::Replayed, event_of};
use flowcast_observers::{explain::CallOrigin, journal::Function};
use flowcast_program::paraver_events::{
    CALLED, COLLECTIVE, COMMUNICATOR, IS_ROOT, MPI_EVENTS, OTHER, POINT_TO_POINT, RECV_SIZE,
    SEND_SIZE, function,
};

const OPTIONS: &str = "DEFAULT_OPTIONS

LEVEL               THREAD
UNITS               NANOSEC
LOOK_BACK           100
SPEED               1
FLAG_ICONS          ENABLED
NUM_OF_STATE_COLORS 1000
YMAX_SCALE          37


DEFAULT_SEMANTIC

THREAD_FUNC          State As Is

";

/// The states that occur, with Extrae's names and colours.
const STATES: [(u32, &str, (u8, u8, u8)); 7] = [
    (0, "Idle", (117, 195, 255)),
    (1, "Running", (0, 0, 255)),
    (3, "Waiting a message", (255, 0, 0)),
    (4, "Blocking Send", (255, 0, 174)),
    (9, "Blocked", (0, 162, 0)),
    (13, "Group Communication", (255, 144, 26)),
    (26, "Startup latency", (200, 50, 89)),
];

/// Writes the names of states and events.
///
/// # Errors
/// Errors of `out`.
pub fn pcf(replayed: Replayed<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{OPTIONS}\nSTATES")?;
    STATES
        .iter()
        .try_for_each(|(number, name, _)| writeln!(out, "{number}    {name}"))?;
    writeln!(out, "\n\nSTATES_COLOR")?;
    STATES
        .iter()
        .try_for_each(|(number, _, (r, g, b))| writeln!(out, "{number}    {{{r},{g},{b}}}"))?;
    for (kind, values) in events(replayed) {
        let (gradient, name) = label(kind);
        writeln!(out, "\n\nEVENT_TYPE\n{gradient}    {kind}    {name}")?;
        if MPI_EVENTS.contains(&kind) {
            writeln!(out, "VALUES")?;
            for value in values {
                let name = match value {
                    0 => "Outside MPI".to_owned(),
                    _ => CallOrigin::Event(kind, value).name(),
                };
                writeln!(out, "{value}   {name}")?;
            }
        }
    }
    Ok(())
}

/// Types of the events that occur, with the values of each.
fn events(replayed: Replayed<'_>) -> BTreeMap<i64, BTreeSet<i64>> {
    let mut events: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
    let mut named = Vec::new();
    for (kind, value) in replayed.trace.events() {
        if *kind == CALLED {
            named.extend(function(*kind, *value).map(Function::Named));
        } else {
            events.entry(*kind).or_default().insert(*value);
        }
    }
    if !events.keys().any(|kind| MPI_EVENTS.contains(kind)) {
        for (kind, value) in functions().chain(named).map(event_of) {
            events.entry(kind).or_default().extend([0, value]);
        }
        for kind in [SEND_SIZE, RECV_SIZE, IS_ROOT, COMMUNICATOR] {
            events.entry(kind).or_default();
        }
    }
    events
}

fn functions() -> impl Iterator<Item = Function> {
    use Function::*;
    let point_to_point = [Send, Isend, Recv, Wait, Sendrecv];
    point_to_point
        .into_iter()
        .chain(CollectiveOp::ALL.map(Collective))
}

/// Colour gradient and name of an event type.
fn label(kind: i64) -> (u32, String) {
    match kind {
        POINT_TO_POINT => (9, "MPI Point-to-point".into()),
        COLLECTIVE => (9, "MPI Collective Comm".into()),
        OTHER => (9, "MPI Other".into()),
        50_000_004 => (9, "MPI One-sided".into()),
        50_000_005 => (9, "MPI I/O".into()),
        SEND_SIZE => (1, "Send Size in MPI Global OP".into()),
        RECV_SIZE => (1, "Recv Size in MPI Global OP".into()),
        IS_ROOT => (1, "Root in MPI Global OP".into()),
        COMMUNICATOR => (1, "Communicator in MPI Global OP".into()),
        other => (6, format!("Event {other}")),
    }
}

//! Table of the models. The forms of Hockney, C3, BSP, LogP, PLogP, LogGP and LogGPS are from Lichei, section 2.2; q is the
//! number of packets of a message.
//!
//! | model | one message | next message |
//! |---|---|---|
//! | Hockney | `α + βs` | the same |
//! | BSP: messages in a row are one superstep | `l + gs` | `gs` |
//! | C3: set-up s, latency h and t for each packet | `s + h + qt` | `s + qt` |
//! | Postal: received λ units after its sending began | `(λ + q - 1)u` | `qu` |
//! | LogP: the gap covers the overhead after the first packet | `2o + L + (q-1)g` | `max(o + d, g) + (q-1)g` |
//! | LogGP | `2o + L + (s-1)G` | `max(o + d, g + (s-1)G)` |
//! | LogGPS: a request and its answer go before S bytes or more | the same, and from S on `2(2o + L)` more | the same |
//! | LMO: processors and network each have a fixed and a variable part | `2C + 2ts + L + s/β` | `max(C + ts + d, s/β)` |
//! | PLogP: tables by size; the first message takes the whole gap too | `L + g(s)` | `max(o(s) + d, g(s))` |
//!
//! Several senders can send to one node. Hockney's model does not cover this case. Under C3, packets meet at the receiver's
//! port. LMO's receiver takes messages one after the other while the switch transfers them at the same time. LogGPS'
//! handshakes overlap.

use std::collections::BTreeSet;

use flowcast_units::Bytes;

use super::{
    Equations, ExchangeObservation, MessageRegressors, OpenSizes, ZooModel,
    procedures::{hockney_line, kielmann_tables, loggp_with_knee},
    round_trips,
};

/// All models, the simplest first.
pub static MODELS: [ZooModel; 9] = [
    ZooModel {
        name: "hockney",
        aliases: &[],
        source: "Hockney 1994; Lichei, section 2.2.2",
        symbols: &["α", "β/B"],
        choices: nothing,
        equations: |MessageRegressors { bytes, .. }| equations([1.0, bytes], &[[1.0, bytes]], &[]),
        procedure: Some(hockney_line),
    },
    ZooModel {
        name: "bsp",
        aliases: &[],
        source: "Valiant 1990; Lichei, section 2.2.4",
        symbols: &["l", "g/B"],
        choices: nothing,
        equations: |MessageRegressors { bytes, .. }| {
            equations([1.0, bytes], &[[0.0, bytes]], &[[0.0, bytes]])
        },
        procedure: None,
    },
    ZooModel {
        name: "c3",
        aliases: &[],
        source: "Hambrusch and Khokhar 1994, by Lichei, section 2.2.3",
        symbols: &["s", "h", "t"],
        choices: packets,
        equations: |MessageRegressors { packets, .. }| {
            equations(
                [1.0, 1.0, packets],
                &[[1.0, 0.0, packets]],
                &[[0.0, 0.0, packets]],
            )
        },
        procedure: None,
    },
    ZooModel {
        name: "postal",
        aliases: &["lopc"],
        source: "Bar-Noy and Kipnis 1992",
        symbols: &["u", "(λ-1)u"],
        choices: packets,
        equations: |MessageRegressors { packets, .. }| {
            equations([packets, 1.0], &[[packets, 0.0]], &[[packets, 0.0]])
        },
        procedure: None,
    },
    ZooModel {
        name: "logp",
        aliases: &["logp-stalling"],
        source: "Culler and others 1993; Lichei, section 2.2.5",
        symbols: &["L", "o", "g"],
        choices: packets,
        equations: |MessageRegressors { packets, .. }| {
            let next = [[0.0, 1.0, packets - 1.0], [0.0, 0.0, packets]];
            equations([1.0, 2.0, packets - 1.0], &next, &next)
        },
        procedure: None,
    },
    ZooModel {
        name: "loggp",
        aliases: &["logpc", "hloggp"],
        source: "Alexandrov and others 1995; Lichei, sections 2.2.7 and 3.2",
        symbols: &["L", "o", "g", "G/B"],
        choices: nothing,
        equations: loggps,
        procedure: Some(loggp_with_knee),
    },
    ZooModel {
        name: "loggps",
        aliases: &[],
        source: "Ino, Fujimoto and Hagihara 2001; Lichei, section 2.2.9",
        symbols: &["L", "o", "g", "G/B"],
        choices: |observed| {
            sizes(observed)
                .into_iter()
                .map(OpenSizes::Threshold)
                .collect()
        },
        equations: loggps,
        procedure: None,
    },
    ZooModel {
        name: "lmo",
        aliases: &[],
        source: "Lastovetsky, Mkwawa and O'Flynn 2006",
        symbols: &["C", "t/B", "L", "1/β/B"],
        choices: nothing,
        equations: |MessageRegressors { bytes, .. }| {
            let processor = [1.0, bytes, 0.0, 0.0];
            equations(
                [2.0, 2.0 * bytes, 1.0, bytes],
                &[processor, [0.0, 0.0, 0.0, bytes]],
                &[processor],
            )
        },
        procedure: None,
    },
    ZooModel {
        name: "plogp",
        aliases: &[],
        source: "Kielmann, Bal and Verstoep 2000; Lichei, sections 2.2.6 and 3.1.3",
        symbols: &["L", "g(s)", "o(s)"],
        choices: places,
        equations: |_| {
            let gap = [0.0, 1.0, 0.0];
            equations([1.0, 1.0, 0.0], &[[0.0, 0.0, 1.0], gap], &[gap])
        },
        procedure: Some(kielmann_tables),
    },
];

/// Returns LogGPS' equations, which are LogGP's if no message is long enough for a handshake.
fn loggps(message: MessageRegressors) -> Equations {
    let MessageRegressors {
        beyond_first,
        handshakes,
        ..
    } = message;
    let (start, overhead) = (handshakes, 2.0 * handshakes);
    equations(
        [1.0 + start, 2.0 + overhead, 0.0, beyond_first],
        &[
            [start, 1.0 + overhead, 0.0, 0.0],
            [start, overhead, 1.0, beyond_first],
        ],
        &[[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, beyond_first]],
    )
}

fn equations<const COUNT: usize>(
    one_way: [f64; COUNT],
    spacing: &[[f64; COUNT]],
    arrivals: &[[f64; COUNT]],
) -> Equations {
    Equations {
        one_way: one_way.into(),
        spacing: spacing.iter().map(|form| form.to_vec()).collect(),
        arrivals: arrivals.iter().map(|form| form.to_vec()).collect(),
    }
}

fn nothing(_: &[ExchangeObservation]) -> Vec<OpenSizes> {
    vec![OpenSizes::Nothing]
}

/// Packet sizes to try: powers of two, the payloads of Ethernet, and one packet for every message.
fn packets(observed: &[ExchangeObservation]) -> Vec<OpenSizes> {
    let largest = sizes(observed).last().map_or(1, |size| size.0.max(1));
    let powers = (6..=20).map(|power| 1u64 << power).chain([1448, 8948]);
    let all: BTreeSet<u64> = powers
        .filter(|size| *size < largest)
        .chain([largest])
        .collect();
    all.into_iter()
        .map(|size| OpenSizes::Packets(Bytes(size)))
        .collect()
}

/// Tables of 2, 3, 5 and 8 of the sizes, evenly spaced in their order, including the smallest and the largest.
fn places(observed: &[ExchangeObservation]) -> Vec<OpenSizes> {
    let sizes: Vec<Bytes> = sizes(observed).into_iter().collect();
    let counts = [2, 3, 5, 8].into_iter();
    counts
        .filter(|count| sizes.len() >= *count)
        .map(|count| {
            let places = (0..count).map(|at| sizes[at * (sizes.len() - 1) / (count - 1)]);
            OpenSizes::Places(places.collect())
        })
        .collect()
}

/// Returns the sizes of the round trips.
fn sizes(observed: &[ExchangeObservation]) -> BTreeSet<Bytes> {
    round_trips(observed).map(|(point, _)| point.size).collect()
}

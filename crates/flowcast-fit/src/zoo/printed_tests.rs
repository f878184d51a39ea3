//! Printed results of Lichei's thesis: the models' equations with the parameters of Table 3.5.3.1, and the numbers of
//! section 3.1.3. Expected values are computed by hand from the printed equations.

use super::{MODELS, OpenSizes, TimedExchange, ZooModel};
use crate::prtt::PrttPoint;
use flowcast_units::{Bytes, Time};

/// g, G, o and L in microseconds: InfiniBand, Myrinet/GM, TCP over Gigabit Ethernet.
const TABLE_3_5_3_1: [[f64; 4]; 3] = [
    [1.4, 0.00103, 1.4, 2.82],
    [3.4, 0.00409, 1.9, 24.3],
    [0.897, 0.00849, 6.1, 65.4],
];

/// Number of messages, delay in microseconds, size, and the round trips of the three networks in microseconds.
type Row = (u32, f64, u64, [f64; 3]);

fn model(name: &str) -> &'static ZooModel {
    MODELS
        .iter()
        .find(|model| model.name == name)
        .expect("a model of the zoo")
}

/// Returns a round trip for parameters in nanoseconds.
fn micros(model: &ZooModel, choice: &OpenSizes, point: PrttPoint, nanos: &[f64]) -> f64 {
    let cost = model.cost(choice, &TimedExchange::RoundTrip(point));
    cost.at(nanos) / 1e3
}

/// Converts g, G, o and L to the model's `parameters`, all in microseconds. The zoo uses nanoseconds.
fn agree(name: &str, choice: OpenSizes, parameters: impl Fn([f64; 4]) -> Vec<f64>, rows: &[Row]) {
    let model = model(name);
    for (messages, delay, size, expected) in rows {
        let point = PrttPoint::new(*messages, Time::from_micros(*delay), Bytes(*size));
        for (network, expected) in TABLE_3_5_3_1.iter().zip(expected) {
            let nanos: Vec<f64> = parameters(*network)
                .iter()
                .map(|micros| micros * 1e3)
                .collect();
            assert_eq!(nanos.len(), model.parameters(&choice).len());
            let found = micros(model, &choice, point, &nanos);
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{point:?} {network:?}: {found} instead of {expected}"
            );
        }
    }
}

/// Equations 3.2.2.1 to 3.2.2.3. On Gigabit Ethernet, o is above g: 16 messages of one byte start 6.1 us apart.
#[test]
fn loggp_reproduces_the_round_trips_of_the_thesis() {
    let rows = [
        (1, 0.0, 1, [11.24, 56.2, 155.2]),
        (1, 0.0, 2049, [15.458_88, 72.952_64, 189.975_04]),
        (16, 0.0, 1, [32.24, 107.2, 246.7]),
        (16, 0.0, 2049, [68.100_48, 249.597_44, 464.242_84]),
        (16, 100.0, 1, [1532.24, 1584.7, 1746.7]),
    ];
    agree(
        "loggp",
        OpenSizes::Nothing,
        |[g, per_byte, o, l]| vec![l, o, g, per_byte],
        &rows,
    );
}

/// Section 2.2.9: messages of S bytes or more wait. Here `2(2o + L)` is added, for a request and its answer of one byte
/// each before the data.
#[test]
fn loggps_adds_a_handshake_from_the_threshold_on() {
    let rows = [
        (1, 0.0, 1, [11.24, 56.2, 155.2]),
        (1, 0.0, 2049, [37.938_88, 185.352_64, 500.375_04]),
    ];
    agree(
        "loggps",
        OpenSizes::Threshold(Bytes(2049)),
        |[g, per_byte, o, l]| vec![l, o, g, per_byte],
        &rows,
    );
}

/// Section 2.2.5: a packet takes `2o + L`, and the g of each further packet covers its o. Three packets of one kilobyte.
#[test]
fn logp_sends_larger_messages_as_packets() {
    let rows = [
        (1, 0.0, 1024, [11.24, 56.2, 155.2]),
        (1, 0.0, 3072, [16.84, 69.8, 158.788]),
        (4, 0.0, 1024, [15.44, 66.4, 173.5]),
    ];
    agree(
        "logp",
        OpenSizes::Packets(Bytes(1024)),
        |[g, _, o, l]| vec![l, o, g],
        &rows,
    );
}

/// Section 2.2.2: `α + β·m`, with the start-up `2o + L` and the time per byte G of the table.
#[test]
fn hockney_takes_start_up_and_bytes() {
    let rows = [
        (1, 0.0, 1000, [13.3, 64.38, 172.18]),
        (3, 0.0, 1000, [26.6, 128.76, 344.36]),
    ];
    agree(
        "hockney",
        OpenSizes::Nothing,
        |[_, per_byte, o, l]| vec![2.0 * o + l, per_byte],
        &rows,
    );
}

/// Section 2.2.4: a superstep costs `g·h` in addition to its barrier. There is one in each direction.
#[test]
fn bsp_charges_bytes_and_barriers() {
    let rows = [
        (1, 0.0, 1000, [7.7, 56.78, 147.78]),
        (3, 0.0, 1000, [9.76, 64.96, 164.76]),
    ];
    agree(
        "bsp",
        OpenSizes::Nothing,
        |[_, per_byte, _, l]| vec![l, per_byte],
        &rows,
    );
}

/// Section 3.1.3: under PLogP, n messages without bytes and their answer take `2L + (n+1)g`. With L = 76.5 us and g = 0.783
/// us for TCP over Gigabit Ethernet, the error of g is below 1 % for more than 19640 messages: `(2L + g)/n < 0.01 g`.
#[test]
fn a_flood_under_plogp_shows_the_gap_from_19640_messages_on() {
    let choice = OpenSizes::Places(vec![Bytes(1), Bytes(2)]);
    let (latency, gap) = (76.5, 0.783);
    let parameters: Vec<f64> = [latency, gap, gap, 0.0, 0.0]
        .iter()
        .map(|micros| micros * 1e3)
        .collect();
    let error = |messages: u32| {
        let point = PrttPoint::new(messages, Time::ZERO, Bytes(1));
        let found = micros(model("plogp"), &choice, point, &parameters);
        let by_hand = 2.0 * latency + (f64::from(messages) + 1.0) * gap;
        assert!((found / by_hand - 1.0).abs() < 1e-12, "{found} {by_hand}");
        found / f64::from(messages) / gap - 1.0
    };
    assert!(
        error(19_641) < 0.01 && error(19_640) > 0.01,
        "{} {}",
        error(19_641),
        error(19_640)
    );
}

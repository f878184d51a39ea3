//! Generated workloads take the times that are known for them.

use flowcast::{
    Contention, Options,
    convert::generate::{ProgramShape, Workload},
    model::sharing::model::Model,
    predict,
    units::{Bytes, Time},
};

/// The bubble of a pipeline: `m` microbatches through `s` stages take `m + s - 1` times forward and backward (Narayanan et
/// al., SOSP 2019).
#[test]
fn a_pipeline_waits_for_as_many_microbatches_as_stages_follow() {
    let free = [
        ("nic.latency", "0us"),
        ("nic.overhead", "0us"),
        ("nic.gap", "0us"),
        ("nic.gap_per_byte", "0ns/B"),
    ];
    let free: Vec<_> = free
        .map(|(field, value)| (field.to_owned(), value.to_owned()))
        .to_vec();
    let network = flowcast::model::builtin::network("gige-tcp")
        .unwrap()
        .with_overrides(&free)
        .unwrap();
    let options = Options {
        contention: Contention::Shared(Model::Independent),
        ..Options::default()
    };
    // The stages of a grid of all ranks; their number is at most the number of replicas.
    for (ranks, stages) in [(1, 1), (5, 1), (16, 4), (20, 4), (35, 5)] {
        let (compute, size) = (Time::from_micros(10.0), Bytes(8));
        let workload = Workload::Training;
        let shape = ProgramShape {
            workload,
            ranks,
            iterations: 3,
            size,
            compute,
            jitter: 0.0,
            seed: 1,
            period: 0,
        };
        let prediction = predict(&shape.trace().unwrap(), &network, &options).unwrap();
        let microbatches = stages;
        let expected = f64::from(3 * (microbatches + stages - 1) * 30);
        assert_eq!(
            prediction.outcome.makespan(),
            Time::from_micros(expected),
            "{ranks} ranks"
        );
    }
}

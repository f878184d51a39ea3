//! A fit to conflicts from a model with known parameters finds these parameters, and finds that this model is the best.

use flowcast::{
    calibrate::{
        conflict_samples::{ConflictSamples, MeasuredConflict},
        conflicts::{
            Bound, ConflictFit, ConflictFitError, ConflictFitOptions, ModelFit, Warning,
            fit_conflicts,
        },
    },
    flows::concurrent::{Method, predict_flows},
    model::{
        cluster::{
            conflicts::{Conflict, ConflictKind, ConflictPlan},
            flow::Flow,
            racks::Racks,
        },
        network::{Duplex, Network},
        sharing::{SharingError, flow_cuts::Strictness, model::Model},
    },
    units::{Bytes, Node, Time},
};

const REPETITIONS: usize = 4;

fn durations(
    flows: &[Flow],
    racks: &Racks,
    network: &Network,
    model: Model,
) -> Result<Vec<Time>, SharingError> {
    let method = Method {
        model,
        strictness: Strictness::Extended,
    };
    let prediction = predict_flows(flows, racks, network, method)?;
    Ok(prediction.flows.iter().map(|flow| flow.duration).collect())
}

fn network(sharing: &str) -> Network {
    let text = format!(
        "schema = \"flowcast/network/1\"\nname = \"truth\"\n[point_to_point]\nrule = \"hockney\"\n\
         [nic]\nlatency = \"200us\"\nbandwidth = \"47Mbit/s\"\n[backbone]\nbandwidth = \"141Mbit/s\"\n\
         [sharing]\n{sharing}"
    );
    Network::from_toml(&text, &[]).unwrap()
}

/// Samples of a network that follows the model, with a relative noise of up to `noise`.
fn made_by(truth: &Network, model: Model, nodes: u32, noise: f64) -> ConflictSamples {
    let mut racks = Racks::default();
    for node in 0..nodes {
        racks
            .place(
                Node(node),
                Node(node),
                if node < nodes / 2 { "A" } else { "B" },
            )
            .unwrap();
    }
    let plan = ConflictPlan {
        nodes: (0..nodes).map(Node).collect(),
        racks: racks.clone(),
        size: Bytes(4_000_000),
        short: Bytes(0),
        most: 3,
    };
    let carried = |conflict: Conflict| {
        let true_durations = durations(&conflict.flows, &racks, truth, model).unwrap();
        let noisy = |time: &Time| {
            (0..REPETITIONS)
                .map(|at| *time * (1.0 + noise * (at as f64 - 1.5)))
                .collect()
        };
        MeasuredConflict {
            durations: true_durations.iter().map(noisy).collect(),
            conflict,
        }
    };
    let measured = plan
        .conflicts()
        .into_iter()
        .chain(plan.random_patterns(3, 1))
        .map(carried)
        .collect();
    ConflictSamples {
        racks,
        measured,
        ..ConflictSamples::default()
    }
}

fn fit(samples: &ConflictSamples) -> ConflictFit {
    fit_conflicts(
        samples,
        ConflictFitOptions {
            replicates: 2,
            ..ConflictFitOptions::default()
        },
        &durations,
    )
    .unwrap()
}

fn of(fit: &ConflictFit, model: Model) -> &ModelFit {
    fit.models.iter().find(|fit| fit.model == model).unwrap()
}

fn close(found: f64, truth: f64, what: &str) {
    assert!(
        (found - truth).abs() <= 1e-3 * truth.abs().max(1.0),
        "{what}: {found} instead of {truth}"
    );
}

fn gives_back(fit: &ConflictFit, model: Model, truth: &[(&str, f64)]) {
    for (field, truth) in truth {
        let parameter = of(fit, model)
            .parameters
            .iter()
            .find(|parameter| parameter.field == *field)
            .unwrap();
        close(parameter.estimate.value, *truth, field);
        assert!(parameter.is_measured, "{field}");
    }
    let held_out = of(fit, model).held_out.as_ref().unwrap();
    assert!(held_out.mean_absolute() < 1e-3, "{held_out:?}");
    assert_eq!(fit.best_model().model, model);
    close(fit.latency.value.as_micros() / 200.0, 1.0, "latency");
    close(fit.rate.value.as_bytes_per_second() * 8e-6, 47.0, "rate");
}

#[test]
fn the_closed_loop_gives_back_alpha_kappa_and_the_backbone() {
    for (alpha, kappa) in [(1.0, 1.0), (0.7, 0.4)] {
        let truth = network(&format!("alpha = {alpha:?}\nkappa = {kappa:?}\n"));
        let fit = fit(&made_by(&truth, Model::ClosedLoop, 8, 0.0));
        gives_back(
            &fit,
            Model::ClosedLoop,
            &[
                ("sharing.closed_loop.alpha", alpha),
                ("sharing.closed_loop.kappa", kappa),
            ],
        );
        let backbone = fit.backbone.unwrap();
        close(
            backbone.rate.value.as_bytes_per_second() * 8e-6,
            141.0,
            "backbone",
        );
        assert_eq!(backbone.from.value, 4);
    }
}

#[test]
fn fitted_flow_cuts_equal_the_original_ones() {
    let cuts = [
        ("odd_end", 0.6),
        ("odd_inner", 1.8),
        ("io_out", 2.5),
        ("include", 0.7),
    ];
    let text: String = cuts
        .iter()
        .map(|(field, cut)| format!("{field} = {cut:?}\n"))
        .collect();
    let truth = network(&format!("{text}start_end = 0.0\n"));
    let fit = fit(&made_by(&truth, Model::FlowCuts, 8, 0.0));
    let fields: Vec<(String, f64)> = cuts
        .iter()
        .map(|(field, cut)| (format!("sharing.flow_cuts.{field}"), *cut))
        .collect();
    for (field, truth) in &fields {
        let parameters = &of(&fit, Model::FlowCuts).parameters;
        let parameter = parameters
            .iter()
            .find(|parameter| parameter.field == field)
            .unwrap();
        close(parameter.estimate.value, *truth, field);
    }
    assert_eq!(fit.best_model().model, Model::FlowCuts);
    assert!(
        of(&fit, Model::FlowCuts).left_out.mean_absolute()
            < of(&fit, Model::Fair).left_out.mean_absolute()
    );
}

#[test]
fn an_asymmetric_network_is_distinguished_from_a_fair_one() {
    for model in [Model::Asymmetric, Model::Fair] {
        let fit = fit(&made_by(&network(""), model, 6, 0.0));
        assert!(of(&fit, model).held_out.as_ref().unwrap().mean_absolute() < 1e-3);
        assert_eq!(fit.best_model().model, model);
    }
}

#[test]
fn intervals_hold_the_truth_and_a_network_file_reads_back() {
    let samples = made_by(
        &network("alpha = 1.0\nkappa = 0.6\n"),
        Model::ClosedLoop,
        6,
        0.004,
    );
    let options = ConflictFitOptions {
        replicates: 8,
        ..ConflictFitOptions::default()
    };
    let fit = fit_conflicts(&samples, options, &durations).unwrap();
    for parameter in &of(&fit, Model::ClosedLoop).parameters {
        let truth = if parameter.field == "sharing.closed_loop.alpha" {
            1.0
        } else {
            0.6
        };
        let estimate = parameter.estimate;
        assert!(
            estimate.low < estimate.high
                && estimate.low - 0.02 < truth
                && truth < estimate.high + 0.02
        );
    }
    let written = fit.to_network("mine", Default::default());
    let read = Network::from_toml(&written.to_toml(), &[]).unwrap();
    assert_eq!(read, written);
    assert_eq!(read.sharing.model, Some(Model::ClosedLoop));
    assert!(read.intervals.contains_key("sharing.closed_loop.kappa"));
    let of_fair: Vec<&str> = read
        .accuracy
        .iter()
        .filter(|one| one.model == "fair")
        .map(|one| &*one.validated_on)
        .collect();
    assert!(
        of_fair.len() == 3 && of_fair[0].contains("random patterns"),
        "{of_fair:?}"
    );
}

#[test]
fn a_known_window_lets_the_closed_loop_settle_and_packets_be_counted() {
    let transport = |text: &str| Some(network(text).sharing.packet);
    let with = |samples: &ConflictSamples, transport| {
        let options = ConflictFitOptions {
            replicates: 2,
            transport,
            ..ConflictFitOptions::default()
        };
        fit_conflicts(samples, options, &durations).unwrap()
    };
    let named = |fit: &ConflictFit, name: &str| {
        fit.models
            .iter()
            .find(|fit| fit.name() == name)
            .unwrap()
            .clone()
    };
    let window = "window = \"160kB\"\n";
    let settling = network(&format!(
        "{window}alpha = 1.0\nkappa = 1.0\ntransient = true\n"
    ));
    let fit = with(
        &made_by(&settling, Model::ClosedLoop, 4, 0.0),
        transport(window),
    );
    let settled = named(&fit, "closed-loop-transient").held_out.unwrap();
    assert!(
        settled.mean_absolute() < 0.02 && settled.worst().error().abs() < 0.08,
        "{settled:?}"
    );
    assert_eq!(fit.best_model().name(), "closed-loop-transient");
    let written = fit.to_network("mine", Default::default());
    assert_eq!(
        Network::from_toml(&written.to_toml(), &[]).unwrap(),
        written
    );
    let closed_loop = written.sharing.closed_loop;
    assert_eq!(
        (closed_loop.transient, closed_loop.kappa),
        (Some(true), Some(1.0))
    );
    assert!(written.sharing.flow_cuts.odd_end.is_some());
    assert!(
        written
            .provenance
            .contains_key("fitted.sharing.closed_loop.kappa")
    );

    let packets = "window = \"160kB\"\nfirst_window = \"160kB\"\n";
    let fit = with(
        &made_by(&network(packets), Model::Packet, 4, 0.0),
        transport(packets),
    );
    let counted = named(&fit, "packet").held_out.unwrap();
    assert!(counted.mean_absolute() < 0.01, "{counted:?}");
    assert_eq!(fit.best_model().name(), "packet");
    let written = fit.to_network("mine", Default::default());
    assert!((written.nic.rate.wire().as_bytes_per_second() * 8e-6 / 47.0 - 1.0).abs() < 0.005);
    assert!(
        written.nic.rate().as_bytes_per_second() < written.nic.rate.wire().as_bytes_per_second()
    );
    assert_eq!(written.sharing.model, Some(Model::Packet));
    assert_eq!(
        flowcast::Options::default().method(&written).unwrap().model,
        Model::Packet
    );

    // Losses give flows different windows, and without a transport there are no frames to count.
    let cubic = "congestion = \"cubic\"\nqueue = \"100kB\"\n";
    let names: Vec<&str> = with(
        &made_by(&network(""), Model::Fair, 4, 0.0),
        transport(cubic),
    )
    .models
    .iter()
    .map(ModelFit::name)
    .collect();
    assert!(
        names.contains(&"packet") && !names.contains(&"closed-loop-transient"),
        "{names:?}"
    );
    let written = with(&made_by(&network(""), Model::Fair, 4, 0.0), None)
        .to_network("mine", Default::default());
    assert_eq!(written.nic.rate.given_wire(), None);
}

#[test]
fn half_duplex_ports_are_found_and_written_for_every_model() {
    let half = |sharing: &str| {
        network(sharing)
            .with_overrides(&[("nic.duplex".into(), "half".into())])
            .unwrap()
    };
    for model in [Model::Fair, Model::AlphaFair, Model::FlowCuts] {
        let truth = half(
            "alpha = 0.8\nodd_end = 0.6\nodd_inner = 1.8\nio_out = 0.0\ninclude = 0.0\nstart_end = 0.0\n",
        );
        let fit = fit(&made_by(&truth, model, 8, 0.0));
        assert_eq!(
            (fit.duplex, fit.other_duplex.duplex),
            (Duplex::Half, Duplex::Full),
            "{model:?}"
        );
        assert_eq!(fit.best_model().model, model);
        assert!(
            fit.best_model().unseen() < 1e-3 && fit.other_duplex.mean_absolute > 0.05,
            "{:?}",
            fit.other_duplex
        );
        let written = fit.to_network("mine", Default::default());
        assert_eq!(
            Network::from_toml(&written.to_toml(), &[]).unwrap(),
            written
        );
        assert_eq!(written.nic.duplex, Duplex::Half);
    }
    let packets = half("window = \"160kB\"\nfirst_window = \"160kB\"\n");
    let transport = Some(packets.sharing.packet);
    let options = ConflictFitOptions {
        replicates: 2,
        transport,
        ..ConflictFitOptions::default()
    };
    let fit = fit_conflicts(
        &made_by(&packets, Model::Packet, 4, 0.0),
        options,
        &durations,
    )
    .unwrap();
    assert_eq!(
        (fit.duplex, fit.best_model().name()),
        (Duplex::Half, "packet")
    );
    assert!(fit.best_model().unseen() < 0.01, "{:?}", fit.best_model());
    let full = self::fit(&made_by(&network(""), Model::Fair, 6, 0.002));
    assert_eq!(full.duplex, Duplex::Full);
}

#[test]
fn a_bad_model_or_a_parameter_at_a_bound_is_reported_first_and_has_no_interval() {
    let cuts = "odd_end = 0.5\nodd_inner = 2.0\nio_out = 60.0\ninclude = 0.5\nstart_end = 0.0\n";
    let mut samples = made_by(&network(cuts), Model::FlowCuts, 6, 0.0);
    let at_bound = fit(&samples);
    assert_eq!(at_bound.best_model().model, Model::FlowCuts);
    let io_out = at_bound.best_model().parameters[2];
    assert_eq!(
        (
            io_out.estimate.value,
            io_out.bound,
            io_out.estimate.interval()
        ),
        (20.0, Some(Bound::Upper), None)
    );
    let told = Warning::AtBound {
        field: "sharing.flow_cuts.io_out",
        value: 20.0,
        bound: Bound::Upper,
    };
    assert!(
        at_bound.warnings()[..2].contains(&told),
        "{:?}",
        at_bound.warnings()
    );
    let written = at_bound.to_network("mine", Default::default());
    assert!(!written.intervals.contains_key("sharing.flow_cuts.io_out"));
    assert!(
        !written.intervals.contains_key("nic.bandwidth"),
        "{:?}",
        written.intervals
    );

    samples = made_by(
        &network("alpha = 1.0\nkappa = 0.5\n"),
        Model::ClosedLoop,
        6,
        0.0,
    );
    for measured in samples
        .measured
        .iter_mut()
        .filter(|measured| measured.conflict.kind == ConflictKind::Random)
    {
        measured
            .durations
            .iter_mut()
            .flatten()
            .for_each(|time| *time = *time * 1.5);
    }
    let far_off = fit(&samples).warnings()[0].to_string();
    assert!(
        far_off.contains("no model explains this network")
            && far_off.contains("on the random patterns is 2"),
        "{far_off}"
    );
    let good = fit(&made_by(
        &network("alpha = 1.0\nkappa = 0.5\n"),
        Model::ClosedLoop,
        8,
        0.0,
    ));
    assert_eq!(good.warnings(), []);
}

#[test]
fn a_bus_in_each_node_is_found_and_written() {
    let truth = network("").with_overrides(&[
        ("bus.bandwidth".into(), "70Mbit/s".into()),
        ("bus.nodes".into(), "1".into()),
    ]);
    let fit = fit(&made_by(&truth.unwrap(), Model::Fair, 6, 0.0));
    close(fit.bus.unwrap().as_bytes_per_second() * 8e-6, 70.0, "bus");
    assert!(
        of(&fit, Model::Fair)
            .held_out
            .as_ref()
            .unwrap()
            .mean_absolute()
            < 1e-3
    );
    let written = fit.to_network("mine", Default::default());
    assert_eq!(written.bus.unwrap().nodes, Some(1));
    assert_eq!(
        Network::from_toml(&written.to_toml(), &[]).unwrap().bus,
        written.bus
    );
    assert_eq!(
        self::fit(&made_by(&network(""), Model::Fair, 6, 0.0)).bus,
        None
    );
}

#[test]
fn short_messages_give_the_latency_and_change_nothing_else() {
    let truth = network("alpha = 1.0\nkappa = 0.5\n");
    let long = made_by(&truth, Model::ClosedLoop, 6, 0.0);
    let plan = ConflictPlan {
        nodes: (0..6).map(Node).collect(),
        racks: long.racks.clone(),
        size: Bytes(4_000_000),
        short: Bytes(128 << 10),
        most: 3,
    };
    let mut with_short = long.clone();
    let short = plan
        .conflicts()
        .into_iter()
        .chain(plan.short_patterns(2, 1));
    for conflict in short
        .filter(|conflict| conflict.kind == ConflictKind::Short || conflict.name == "alone-1kB")
    {
        let durations = durations(&conflict.flows, &long.racks, &truth, Model::ClosedLoop).unwrap();
        let durations = durations
            .iter()
            .map(|time| vec![*time; REPETITIONS])
            .collect();
        with_short.measured.push(MeasuredConflict {
            conflict,
            durations,
        });
    }
    let (before, after) = (fit(&long), fit(&with_short));
    close(after.latency.value.as_micros() / 200.0, 1.0, "latency");
    assert_eq!(after.smallest.0, Bytes(1000));
    for (before, after) in before.models.iter().zip(&after.models) {
        for (before, after) in before.parameters.iter().zip(&after.parameters) {
            close(after.estimate.value, before.estimate.value, before.field);
        }
    }
    let short = of(&after, Model::ClosedLoop).short.as_ref().unwrap();
    assert!(
        short.mean_absolute() < 1e-3
            && short
                .all()
                .iter()
                .any(|one| one.of.flow.size < Bytes(10_000)),
        "{short:?}"
    );
    assert!(
        after.models.iter().all(|model| model.short.is_some()) && before.models[0].short.is_none()
    );
}

#[test]
fn random_patterns_change_no_parameter() {
    let truth = network("alpha = 1.0\nkappa = 0.5\n");
    let mut samples = made_by(&truth, Model::ClosedLoop, 6, 0.002);
    let before = fit(&samples);
    for measured in samples
        .measured
        .iter_mut()
        .filter(|measured| measured.conflict.kind == ConflictKind::Random)
    {
        measured
            .durations
            .iter_mut()
            .flatten()
            .for_each(|time| *time = *time * 3.0);
    }
    let after = fit(&samples);
    for (before, after) in before.models.iter().zip(&after.models) {
        assert_eq!(before.parameters, after.parameters);
        assert_ne!(before.held_out, after.held_out);
    }
}

#[test]
fn samples_without_a_single_flow_or_a_conflict_are_refused() {
    let mut samples = made_by(&network(""), Model::Fair, 4, 0.0);
    let refused = |samples: &ConflictSamples| {
        fit_conflicts(samples, ConflictFitOptions::default(), &durations)
    };
    let mut alone = samples.clone();
    alone
        .measured
        .retain(|measured| measured.conflict.kind == ConflictKind::Alone);
    assert!(matches!(refused(&alone), Err(ConflictFitError::NoConflict)));
    samples
        .measured
        .retain(|measured| measured.conflict.kind != ConflictKind::Alone);
    assert!(matches!(refused(&samples), Err(ConflictFitError::NotAlone)));
}

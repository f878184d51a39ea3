//! Conversion of fitted conflicts to a network file.

use std::collections::BTreeMap;

use super::{
    BackboneLimit, BoundedEstimate, ConflictFit, ConflictParameter, ModelFit,
    PrivateAndSharedLinks,
    parameters::known,
    search::{SETTLING, add_packets, plain_network},
};
use flowcast_network::{
    accuracy::{Accuracy, CaseKind},
    cluster::flow::PatternFlow,
    network::{FitQuality, Network, ParameterInterval},
    quantity::Quantity,
    sharing::model::Model,
};
use flowcast_statistics::observation::Observations;
use flowcast_units::{Bytes, Rate, Time};

impl ConflictFit {
    /// Returns the network with the parameters of all models, the best model as its own, and `provenance`. If the transport
    /// is known, the network has the transport and wire rates as well. Fitted parameters that are not written to a field are
    /// added to the provenance.
    pub fn to_network(&self, name: &str, mut provenance: BTreeMap<String, String>) -> Network {
        let (links, written) = (self.tidy_links(), self.written_parameters());
        let mut network = plain_network(&links);
        for parameter in &written {
            let known = known(parameter.field).expect("fitted parameters are those of candidates");
            known.set(&mut network.sharing, tidy(parameter.estimate.value));
        }
        if let Some(transport) = &self.options.transport {
            add_packets(&mut network, &links, transport);
        }
        if self.settles() {
            network.sharing.closed_loop = SETTLING;
        }
        network.machine.processors = self.processors;
        network.machine.nodes_per_rack = if self.backbone.is_some() {
            self.nodes_per_rack
        } else {
            0
        };
        network.sharing.model = Some(self.best_model().model);
        for parameter in self
            .parameters()
            .filter(|parameter| !written.contains(parameter))
        {
            let BoundedEstimate { value, low, high } = parameter.estimate;
            let text = format!("{} ({} to {})", tidy(value), tidy(low), tidy(high));
            provenance.insert(format!("fitted.{}", parameter.field), text);
        }
        let (conflicts, random, repetitions) = self.counts;
        Network {
            name: name.to_owned(),
            title: "Measured by elementary conflicts".to_owned(),
            source: format!(
                "flowcast fit, {conflicts} conflicts and {random} random patterns in {repetitions} repetitions"
            ),
            intervals: self.parameter_intervals(&written),
            fit: FitQuality {
                misfit: Some(tidy(self.best_model().unseen())),
                warnings: self.warnings().iter().map(ToString::to_string).collect(),
            },
            accuracy: self.models.iter().flat_map(ModelFit::accuracy).collect(),
            provenance,
            ..network
        }
    }

    fn tidy_links(&self) -> PrivateAndSharedLinks {
        PrivateAndSharedLinks {
            latency: tidy_time(self.latency.value),
            rate: tidy_rate(self.rate.value),
            smallest: self.smallest,
            backbone: self
                .backbone
                .as_ref()
                .map(|fit: &super::outcome::BackboneFit| BackboneLimit {
                    rate: tidy_rate(fit.rate.value),
                    from: fit.from.value,
                }),
            duplex: self.duplex,
            bus: self.bus.map(tidy_rate),
        }
    }

    /// The model that explains the network best.
    pub fn best_model(&self) -> &ModelFit {
        &self.models[self.best]
    }

    /// `true` if the closed loop explains the network better while queues fill.
    fn settles(&self) -> bool {
        let of_loop = self
            .models
            .iter()
            .filter(|fit| fit.model == Model::ClosedLoop);
        of_loop
            .min_by(|a, b| a.unseen().total_cmp(&b.unseen()))
            .is_some_and(|best| best.is_settling)
    }

    fn parameters(&self) -> impl Iterator<Item = &ConflictParameter> {
        self.models.iter().flat_map(|fit| &fit.parameters)
    }

    /// Parameters that are written to fields. A closed loop that settles has fixed parameters instead of the fitted ones.
    fn written_parameters(&self) -> Vec<&ConflictParameter> {
        let settles = self.settles();
        self.parameters()
            .filter(|parameter: &&ConflictParameter| {
                !(settles && parameter.field.starts_with("sharing.closed_loop."))
            })
            .collect()
    }

    fn parameter_intervals(
        &self,
        written: &[&ConflictParameter],
    ) -> BTreeMap<String, ParameterInterval> {
        let level = self.options.level;
        let mut all = vec![
            ("nic.latency", interval(&self.latency, tidy_time, level)),
            ("nic.bandwidth", interval(&self.rate, tidy_rate, level)),
        ];
        if let Some(backbone) = &self.backbone {
            all.push((
                "backbone.bandwidth",
                interval(&backbone.rate, tidy_rate, level),
            ));
            let ends = backbone.from.interval().map(|ends| ends.map(f64::from));
            let flows = ends.map(|[low, high]| {
                ParameterInterval::around(f64::from(backbone.from.value), low, high, level)
            });
            all.push(("sharing.asymmetric.backbone_from", flows));
        }
        for parameter in written.iter().filter(|parameter| parameter.is_measured) {
            all.push((parameter.field, interval(&parameter.estimate, tidy, level)));
        }
        all.into_iter()
            .filter_map(|(field, interval)| Some((field.to_owned(), interval?)))
            .collect()
    }
}

impl ModelFit {
    /// Accuracy on data that no fit has seen, with the error of each flow, and in total on the data that the model was
    /// fitted to.
    fn accuracy(&self) -> Vec<Accuracy> {
        let model = if self.is_settling {
            "closed-loop/transient"
        } else {
            self.model.name()
        };
        let entry = |validated_on: &str, observed: &Observations<PatternFlow>| {
            let entry = Accuracy::of_errors(
                model,
                CaseKind::Flows,
                validated_on,
                observed.errors_by(|of| of.pattern.clone()),
            )
            .expect("there are observations, and their errors are finite");
            Accuracy {
                messages: Some(sizes(observed)),
                ..entry
            }
        };
        let held_out = self
            .held_out
            .iter()
            .map(|errors| entry("random patterns, in no fit", errors));
        let left_out = entry("conflicts left out of the fit", &self.left_out);
        let fitted = entry("the conflicts fitted to", &self.fitted);
        let fitted = Accuracy {
            fitted: true,
            errors: BTreeMap::new(),
            ..fitted
        };
        let short = self
            .short
            .iter()
            .map(|errors| entry("short messages, in no fit", errors));
        held_out.chain(short).chain([left_out, fitted]).collect()
    }
}

/// Sizes of the smallest and of the largest message.
fn sizes(observed: &Observations<PatternFlow>) -> [Bytes; 2] {
    let sizes = observed.all().iter().map(|one| one.of.flow.size);
    [sizes.clone().min(), sizes.max()].map(Option::unwrap_or_default)
}

fn interval<T: Copy + PartialEq + Into<Quantity>>(
    estimate: &BoundedEstimate<T>,
    tidy: fn(T) -> T,
    level: f64,
) -> Option<ParameterInterval> {
    estimate.interval().map(|[low, high]| {
        let [value, low, high] = [estimate.value, low, high].map(tidy);
        ParameterInterval::around(value, low, high, level)
    })
}

/// Rounds to six significant digits, which is more precise than any measurement and short in a file.
fn tidy(value: f64) -> f64 {
    format!("{value:.5e}")
        .parse()
        .expect("a printed number is a number")
}

fn tidy_time(time: Time) -> Time {
    Time::from_nanos(tidy(time.as_nanos()))
}

fn tidy_rate(rate: Rate) -> Rate {
    Rate::from_bytes_per_second(tidy(rate.as_bytes_per_second()))
}

//! Fitted conflicts as a network file.

use std::collections::BTreeMap;

use super::parameters::known;
use super::search::{packet_network, plain_network, plain_sharing, settling};
use super::{BackboneLimit, ConflictFit, Estimate, FittedParameter, Links, ModelFit};
use flowcast_model::network::{Interval, Network};
use flowcast_model::sharing::Sharing;
use flowcast_model::sharing::model::Model;
use flowcast_units::{Rate, Time};

impl ConflictFit {
    /// The network with the parameters of all fluid models, the best of them as its own, and `provenance`. `alpha` is that
    /// of the closed loop, unless alpha-fair, which shares the field, is the best, or the closed loop while queues fill,
    /// which has 1. What the fields do not hold stands in the provenance.
    pub fn to_network(&self, name: &str, provenance: BTreeMap<String, String>) -> Network {
        let (links, best) = (self.tidy_links(), self.best_fluid_model());
        let mut sharing = Sharing { model: Some(best.model.name().to_owned()), ..plain_sharing(&links) };
        for parameter in self.written_parameters() {
            set(&mut sharing, parameter);
        }
        if best.is_settling {
            sharing = settling(&sharing, self.options.transport.as_ref().unwrap_or(&Sharing::default()));
        }
        let network = Network { sharing, intervals: self.interval_texts(), ..plain_network(&links) };
        self.told(network, name, provenance)
    }

    /// The network of the packet level: wire rates, and the transport that was given. None without that.
    pub fn to_packet_network(&self, name: &str, provenance: BTreeMap<String, String>) -> Option<Network> {
        let network = packet_network(&self.tidy_links(), self.options.transport.as_ref()?);
        Some(self.told(network, name, provenance))
    }

    fn told(&self, network: Network, name: &str, mut provenance: BTreeMap<String, String>) -> Network {
        for fit in &self.models {
            provenance.insert(format!("error.{}", fit.name()), fit.verdict());
            for parameter in &fit.parameters {
                let Estimate { value, low, high } = parameter.estimate;
                let text = format!("{} ({} to {})", tidy(value), tidy(low), tidy(high));
                provenance.insert(format!("fitted.{}.{}", fit.name(), parameter.field), text);
            }
        }
        let (conflicts, random, repetitions) = self.counts;
        Network {
            name: name.to_owned(),
            title: "Measured by elementary conflicts".to_owned(),
            source: format!(
                "flowcast fit, {conflicts} conflicts and {random} random patterns in {repetitions} repetitions"
            ),
            provenance,
            ..network
        }
    }

    fn tidy_links(&self) -> Links {
        let limit =
            |fit: &super::outcome::BackboneFit| BackboneLimit { rate: tidy_rate(fit.rate.value), from: fit.from.value };
        Links {
            latency: tidy_time(self.latency.value),
            rate: tidy_rate(self.rate.value),
            backbone: self.backbone.as_ref().map(limit),
        }
    }

    /// The model that explains the network best.
    pub fn best_model(&self) -> &ModelFit {
        &self.models[self.best]
    }

    /// The fluid model that does: one that goodput belongs to.
    pub fn best_fluid_model(&self) -> &ModelFit {
        let fluid = self.models.iter().filter(|fit| fit.model != Model::Packet);
        fluid.min_by(|a, b| a.unseen().total_cmp(&b.unseen())).expect("there are fluid models")
    }

    /// Each field once.
    fn written_parameters(&self) -> Vec<&FittedParameter> {
        let best = self.best_fluid_model();
        if best.is_settling {
            let cuts = self.models.iter().filter(|fit| fit.model == Model::FlowCuts);
            return cuts.flat_map(|fit| &fit.parameters).collect();
        }
        let left_out = if best.model == Model::AlphaFair { "sharing.alpha" } else { "" };
        let of_others = self.models.iter().filter(|fit| fit.model != Model::AlphaFair).flat_map(|fit| &fit.parameters);
        let others = of_others.filter(|parameter| parameter.field != left_out);
        let own = best.parameters.iter().filter(|parameter| parameter.field == left_out);
        others.chain(own).collect()
    }

    fn interval_texts(&self) -> BTreeMap<String, Interval> {
        let level = self.options.level;
        let interval = |low: String, high: String| Interval { low, high, level };
        let times = |e: &Estimate<Time>| interval(tidy_time(e.low).to_string(), tidy_time(e.high).to_string());
        let rates = |e: &Estimate<Rate>| interval(tidy_rate(e.low).to_string(), tidy_rate(e.high).to_string());
        let mut all = BTreeMap::from([
            ("nic.latency".to_owned(), times(&self.latency)),
            ("nic.bandwidth".to_owned(), rates(&self.rate)),
        ]);
        if let Some(backbone) = &self.backbone {
            let from = &backbone.from;
            all.insert("backbone.bandwidth".to_owned(), rates(&backbone.rate));
            all.insert("sharing.backbone_from".to_owned(), interval(from.low.to_string(), from.high.to_string()));
        }
        for parameter in self.written_parameters().into_iter().filter(|parameter| parameter.is_measured) {
            let Estimate { low, high, .. } = parameter.estimate;
            all.insert(parameter.field.to_owned(), interval(tidy(low).to_string(), tidy(high).to_string()));
        }
        all
    }
}

impl ModelFit {
    fn verdict(&self) -> String {
        let held_out = self.held_out.as_ref().map_or(String::new(), |errors| {
            format!("{:.2} % on {} flows of random patterns, ", errors.mean_absolute * 100.0, errors.flows)
        });
        let (left_out, fitted) = (self.left_out.mean_absolute * 100.0, self.fitted.mean_absolute * 100.0);
        format!("{held_out}{left_out:.2} % on conflicts left out, {fitted:.2} % on those fitted to")
    }
}

fn set(sharing: &mut Sharing, parameter: &FittedParameter) {
    known(parameter.field)
        .expect("fitted parameters are those of candidates")
        .set(sharing, tidy(parameter.estimate.value));
}

/// Six significant digits: more than any measurement has, and short in a file.
fn tidy(value: f64) -> f64 {
    format!("{value:.5e}").parse().expect("a printed number is a number")
}

fn tidy_time(time: Time) -> Time {
    Time::from_nanos(tidy(time.as_nanos()))
}

fn tidy_rate(rate: Rate) -> Rate {
    Rate::from_bytes_per_second(tidy(rate.as_bytes_per_second()))
}

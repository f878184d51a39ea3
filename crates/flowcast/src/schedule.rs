//! A GOAL schedule, prepared for replay by LogGOPSim's rules.

use flowcast_graph::{ScheduleRecorder, critical_path::CriticalPath};
use flowcast_network::{machine::Machine, network::Network, sharing::model::Model};
use flowcast_observers::{
    inside::InsideTraffic, journal::ReplayJournal, schedule_explain::ScheduleExplainer,
};
use flowcast_program::{TraceRef, program::Transfers, schedule::Schedule};
use flowcast_replay::{
    contention,
    loggops::{
        self, Layout, Loggops,
        costs::{LogGopsCosts, PlacedCosts},
        sends::Sends,
    },
    observer::{Observer, Unobserved},
    outcome::Outcome,
    placement::Placement,
};
use flowcast_report::{Drawing, Limits, NetworkView, export::Replayed};
use flowcast_sensitivity::influence::Unused;
use flowcast_units::{Bytes, Rounded};

use crate::{
    Contention, Error, ModelChoice, Options, Outputs, Prediction, error::finite,
    options::Collectives, statements,
};

/// A GOAL schedule, prepared for replay by LogGOPSim's rules.
pub struct PreparedSchedule<'a> {
    name: String,
    source: ScheduleSource<'a>,
    setting: ScheduleSetting<'a>,
}

enum ScheduleSource<'a> {
    Given(&'a Schedule),
    /// Layout for the replay. The schedule itself was consumed.
    Laid(Layout),
}

use ScheduleSource::*;

/// Costs of messages, and nodes of ranks.
struct ScheduleSetting<'a> {
    network: Option<&'a Network>,
    parameters: Loggops,
    /// `true` if the parameters are the caller's, not the network's.
    overrides_network: bool,
    placement: Placement,
    /// `true` if nodes matter: with a mapping or a sharing model.
    is_placed: bool,
    model: ModelChoice,
}

impl<'a> PreparedSchedule<'a> {
    /// Prepares a schedule and leaves it unchanged.
    ///
    /// # Errors
    /// [`Error::NoNetwork`] if there is neither a network nor LogGOPS parameters, or for a sharing model without a network;
    /// [`Error::Option`] for collectives, which a schedule does not have; [`Error::Replay`] if the mapping does not match
    /// the ranks and nodes.
    pub fn new(
        schedule: &'a Schedule,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<PreparedSchedule<'a>, Error> {
        let setting = ScheduleSetting::new(schedule, network, options)?;
        Ok(PreparedSchedule {
            name: schedule.name.clone(),
            source: Given(schedule),
            setting,
        })
    }

    /// Prepares a schedule and consumes it while it is laid out, so that memory never has both completely. If its ranks wait
    /// for each other, the replay ends with [`Error::Stopped`].
    ///
    /// # Errors
    /// Errors of [`PreparedSchedule::new`].
    pub fn consuming(
        schedule: Schedule,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<PreparedSchedule<'a>, Error> {
        let setting = ScheduleSetting::new(&schedule, network, options)?;
        let name = schedule.name.clone();
        let source = Laid(Layout::new(schedule, setting.costs()));
        Ok(PreparedSchedule {
            name,
            source,
            setting,
        })
    }

    /// Data on its messages that observers need.
    pub fn sends(&self) -> Sends<'_> {
        match &self.source {
            Given(schedule) => Sends::from_schedule(schedule),
            Laid(layout) => layout.sends(),
        }
    }

    /// The model that the contention option selects.
    pub fn model(&self) -> &ModelChoice {
        &self.setting.model
    }

    /// Costs of its messages.
    pub fn costs(&self) -> LogGopsCosts<'_> {
        self.setting.costs()
    }

    /// Replays and reports all events to an observer.
    ///
    /// # Errors
    /// [`Error::Replay`] for ranks that wait for each other and for messages without receive, [`Error::Stopped`] for the
    /// same if the schedule was consumed.
    pub fn observe<O: Observer>(&self, observer: &mut O) -> Result<Outcome, Error> {
        self.replay(self.costs(), observer)
    }

    fn replay<O: Observer>(
        &self,
        costs: LogGopsCosts<'_>,
        observer: &mut O,
    ) -> Result<Outcome, Error> {
        match &self.source {
            Given(schedule) => Ok(loggops::placed(schedule, costs, observer)?),
            Laid(layout) => layout.observed(costs, observer)?.ok_or(Error::Stopped),
        }
    }

    /// Replays the schedule.
    ///
    /// # Errors
    /// Errors of [`PreparedSchedule::observe`].
    pub fn run(&self) -> Result<Outcome, Error> {
        self.observe(&mut Unobserved)
    }

    /// Replays with the observers. Inside the generic function below, the engines would be compiled again in every crate
    /// that calls it, with the optimiser settings of the caller.
    fn watched(&self, observers: Observers<'_, '_>) -> Result<Outcome, Error> {
        match observers {
            ((None, None), None) => self.run(),
            mut all => self.observe(&mut all),
        }
    }

    /// Replays and follows the events back from the end. Returns the outcome and the path that limits it, or `None` if a
    /// rank has several processors, whose work overlaps.
    ///
    /// # Errors
    /// Errors of [`PreparedSchedule::observe`], and [`Error::NotFinite`].
    pub fn critical_path(&self) -> Result<Option<(Outcome, CriticalPath)>, Error> {
        let sends = self.sends();
        let Some(mut recorder) = ScheduleRecorder::new(&sends, self.costs()) else {
            return Ok(None);
        };
        let outcome = finite(self.observe(&mut recorder)?, self.setting.network, &[])?;
        Ok(Some((outcome, recorder.finish().critical_path())))
    }

    /// The network, unless parameters are given in its place.
    pub(crate) fn network_in_use(&self) -> Option<&'a Network> {
        self.setting
            .network
            .filter(|_| !self.setting.overrides_network)
    }

    /// Sentences on the reliability of the network's values.
    pub(crate) fn notes(&self) -> Vec<String> {
        statements::of_networks(self.network_in_use())
    }

    /// Replays on a network with other values and the same nodes.
    pub(crate) fn outcome_on(&self, network: &Network) -> Result<Outcome, Error> {
        self.replay(self.setting.on(network).costs(), &mut Unobserved)
    }

    /// Replays for the requested outputs. The journal goes to `export`.
    ///
    /// # Errors
    /// Errors of [`PreparedSchedule::observe`] and of `export`.
    pub(crate) fn predict<E: From<Error>>(
        &self,
        outputs: Outputs,
        export: impl FnOnce(Replayed<'_>) -> Result<(), E>,
    ) -> Result<Prediction, E> {
        let sends = self.sends();
        let mut journal = outputs
            .kept()
            .map(|keeps| ReplayJournal::of_schedule(&sends, keeps));
        let mut explainer = outputs
            .explanation
            .then(|| ScheduleExplainer::new(&sends, self.costs()));
        let mut recorder = outputs
            .view
            .then(|| ScheduleRecorder::new(&sends, self.costs()))
            .flatten();
        let all = ((journal.as_mut(), explainer.as_mut()), recorder.as_mut());
        let outcome = finite(self.watched(all)?, self.setting.network, &[])?;
        let path = recorder.map(|recorder| recorder.finish().critical_path());
        let explanation = explainer.map(|explainer| explainer.finish());
        let mut view = None;
        if let Some(journal) = &journal {
            let trace = TraceRef::Schedule {
                name: &self.name,
                ranks: sends.ranks(),
            };
            let replayed = Replayed {
                trace,
                placement: &self.setting.placement,
                outcome: &outcome,
                journal,
            };
            view = outputs.view.then(|| self.view(replayed, path));
            export(replayed)?;
        }
        let inside = self
            .setting
            .is_placed
            .then(|| InsideTraffic::of_schedule(&sends, &self.setting.placement));
        let inside = inside.flatten();
        let model = ModelChoice {
            inside: inside.map(|traffic| traffic.source),
            ..self.setting.model.clone()
        };
        let view = view.map(|view| model.named_in(view));
        let (unused, transfers) = (self.setting.unused(), Transfers::default());
        Ok(Prediction {
            model,
            outcome,
            view,
            explanation,
            unused,
            transfers,
            inside,
            notes: self.notes(),
            loops: None,
            rails: None,
        })
    }

    fn view(&self, replayed: Replayed<'_>, path: Option<CriticalPath>) -> NetworkView {
        let Loggops {
            latency,
            overhead,
            gap,
            gap_per_byte,
            eager_up_to,
        } = self.setting.parameters;
        let [latency, overhead, gap] = [latency, overhead, gap].map(Rounded);
        let eager = eager_up_to.map_or("every size".to_owned(), |size| Rounded(size).to_string());
        let per_byte = gap_per_byte.as_nanos();
        let network = self.setting.network;
        NetworkView {
            name: network.map_or("LogGOPS".to_owned(), |network| network.name.clone()),
            title: network.map_or("with LogGOPSim's rules".to_owned(), |network| {
                network.title.clone()
            }),
            parameters: format!(
                "L {latency}, o {overhead}, g {gap}, G {per_byte} ns a byte, S {eager}"
            ),
            outcome: replayed.outcome.clone(),
            has_stand_ins: network.is_some_and(|one| one.stand_ins().next().is_some()),
            interval: None,
            drawn: Drawing::new(replayed),
            limits: path.as_ref().map(Limits::from).unwrap_or_default(),
        }
    }
}

/// Observers of one replay, one for each requested result.
type Observers<'o, 'a> = (
    (
        Option<&'o mut ReplayJournal<'a>>,
        Option<&'o mut ScheduleExplainer<'a>>,
    ),
    Option<&'o mut ScheduleRecorder<'a>>,
);

impl<'a> ScheduleSetting<'a> {
    fn new(
        schedule: &Schedule,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<ScheduleSetting<'a>, Error> {
        if !matches!(
            options.collectives,
            Collectives::Automatic | Collectives::Formula
        ) {
            return Err(Error::option(
                "--collectives",
                "a GOAL schedule, which has no collectives",
                "another trace",
            ));
        }
        options.refuse_rails("a GOAL schedule")?;
        let choice = match (options.contention, options.loggops, network) {
            (Contention::Limits, ..) => {
                return Err(Error::option(
                    "--model limits",
                    "a GOAL schedule",
                    "another trace",
                ));
            }
            (Contention::Automatic, Some(_), _) => ModelChoice::by_parameters(),
            (asked, _, Some(network)) => ModelChoice::for_schedule(asked, schedule, network),
            (Contention::Loggops, Some(_), None) => ModelChoice::by_parameters(),
            (_, _, None) => return Err(Error::NoNetwork),
        };
        let model = choice.contention.model();
        let mut parameters = match (options.loggops, network) {
            (Some(parameters), _) => parameters,
            (None, Some(network)) => parameters_of(network, model),
            (None, None) => return Err(Error::NoNetwork),
        };
        if let Some(from) = options.rendezvous_from {
            parameters.eager_up_to = Some(Bytes(from.0.saturating_sub(1)));
        }
        let is_placed = options.mapping.is_some() || model.is_some();
        let default = Machine::default();
        let machine = network
            .map(|network| &network.machine)
            .filter(|_| is_placed)
            .unwrap_or(&default);
        let placement = Placement::new(machine, options.mapping.as_ref(), schedule.ranks())?;
        let overrides_network = options.loggops.is_some();
        Ok(ScheduleSetting {
            network,
            parameters,
            overrides_network,
            placement,
            is_placed,
            model: choice,
        })
    }

    fn on<'b>(&self, network: &'b Network) -> ScheduleSetting<'b> {
        let parameters = parameters_of(network, self.model.contention.model());
        let placement = self.placement.on(&network.machine);
        let ScheduleSetting {
            overrides_network,
            is_placed,
            ..
        } = *self;
        ScheduleSetting {
            network: Some(network),
            parameters: Loggops {
                eager_up_to: self.parameters.eager_up_to,
                ..parameters
            },
            overrides_network,
            placement,
            is_placed,
            model: self.model.clone(),
        }
    }

    fn costs(&self) -> LogGopsCosts<'_> {
        let sharing = self.network.zip(self.model.contention.model());
        let placed = PlacedCosts {
            placement: &self.placement,
            sharing,
        };
        LogGopsCosts {
            parameters: self.parameters,
            placed: self.is_placed.then_some(placed),
        }
    }

    /// Parameters of the network without influence. A schedule takes the costs of single messages from a network and, if its
    /// ranks are placed, the properties of its nodes.
    fn unused(&self) -> Vec<Unused> {
        let Some(network) = self.network else {
            return Vec::new();
        };
        let mut list = Vec::new();
        if self.overrides_network {
            // A model shares the bandwidth of the interfaces.
            let nic = self.model.contention.model().is_none().then_some("nic");
            let parameters = ["point_to_point"].into_iter().chain(nic);
            list.extend(parameters.map(|parameter| Unused {
                parameter: parameter.to_owned(),
                reason: "replaced by --goal-params",
            }));
        }
        let (has_influence, reason) = if self.is_placed {
            let limited = contention::is_needed(network, &self.placement);
            (
                !limited,
                "except its nodes: limits are not part of LogGOPSim's rules",
            )
        } else {
            (
                network.machine == Machine::default(),
                "not part of LogGOPSim's rules",
            )
        };
        if !has_influence {
            list.push(Unused {
                parameter: "machine".to_owned(),
                reason,
            });
        }
        list
    }
}

fn parameters_of(network: &Network, model: Option<Model>) -> Loggops {
    match model {
        Some(model) => Loggops::from_network(&network.seen_by(model)),
        None => Loggops::from_network(network),
    }
}

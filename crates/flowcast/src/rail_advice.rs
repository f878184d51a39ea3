//! Advice on rails: the time of a program over each rail alone, over all rails, and without each of them.

use flowcast_network::network::Network;
use flowcast_program::{Trace, parallel};
use flowcast_scheduler::policy::MessagePolicy;
use flowcast_table::{Document, Record, fixed, or_dash, rows};
use flowcast_units::{Rounded, Time};

use crate::{
    Case, CaseResult, Error, Input, ModelChoice, Options, Outputs, Prediction, RailsOptions,
    statements::{DIVIDED, marked_name, once},
};

/// Smallest gain for which a rail is worth having, and smallest cost of a missing rail: 2 %.
const WORTHWHILE: f64 = 1.02;

/// Predicted time of a program over a set of rails.
#[derive(Debug, Clone, PartialEq)]
pub struct AdvisedRails {
    /// Indices of the rails among all, in ascending order.
    pub rails: Vec<usize>,
    /// Policy that chooses among them; `None` for a single rail.
    pub policy: Option<MessagePolicy>,
    /// Time at which the program ends.
    pub makespan: Time,
}

/// Predicted times of a program over sets of rails, and the rails that are worth having.
#[derive(Debug, Clone, PartialEq)]
pub struct RailAdvice {
    /// Names of all rails.
    pub names: Vec<String>,
    /// Names of all rails, with an asterisk if values are stand-ins.
    pub marked: Vec<String>,
    /// Each rail alone. Then, for each policy, the set of all rails and, with three rails or more, each set of all rails but
    /// one.
    pub sets: Vec<AdvisedRails>,
    /// Sentences on the models of the predictions.
    pub models: Vec<String>,
    /// Notes of the predictions.
    pub notes: Vec<String>,
}

/// A set of rails to predict.
struct RailsCase<'a> {
    rails: Vec<usize>,
    policy: Option<MessagePolicy>,
    case: Case<'a>,
}

/// Predicts a program over sets of rails, on as many threads as the options allow. `options.rails` is ignored.
///
/// # Errors
/// Fewer than two rails; errors of [`Case::predict`].
pub fn advise_rails(
    trace: &Trace,
    networks: &[Network],
    policies: &[MessagePolicy],
    options: &Options,
) -> Result<RailAdvice, Error> {
    let count = networks.len();
    if count < 2 {
        return Err(Error::option(
            "--network",
            format!("{count}"),
            "two or more",
        ));
    }
    let case = |rails: Vec<usize>, policy: Option<MessagePolicy>| {
        let further = rails[1..].iter().map(|rail| networks[*rail].clone());
        let options = Options {
            rails: RailsOptions {
                further: further.collect(),
                policy: policy.unwrap_or_default(),
            },
            threads: 1,
            ..options.clone()
        };
        let case = Case::new(Input::Trace(trace), Some(&networks[rails[0]]), options);
        RailsCase {
            rails,
            policy,
            case,
        }
    };
    let mut cases: Vec<RailsCase> = (0..count).map(|rail| case(vec![rail], None)).collect();
    for policy in policies {
        cases.push(case((0..count).collect(), Some(*policy)));
        for missing in (0..count).filter(|_| count > 2) {
            let others = (0..count).filter(|rail| *rail != missing).collect();
            cases.push(case(others, Some(*policy)));
        }
    }
    let results = parallel::map(&cases, options.threads, |one| {
        one.case.predict(Outputs::default(), &[], None)
    });
    let mut advice = RailAdvice {
        names: networks
            .iter()
            .map(|network| network.name.clone())
            .collect(),
        marked: networks.iter().map(marked_name).collect(),
        sets: Vec::new(),
        models: Vec::new(),
        notes: vec![DIVIDED.to_owned()],
    };
    for (case, result) in cases.into_iter().zip(results) {
        advice.add(case, &result?);
    }
    Ok(advice)
}

impl RailAdvice {
    fn add(&mut self, RailsCase { rails, policy, .. }: RailsCase, result: &CaseResult) {
        self.sets.push(AdvisedRails {
            rails,
            policy,
            makespan: result.makespan,
        });
        let Some(Prediction { model, notes, .. }) = result.of_trace() else {
            return;
        };
        // Messages that do not meet on one rail may meet on another.
        let model = ModelChoice {
            is_uncontended: false,
            ..model.clone()
        };
        self.models.extend(model.sentences());
        self.notes.extend_from_slice(notes);
    }

    /// The best rail alone.
    pub fn best_alone(&self) -> &AdvisedRails {
        let alone = self.sets.iter().filter(|set| set.policy.is_none());
        alone
            .min_by_key(|set| set.makespan)
            .expect("each rail is predicted alone")
    }

    /// Speed-up over the best rail alone; 1 if the program takes no time.
    pub fn gain(&self, set: &AdvisedRails) -> f64 {
        ratio(self.best_alone().makespan, set.makespan)
    }

    /// The sets of all rails, one for each policy.
    pub fn together(&self) -> impl Iterator<Item = &AdvisedRails> {
        let all = self.names.len();
        self.sets.iter().filter(move |set| set.rails.len() == all)
    }

    /// Sets of all rails but one, with the policy of `together`, over which the program takes about as long as over all
    /// rails.
    fn needless<'a>(
        &'a self,
        together: &'a AdvisedRails,
    ) -> impl Iterator<Item = &'a AdvisedRails> {
        let others = self.sets.iter().filter(move |set| {
            set.policy == together.policy && set.rails.len() + 1 == self.names.len()
        });
        others.filter(|set| ratio(set.makespan, together.makespan) < WORTHWHILE)
    }

    /// Names of the rails of a set.
    pub fn name(&self, set: &AdvisedRails) -> String {
        let names: Vec<&str> = set.rails.iter().map(|rail| &*self.marked[*rail]).collect();
        names.join(" + ")
    }

    /// Verdict on the use of all rails together, in a sentence for each policy.
    pub fn verdicts(&self) -> Vec<String> {
        self.together().map(|set| self.verdict(set)).collect()
    }

    fn verdict(&self, together: &AdvisedRails) -> String {
        let alone = self.best_alone();
        let (best, alone_takes) = (self.name(alone), Rounded(alone.makespan));
        let takes = Rounded(together.makespan);
        let gain = self.gain(together);
        let policy = together.policy.unwrap_or_default();
        if gain < 1.0 / WORTHWHILE {
            let loss = 1.0 / gain;
            return format!(
                "{policy}: use only {best}: the program takes {alone_takes} over it, and {takes} over all rails, {loss:.2} \
                 times as long"
            );
        }
        if gain < WORTHWHILE {
            return format!(
                "{policy}: {best} alone is enough: the program takes {alone_takes} over it, and {takes} over all rails"
            );
        }
        let mut sentence = format!(
            "{policy}: use all rails: the program takes {takes}, {gain:.2} times as fast as over {best} alone \
             ({alone_takes})"
        );
        for set in self.needless(together) {
            let missing = (0..self.names.len()).find(|rail| !set.rails.contains(rail));
            let missing = missing.map_or("", |rail| &self.marked[rail]);
            let without = Rounded(set.makespan);
            sentence += &format!("; {missing} can be omitted: {without} without it");
        }
        sentence
    }

    /// Returns the advice as a document about a program of this name.
    pub fn document(&self, program: &str) -> Document {
        let verdicts = self.together().map(|set| {
            Record::new()
                .field("scheduler", set.policy.map(|policy| policy.to_string()))
                .field("gain", self.gain(set))
                .field("worthwhile", self.gain(set) >= WORTHWHILE)
                .field(
                    "needless",
                    self.needless(set)
                        .flat_map(|set| {
                            (0..self.names.len()).filter(|rail| !set.rails.contains(rail))
                        })
                        .map(|rail| self.names[rail].clone())
                        .collect::<Vec<_>>(),
                )
        });
        let sets = rows(&self.sets)
            .field("rails", |set| {
                let names = set.rails.iter().map(|rail| self.names[*rail].clone());
                names.collect::<Vec<_>>()
            })
            .cell("rails", |set| self.name(set))
            .field("scheduler", |set| {
                set.policy.map(|policy| policy.to_string())
            })
            .cell("scheduler", |set| {
                or_dash(set.policy.map(|policy| policy.to_string()))
            })
            .column("makespan_s", "predicted time", |set| set.makespan)
            .column("gain", "gain", |set| fixed(self.gain(set), 3));
        Document::new("program-rails-advice")
            .field("program", program)
            .field("rails", self.names.clone())
            .field("best_alone", &self.names[self.best_alone().rails[0]])
            .field("verdicts", verdicts.collect::<flowcast_table::Value>())
            .line(format!("{program} over {}", self.marked.join(", ")))
            .lines(self.verdicts())
            .table("sets", sets)
            .lines(once(self.models.iter().cloned()))
            .noted(&self.notes)
    }
}

fn ratio(time: Time, to: Time) -> f64 {
    if to > Time::ZERO {
        time.as_nanos() / to.as_nanos()
    } else {
        1.0
    }
}

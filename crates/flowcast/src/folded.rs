//! A program with loops, prepared for replay on one network.

use std::{borrow::Cow, fmt};

use flowcast_network::{network::Network, sharing::model::Model};
use flowcast_observers::inside::InsideTraffic;
use flowcast_program::{
    folded::{Folded, FoldedPart, map_all, pieces},
    program::{IgnoredRecords, Transfers},
};
use flowcast_replay::{
    SimulateError,
    outcome::Outcome,
    walk::{FoldedOutcome, FoldedReplay, Replay},
};
use flowcast_report::export::Replayed;
use flowcast_sensitivity::influence::Unused;
use flowcast_units::Time;

use crate::{
    Contention, Error, ModelChoice, Options, Outputs, Prediction, Prepared, PreparedProgram,
    error::finite, options::CollectivesWay, statements::notes,
};

/// A program with loops and without contention between messages. Its loops are walked until the iterations repeat exactly.
pub struct PreparedFolded<'a> {
    parts: Vec<FoldedPart<PreparedProgram<'a>>>,
    model: ModelChoice,
    ignored: Vec<IgnoredRecords>,
    options: Options,
}

/// Statistics of the walk over a program's loops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loops {
    /// Iterations of the outermost loops.
    pub iterations: u64,
    /// Number of iterations that were walked, including those walked again as a check. The remaining iterations repeat these
    /// and were added.
    pub walked: u64,
    /// Time of which all costs are multiples, after rounding, so that their sums are exact.
    pub tick: Time,
}

impl fmt::Display for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loops {
            iterations,
            walked,
            tick,
        } = self;
        let tick = tick.as_nanos();
        write!(
            f,
            "loops: {walked} of {iterations} iterations replayed, time of the others added; costs are multiples of \
             {tick:.1e} ns"
        )
    }
}

impl<'a> PreparedFolded<'a> {
    /// Carries out the collectives and places the ranks. Unrolls the loops if the model needs more than a walk without
    /// events, or if something in the program needs all iterations.
    ///
    /// # Errors
    /// Errors of [`PreparedProgram::new`] and [`Folded::unfold`].
    pub(crate) fn prepare(
        folded: Cow<'a, Folded>,
        network: Option<&'a Network>,
        options: &Options,
    ) -> Result<Prepared<'a>, Error> {
        let network = network.ok_or(Error::NoNetwork)?;
        let model = ModelChoice::for_folded(options.contention, &folded, network);
        let is_alone = options.rails.further.is_empty();
        if model.contention != Contention::Shared(Model::Independent) || !is_alone {
            let flat = Cow::Owned(folded.unfold()?);
            return Ok(Prepared::Program(PreparedProgram::prepare(
                flat,
                Some(network),
                options,
            )?));
        }
        let ignored = folded.ignored();
        let parts = match folded {
            Cow::Borrowed(folded) => {
                let parts = folded.parts().iter().map(FoldedPart::as_ref).collect();
                map_all(parts, &mut |part| {
                    PreparedProgram::new(part, network, options)
                })?
            }
            Cow::Owned(folded) => map_all(folded.into_parts(), &mut |part| {
                PreparedProgram::prepare(Cow::Owned(part), Some(network), options)
            })?,
        };
        let prepared = PreparedFolded {
            parts,
            model,
            ignored,
            options: options.clone(),
        };
        Ok(match replay_of(&prepared.parts, network)? {
            Some(_) => Prepared::Folded(prepared),
            None => Prepared::Program(prepared.unfolded()?),
        })
    }

    /// The first part of the program. Each part has all ranks.
    pub fn first(&self) -> &PreparedProgram<'a> {
        self.pieces()[0].0
    }

    /// The model that the contention option selects.
    pub fn model(&self) -> &ModelChoice {
        &self.model
    }

    /// Records that the reader found and the replay ignores.
    pub fn ignored(&self) -> &[IgnoredRecords] {
        &self.ignored
    }

    fn described(&self) -> ModelChoice {
        let pieces = self.pieces();
        let collectives = pieces
            .iter()
            .find_map(|(part, _)| part.described().collectives);
        ModelChoice {
            collectives,
            ..self.model.clone()
        }
    }

    fn inside(&self) -> Option<InsideTraffic> {
        let of_each = self
            .pieces()
            .into_iter()
            .filter_map(|(part, times)| Some(part.inside()?.times(times)));
        of_each.reduce(InsideTraffic::and)
    }

    fn transfers(&self) -> Transfers {
        let of_each = self
            .pieces()
            .into_iter()
            .map(|(part, times)| part.program().transfers().times(times));
        of_each.fold(Transfers::default(), Transfers::and)
    }

    pub(crate) fn pieces(&self) -> Vec<(&PreparedProgram<'a>, u64)> {
        pieces(&self.parts).expect("the iterations were counted")
    }

    /// Replays for the requested outputs. All outputs except the times of the ranks require the program without loops.
    pub(crate) fn predict<E: From<Error>>(
        &self,
        outputs: Outputs,
        asked: &[String],
        export: impl FnOnce(Replayed<'_>) -> Result<(), E>,
    ) -> Result<Prediction, E> {
        if outputs != Outputs::default() {
            return self.unfolded()?.predict(outputs, asked, export);
        }
        let Some(folded) = self.replay(self.first().network)? else {
            return self.unfolded()?.predict(outputs, asked, export);
        };
        let FoldedOutcome {
            outcome,
            iterations,
            walked,
            tick,
        } = folded;
        let outcome = finite(outcome, Some(self.first().network), asked)?;
        let loops = Some(Loops {
            iterations,
            walked,
            tick,
        });
        let (unused, inside) = (self.unused(&outcome, asked), self.inside());
        let model = ModelChoice {
            inside: inside.map(|traffic| traffic.source),
            ..self.described()
        };
        let transfers = self.transfers();
        Ok(Prediction {
            model,
            outcome,
            view: None,
            explanation: None,
            unused,
            transfers,
            inside,
            notes: self.notes(),
            loops,
            rails: None,
        })
    }

    /// Notes, like those of [`PreparedProgram::notes`].
    pub(crate) fn notes(&self) -> Vec<String> {
        notes(&self.ignored, self.first().assumptions())
    }

    /// Replays on a network with other values; `None` if this requires the program without loops.
    fn replay(&self, network: &Network) -> Result<Option<FoldedOutcome>, Error> {
        Ok(match replay_of(&self.parts, network)? {
            Some(replay) => replay.run()?,
            None => None,
        })
    }

    /// The program without loops, with its collectives carried out in the same way.
    pub(crate) fn unfolded(&self) -> Result<PreparedProgram<'a>, Error> {
        let parts = self.parts.iter().map(FoldedPart::as_ref).collect();
        let parts = map_all(parts, &mut |part: &PreparedProgram<'a>| {
            Ok::<_, Error>(part.program().clone())
        })?;
        let first = self.first();
        let flat = Cow::Owned(Folded::new(parts)?.unfold()?);
        let is_used = self.described().collectives.is_some();
        let way = CollectivesWay {
            kept: sum(&self.pieces(), PreparedProgram::collectives_by_formula),
            is_used,
            ..first.collectives
        };
        PreparedProgram::placed(flat, first.network, &self.options, way)
    }

    /// Parameters that had no influence in any of the parts.
    fn unused(&self, outcome: &Outcome, asked: &[String]) -> Vec<Unused> {
        let mut of_each = self
            .pieces()
            .into_iter()
            .map(|(part, _)| part.unused(outcome, asked));
        let first = of_each.next().unwrap_or_default();
        of_each.fold(first, |unused, more| {
            unused
                .into_iter()
                .filter(|one| more.contains(one))
                .collect()
        })
    }
}

/// Sum of `of` over the programs, each multiplied by its number of repetitions.
pub(crate) fn sum<'a>(
    pieces: &[(&PreparedProgram<'a>, u64)],
    of: impl Fn(&PreparedProgram<'a>) -> u64,
) -> u64 {
    let of_each = pieces
        .iter()
        .map(|(part, times)| of(part).saturating_mul(*times));
    of_each.fold(0, u64::saturating_add)
}

/// Replay of the parts on a network; `None` if iterations of loops cannot be skipped.
fn replay_of<'b>(
    parts: &'b [FoldedPart<PreparedProgram<'_>>],
    network: &Network,
) -> Result<Option<FoldedReplay<'b>>, SimulateError> {
    let replays = map_all(
        parts.iter().map(FoldedPart::as_ref).collect(),
        &mut |part: &'b PreparedProgram<'_>| {
            Replay::new(
                &part.program,
                network,
                part.placement.on(&network.machine),
                part.rendezvous,
            )
        },
    );
    Ok(FoldedReplay::new(replays?))
}

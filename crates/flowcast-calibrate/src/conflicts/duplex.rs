//! Whether the two directions of a port share its rate: all models under either assumption, and which explains more.

use super::outcome::name_of;
use super::parameters::Needs;
use super::search::Fitter;
use super::{ConflictFitError, Errors, Observed, OtherDuplex, Whole};

/// Half duplex is taken where the best model's error on the conflicts is below this part of that with full duplex.
const CLEARLY: f64 = 0.9;

/// All models under one assumption about the ports.
pub(super) struct Assumption<'a> {
    pub fitter: Fitter<'a>,
    pub whole: Whole,
    /// Their errors on the conflicts that they were fitted to.
    pub fitted: Vec<Errors>,
}

impl<'a> Assumption<'a> {
    /// Fits all models under full and under half duplex and keeps the better of the two for each.
    pub(super) fn new(fitter: Fitter<'a>, observed: &[Observed<'_>]) -> Result<Assumption<'a>, ConflictFitError> {
        let whole = Whole::of(&fitter, observed)?;
        let places = 0..fitter.candidates.len();
        let fitted = places.map(|place| whole.fitted(&fitter, place, observed)).collect::<Result<_, _>>()?;
        Ok(Assumption { fitter, whole, fitted })
    }

    /// The model with the smallest error on the conflicts.
    fn best(&self) -> OtherDuplex {
        let models = self.fitter.candidates.iter().zip(&self.fitted);
        let best = models.min_by(|(_, a), (_, b)| a.mean_absolute.total_cmp(&b.mean_absolute));
        let (candidate, errors) = best.expect("there are models");
        let model = name_of(candidate.model, candidate.needs == Needs::Window);
        OtherDuplex { duplex: self.fitter.duplex, model, mean_absolute: errors.mean_absolute }
    }
}

/// The better of the two, and the best model of the other.
pub(super) fn better<'a>(full: Assumption<'a>, half: Assumption<'a>) -> (Assumption<'a>, OtherDuplex) {
    let bests = (full.best(), half.best());
    if bests.1.mean_absolute < CLEARLY * bests.0.mean_absolute { (half, bests.0) } else { (full, bests.1) }
}

//! The delay that fills one link while all others stay as they are: what both ways of keeping up the closed loop are made
//! of.

use super::closed_loop::Feedback;

/// Steps of Newton's method for one link.
const NEWTON_STEPS: usize = 30;

/// The rate of a flow that waits so long in all, in units of a flow alone.
pub(super) fn rate(delay: f64, feedback: Feedback) -> f64 {
    if feedback.alpha == 1.0 { 1.0 / delay } else { delay.powf(-1.0 / feedback.alpha) }
}

/// A power, without a call where none is needed.
pub(super) fn power(base: f64, exponent: f64) -> f64 {
    match exponent {
        1.0 => base,
        -1.0 => 1.0 / base,
        _ => base.powf(exponent),
    }
}

/// The delay of a link whose flows wait so long elsewhere; none if they cannot fill it. Newton's method starts at `own`
/// and ends with a step below `precision`, relative to the delay.
///
/// `(sum of rates)^-alpha` is concave and grows with the delay, and is straight for flows that have met the same
/// elsewhere: Newton's method for it comes from below after its first step and never leaves.
pub(super) fn filling_delay(
    elsewhere: impl ExactSizeIterator<Item = f64> + Clone,
    capacity: f64,
    feedback: Feedback,
    (own, precision): (f64, f64),
) -> f64 {
    let sum = |delay: f64| -> (f64, f64) {
        elsewhere.clone().fold((0.0, 0.0), |(load, slope), other| {
            let rate = rate(other + delay, feedback);
            (load + rate, slope + rate / (other + delay))
        })
    };
    let (idle, _) = sum(0.0);
    if idle <= capacity {
        return 0.0;
    }
    let target = power(capacity, -feedback.alpha);
    let mut delay = if own > 0.0 { own } else { target * power(elsewhere.len() as f64, feedback.alpha) };
    for _ in 0..NEWTON_STEPS {
        let (load, slope) = sum(delay);
        let height = power(load, -feedback.alpha);
        // d(load^-alpha) = load^(-alpha - 1) * sum of rate / delay
        let step = (target - height) / (height / load * slope);
        let next = delay + step;
        // Newton's first step from above may fall below what is possible.
        delay = if next > 0.0 { next } else { delay * 0.1 };
        if step.abs() <= precision * delay {
            break;
        }
    }
    delay
}

/// The delays of both directions of a node, or of a rack, of which what goes out is answered by what comes in: flows out
/// feel `x = q_out + kappa * q_in` and are filled at `out`, flows in `y = q_in + kappa * q_out`, filled at `into`.
pub(super) fn of_pair(out: f64, into: f64, kappa: f64) -> (f64, f64) {
    if kappa * out >= into {
        (out, 0.0)
    } else if kappa * into >= out {
        (0.0, into)
    } else {
        let determinant = 1.0 - kappa * kappa;
        ((out - kappa * into) / determinant, (into - kappa * out) / determinant)
    }
}

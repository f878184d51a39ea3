//! LogGP from bursts of several lengths and from the sender's own time, which separates `o` from `L`.
//!
//! The difference `PRTT_{n,d} - PRTT_{1,0}` of the thesis counts all costs of a burst beyond its messages as overhead: a
//! receiver that is asleep for the first message and awake for the last, or deliveries that wait for earlier ones. Bursts of
//! two lengths separate these costs from the overhead, and the sender's clock measures the overhead independently of any
//! network:
//!
//! - `busy = o` for a single message, from the start to the end of its send call;
//! - `PRTT_{1,0}(s) = 2·A + 2·(s-1)·G` with `A = 2o + L`;
//! - `PRTT_{n,0}(s) = 2·A + 2·(s-1)·G + c_s + (n-1)·(g + (s-1)·G)`, if the gap and not the overhead spaces messages; `c_s`
//!   is the cost of a burst with messages of s bytes beyond its messages.
//!
//! All of this is linear. Weighted least squares on the means of points therefore gives the parameters and intervals, and
//! [`choice`] can determine the round trip that narrows the intervals most. The fit uses means and not medians, because
//! means add up: L is the latency of the network including the mean of its jitter. Samples that are far slower than others
//! of the same kind, for example after a lost packet, are left out before the fit (`clean`).

pub mod choice;
mod clean;

use flowcast_network::loggp::LogGp;
use flowcast_statistics::{
    interval::student_score,
    linear_fit::{LinearFit, LinearRow},
};
use flowcast_units::{Bytes, Time};

use crate::{prtt::PrttPoint, samples::PrttSamples};

/// Multiple of the overhead above which a spacing is attributed to the gap.
const VISIBLE: f64 = 1.2;
/// A point is left out if it lies more than this number of standard errors above the fit of all other points.
const CONTRADICTED: f64 = 6.0;

/// The parameters and their uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstFit {
    /// L, o, g and G, each at least 0.
    pub parameters: LogGp,
    /// Half the width of the intervals of L, o and g, in nanoseconds, and of G, in nanoseconds per byte.
    pub half_widths: [f64; 4],
    /// Correlation of g and G, and of L and o.
    pub correlations: [f64; 2],
    /// Sizes at which the gap is visible.
    pub sizes: Vec<Bytes>,
    /// Number of points with bursts that are spaced by the overhead.
    pub hidden_points: usize,
    /// Number of round trips that were left out because they are far slower than others.
    pub outliers: usize,
    /// Number of packets of all round trips, including those left out.
    pub packets: f64,
    /// Variances of a round trip of one message, of a round trip of a burst, and of the sender's time, in square
    /// nanoseconds.
    pub variances: [f64; 3],
}

impl BurstFit {
    /// Largest ratio of half the width of an interval to its parameter.
    pub fn widest(&self) -> f64 {
        self.parameters
            .as_nanos()
            .iter()
            .zip(self.half_widths)
            .map(|(value, half)| half / value.max(f64::MIN_POSITIVE))
            .fold(0.0, f64::max)
    }
}

/// Returns `true` if samples are sufficient for [`fit_bursts`]: they contain the sender's time, and bursts of two lengths
/// at one size.
pub(crate) fn has_bursts(samples: &PrttSamples) -> bool {
    let timed = samples
        .points()
        .any(|(point, _)| point.messages == 1 && !samples.busy(point).is_empty());
    let bursts: Vec<Bytes> = samples
        .points()
        .filter(|(point, _)| is_burst(*point))
        .map(|(point, _)| point.size)
        .collect();
    timed
        && bursts
            .iter()
            .any(|size| bursts.iter().filter(|other| *other == size).count() > 1)
}

/// Fits the parameters. `None` if no size shows the gap or if round trips of two sizes are missing.
pub fn fit_bursts(samples: &PrttSamples, level: f64) -> Option<BurstFit> {
    let Cleaned {
        groups,
        outliers,
        packets,
    } = clean::clean(samples)?;
    let (overhead, of_busy, busy_count) = busy_of_smallest(samples, &groups)?;
    let visible = visible_sizes(&groups, overhead);
    let used: Vec<&BurstGroup> = groups
        .iter()
        .filter(|group| group.n == 1 || visible.contains(&group.size))
        .collect();
    let (used, pools, rows, solved) = solve(used, &visible)?;
    let [way, per_byte, gap] = [0, 1, 2].map(|at| solved.values[at]);
    let of_overhead = of_busy.variance / busy_count;
    // Covariance of the smallest round trips with their sends.
    let together = covariance_with_busy(samples, &used, &solved) / busy_count;
    let [of_way, of_per_byte, of_gap] = [0, 1, 2]
        .map(|at: usize| [false, true].map(|burst| variance(&solved, [at, at], &rows, burst)));
    let freedoms = pools.map(|pool| pool.freedom);
    let half = |parts: [f64; 2], own: f64, both: f64| {
        let all = [
            (parts[0], freedoms[0]),
            (parts[1], freedoms[1]),
            (own, of_busy.freedom),
        ];
        (parts[0] + parts[1] + own + both).max(0.0).sqrt()
            * student_score(level, satterthwaite(&all))
    };
    let latency = way - 2.0 * overhead;
    let of_latency = of_way[0] + of_way[1] + 4.0 * of_overhead - 4.0 * together;
    let gaps: f64 = [false, true]
        .map(|burst| variance(&solved, [1, 2], &rows, burst))
        .iter()
        .sum();
    let parameters =
        LogGp::from_nanos([latency.max(0.0), overhead, gap.max(0.0), per_byte.max(0.0)]);
    Some(BurstFit {
        parameters,
        half_widths: [
            half(of_way, 4.0 * of_overhead, -4.0 * together),
            half([0.0; 2], of_overhead, 0.0),
            half(of_gap, 0.0, 0.0),
            half(of_per_byte, 0.0, 0.0),
        ],
        correlations: [
            correlation(gaps, of_gap.iter().sum(), of_per_byte.iter().sum()),
            correlation(together - 2.0 * of_overhead, of_latency, of_overhead),
        ],
        hidden_points: groups.len() - used.len(),
        sizes: visible,
        outliers,
        packets,
        variances: [pools[0].variance, pools[1].variance, of_busy.variance],
    })
}

fn correlation(both: f64, one: f64, other: f64) -> f64 {
    if one * other > 0.0 {
        both / (one * other).sqrt()
    } else {
        0.0
    }
}

type Solution<'a> = (Vec<&'a BurstGroup>, [Pool; 2], Vec<LinearRow>, LinearFit);

/// Solves for the parameters without the bursts that all other points contradict. If a point has few samples, all of them
/// may have met a loss.
fn solve<'a>(mut used: Vec<&'a BurstGroup>, visible: &[Bytes]) -> Option<Solution<'a>> {
    loop {
        let pools = [pool(&used, false)?, pool(&used, true)?];
        let rows: Vec<LinearRow> = used
            .iter()
            .map(|group| row(group, visible, &pools))
            .collect();
        let solved = LinearFit::new(&rows)?;
        let of_bursts = (0..rows.len()).filter(|at| is_of_burst(&rows[*at]));
        let slow = of_bursts
            .map(|at| (solved.score_without(&rows, at), at))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        match slow.filter(|(score, _)| *score > CONTRADICTED) {
            Some((_, at)) => drop(used.remove(at)),
            None => return Some((used, pools, rows, solved)),
        }
    }
}

/// Round trips of a point, in nanoseconds, without those left out.
struct BurstGroup {
    n: u32,
    size: Bytes,
    /// Indices of the kept samples of the point.
    kept: Vec<usize>,
    times: Vec<f64>,
    mean: f64,
}

impl BurstGroup {
    fn point(&self) -> PrttPoint {
        PrttPoint::new(self.n, Time::ZERO, self.size)
    }

    fn squares(&self) -> f64 {
        self.times
            .iter()
            .map(|time| (time - self.mean).powi(2))
            .sum()
    }
}

struct Cleaned {
    groups: Vec<BurstGroup>,
    outliers: usize,
    packets: f64,
}

fn is_burst(point: PrttPoint) -> bool {
    point.messages > 1 && point.delay == Time::ZERO
}

/// A variance that several points share.
#[derive(Clone, Copy)]
struct Pool {
    variance: f64,
    freedom: f64,
}

/// Pools the variance of single messages or of bursts.
fn pool(groups: &[&BurstGroup], bursts: bool) -> Option<Pool> {
    let of_kind = groups.iter().filter(|group| (group.n > 1) == bursts);
    let freedom: f64 = of_kind
        .clone()
        .map(|group| group.times.len() as f64 - 1.0)
        .sum();
    let squares: f64 = of_kind.map(|group| group.squares()).sum();
    (freedom > 0.0).then(|| Pool {
        variance: squares / freedom,
        freedom,
    })
}

/// Returns the mean of the sender's times for single messages of the smallest size, their variance and their number.
fn busy_of_smallest(samples: &PrttSamples, groups: &[BurstGroup]) -> Option<(f64, Pool, f64)> {
    let smallest = groups
        .iter()
        .filter(|group| group.n == 1)
        .min_by_key(|group| group.size)?;
    let times = clean::busy_times(samples, smallest);
    let (count, mean) = (times.len() as f64, mean_of(&times)?);
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    (count > 1.0).then(|| {
        (
            mean,
            Pool {
                variance: squares / (count - 1.0),
                freedom: count - 1.0,
            },
            count,
        )
    })
}

fn mean_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the sizes with two lengths of bursts whose messages are spaced further apart than the overhead explains.
fn visible_sizes(groups: &[BurstGroup], overhead: f64) -> Vec<Bytes> {
    let mut sizes: Vec<Bytes> = groups
        .iter()
        .filter(|group| group.n > 1)
        .map(|group| group.size)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|size| {
        let bursts = groups
            .iter()
            .filter(|group| group.n > 1 && group.size == *size);
        let (Some(short), Some(long)) = (
            bursts.clone().min_by_key(|group| group.n),
            bursts.max_by_key(|group| group.n),
        ) else {
            return false;
        };
        long.n > short.n
            && (long.mean - short.mean) / f64::from(long.n - short.n) > VISIBLE * overhead
    });
    sizes
}

/// Row with the columns A, G, g, then c of each size with bursts.
fn row(group: &BurstGroup, visible: &[Bytes], pools: &[Pool; 2]) -> LinearRow {
    // If samples do not differ at all, the weights depend only on their number.
    let variance = pools[usize::from(group.n > 1)].variance.max(1e-6);
    LinearRow {
        columns: columns(group.n, group.size, visible),
        value: group.mean,
        variance: variance / group.times.len() as f64,
    }
}

/// Returns `true` if the gap affects the row.
fn is_of_burst(row: &LinearRow) -> bool {
    row.columns[2] > 0.0
}

/// Part of the covariance of two parameters that is due to bursts, or to single messages.
fn variance(solved: &LinearFit, [one, other]: [usize; 2], rows: &[LinearRow], burst: bool) -> f64 {
    let both = solved.weights[one]
        .iter()
        .zip(&solved.weights[other])
        .zip(rows);
    both.filter(|(_, row)| is_of_burst(row) == burst)
        .map(|((one, other), row)| one * other * row.variance)
        .sum()
}

fn columns(n: u32, size: Bytes, visible: &[Bytes]) -> Vec<f64> {
    let (beyond, more) = (size.0.saturating_sub(1) as f64, f64::from(n) - 1.0);
    let mut columns = vec![0.0; 3 + visible.len()];
    columns[..3].copy_from_slice(&[2.0, (2.0 + more) * beyond, more]);
    if let Some(at) = visible
        .iter()
        .position(|own| *own == size)
        .filter(|_| n > 1)
    {
        columns[3 + at] = 1.0;
    }
    columns
}

/// Covariance of A, the one-way time of one byte, with the sender's time, for one sample of each.
fn covariance_with_busy(samples: &PrttSamples, used: &[&BurstGroup], solved: &LinearFit) -> f64 {
    let Some((at, group)) = used
        .iter()
        .enumerate()
        .filter(|(_, group)| group.n == 1)
        .min_by_key(|(_, group)| group.size)
    else {
        return 0.0;
    };
    let busy = samples.busy(group.point());
    let pairs: Vec<(f64, f64)> = group
        .kept
        .iter()
        .zip(&group.times)
        .filter_map(|(kept, time)| Some((*time, busy.get(*kept)?.as_nanos())))
        .collect();
    let Some(mean) = mean_of(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>()) else {
        return 0.0;
    };
    let products: f64 = pairs
        .iter()
        .map(|(time, busy)| (time - group.mean) * (busy - mean))
        .sum();
    solved.weights[0][at] * products / (pairs.len() as f64 - 1.0).max(1.0)
}

/// Degrees of freedom of a sum of estimated variances (Satterthwaite, "An approximate distribution of estimates of variance
/// components", 1946).
fn satterthwaite(parts: &[(f64, f64)]) -> f64 {
    let sum: f64 = parts.iter().map(|part| part.0).sum();
    let squares: f64 = parts
        .iter()
        .map(|(variance, freedom)| variance.powi(2) / freedom)
        .sum();
    if squares > 0.0 {
        (sum.powi(2) / squares).max(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests;

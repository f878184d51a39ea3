//! The best settings of HPL for a cluster, and the changes of the cluster that would improve its time.

use crate::{Broadcast, HplSettings, Swap};
use flowcast_network::network::{LinkRate, Network, SingleFlowRate};
use flowcast_program::parallel;
use flowcast_statistics::sample::sorted_places;

use flowcast_units::TimePerByte;

use super::{
    Cluster, ClusterError, RunPrediction,
    estimate::{SimulatedExtent, estimate},
    predict_runs,
};
use flowcast_replay::outcome::NotFiniteTime;

/// A question for the best settings.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsQuestion {
    /// Order of the matrix.
    pub order: u64,
    /// Number of ranks, all of which are used.
    pub ranks: u32,
    /// Block sizes NB to choose from, at least one. The other settings are compared with the first.
    pub blocks: Vec<u32>,
    /// Lookahead depths to choose from, at least one. Grids and broadcasts are compared with the first.
    pub depths: Vec<u32>,
    /// Another network, for comparison.
    pub other_network: Option<Network>,
}

impl SettingsQuestion {
    /// Checks that the cluster has enough nodes, and that all grids can be simulated with all block sizes.
    ///
    /// # Errors
    /// The errors of [`Cluster::check`].
    pub fn check(&self, cluster: &Cluster) -> Result<(), ClusterError> {
        let grids = grids(self).into_iter();
        let mut all = grids.flat_map(|grid| blocks(grid, self));
        all.try_for_each(|settings| cluster.check(&settings, WINDOWS))
    }
}

/// A change of the cluster and its effect on the time of the best settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterChange {
    /// Description of the change.
    pub what: &'static str,
    /// Time of the best settings with the change, as a multiple of the time without it.
    pub factor: f64,
}

/// Result of the search for the best settings.
#[derive(Debug, Clone, PartialEq)]
pub struct LinpackChoice {
    /// The best candidates with their predictions, the fastest first.
    pub candidates: Vec<(HplSettings, RunPrediction)>,
    /// Effects of changes of the cluster on the time of the first candidate.
    pub changes: Vec<ClusterChange>,
}

/// Places of each run at which the search simulates panels.
const WINDOWS: SimulatedExtent = SimulatedExtent::Windows(5);
/// Number of grids whose other settings are searched, which is also the number of candidates that are simulated in full.
const FINALISTS: usize = 3;

/// Searches the best grids first. For each of the best, it then searches the broadcast, the swap with the depth, and the
/// block size, one after the other. The best candidates are simulated in full. `done` is called after each simulation.
///
/// # Errors
/// [`NotFiniteTime`].
///
/// # Panics
/// If the cluster has too few nodes.
pub fn choose(
    cluster: &Cluster,
    question: &SettingsQuestion,
    members: u32,
    level: f64,
    threads: usize,
    done: &(dyn Fn() + Sync),
) -> Result<LinpackChoice, NotFiniteTime> {
    let search = SettingsSearch {
        cluster,
        threads,
        done,
    };
    let mut best = search.fastest(grids(question), FINALISTS)?;
    for variants in [broadcasts, swaps_and_depths, blocks] {
        for settings in &mut best {
            *settings = search.fastest(variants(*settings, question), 1)?[0];
        }
    }
    let predictions = predict_runs(
        cluster,
        &best,
        SimulatedExtent::Full,
        members,
        level,
        threads,
        done,
    )?;
    let mut candidates: Vec<(HplSettings, RunPrediction)> =
        best.into_iter().zip(predictions).collect();
    candidates.sort_by_key(|(_, estimate)| estimate.time);
    let changes = search.changes(candidates[0].0, question.other_network.as_ref())?;
    Ok(LinpackChoice {
        candidates,
        changes,
    })
}

/// All grids with this number of ranks, with settings that are rarely bad.
fn grids(question: &SettingsQuestion) -> Vec<HplSettings> {
    (1..=question.ranks)
        .filter(|rows| question.ranks.is_multiple_of(*rows))
        .map(|rows| HplSettings {
            order: question.order,
            block: question.blocks[0],
            rows,
            columns: question.ranks / rows,
            depth: question.depths[0],
            broadcast: Broadcast::RingModified,
            swap: Swap::Binary,
        })
        .collect()
}

fn broadcasts(settings: HplSettings, _: &SettingsQuestion) -> Vec<HplSettings> {
    let all = Broadcast::ALL.into_iter();
    all.map(|broadcast| HplSettings {
        broadcast,
        ..settings
    })
    .collect()
}

fn swaps_and_depths(settings: HplSettings, question: &SettingsQuestion) -> Vec<HplSettings> {
    let mut all = Vec::new();
    for swap in [Swap::Binary, Swap::Long] {
        all.extend(question.depths.iter().map(|depth| HplSettings {
            swap,
            depth: *depth,
            ..settings
        }));
    }
    all
}

fn blocks(settings: HplSettings, question: &SettingsQuestion) -> Vec<HplSettings> {
    let all = question.blocks.iter();
    all.map(|block| HplSettings {
        block: *block,
        ..settings
    })
    .collect()
}

struct SettingsSearch<'a> {
    cluster: &'a Cluster,
    threads: usize,
    done: &'a (dyn Fn() + Sync),
}

impl SettingsSearch<'_> {
    /// The fastest `count` of some settings, the fastest first.
    fn fastest(
        &self,
        all: Vec<HplSettings>,
        count: usize,
    ) -> Result<Vec<HplSettings>, NotFiniteTime> {
        let seconds = parallel::map(&all, self.threads, |settings| {
            self.seconds(self.cluster, settings)
        });
        let seconds: Vec<f64> = seconds.into_iter().collect::<Result<_, _>>()?;
        let order = sorted_places(&seconds).into_iter();
        Ok(order.take(count).map(|at| all[at]).collect())
    }

    fn seconds(&self, cluster: &Cluster, settings: &HplSettings) -> Result<f64, NotFiniteTime> {
        let machine = cluster.machine(settings, 0);
        let found = estimate(settings, &machine, WINDOWS, 1)?;
        (self.done)();
        Ok(found.seconds)
    }

    fn changes(
        &self,
        settings: HplSettings,
        other: Option<&Network>,
    ) -> Result<Vec<ClusterChange>, NotFiniteTime> {
        let whole = self.cluster;
        let with_network = |change: &dyn Fn(&mut Network)| {
            let mut cluster = whole.clone();
            change(&mut cluster.network);
            cluster
        };
        let mut clusters = vec![
            (
                "the slowest node is replaced by one as fast as the median",
                Cluster {
                    processors: whole.processors.without_slowest(),
                    ..whole.clone()
                },
            ),
            (
                "interfaces are twice as fast",
                with_network(&|network| {
                    let half = TimePerByte::from_nanos(network.nic.per_byte().as_nanos() / 2.0);
                    network.nic.rate = LinkRate::Goodput(SingleFlowRate::GapPerByte(half));
                }),
            ),
            (
                "latency is half",
                with_network(&|network| network.nic.latency = network.nic.latency * 0.5),
            ),
        ];
        if let Some(other) = other {
            let mut cluster = whole.clone();
            cluster.network = other.clone();
            clusters.push(("the other network", cluster));
        }
        let seconds = parallel::map(&clusters, self.threads, |(_, cluster)| {
            self.seconds(cluster, &settings)
        });
        let now = self.seconds(whole, &settings)?;
        let changes = clusters.iter().zip(seconds);
        changes
            .map(|((what, _), seconds)| {
                let factor = seconds? / now;
                Ok(ClusterChange { what, factor })
            })
            .collect()
    }
}

/// Number of floating-point operations of a run, as HPL counts them.
pub fn operations(settings: &HplSettings) -> f64 {
    let order = settings.order as f64;
    2.0 / 3.0 * order.powi(3) + 1.5 * order.powi(2)
}

/// Content of HPL.dat for these settings.
pub fn hpl_dat(settings: &HplSettings) -> String {
    let broadcast = settings.broadcast as usize;
    let (swap, threshold) = match settings.swap {
        Swap::Binary => (0, 64),
        Swap::Long => (1, 64),
        Swap::Mix(threshold) => (2, threshold),
    };
    let HplSettings {
        order,
        block,
        rows,
        columns,
        depth,
        ..
    } = settings;
    format!(
        "HPLinpack benchmark input file
Chosen by flowcast hpl choose
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{order:<12} Ns
1            # of NBs
{block:<12} NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows:<12} Ps
{columns:<12} Qs
16.0         threshold
1            # of panel fact
1            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
2            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
2            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
{broadcast:<12} BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
{depth:<12} DEPTHs (>=0)
{swap:<12} SWAP (0=bin-exch,1=long,2=mix)
{threshold:<12} swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"
    )
}

//! A stream of random flows: many nodes, random pairs, sizes and starts. Speed is measured with this workload.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::flow::Flow;
use flowcast_units::{Bytes, Node, Rate, Time};

/// Random flows between random nodes that load the interfaces to a given fraction on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Number of flows; their ids are 1 to this number.
    pub flows: u32,
    /// Number of nodes, at least 2.
    pub nodes: u32,
    /// Smallest and largest size; sizes are uniform on a logarithmic scale.
    pub sizes: (Bytes, Bytes),
    /// Average offered load, as a fraction of the aggregate interface rate.
    pub load: f64,
    /// Interface rate that the load refers to.
    pub rate: Rate,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Stream {
    /// Draws the flows, in order of start.
    pub fn draw(&self) -> Vec<Flow> {
        let mut random = Pcg64Mcg::seed_from_u64(self.seed);
        let mut flows: Vec<Flow> = (1..=self.flows)
            .map(|id| self.flow(id, &mut random))
            .collect();
        let bytes: f64 = flows.iter().map(|flow| flow.size.0 as f64).sum();
        // Time in which all interfaces together carry all bytes at this load.
        let nanos =
            bytes * 1e9 / (self.rate.as_bytes_per_second() * f64::from(self.nodes) * self.load);
        let mut starts: Vec<f64> = flows
            .iter()
            .map(|_| (random.random::<f64>() * nanos).floor())
            .collect();
        starts.sort_by(f64::total_cmp);
        flows
            .iter_mut()
            .zip(starts)
            .for_each(|(flow, start)| flow.start = Time::from_nanos(start));
        flows
    }

    fn flow(&self, id: u32, random: &mut impl Rng) -> Flow {
        let src = random.random_range(0..self.nodes);
        let other = random.random_range(0..self.nodes - 1);
        let dst = if other >= src { other + 1 } else { other };
        let (low, high) = (self.sizes.0.0 as f64, self.sizes.1.0 as f64);
        let size = low * (high / low).powf(random.random::<f64>());
        Flow {
            id,
            src: Node(src),
            dst: Node(dst),
            size: Bytes(size.round() as u64),
            start: Time::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_offers_its_load_and_repeats_with_its_seed() {
        let stream = Stream {
            flows: 5000,
            nodes: 50,
            sizes: (Bytes(1000), Bytes(1_000_000)),
            load: 0.5,
            rate: Rate::from_bytes_per_second(1e8),
            seed: 3,
        };
        let flows = stream.draw();
        assert_eq!(flows, stream.draw());
        assert_ne!(flows, Stream { seed: 4, ..stream }.draw());
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        assert!(
            flows
                .iter()
                .all(|flow| flow.src != flow.dst && (1000..=1_000_000).contains(&flow.size.0))
        );
        let bytes: u64 = flows.iter().map(|flow| flow.size.0).sum();
        let last = flows.last().unwrap().start.as_seconds();
        assert!((bytes as f64 / last / 1e8 / 50.0 - 0.5).abs() < 0.01);
    }
}

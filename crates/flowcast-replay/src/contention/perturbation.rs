//! Costs that change from one message to the next: random perturbation, and the traffic between sites.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::super::{costs::Costs, routes::Route};
use flowcast_network::{
    machine::{
        random::{Randomness, Shape},
        wide_area::WideArea,
    },
    network::Network,
};
use flowcast_units::{Bytes, Time};

/// Averaging period of the traffic between sites, in nanoseconds.
const PERIOD: f64 = 10e9;

/// Minimum fraction of a bandwidth or speed that remains, whatever is drawn.
const LEAST: f64 = 0.01;

/// Random numbers, and the traffic so far.
#[derive(Debug, Clone)]
pub(super) struct Perturbation {
    numbers: Pcg64,
    random: Randomness,
    wide_area: WideArea,
    /// Rate of each route, in bytes per second, indexed by route number; 0 is infinite.
    rates: Vec<f64>,
    /// Average traffic in bytes per nanosecond; `recent` is the number of bytes since the current period began.
    traffic: f64,
    recent: f64,
    next_period: f64,
}

/// Factors of a transfer's duration relative to its constant cost: on the links, and until all bytes have arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub on_links: f64,
    pub until_there: f64,
}

impl Perturbation {
    /// `true` if any cost varies.
    pub(super) fn is_needed(network: &Network) -> bool {
        let wide_area = &network.machine.wide_area;
        let traffic =
            wide_area.traffic_weight > 0.0 && wide_area.max_traffic.as_bytes_per_second() > 0.0;
        network.machine.random.varies() || traffic
    }

    /// Creates the random numbers from the network's seed, and a state without traffic.
    pub(super) fn new(costs: &Costs, routes: &[Route]) -> Perturbation {
        let machine = &costs.network().machine;
        Perturbation {
            numbers: Pcg64::seed_from_u64(machine.random.seed),
            random: machine.random,
            wide_area: machine.wide_area.clone(),
            rates: (0..routes.len())
                .map(|number| costs.rate(number, routes[number]).as_bytes_per_second())
                .collect(),
            traffic: 0.0,
            recent: 0.0,
            next_period: PERIOD,
        }
    }

    /// Adds a random deviation to a relative speed.
    pub(super) fn speed(&mut self, speed: f64) -> f64 {
        let drawn = self.draw(self.random.speed.shape);
        (speed + drawn).max(speed * LEAST)
    }

    /// Adds a random deviation to a start-up; the result is at least 0.
    pub(super) fn start_up(&mut self, time: Time, route: Route) -> Time {
        let shape = match route {
            Route::Between => self.random.latency.shape,
            Route::Inside => self.random.intra_latency.shape,
            Route::ToSite(_) => self.random.wide_area_latency.shape,
            Route::By(_) => Shape::None,
        };
        (time + Time::from_nanos(self.draw(shape))).max(Time::ZERO)
    }

    /// Draws the change of a transfer on this route.
    pub(super) fn transfer(
        &mut self,
        now: Time,
        number: usize,
        route: Route,
        size: Bytes,
    ) -> Stretch {
        let rate = self.rates[number];
        let shape = match route {
            Route::Between => self.random.bandwidth.shape,
            Route::Inside => self.random.intra_bandwidth.shape,
            Route::ToSite(_) => self.random.wide_area_bandwidth.shape,
            Route::By(_) => Shape::None,
        };
        let drawn = self.draw(shape);
        let on_links = if rate > 0.0 {
            rate / (rate + drawn).max(rate * LEAST)
        } else {
            1.0
        };
        let left = if let Route::ToSite(_) = route {
            self.traffic_ratio(now, size)
        } else {
            1.0
        };
        Stretch {
            on_links,
            until_there: on_links / left,
        }
    }

    /// Fraction of the bandwidth between sites that the traffic leaves, up to 1.
    fn traffic_ratio(&mut self, now: Time, size: Bytes) -> f64 {
        while self.next_period <= now.as_nanos() {
            let memory = self.wide_area.traffic_memory;
            self.traffic = self.traffic * memory + self.recent / PERIOD * (1.0 - memory);
            self.recent = 0.0;
            self.next_period += PERIOD;
        }
        self.recent += size.0 as f64;
        let most = self.wide_area.max_traffic.as_bytes_per_second() / 1e9;
        if most == 0.0 {
            return 1.0;
        }
        let ratio = self
            .wide_area
            .traffic
            .ratio(self.wide_area.traffic_weight * self.traffic / most);
        if ratio.is_nan() {
            LEAST
        } else {
            ratio.clamp(LEAST, 1.0)
        }
    }

    fn draw(&mut self, shape: Shape) -> f64 {
        match shape {
            Shape::None => 0.0,
            Shape::Uniform { least, most } => least + (most - least) * self.numbers.random::<f64>(),
            // Method of Box and Muller. The first number is above 0, so that the logarithm is finite.
            Shape::Normal { mean, deviation } => {
                let radius = (-2.0 * (1.0 - self.numbers.random::<f64>()).ln()).sqrt();
                let angle = std::f64::consts::TAU * self.numbers.random::<f64>();
                mean + deviation * radius * angle.cos()
            }
        }
    }
}

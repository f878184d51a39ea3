use flowcast_replay::hpl::*;
use flowcast_trace::hpl::{Broadcast, KernelRates, Pivots, Processor, Settings, Swap};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dgemm = std::fs::read_to_string("/work/shared/measured/hpl/dgemm_by_cpu.csv").unwrap();
    let cpus: Vec<Processor> = dgemm
        .lines()
        .skip(1)
        .map(|line| {
            let f: Vec<f64> = line.split(',').map(|x| x.parse().unwrap()).collect();
            Processor {
                intercept: f[2],
                per_mnk: f[3],
            }
        })
        .collect();
    let env =
        |name: &str, default: f64| std::env::var(name).map_or(default, |v| v.parse().unwrap());
    let cases = std::fs::read_to_string("/work/shared/measured/hpl/cases.csv").unwrap();
    for line in cases.lines().skip(1) {
        let f: Vec<&str> = line.split(',').collect();
        if !args[1..].iter().any(|a| line.starts_with(a.as_str())) {
            continue;
        }
        let n = |i: usize| f[i].parse::<u64>().unwrap();
        let settings = Settings {
            order: n(1),
            block: n(4) as u32,
            rows: n(2) as u32,
            columns: n(3) as u32,
            depth: n(5) as u32,
            broadcast: Broadcast::ALL[n(6) as usize].1,
            swap: [Swap::Binary, Swap::Long, Swap::Mix(n(4) as u32)][n(7) as usize],
        };
        let ranks = settings.ranks();
        let machine = Machine {
            nodes: (0..ranks).map(|r| r / 32).collect(),
            ranks_per_node: 32,
            processors: (0..ranks).map(|r| cpus[(r / 16) as usize]).collect(),
            inside: Channel {
                latency: env("LI", 0.5e-6),
                receive: 0.2e-6,
                per_byte: 1.0 / env("BI", 5e9),
                shared_per_byte: 1.0 / env("BN", 60e9),
                rendezvous_from: 8192,
            },
            between: Channel {
                latency: env("LB", 1.2e-6),
                receive: 0.3e-6,
                per_byte: 1.0 / 12.2e9,
                shared_per_byte: 1.0 / env("NIC", 12.2e9),
                rendezvous_from: 9000,
            },
            sends: vec![SendCost {
                from: 0,
                fixed: 0.3e-6,
                per_byte: 0.1e-9,
            }],
            rates: KernelRates {
                multiply: env("MUL", 1.0),
                solve: env("SOLVE", 1.3),
                cache_bytes: env("CACHE", 2.4e6),
                cache_rate: env("CR", 20e9),
                memory_rate: env("MR", 10e9),
            },
            node_memory_rate: env("NM", 190e9),
        };
        let started = std::time::Instant::now();
        let (seconds, actions) = Simulation::new(
            settings,
            &machine,
            Pivots::Random { seed: 1 },
            0..settings.panels(),
        )
        .run();
        let measured: f64 = f[8].parse().unwrap();
        println!(
            "{:60} {:9.2} {:9.2} {:+6.1}%  {:.1}s {}M actions",
            f[..8].join(","),
            measured,
            seconds,
            (seconds / measured - 1.0) * 100.0,
            started.elapsed().as_secs_f64(),
            actions / 1_000_000
        );
    }
}

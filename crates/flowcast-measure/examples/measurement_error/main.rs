//! Errors of LogGP parameters measured over virtual cables, by procedure: `cargo run --release -p flowcast-measure --example
//! measurement_error [RUNS [CABLE]]`. `docs/evidence/measurement.md` contains the table.

mod cables;
mod procedures;

use flowcast_measure::budget::BudgetPlan;

use cables::{CABLES, Cable};
use procedures::{Found, budgeted, kielmann, netgauge};

/// Largest relative error of a parameter that counts as right.
const RIGHT: f64 = 0.03;
const NAMES: [&str; 4] = ["L", "o", "g", "G"];

fn main() {
    let runs: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(50);
    println!(
        "{runs} runs of each cable; `right` counts runs with all parameters within {} %",
        RIGHT * 100.0
    );
    let mut covered = [0u64; 4];
    let chosen = std::env::args().nth(2).unwrap_or_default();
    for cable in CABLES
        .into_iter()
        .filter(|cable| cable.name.contains(&chosen))
    {
        let found: Vec<Found> = (1..=runs)
            .map(|seed| {
                budgeted(
                    &cable,
                    &BudgetPlan {
                        seed,
                        ..BudgetPlan::default()
                    },
                )
            })
            .collect();
        print(&cable, "budgeted", &found);
        let covers = [0, 1, 2, 3].map(|at| {
            found
                .iter()
                .filter(|found| found.covers(&cable, at))
                .count() as u64
        });
        println!(
            "{:<44} intervals that contain the true value: L {}, o {}, g {}, G {}",
            "", covers[0], covers[1], covers[2], covers[3]
        );
        covered
            .iter_mut()
            .zip(covers)
            .for_each(|(sum, covers)| *sum += covers);
        print(
            &cable,
            "netgauge",
            &(1..=runs)
                .map(|seed| netgauge(&cable, seed))
                .collect::<Vec<_>>(),
        );
        print(
            &cable,
            "plogp",
            &(1..=runs)
                .map(|seed| kielmann(&cable, seed))
                .collect::<Vec<_>>(),
        );
    }
    let all = (runs * CABLES.len() as u64) as f64;
    let shares = covered
        .iter()
        .zip(NAMES)
        .map(|(covered, name)| format!("{name} {:.1} %", *covered as f64 / all * 100.0));
    println!(
        "intervals at 95 % that contain the true value: {}",
        shares.collect::<Vec<_>>().join(", ")
    );
}

fn print(cable: &Cable, procedure: &str, found: &[Found]) {
    let truth = cable.truth();
    let right = found
        .iter()
        .filter(|found| found.worst(&truth) <= RIGHT)
        .count();
    let mean = |of: &dyn Fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
    let worst: Vec<String> = (0..4)
        .map(|at| {
            let worst = found
                .iter()
                .map(|found| found.error(&truth, at).abs())
                .fold(0.0, f64::max);
            if worst.is_finite() {
                format!("{} {:.2} %", NAMES[at], worst * 100.0)
            } else {
                format!("{} -", NAMES[at])
            }
        })
        .collect();
    println!(
        "{:<34} {procedure:<9} right {right:>3}/{}  worst {:<52} {:>7.0} messages {:>9.0} B {:>8.3} s",
        cable.name,
        found.len(),
        worst.join(", "),
        mean(&|found| f64::from(found.messages)),
        mean(&|found| found.bytes as f64),
        mean(&|found| found.seconds),
    );
}

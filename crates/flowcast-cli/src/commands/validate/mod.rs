//! `flowcast validate`: compares predictions with measurements.

mod accuracy;
mod app;
mod finished;
mod journal;
mod margins;
mod pattern;
mod patterns;
mod results;
mod tolerance;

pub(crate) use self::{journal::part_of_run, patterns::racks_of};

subcommands! {
    /// Compare predictions with measurements
    #[command(after_help = "Examples:\n  flowcast validate pattern A --count 10 --report chain.html\n  \
                            flowcast validate app --network fitted.toml --report cg.html -- mpirun -np 4 ./cg.S.x")]
    Validate {
        Pattern(Box<pattern::ValidatePattern>),
        App(Box<app::ValidateApp>),
        Chart(app::ValidateChart),
        Margins(margins::ValidateMargins),
    }
}

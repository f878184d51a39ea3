//! `flowcast rails`: distributes messages over several networks.

mod advise;
mod bench;
mod bench_results;
mod chosen;
mod compare;
mod count;
mod inputs;
pub(crate) mod live;
mod optimum;
mod serve;
mod settings;
mod simulate;
mod split;

subcommands! {
    /// Schedule messages over several networks
    ///
    /// A rail is a network with its LogGP parameters, NAME=g,G,o,Lus in microseconds (G per byte). One rule evaluates all
    /// schedulers: a message starts when its rail is free, is delivered 2o + L + G(s-1) later, and occupies the rail for g +
    /// G(s-1).
    #[command(
        after_help = "Examples:\n  flowcast rails simulate --rail ib=1.4,0.00103,1.4,2.82us --rail myri=3.4,0.00409,1.9,24.3us \
                            --messages burst.csv\n  flowcast rails compare"
    )]
    Rails {
        Simulate(simulate::Simulate),
        Optimum(optimum::FindOptimum),
        Compare(compare::Compare),
        Advise(advise::Advise),
        Serve(serve::Serve),
        Bench(bench::Bench),
    }
}

//! Finds the network on which a program is fastest, if concurrent messages share the interfaces fairly. Writes a report
//! page.
//!
//! `cargo run --release -p flowcast --example compare_networks`

use std::collections::BTreeMap;

use flowcast::{
    Contention, Options, Outputs, Prepared,
    model::{builtin, sharing::model::Model},
    report::Page,
    units::Rounded,
};

/// NAS LU, class S, four ranks.
const TRACE: &[u8] = include_bytes!("data/lu.S.4.dim.gz");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = flowcast::read_text("lu.S.4.dim.gz", TRACE)?;
    let options = Options {
        contention: Contention::Shared(Model::Fair),
        ..Options::default()
    };
    let mut page = Page {
        title: "NAS LU, class S, 4 ranks".into(),
        ..Page::default()
    };
    for name in ["gige-tcp", "myrinet-gm", "infiniband-2006"] {
        let network = builtin::network(name)?;
        let prepared = Prepared::new(&trace, Some(&network), &options)?;
        let prediction = prepared.predict(
            Outputs {
                view: true,
                ..Outputs::default()
            },
            &[],
        )?;
        println!("{name:16} {}", Rounded(prediction.outcome.makespan()));
        page.networks.extend(prediction.view);
    }
    page.provenance = BTreeMap::from([("flowcast".into(), env!("CARGO_PKG_VERSION").into())]);
    let path = std::env::temp_dir().join("flowcast-compare.html");
    std::fs::write(&path, page.to_html()?)?;
    println!("report: {}", path.display());
    Ok(())
}

//! A replay as the report shows it, and the table of several side by side.

use std::path::Path;

use anyhow::Result;
use flowcast::model::network::Network;
use flowcast::replay::Engine;
use flowcast::replay::loggops::{Loggops, Recording};
use flowcast::report::{Limits, NetworkView, Page, parameter_line};
use flowcast::trace::Program;
use flowcast::units::Rounded;

use crate::files::write_whole;
use crate::output::println_out;
use crate::tables::table;

/// Replays a program and keeps what there is to see.
pub fn view(program: &Program, network: &Network, replay: &Engine<'_>) -> Result<NetworkView> {
    let (outcome, recorder) = replay.record()?;
    Ok(NetworkView {
        name: network.name.clone(),
        title: network.title.clone(),
        parameters: parameter_line(network),
        outcome,
        timeline: recorder.timeline(program),
        limits: Limits::from(&replay.critical_path(&recorder)),
    })
}

/// What there is to see of the replay of a schedule.
pub fn schedule_view(recording: Recording, network: Option<&Network>, parameters: Loggops) -> NetworkView {
    let Recording { outcome, timeline, path } = recording;
    let Loggops { latency, overhead, gap, gap_per_byte, eager_up_to } = parameters;
    let [latency, overhead, gap] = [latency, overhead, gap].map(Rounded);
    let eager = eager_up_to.map_or("every size".to_owned(), |size| size.to_string());
    let per_byte = gap_per_byte.as_nanos();
    NetworkView {
        name: network.map_or("LogGOPS".to_owned(), |network| network.name.clone()),
        title: network.map_or("with LogGOPSim's rules".to_owned(), |network| network.title.clone()),
        parameters: format!("L {latency}, o {overhead}, g {gap}, G {per_byte} ns a byte, S {eager}"),
        outcome,
        timeline,
        limits: path.as_ref().map(Limits::from).unwrap_or_default(),
    }
}

/// One line for each network: predicted time, time in communication, slowest rank, what limits it.
pub fn print_comparison(views: &[NetworkView]) {
    let mut table = table(&["network", ">predicted time", ">in communication", ">slowest rank", "what limits it"]);
    for view in views {
        table.add_row([
            view.name.clone(),
            Rounded(view.outcome.makespan()).to_string(),
            format!("{:.1} %", view.communication_share() * 100.0),
            view.slowest_rank().map_or(String::new(), |rank| rank.to_string()),
            view.limits.sentence.clone(),
        ]);
    }
    println_out!("{table}");
}

/// Writes the page.
pub fn write_page(page: &Page, path: &Path) -> Result<()> {
    write_whole(path, |out| Ok(std::io::Write::write_all(out, page.to_html().as_bytes())?))
}

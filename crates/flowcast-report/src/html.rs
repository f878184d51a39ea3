//! Parts of the page that need no script: headline, table, bars, provenance.

use std::fmt::Write as _;

use super::{
    Limits, NetworkView, Page, charts, data,
    standing::{PredictedTime, Standing, standings},
};
use flowcast_replay::{outcome::RankOutcome, timeline::Activity};
use flowcast_table::escape;
use flowcast_units::{Rounded, Time};

const TEMPLATE: &str = include_str!("assets/page.html");
const SCRIPT: [&str; 13] = [
    include_str!("assets/format.js"),
    include_str!("assets/replay.js"),
    include_str!("assets/lanes.js"),
    include_str!("assets/arrows.js"),
    include_str!("assets/align.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/pointer.js"),
    include_str!("assets/messages.js"),
    include_str!("assets/search.js"),
    include_str!("assets/selection.js"),
    include_str!("assets/difference.js"),
    include_str!("assets/picture.js"),
    include_str!("assets/main.js"),
];

/// Builds the page as one HTML document, with its data and scripts inside.
pub(crate) fn document(page: &Page) -> String {
    fill(
        TEMPLATE,
        &[
            ("title", escape(&page.title)),
            ("subtitle", escape(&page.subtitle)),
            ("style", charts::style().to_owned() + charts::LOOK),
            ("cards", cards(page)),
            ("rows", of_networks(page, row)),
            ("bars", of_networks(page, bar)),
            ("notes", notes(page)),
            ("legend", legend()),
            ("provenance", provenance(page)),
            ("data", data::json(page)),
            (
                "script",
                charts::script() + &SCRIPT.concat() + charts::SCROLLS,
            ),
        ],
    )
}

fn of_networks(page: &Page, part: fn(&Page, &NetworkView) -> String) -> String {
    let networks = page.networks.iter();
    networks.map(|network| part(page, network)).collect()
}

/// Replaces each `{{name}}` by its value in one pass, so that braces in a value stay unchanged.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after
            .split_once("}}")
            .expect("the template closes what it opens");
        let value = values
            .iter()
            .find(|(known, _)| *known == name)
            .expect("the template names known values");
        filled.push_str(before);
        filled.push_str(&value.1);
        rest = after;
    }
    filled + rest
}

fn cards(page: &Page) -> String {
    let networks = page.networks.iter();
    let times: Vec<PredictedTime<'_>> = networks
        .map(|network| (network.outcome.makespan(), network.interval.as_ref()))
        .collect();
    let standings = standings(&times);
    let networks = page.networks.iter().enumerate();
    networks
        .map(|(at, network)| card(network, standings.get(at)))
        .collect()
}

fn card(network: &NetworkView, standing: Option<&Standing>) -> String {
    let time = network.time();
    let (time, interval) = time.split_once(" (").unwrap_or((&time, ""));
    let (number, unit) = time.split_once(' ').unwrap_or((time, ""));
    let interval = interval.strip_suffix(')').map_or(String::new(), |span| {
        let span = span.replacen(", ", &format!(" {unit}, "), 1);
        format!("<p class=\"interval\">{span}</p>")
    });
    let ratio = standing.map_or(String::new(), |of| {
        let class = match of {
            Standing::Fastest => "ratio fastest",
            _ => "ratio",
        };
        format!("<p class=\"{class}\">{of}</p>")
    });
    format!(
        "<article class=\"card\"><h2>{}</h2><p class=\"big\">{number}<span> {unit}</span></p>{interval}{ratio}\
         <p class=\"quiet\">{}</p><p class=\"quiet parameters\">{}</p></article>\n",
        escape(&network.marked_name()),
        escape(&network.title),
        escape(&network.parameters),
    )
}

/// Computation, overhead and blocked time of the mean rank, as fractions of its time.
fn classes(network: &NetworkView) -> String {
    let ranks = &network.outcome.ranks;
    let sum = |time: fn(&RankOutcome) -> Time| ranks.iter().map(time).sum::<Time>().as_nanos();
    let whole = sum(|rank| rank.end).max(1.0);
    let shares = [
        sum(|rank| rank.compute),
        sum(|rank| rank.overhead),
        sum(|rank| rank.blocked),
    ];
    shares
        .map(|sum| format!("<td class=\"n\">{:.1} %</td>", 100.0 * sum / whole))
        .concat()
}

fn row(page: &Page, network: &NetworkView) -> String {
    let makespan = network.outcome.makespan();
    let ratio = times_shortest(page, makespan).map_or("–".into(), |ratio| format!("{ratio:.2}"));
    let slowest = network
        .slowest_rank()
        .map_or("–".into(), |rank| rank.to_string());
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\"><span>{}</span></td><td class=\"n\">{ratio}</td>{}\
         <td class=\"n\">{slowest}</td><td class=\"limits\">{}</td></tr>\n",
        escape(&network.marked_name()),
        network.time().replacen(" (", "<br>(", 1),
        classes(network),
        limits(&network.limits),
    )
}

fn limits(limits: &Limits) -> String {
    if limits.parts.is_empty() && limits.sentence.is_empty() {
        return "not computed".into();
    }
    // Parts that would be shown as 0.0 % are not informative.
    let mut parts: Vec<_> = limits
        .parts
        .iter()
        .filter(|part| part.share >= 5e-4)
        .collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    let list: String = parts.iter().map(|part| {
        let (percent, label) = ((part.share * 100.0).clamp(0.0, 100.0), escape(&part.label));
        format!(
            "<li><b>{label}</b><span>{percent:.1} %</span><i style=\"width:{percent:.1}%\"></i></li>"
        )
    }).collect();
    format!("<p>{}</p><ul>{list}</ul>", escape(&limits.sentence))
}

/// Bar of the mean rank's time by activity. The length of the bar is the predicted time on the scale of the slowest network.
fn bar(page: &Page, network: &NetworkView) -> String {
    let slowest = page
        .networks
        .iter()
        .map(|other| other.outcome.makespan())
        .max()
        .unwrap_or_default();
    let makespan = network.outcome.makespan();
    let length = 100.0 * makespan.as_nanos() / slowest.as_nanos().max(1.0);
    let whole = makespan * network.outcome.ranks.len() as f64;
    let mut pieces = String::new();
    let mut spoken = Vec::new();
    for activity in Activity::ALL {
        let share = network.drawn.time_in(activity).as_nanos() / whole.as_nanos().max(1.0);
        if share > 0.0 {
            let of_rank = Rounded(makespan * share);
            let label = format!("{} {of_rank}, {:.1} %", activity.name(), share * 100.0);
            let inside = if share * length > 6.0 {
                format!("{:.0} %", share * 100.0)
            } else {
                String::new()
            };
            let (width, code) = (share * 100.0, activity as u8);
            let _ = write!(
                pieces,
                "<i class=\"a{code}\" style=\"width:{width:.3}%\" title=\"{label}\">{inside}</i>"
            );
            spoken.push(label);
        }
    }
    format!(
        "<div class=\"bar\"><span class=\"name\">{}</span><span class=\"track\"><span class=\"stack\" role=\"img\" \
         style=\"width:{length:.3}%\" aria-label=\"{}\">{pieces}</span></span><span class=\"n\">{}</span></div>\n",
        escape(&network.marked_name()),
        escape(&spoken.join("; ")),
        network.time(),
    )
}

fn notes(page: &Page) -> String {
    let entries: String = page
        .notes
        .iter()
        .map(|note| format!("<li>{}</li>\n", escape(note)))
        .collect();
    if entries.is_empty() {
        entries
    } else {
        format!("<ul class=\"notes\">\n{entries}</ul>\n")
    }
}

fn legend() -> String {
    Activity::ALL
        .iter()
        .map(|activity| {
            format!(
                "<li><i class=\"a{}\"></i>{}</li>",
                *activity as u8,
                activity.name()
            )
        })
        .collect()
}

fn provenance(page: &Page) -> String {
    page.provenance
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)))
        .collect()
}

/// Ratio to the shortest prediction, or `None` if there is nothing to compare.
fn times_shortest(page: &Page, makespan: Time) -> Option<f64> {
    let shortest = page
        .networks
        .iter()
        .map(|network| network.outcome.makespan())
        .min()?;
    (page.networks.len() > 1 && shortest > Time::ZERO)
        .then(|| makespan.as_nanos() / shortest.as_nanos())
}

//! Times between all pairs of nodes as one HTML page without scripts: a heat map for each size, and the findings about slow
//! nodes and links.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use flowcast_units::{Bytes, Node, Rounded, Time};

use crate::charts::{self, section};
use flowcast_table::escape;

/// Ratio to the usual time at which the colour is strongest.
const STRONGEST: f64 = 2.0;

/// Times for one message size.
///
/// ```
/// use flowcast_report::pairs_page::{PairMap, html};
/// use flowcast_units::{Bytes, Node, Time};
///
/// let map = PairMap {
///     size: Bytes(1000),
///     company: "alone".to_owned(),
///     usual: Time::from_micros(10.0),
///     times: [((Node(0), Node(1)), Time::from_micros(15.0))].into(),
/// };
/// assert!(html("Pairs", &[map], &["none is slow".to_owned()]).contains("0 to 1: 15.00 us\">1.50"));
/// ```
#[derive(Debug, Clone)]
pub struct PairMap {
    /// Size of each message.
    pub size: Bytes,
    /// Other traffic at the same time, for display: `alone`, `both directions at the same time`.
    pub company: String,
    /// Time of a message between two typical nodes, above 0.
    pub usual: Time,
    /// Median times of each sender and receiver.
    pub times: BTreeMap<(Node, Node), Time>,
}

/// Builds the page; `findings` contains at least one sentence.
pub fn html(title: &str, maps: &[PairMap], findings: &[String]) -> String {
    let words: String = findings
        .iter()
        .map(|finding| format!("<li>{}</li>\n", escape(finding)))
        .collect();
    let maps: String = maps.iter().map(heat_map).collect();
    let words = section("", &format!("<ul>\n{words}</ul>\n"));
    charts::page(title, &(words + &maps), "null", "")
}

fn heat_map(map: &PairMap) -> String {
    let nodes: BTreeSet<Node> = map
        .times
        .keys()
        .flat_map(|(from, to)| [*from, *to])
        .collect();
    let mut text = format!(
        "<p>Times from the row's node to the column's node, as multiples of the usual time, {}.</p>\n\
         <div class=\"scroll\"><table class=\"map\">\n<tr><th scope=\"col\"></th>",
        Rounded(map.usual)
    );
    nodes
        .iter()
        .for_each(|to| write!(text, "<th scope=\"col\">{}</th>", to.0).expect("text grows"));
    text.push_str("</tr>\n");
    for from in &nodes {
        write!(text, "<tr><th scope=\"row\">{}</th>", from.0).expect("text grows");
        nodes
            .iter()
            .for_each(|to| text.push_str(&cell(map, *from, *to)));
        text.push_str("</tr>\n");
    }
    let heading = format!("{}, {}", map.size, escape(&map.company));
    section(&heading, &(text + "</table></div>\n"))
}

fn cell(map: &PairMap, from: Node, to: Node) -> String {
    let Some(time) = map.times.get(&(from, to)) else {
        return "<td></td>".to_owned();
    };
    let times = time.as_nanos() / map.usual.as_nanos();
    let share = ((times - 1.0) / (STRONGEST - 1.0)).clamp(0.0, 1.0);
    format!(
        "<td style=\"color:#17202b;background:hsl({:.0} 70% {:.0}%)\" title=\"{} to {}: {}\">{times:.2}</td>",
        210.0 - 180.0 * share,
        92.0 - 26.0 * share,
        from.0,
        to.0,
        Rounded(*time)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_cell_in_the_colour_of_its_time() {
        let times = [((0, 1), 10.0), ((1, 0), 20.0)];
        let times =
            times.map(|((from, to), micros)| ((Node(from), Node(to)), Time::from_micros(micros)));
        let map = PairMap {
            size: Bytes(1000),
            company: "alone".to_owned(),
            usual: Time::from_micros(10.0),
            times: times.into_iter().collect(),
        };
        let page = html("a < b", &[map], &["node 1 is slow".to_owned()]);
        assert!(
            page.contains("hsl(210 70% 92%)\" title=\"0 to 1: 10.00 us\">1.00"),
            "{page}"
        );
        assert!(
            page.contains("hsl(30 70% 66%)\" title=\"1 to 0: 20.00 us\">2.00"),
            "{page}"
        );
        assert!(
            page.contains("<li>node 1 is slow</li>") && page.contains("<h1>a &lt; b</h1>"),
            "{page}"
        );
    }
}

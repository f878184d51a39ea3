//! A topology as a drawing: groups as blocks, switches as squares, nodes as dots, cables in the colour of their class.
//!
//! Large topologies are drawn in part: only the first nodes, groups or rows appear, and the drawing states their total
//! number.

mod layout;

use std::fmt::Write;

use crate::chart_svg::{COLOURS, opened, text};
use flowcast_network::{
    network::LinkRate,
    sharing::SharingError,
    topology::{LinkClass, Topology},
};
use flowcast_table::escape;
use flowcast_units::{Rate, Rounded, Time};
use layout::{PlacedCable, SIDE, TopologyLayout, layout};

const WIDTH: f64 = 1000.0;
/// Height of the space above the picture, and of each line of the legend below it.
const TOP: f64 = 60.0;
const LINE: f64 = 22.0;
/// Largest number of dots at a switch. More nodes are written as a number.
const MOST_DOTS: usize = 4;

/// Draws the topology as an SVG document. Cables without a rate have the interfaces' rate.
///
/// # Errors
/// A topology that cannot be built.
pub fn svg(topology: &Topology, interface: Rate, title: &str) -> Result<String, SharingError> {
    let mut layout = layout(topology, WIDTH)?;
    if layout.hidden > 0 {
        let hidden = layout.hidden;
        let note = format!("not drawn: {hidden} cables between other switches");
        layout.notes.push(note);
    }
    let classes = topology.classes();
    let lines = classes.len() + layout.notes.len();
    let legend = TOP + layout.height + 24.0;
    let mut out = opened(title, [WIDTH, legend + LINE * lines as f64 + 20.0]);
    let _ = write!(out, "<g transform=\"translate(0 {TOP})\">");
    for block in &layout.blocks {
        let [x, y] = block.at;
        let [width, height] = block.size;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\" fill=\"#f4f4f4\" stroke=\"#bbb\"/>"
        );
        text(&mut out, [x + width / 2.0, y + 13.0], "middle", &block.name);
    }
    draw_cables(&mut out, &layout);
    draw_switches(&mut out, &layout);
    draw_counts(&mut out, &layout);
    for (label, [x, y]) in &layout.others {
        framed(&mut out, [*x, y + 4.0], label);
    }
    out.push_str("</g>\n");
    draw_legend(&mut out, &layout, &classes, interface, legend);
    out.push_str("</svg>\n");
    Ok(out)
}

fn draw_cables(out: &mut String, layout: &TopologyLayout) {
    for cable in &layout.cables {
        let [[x1, y1], [cx, cy], [x2, y2]] = curve_of(cable);
        let _ = writeln!(
            out,
            "<path d=\"M{x1:.1} {y1:.1}Q{cx:.1} {cy:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"{}\" \
             stroke-width=\"{:.1}\" stroke-opacity=\"0.7\"><title>{}</title></path>",
            colour(cable.class),
            1.0 + 0.6 * (cable.count as f64).log2(),
            escape(&cable.name)
        );
    }
}

/// Writes counts at lines that represent several cables, if there is space. The width and the title of a line show its count
/// as well.
fn draw_counts(out: &mut String, layout: &TopologyLayout) {
    let names = layout.blocks.iter().flat_map(|block| {
        let [x, y] = [block.at[0] + block.size[0] / 2.0, block.at[1] + 9.0];
        [[x - 18.0, y], [x + 18.0, y]]
    });
    let mut written: Vec<[f64; 2]> = names.collect();
    for cable in layout.cables.iter().filter(|cable| cable.count > 1) {
        let [x, y] = near_drawn_end(curve_of(cable), cable.drawn_end);
        if !written
            .iter()
            .any(|other| (x - other[0]).abs() < 20.0 && (y - other[1]).abs() < 9.0)
        {
            written.push([x, y]);
            framed(out, [x, y + 3.0], &format!("×{}", cable.count));
        }
    }
}

/// Ends of a cable's line, and the point between them towards which it bends. The bend separates cables that would otherwise
/// cover switches or each other.
fn curve_of(cable: &PlacedCable) -> [[f64; 2]; 3] {
    let [[x1, y1], [x2, y2]] = cable.ends;
    let middle = [
        (x1 + x2) / 2.0 - (y2 - y1) * cable.bow,
        (y1 + y2) / 2.0 + (x2 - x1) * cable.bow,
    ];
    [cable.ends[0], middle, cable.ends[1]]
}

/// Point of a line at about 20 pixels from one of its ends.
fn near_drawn_end([first, middle, last]: [[f64; 2]; 3], end: usize) -> [f64; 2] {
    let [from, to] = if end == 0 {
        [first, last]
    } else {
        [last, first]
    };
    let length = (to[0] - from[0]).hypot(to[1] - from[1]);
    let part = (20.0 / length.max(1.0)).min(0.5);
    [0, 1].map(|axis| {
        let (near, far) = ((1.0 - part).powi(2), part.powi(2));
        near * from[axis] + 2.0 * part * (1.0 - part) * middle[axis] + far * to[axis]
    })
}

/// Writes text centred at a point, legible on top of lines.
fn framed(out: &mut String, [x, y]: [f64; 2], words: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"9\" paint-order=\"stroke\" stroke=\"#fff\" \
         stroke-width=\"3\">{}</text>",
        escape(words)
    );
}

fn draw_switches(out: &mut String, layout: &TopologyLayout) {
    let half = SIDE / 2.0;
    for switch in &layout.switches {
        let [x, y] = switch.at;
        let dots = switch.nodes.min(MOST_DOTS);
        for dot in 0..dots {
            let along = (dot as f64 - (dots as f64 - 1.0) / 2.0) * 6.0;
            let [dot_x, dot_y] = [x - along, y + 16.0];
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {y:.1}L{dot_x:.1} {dot_y:.1}\" stroke=\"{0}\"/><circle cx=\"{dot_x:.1}\" cy=\"{dot_y:.1}\" r=\"2.2\" \
                 fill=\"{0}\"/>",
                colour(0)
            );
        }
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{SIDE}\" height=\"{SIDE}\" rx=\"2\" fill=\"#fff\" stroke=\"#333\"><title>{}</title></rect>",
            x - half,
            y - half,
            escape(&switch.name)
        );
        if switch.nodes > MOST_DOTS {
            let count = switch.nodes.to_string();
            text(out, [x, y + 32.0], "middle", &count);
        }
    }
}

fn draw_legend(
    out: &mut String,
    layout: &TopologyLayout,
    classes: &[LinkClass],
    interface: Rate,
    top: f64,
) {
    let mut y = top;
    for (class, number) in classes.iter().zip(0usize..) {
        let _ = writeln!(
            out,
            "<path d=\"M40 {0:.1}h36\" stroke=\"{1}\" stroke-width=\"3\"/>",
            y - 4.0,
            colour(number)
        );
        text(
            out,
            [88.0, y],
            "start",
            &described(class, number, layout, interface),
        );
        y += LINE;
    }
    for note in &layout.notes {
        text(out, [40.0, y], "start", note);
        y += LINE;
    }
}

/// Description of a class of cables, such as `global: 3 GB/s, 2 us; 288 cables`.
fn described(class: &LinkClass, number: usize, layout: &TopologyLayout, interface: Rate) -> String {
    let rate = class.cables.rate.map_or(interface, LinkRate::goodput);
    let mut line = format!("{}: {} in each direction", class.name, Rounded(rate));
    if class.cables.latency > Time::ZERO {
        let _ = write!(line, ", {}", Rounded(class.cables.latency));
    }
    let count = layout.counts.get(number).copied().unwrap_or(0);
    let noun = if number == 0 { "nodes" } else { "cables" };
    if count > 0 {
        let _ = write!(line, "; {count} {noun}");
    }
    line
}

fn colour(class: usize) -> &'static str {
    match class {
        0 => "#777777",
        _ => COLOURS[(class - 1) % COLOURS.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_network::topology::{
        CableKind, TopologyShape,
        dragonfly::{Arrangement, Dragonfly, Inside},
        grid::SwitchGrid,
        tree::Level,
    };

    fn drawn(shape: TopologyShape) -> String {
        svg(
            &Topology::new(shape),
            Rate::from_bytes_per_second(1e9),
            "a <title>",
        )
        .unwrap()
    }

    fn fat_tree(ports: u32, oversubscription: u32) -> TopologyShape {
        TopologyShape::FatTree {
            ports,
            oversubscription,
            cables: CableKind::default(),
        }
    }

    fn k_ary_tree(arity: u32, levels: u32, oversubscription: u32) -> TopologyShape {
        TopologyShape::KAryTree {
            arity,
            levels,
            oversubscription,
            cables: CableKind::default(),
        }
    }

    fn racks(levels: &[(u32, u32)]) -> TopologyShape {
        let levels = levels.iter();
        let levels = levels.map(|(down, up)| (Level::new(*down, *up), CableKind::default()));
        TopologyShape::Levels(levels.collect())
    }

    fn mesh(sides: &[u32]) -> TopologyShape {
        let grid = SwitchGrid {
            sides: sides.to_vec(),
            is_torus: false,
            nodes_per_switch: 1,
        };
        TopologyShape::Grid(grid, CableKind::default())
    }

    fn grid(sides: &[u32]) -> TopologyShape {
        let grid = SwitchGrid {
            sides: sides.to_vec(),
            is_torus: true,
            nodes_per_switch: 1,
        };
        TopologyShape::Grid(grid, CableKind::default())
    }

    fn groups(groups: u32, inside: Inside) -> TopologyShape {
        TopologyShape::Dragonfly {
            groups: Dragonfly {
                groups,
                inside,
                nodes: 2,
                global: 4,
                per_pair: None,
                arrangement: Arrangement::Absolute,
            },
            local: CableKind::default(),
            global: CableKind::default(),
        }
    }

    /// Number of squares, and of lines between them.
    fn counts(svg: &str) -> (usize, usize) {
        (
            svg.matches("stroke=\"#333\"").count(),
            svg.matches("<path d=\"M").count(),
        )
    }

    #[test]
    fn small_topologies_are_drawn_whole() {
        // Lines to nodes and in the legend are lines as well.
        let tree = drawn(fat_tree(4, 1));
        assert_eq!(counts(&tree), (20, 32 + 16 + 3));
        let torus = drawn(grid(&[3, 3]));
        assert_eq!(counts(&torus), (9, 18 + 9 + 3));
        let dragonfly = drawn(groups(3, Inside::All { switches: 4 }));
        assert!(dragonfly.contains("global: 1 GB/s in each direction; 24 cables"));
        let ends = Inside::LeavesAndSpines {
            leaves: 2,
            spines: 2,
        };
        for svg in [tree, torus, dragonfly, drawn(groups(3, ends))] {
            assert!(!svg.contains("drawn:"), "{svg}");
            assert!(svg.contains("a &lt;title&gt;"));
        }
    }

    #[test]
    fn large_topologies_are_drawn_in_part_with_a_note() {
        let all = Inside::All { switches: 16 };
        for shape in [fat_tree(16, 1), grid(&[16, 16, 16]), groups(33, all)] {
            let svg = drawn(shape);
            assert!(svg.contains("drawn: "), "{svg}");
            assert!(svg.len() < 400_000, "{}", svg.len());
        }
        assert!(drawn(racks(&[(8, 1)])).contains("number of lowest switches not fixed"));
    }

    #[test]
    fn all_cables_of_drawn_switches_are_drawn() {
        let all = |switches| Inside::All { switches };
        let ends = |leaves, spines| Inside::LeavesAndSpines { leaves, spines };
        let mut shapes = vec![
            fat_tree(4, 2),
            fat_tree(8, 2),
            fat_tree(16, 2),
            fat_tree(24, 3),
            fat_tree(32, 1),
            k_ary_tree(2, 5, 1),
            k_ary_tree(8, 3, 2),
            k_ary_tree(30, 2, 3),
        ];
        shapes.extend([
            racks(&[(8, 1)]),
            racks(&[(4, 2), (40, 0)]),
            racks(&[(2, 30), (40, 3), (3, 0)]),
            grid(&[3, 3]),
            grid(&[21, 2]),
            grid(&[40, 9]),
            grid(&[16, 16, 16]),
            grid(&[3, 3, 3, 3, 2]),
            mesh(&[50]),
            mesh(&[7, 6, 5]),
            groups(3, all(4)),
            groups(33, all(16)),
            groups(9, ends(3, 2)),
            groups(20, ends(12, 9)),
        ]);
        for shape in shapes {
            let topology = Topology::new(shape);
            let layout = layout(&topology, WIDTH).unwrap();
            let all = topology.nodes().unwrap().unwrap_or(0);
            let plan = topology.plan(all.max(1)).unwrap();
            let drawn: usize = layout.cables.iter().map(|cable| cable.count).sum();
            if all > 0 {
                assert_eq!(drawn + layout.hidden, plan.cables.len(), "{topology:?}");
            }
            for switch in &layout.switches {
                let is_here = |end: &[f64; 2]| *end == switch.at;
                let cables = plan.cables.iter().flat_map(|(_, ends)| ends);
                let expected = cables.filter(|end| plan.switch_name(**end) == switch.name);
                let lines = layout
                    .cables
                    .iter()
                    .filter(|cable| cable.ends.iter().any(is_here));
                let found: usize = lines.map(|cable| cable.count).sum();
                if all > 0 {
                    assert_eq!(found, expected.count(), "{} of {topology:?}", switch.name);
                }
            }
        }
    }
}

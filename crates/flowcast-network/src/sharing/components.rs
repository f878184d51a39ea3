//! Groups of paths whose flows can never affect flows in other groups.

use super::{
    active_flows::Reach,
    fabric::{Fabric, FlowPath},
};

/// Returns a link that identifies the component of each path through the fabric. A flow affects only flows over paths of the
/// same component.
pub fn components(fabric: &Fabric, paths: &[FlowPath], reach: Reach) -> Vec<u32> {
    let mut joined: Vec<u32> = (0..fabric.link_count() as u32).collect();
    // A message within a node crosses no link.
    for path in paths.iter().filter(|path| path.src != path.dst) {
        let out = path.out().0;
        for link in path.data() {
            match reach {
                Reach::Itself => {}
                Reach::Links => join(&mut joined, out, link.0),
                Reach::Nodes | Reach::Queues => {
                    join(&mut joined, out, link.0);
                    join(&mut joined, out, fabric.opposite(*link).0);
                }
            }
        }
        if reach == Reach::Queues {
            for link in path.acknowledgements() {
                join(&mut joined, out, link.0);
            }
        }
    }
    let components = paths.iter().map(|path| root(&mut joined, path.out().0));
    components.collect()
}

fn join(joined: &mut [u32], one: u32, other: u32) {
    let (one, other) = (root(joined, one), root(joined, other));
    joined[one.max(other) as usize] = one.min(other);
}

/// The link that represents all links joined with this one (Galler and Fischer, 1964).
fn root(joined: &mut [u32], mut link: u32) -> u32 {
    while joined[link as usize] != link {
        let above = joined[link as usize];
        joined[link as usize] = joined[above as usize];
        link = above;
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{flow::Flow, racks::Racks};
    use flowcast_units::{Bytes, Node, Time};

    #[test]
    fn flows_out_of_reach_of_the_model_are_another_component() {
        let ends = [(0, 1), (1, 0), (2, 1), (3, 4), (0, 0)];
        let flows: Vec<Flow> = (0..)
            .zip(&ends)
            .map(|(id, (src, dst))| Flow {
                id,
                src: Node(*src),
                dst: Node(*dst),
                size: Bytes(1),
                start: Time::ZERO,
            })
            .collect();
        let fabric = Fabric::new(&flows, &Racks::default(), None);
        let of = |reach| components(&fabric, &fabric.paths, reach);
        let links = of(Reach::Links);
        assert_eq!(links[0], links[2]);
        assert!(links[1] != links[0] && links[3] != links[0] && links[3] != links[1]);
        let nodes = of(Reach::Nodes);
        assert!(nodes[..3].iter().all(|component| *component == nodes[0]));
        assert_ne!(nodes[3], nodes[0]);
        assert_eq!(of(Reach::Queues)[..3], nodes[..3]);
        let alone = of(Reach::Itself);
        assert_eq!((alone[0], alone[1], alone[2]), (0, 2, 4));
    }
}

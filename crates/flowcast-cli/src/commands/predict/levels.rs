//! `--explain` on a network with a topology: how loaded the links of each class are.

use flowcast::{
    model::sharing::link_loads::ClassLoad,
    table::{Rows, fixed, rows},
};

/// A row for each class; `steps` has the number of the step, where a pattern has several.
pub(super) fn level_table(
    loads: &[(usize, ClassLoad)],
    has_steps: bool,
) -> Rows<&(usize, ClassLoad)> {
    let mut table = rows(loads);
    if has_steps {
        table = table.column("step", "step", |(step, _)| *step);
    }
    table
        .column("class", "level", |(_, load)| &load.class)
        .column("links", "links in use", |(_, load)| load.links)
        .column("mean", "mean load", |(_, load)| fixed(load.mean, 3))
        .column("highest", "highest", |(_, load)| fixed(load.highest, 3))
        .column("busiest", "busiest", |(_, load)| &load.busiest)
        .heading("how loaded the links of each level are")
}

//! Fitted costs as a table.

use flowcast::{
    model::costs::{CostParameter, Costs, FittedCosts},
    table::{Table, rows, shown},
};

struct CostRow {
    parameter: CostParameter,
    value: f64,
    low: f64,
    high: f64,
}

/// Each cost with its interval, and what was assumed before anything was measured.
pub(crate) fn costs_table<C: Costs>(heading: &str, fitted: &FittedCosts<C>) -> Table {
    let (low, high) = (fitted.low.values(), fitted.high.values());
    let costs: Vec<CostRow> = (0..)
        .zip(C::PARAMETERS.iter().zip(fitted.costs.values()))
        .map(|(place, (parameter, value)): (usize, _)| CostRow {
            parameter: *parameter,
            value,
            low: low[place],
            high: high[place],
        })
        .collect();
    let text = |row: &CostRow, value: f64| shown(value, row.parameter.unit.text(value));
    rows(&costs)
        .heading(heading)
        .column("cost", "cost", |row| row.parameter.name)
        .column("value", "value", |row| text(row, row.value))
        .column("low", "from", |row| text(row, row.low))
        .column("high", "to", |row| text(row, row.high))
        .column("assumed", "assumed", |row| text(row, row.parameter.prior))
        .into()
}

//! Table of fitted costs.

use flowcast::{
    model::costs::{CostParameter, CostParameters, CostUnit, FittedCosts},
    table::{Table, rows, shown},
    units::{Bytes, Rounded, SizeUnits, Time, TimePerByte, four_digits},
};

struct CostRow {
    parameter: CostParameter,
    value: f64,
    low: f64,
    high: f64,
}

impl CostRow {
    /// Text of a value of the row. All sizes of a row use units of the same family.
    fn text(&self, value: f64) -> String {
        let size = |value: f64| Bytes(value.round() as u64);
        match self.parameter.unit {
            CostUnit::Seconds => Rounded(Time::from_seconds(value)).to_string(),
            CostUnit::SecondsPerByte => Rounded(TimePerByte::from_nanos(value * 1e9)).to_string(),
            CostUnit::Bytes => {
                let all = [self.value, self.low, self.high, self.parameter.prior];
                SizeUnits::for_sizes(all.map(size)).text(size(value))
            }
            CostUnit::Ratio => four_digits(value).to_string(),
        }
    }
}

/// Table of the costs with their intervals and their assumed values before the fit.
pub fn costs_table<C: CostParameters>(heading: &str, fitted: &FittedCosts<C>) -> Table {
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
    let text = |row: &CostRow, value: f64| shown(value, row.text(value));
    rows(&costs)
        .heading(heading)
        .column("cost", "cost", |row| row.parameter.name)
        .column("value", "value", |row| text(row, row.value))
        .column("low", "from", |row| text(row, row.low))
        .column("high", "to", |row| text(row, row.high))
        .column("assumed", "assumed", |row| text(row, row.parameter.prior))
        .into()
}

//! Spread of residuals that depend on two factors: the program that ran and the network on which it ran.
//!
//! `r_pn = mean + program_p + network_n + rest_pn`, with independent terms whose variances come from the mean squares of the
//! table (Searle, Casella and McCulloch, *Variance Components*, 1992, section 4.4). The variance of the residual of another
//! program on another network is the sum of the three variances plus the uncertainty of the mean. Student's t has one degree
//! of freedom less than there are programs, because programs are few and differ most.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::linear_fit::product;

/// Distribution of the residual of a case in a new row and a new column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoWay {
    /// Mean of all residuals.
    pub mean: f64,
    /// Standard deviation of the rows' common terms.
    pub of_rows: f64,
    /// Standard deviation of the columns' common terms.
    pub of_columns: f64,
    /// Standard deviation of the remaining terms.
    pub of_rest: f64,
    rows: usize,
    columns: usize,
}

impl TwoWay {
    /// Fits residuals by row and column. `None` for fewer than three rows or two columns. Rows that lack a column are left
    /// out.
    pub fn new(residuals: &BTreeMap<(&str, &str), f64>) -> Option<TwoWay> {
        let columns: Vec<&str> = sorted(residuals.keys().map(|(_, column)| *column));
        let rows = sorted(residuals.keys().map(|(row, _)| *row));
        let row = |name: &&str| {
            columns
                .iter()
                .map(|column| residuals.get(&(*name, *column)).copied())
                .collect()
        };
        let table: Vec<Vec<f64>> = rows.iter().filter_map(row).collect();
        if table.len() < 3 || columns.len() < 2 {
            return None;
        }
        let (count, wide) = (table.len() as f64, columns.len() as f64);
        let mean = table.iter().flatten().sum::<f64>() / (count * wide);
        let of_row: Vec<f64> = table
            .iter()
            .map(|row| row.iter().sum::<f64>() / wide - mean)
            .collect();
        let of_column: Vec<f64> = (0..columns.len())
            .map(|at| table.iter().map(|row| row[at]).sum::<f64>() / count - mean)
            .collect();
        let mut rest = 0.0;
        for (row, of_row) in table.iter().zip(&of_row) {
            for (residual, of_column) in row.iter().zip(&of_column) {
                rest += (residual - mean - of_row - of_column).powi(2);
            }
        }
        let rest = rest / ((count - 1.0) * (wide - 1.0));
        // The variance of a mean of `of_each` values includes its part of the rest's variance. If it is smaller than that,
        // there is no spread.
        let own = |terms: &[f64], of_each: f64| {
            (product(terms, terms) / (terms.len() as f64 - 1.0) - rest / of_each)
                .max(0.0)
                .sqrt()
        };
        Some(TwoWay {
            mean,
            of_rows: own(&of_row, wide),
            of_columns: own(&of_column, count),
            of_rest: rest.sqrt(),
            rows: table.len(),
            columns: columns.len(),
        })
    }

    /// Values of the residual of a new row in a new column, `count` of them, evenly spaced in probability.
    pub fn quantiles(&self, count: usize) -> Vec<f64> {
        let (rows, columns) = (self.rows as f64, self.columns as f64);
        let variance = self.of_rows.powi(2) * (1.0 + 1.0 / rows)
            + self.of_columns.powi(2) * (1.0 + 1.0 / columns)
            + self.of_rest.powi(2) * (1.0 + 1.0 / (rows * columns));
        let student = StudentsT::new(0.0, 1.0, rows - 1.0).expect("there are more than two rows");
        let scale = variance.sqrt();
        (0..count)
            .map(|place: usize| {
                self.mean + scale * student.inverse_cdf((place as f64 + 0.5) / count as f64)
            })
            .collect()
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 5] = ["a", "b", "c", "d", "e"];
    const COLUMNS: [&str; 4] = ["w", "x", "y", "z"];

    fn table(of: impl Fn(f64, f64) -> f64) -> BTreeMap<(&'static str, &'static str), f64> {
        let mut all = BTreeMap::new();
        for (row, at) in ROWS.into_iter().zip(0..) {
            for (column, place) in COLUMNS.into_iter().zip(0..) {
                all.insert((row, column), of(f64::from(at), f64::from(place)));
            }
        }
        all
    }

    #[test]
    fn rows_and_columns_have_the_spread_of_the_input() {
        let found = TwoWay::new(&table(|row, _| 0.1 * (row - 2.0))).unwrap();
        assert!((found.of_rows - 0.025f64.sqrt()).abs() < 1e-12, "{found:?}");
        assert!(found.of_columns < 1e-9 && found.of_rest < 1e-9 && found.mean.abs() < 1e-12);
        let found = TwoWay::new(&table(|_, column| column)).unwrap();
        assert!(
            (found.of_columns - (5.0f64 / 3.0).sqrt()).abs() < 1e-9 && found.of_rows < 1e-9,
            "{found:?}"
        );
    }

    #[test]
    fn a_new_program_is_less_certain_than_the_mean_and_quantiles_are_in_order() {
        let found = TwoWay::new(&table(|row, column| {
            0.05 * row + 0.01 * (row * column) % 0.03
        }))
        .unwrap();
        let quantiles = found.quantiles(100);
        assert!(quantiles.is_sorted());
        // Student's t with four degrees of freedom: 2.13 at 95 %.
        assert!(
            quantiles[95] - found.mean > 2.0 * found.of_rows,
            "{found:?}"
        );
    }

    #[test]
    fn few_rows_give_no_result_and_rows_with_gaps_are_left_out() {
        let mut all = table(|row, _| row);
        all.remove(&("e", "z"));
        assert_eq!(TwoWay::new(&all).unwrap().rows, 4);
        all.retain(|(row, _), _| *row < "c");
        assert_eq!(TwoWay::new(&all), None);
    }
}

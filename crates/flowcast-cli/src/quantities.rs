//! Values of a network's fields for people: four digits and a fitting unit.

use flowcast::model::quantity::Quantity;
use flowcast::units::Rounded;

/// Bytes per second of the units of rates.
const RATES: [(f64, &str); 4] = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];

/// A value with its unit.
pub(crate) fn rounded(value: Quantity) -> String {
    match value {
        Quantity::Time(time) => Rounded(time).to_string(),
        Quantity::Rate(rate) => {
            let rate = rate.as_bytes_per_second();
            let (size, unit) = RATES.into_iter().find(|(size, _)| rate >= *size).unwrap_or(RATES[3]);
            format!("{} {unit}", four_digits(rate / size))
        }
        Quantity::TimePerByte(time) => format!("{} ns/B", four_digits(time.as_nanos())),
        Quantity::Size(size) => size.to_string(),
        Quantity::Number(number) => four_digits(number),
    }
}

fn four_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().expect("a number that was written as one");
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits_and_a_unit_that_fits() {
        for (text, expected) in [
            ("65.4us", "65.40 us"),
            ("117.78563MB/s", "117.8 MB/s"),
            ("2.5kB/s", "2.5 kB/s"),
            ("8.49012ns/B", "8.49 ns/B"),
            ("64KiB", "64KiB"),
            ("1.10009", "1.1"),
        ] {
            assert_eq!(rounded(Quantity::parse(text).unwrap()), expected);
        }
    }
}

//! Rows of NetPIPE 3 to 5, on the screen and in the file `np.out`.
//!
//! | output | row |
//! |---|---|
//! | screen, 3 and 4 | `0:  1024 bytes  2500 times -->  4000.00 Mbps in  2.05 usec` |
//! | screen, 5 | `0:  1.024 KB  2500 times -->  4.000 Gbps  in  2.048 usecs` |
//! | `np.out`, 3 and 4 | bytes, Mbit/s of 2^20 or 10^6 bits, seconds |
//! | `np.out`, 5 | bytes, mean, minimum and maximum Gbit/s, microseconds |
//!
//! The size, rate and time of a row must agree, which excludes numbers of other tools. With both directions at the same
//! time, the rate is the sum of both and does not agree with the time.

use flowcast_units::{Bytes, Time};

/// Size of a message and its one-way time.
pub(crate) type NetpipeRow = (Bytes, Time);

/// Reads a row of either kind. `None` if a line is not a row.
pub(crate) fn row(words: &[&str]) -> Option<NetpipeRow> {
    match words {
        [
            number,
            size,
            unit,
            _,
            "times",
            "-->",
            rate,
            per_second,
            "in",
            time,
            time_unit,
            ..,
        ] if number.ends_with(':') => {
            let bytes = size.parse::<f64>().ok()? * scale(unit)?;
            let rate = RoundedRate::parse(rate, scale(per_second.strip_suffix("bps")?)?)?;
            agreeing(
                bytes,
                &[rate],
                time.parse::<f64>().ok()? * seconds(time_unit)?,
            )
        }
        [size, rate, time] => {
            let rates = [
                RoundedRate::parse(rate, 1e6)?,
                RoundedRate::parse(rate, f64::from(1 << 20))?,
            ];
            agreeing(whole(size)?, &rates, time.parse().ok()?)
        }
        [size, mean, _, _, micros, ..] => {
            let rate = RoundedRate::parse(mean, 1e9)?;
            agreeing(whole(size)?, &[rate], micros.parse::<f64>().ok()? * 1e-6)
        }
        _ => None,
    }
}

/// Rate in bits per second, and the largest error of its rounding.
struct RoundedRate {
    value: f64,
    rounded: f64,
}

impl RoundedRate {
    fn parse(word: &str, unit: f64) -> Option<RoundedRate> {
        let (_, decimals) = word.split_once('.')?;
        let rounded = 0.5 * 10_f64.powi(-i32::try_from(decimals.len()).ok()?) * unit;
        let value = word.parse::<f64>().ok()? * unit;
        Some(RoundedRate { value, rounded })
    }
}

/// Returns the row if at least one of the rates transfers its bytes in about its time.
fn agreeing(bytes: f64, rates: &[RoundedRate], seconds: f64) -> Option<NetpipeRow> {
    let bits = 8.0 * bytes;
    let is_one = bytes >= 1.0
        && seconds > 0.0
        && seconds.is_finite()
        && rates.iter().any(|rate| {
            (rate.value * seconds - bits).abs() <= 0.05 * bits + rate.rounded * seconds
        });
    is_one.then(|| (Bytes(bytes.round() as u64), Time::from_seconds(seconds)))
}

fn whole(word: &str) -> Option<f64> {
    word.parse::<u32>().ok().map(f64::from)
}

/// Factor of a unit in powers of a thousand, such as `bytes`, `KB`, or the `M` of `Mbps`.
fn scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "bytes" | "B" | "" => 1.0,
        "KB" | "K" => 1e3,
        "MB" | "M" => 1e6,
        "GB" | "G" => 1e9,
        "TB" | "T" => 1e12,
        _ => return None,
    })
}

fn seconds(unit: &str) -> Option<f64> {
    Some(match unit.trim_end_matches('s') {
        "nsec" => 1e-9,
        "usec" | "u" => 1e-6,
        "msec" | "m" => 1e-3,
        "sec" | "" => 1.0,
        _ => return None,
    })
}

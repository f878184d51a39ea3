//! Origin of a result. It is written into every file that contains a measurement.

use std::{
    collections::BTreeMap,
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use flowcast::table::command_line;

use crate::output::escaped;

/// Version of the command. An optimised build of a checkout includes its commit.
pub const VERSION: &str = env!("FLOWCAST_VERSION");

/// Host, kernel, version, command line and date (UTC) of this run.
pub fn of_this_run() -> BTreeMap<String, String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    BTreeMap::from([
        ("flowcast".into(), VERSION.into()),
        ("host".into(), host()),
        ("kernel".into(), read("/proc/sys/kernel/osrelease")),
        (
            "command".into(),
            escaped(&without_secrets(words)).into_owned(),
        ),
        ("date".into(), utc_now()),
    ])
}

/// Command line in shell syntax, without tokens: the record outlives the session.
fn without_secrets(words: impl Iterator<Item = String>) -> String {
    let mut shown: Vec<String> = Vec::new();
    for word in words {
        let is_secret = shown.last().is_some_and(|before| before == "--token");
        let is_both = word.starts_with("--token=");
        shown.push(if is_secret {
            "...".into()
        } else if is_both {
            "--token=...".into()
        } else {
            word
        });
    }
    command_line(shown)
}

/// Host name of this machine.
pub fn host() -> String {
    read("/proc/sys/kernel/hostname")
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_else(|_| "unknown".into())
}

fn utc_now() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    let (year, month, day) = civil_date(seconds / 86_400);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Date (UTC) in the format of Paraver's header: `dd/mm/yyyy at hh:mm`.
pub(crate) fn paraver_date() -> String {
    let date = utc_now();
    let [year, month, day, time] =
        [0..4, 5..7, 8..10, 11..16].map(|range| date.get(range).unwrap_or("00"));
    format!("{day}/{month}/{year} at {time}")
}

/// Gregorian date of a day, counted from 1970-01-01.
fn civil_date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

fn leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

#[cfg(test)]
mod tests {
    use super::{civil_date, without_secrets};

    #[test]
    fn a_token_is_written_nowhere() {
        let shown = |text: &str| without_secrets(text.split(' ').map(str::to_owned));
        assert_eq!(
            shown("flowcast rails bench --token 00ff --json"),
            "flowcast rails bench --token ... --json"
        );
        assert_eq!(
            shown("flowcast rails bench --token=00ff"),
            "flowcast rails bench --token=..."
        );
    }

    #[test]
    fn the_command_of_a_result_can_be_pasted_into_a_shell() {
        let words = ["flowcast", "predict", "my trace.dim", "-n", "infiniband*"];
        assert_eq!(
            without_secrets(words.into_iter().map(str::to_owned)),
            "flowcast predict 'my trace.dim' -n 'infiniband*'"
        );
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil_date(0), (1970, 1, 1));
        assert_eq!(civil_date(19_782), (2024, 2, 29));
        assert_eq!(civil_date(20_454), (2026, 1, 1));
    }
}

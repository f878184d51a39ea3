//! Recordings of MPI programs: the files that the preloaded recorder writes for each rank while the program runs, and their
//! reader.
//!
//! A recording is a folder. Rank 0 writes `recording`, a short text with the number of ranks; each rank writes a file of
//! its own, and the files are never joined. A rank's file is a text header followed by blocks. A block is either complete
//! or missing, so the calls that a killed program has flushed can still be read.
//!
//! A call takes five to seven bytes: the number of its *signature* (function and arguments, written once), the time that the
//! rank computed before it, and the time in it. [`mod@format`] specifies the bytes, [`mod@table`] lists the functions of MPI
//! and the meaning of their arguments, [`decode::read`] reads a rank's file into a [`decode::RankFile`], [`mod@summary`]
//! counts what a recording contains, and [`mod@time_axis`] puts the times of all ranks on one axis.

pub mod decode;
mod error;
pub mod fold;
pub mod format;
pub mod summary;
pub mod table;
pub mod time_axis;

use decode::RankFile;
pub use error::RecordingError;
use flowcast_units::CollectiveOp;

/// Returns the collective operation that a function performs: `Ibcast` and `Bcast_init` are a `Bcast`. An exclusive scan
/// counts as a scan.
///
/// ```
/// use flowcast_units::CollectiveOp;
///
/// assert_eq!(flowcast_recording::operation("Ibcast"), Some(CollectiveOp::Bcast));
/// assert_eq!(flowcast_recording::operation("Send"), None);
/// ```
pub fn operation(function: &str) -> Option<CollectiveOp> {
    let bare = function.strip_suffix("_c").unwrap_or(function);
    let bare = bare.strip_suffix("_init").unwrap_or(bare);
    named(bare).or_else(|| named(bare.strip_prefix('I')?))
}

fn named(name: &str) -> Option<CollectiveOp> {
    match name {
        "Exscan" | "exscan" => Some(CollectiveOp::Scan),
        _ => CollectiveOp::from_function(name),
    }
}

/// Returns the name of the region that a call of `MPI_Pcontrol` marks. The name of a numbered region is its number.
pub fn region_name(file: &RankFile, words: &[i64]) -> String {
    let name = usize::try_from(words[2] - 1)
        .ok()
        .and_then(|name| file.names.get(name));
    name.cloned()
        .unwrap_or_else(|| words[1].unsigned_abs().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collective_of_the_table_is_an_operation_and_nothing_else_is() {
        for function in table::functions() {
            let is_collective = function.position('b').is_some()
                || function.kind.contains("barrier")
                || function.kind.contains("reduce-scatter");
            assert_eq!(
                operation(&function.name).is_some(),
                is_collective,
                "{}",
                function.name
            );
        }
        assert_eq!(operation("Iallreduce_c"), Some(CollectiveOp::Allreduce));
    }
}

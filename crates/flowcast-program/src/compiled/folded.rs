//! Programs with loops in the compiled form: the tables of the parts as a tree of loops, followed by the streams of each
//! part in the same order.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use super::{Damage, encode_tables, program};
use crate::{
    folded::{Folded, FoldedPart, map_all, pieces},
    program::SharedBytes,
};

/// Tables as stored in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct FoldedTables {
    schema: String,
    parts: Vec<FoldedPart<program::Tables>>,
}

const SCHEMA: &str = "flowcast/compiled-loops/1";

/// Encodes the tables, followed by the streams.
pub(super) fn parts(folded: &Folded) -> Vec<Vec<u8>> {
    let of_each = folded.parts().iter().map(FoldedPart::as_ref).collect();
    let Ok(parts) = map_all(of_each, &mut |piece| {
        Ok::<_, Infallible>(program::tables_of(piece))
    });
    let tables = encode_tables(&FoldedTables {
        schema: SCHEMA.to_owned(),
        parts,
    });
    let pieces = pieces(folded.parts()).expect("the iterations were counted");
    std::iter::once(tables)
        .chain(
            pieces
                .into_iter()
                .flat_map(|(piece, _)| program::streams(piece)),
        )
        .collect()
}

/// Reads a program with loops whose streams begin at `start`. Returns it with the end of the streams.
pub(super) fn read(
    bytes: &SharedBytes,
    tables: FoldedTables,
    start: usize,
) -> Result<(Folded, usize), Damage> {
    let mut at = start;
    let parts = map_all(tables.parts, &mut |tables| {
        let (piece, end) = program::read(bytes, tables, at)?;
        at = end;
        Ok::<_, Damage>(piece)
    })?;
    let folded = Folded::new(parts).map_err(|error| Damage(error.to_string()))?;
    Ok((folded, at))
}

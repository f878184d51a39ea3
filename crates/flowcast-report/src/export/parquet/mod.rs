//! The table of messages as Parquet: flat columns, plain encoding, zstd, one page to a column of a row group.
//!
//! Only the parts of the format that such a table needs are implemented (parquet-format, `parquet.thrift`). A crate for the
//! whole format would take longer to build than the rest of the product. Rows are written in groups, so that a table of any
//! length needs the memory of one group.

mod thrift;

use std::io::{self, Write};

use self::thrift::Struct;
use super::{Replayed, tables::Provenance};
use flowcast_replay::timeline::MessageSpan;

/// Number of rows of a group.
const ROWS: usize = 1 << 18;

const MAGIC: &[u8; 4] = b"PAR1";
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const ZSTD: i64 = 6;
const ZSTD_LEVEL: i32 = 1;
const REQUIRED: i64 = 0;

/// Type of a column, with its number in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
enum Type {
    Int32 = 1,
    Int64 = 2,
    Double = 5,
}

use Type::*;

/// The columns of `flowcast/messages/1`.
const COLUMNS: [(&str, Type); 7] = [
    ("src", Int32),
    ("dst", Int32),
    ("bytes", Int64),
    ("tag", Int32),
    ("sent_s", Double),
    ("arrived_s", Double),
    ("received_s", Double),
];

/// Writes one row for each message, ordered by sender and then by the sequence of its sends. The columns are those of the
/// CSV.
///
/// # Errors
/// Errors of `out`, and messages of 2^63 bytes or more.
pub fn messages(
    replayed: Replayed<'_>,
    provenance: &Provenance,
    out: &mut dyn Write,
) -> io::Result<()> {
    replayed.outcome.in_bytes()?;
    out.write_all(MAGIC)?;
    let mut file = File {
        out,
        at: MAGIC.len() as i64,
        groups: Vec::new(),
        rows: 0,
    };
    let mut group = RowGroup::default();
    for span in replayed.messages() {
        group.push(&span);
        if group.rows == ROWS {
            file.write(&mut group)?;
        }
    }
    if group.rows > 0 {
        file.write(&mut group)?;
    }
    file.finish(provenance)
}

/// Encoded columns of a group of rows.
#[derive(Default)]
struct RowGroup {
    columns: [Vec<u8>; COLUMNS.len()],
    rows: usize,
}

impl RowGroup {
    fn push(&mut self, span: &MessageSpan) {
        let MessageSpan {
            src,
            dst,
            size,
            tag,
            sent,
            arrived,
            received,
        } = span;
        let [
            sources,
            destinations,
            bytes,
            tags,
            sends,
            arrivals,
            receipts,
        ] = &mut self.columns;
        sources.extend(src.0.to_le_bytes());
        destinations.extend(dst.0.to_le_bytes());
        bytes.extend(size.0.to_le_bytes());
        tags.extend(tag.to_le_bytes());
        for (column, time) in [(sends, sent), (arrivals, arrived), (receipts, received)] {
            column.extend(time.as_seconds().to_le_bytes());
        }
        self.rows += 1;
    }
}

struct File<'a> {
    out: &'a mut dyn Write,
    at: i64,
    groups: Vec<Struct>,
    rows: i64,
}

impl File<'_> {
    /// Writes a group and empties it.
    fn write(&mut self, group: &mut RowGroup) -> io::Result<()> {
        let mut chunks = Vec::with_capacity(COLUMNS.len());
        let mut size = 0;
        for (column, (name, kind)) in group.columns.iter_mut().zip(COLUMNS) {
            let (chunk, bytes) = self.write_column(column, group.rows as i64, name, kind)?;
            chunks.push(chunk);
            size += bytes;
            column.clear();
        }
        self.groups.push(
            Struct::default()
                .structs(1, chunks)
                .integer(2, size)
                .integer(3, group.rows as i64),
        );
        self.rows += group.rows as i64;
        group.rows = 0;
        Ok(())
    }

    /// Writes a column as one page. Returns its description and its size before compression, in bytes.
    fn write_column(
        &mut self,
        plain: &[u8],
        rows: i64,
        name: &str,
        kind: Type,
    ) -> io::Result<(Struct, i64)> {
        let packed = zstd::bulk::compress(plain, ZSTD_LEVEL)?;
        let page = Struct::default()
            .int32(1, rows)
            .int32(2, PLAIN)
            .int32(3, RLE)
            .int32(4, RLE);
        let header = Struct::default()
            .int32(1, 0)
            .int32(2, plain.len() as i64)
            .int32(3, packed.len() as i64);
        let header = header.structure(5, page).finished();
        self.out.write_all(&header)?;
        self.out.write_all(&packed)?;
        let (unpacked, written) = (
            (header.len() + plain.len()) as i64,
            (header.len() + packed.len()) as i64,
        );
        let column = Struct::default()
            .int32(1, kind as i64)
            .integers(2, &[PLAIN, RLE])
            .texts(3, &[name])
            .int32(4, ZSTD)
            .integer(5, rows)
            .integer(6, unpacked)
            .integer(7, written)
            .integer(9, self.at);
        let chunk = Struct::default().integer(2, self.at).structure(3, column);
        self.at += written;
        Ok((chunk, unpacked))
    }

    fn finish(self, provenance: &Provenance) -> io::Result<()> {
        let root = Struct::default()
            .text(4, "messages")
            .int32(5, COLUMNS.len() as i64);
        let columns = COLUMNS.iter().map(|(name, kind)| {
            Struct::default()
                .int32(1, *kind as i64)
                .int32(3, REQUIRED)
                .text(4, name)
        });
        let schema = [("schema".to_owned(), "flowcast/messages/1".to_owned())];
        let facts = schema.into_iter().chain(provenance.clone());
        let footer = Struct::default()
            .int32(1, 1)
            .structs(2, std::iter::once(root).chain(columns).collect())
            .integer(3, self.rows)
            .structs(4, self.groups)
            .structs(
                5,
                facts
                    .map(|(key, value)| Struct::default().text(1, &key).text(2, &value))
                    .collect(),
            )
            .text(6, concat!("flowcast ", env!("CARGO_PKG_VERSION")))
            .finished();
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)
    }
}

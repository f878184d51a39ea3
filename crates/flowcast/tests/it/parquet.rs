//! The table of messages as Parquet, read back by a reader that shares no code with the writer.

use std::collections::BTreeMap;

use crate::random_programs::{any_numbers, any_records};
use flowcast::{
    observers::journal::{JournalContents, ReplayJournal},
    replay::{ReplayEngine, placement::Placement},
    report::export::{Replayed, parquet, tables},
    trace::{Program, TraceRef},
};
use proptest::prelude::*;

/// A value of Thrift's compact protocol.
#[derive(Debug, Clone)]
enum Value {
    Integer(i64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Struct(BTreeMap<i16, Value>),
}

impl Value {
    fn get(&self, field: i16) -> &Value {
        let Value::Struct(fields) = self else {
            panic!("expected a structure, found {self:?}")
        };
        fields
            .get(&field)
            .unwrap_or_else(|| panic!("no field {field} in {self:?}"))
    }

    fn integer(&self) -> i64 {
        let Value::Integer(value) = self else {
            panic!("expected a number, found {self:?}")
        };
        *value
    }

    fn text(&self) -> String {
        let Value::Bytes(bytes) = self else {
            panic!("expected a text, found {self:?}")
        };
        String::from_utf8(bytes.clone()).unwrap()
    }

    fn list(&self) -> &[Value] {
        let Value::List(values) = self else {
            panic!("expected a list, found {self:?}")
        };
        values
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn zigzag(&mut self) -> i64 {
        let value = self.varint();
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    fn value(&mut self, kind: u8) -> Value {
        match kind {
            4..=6 => Value::Integer(self.zigzag()),
            8 => {
                let length = self.varint() as usize;
                self.at += length;
                Value::Bytes(self.bytes[self.at - length..self.at].to_vec())
            }
            9 => {
                let head = self.byte();
                let length = if head >> 4 == 15 {
                    self.varint()
                } else {
                    u64::from(head >> 4)
                };
                Value::List((0..length).map(|_| self.value(head & 15)).collect())
            }
            12 => self.structure(),
            other => panic!("type {other}"),
        }
    }

    fn structure(&mut self) -> Value {
        let (mut fields, mut number) = (BTreeMap::new(), 0);
        loop {
            let head = self.byte();
            if head == 0 {
                return Value::Struct(fields);
            }
            number += i16::from(head >> 4);
            assert!(head >> 4 > 0, "long field numbers are not used");
            fields.insert(number, self.value(head & 15));
        }
    }
}

/// Column names, the rows as text as in CSV, and the facts beside them.
struct Table {
    names: Vec<String>,
    rows: Vec<String>,
    facts: BTreeMap<String, String>,
}

fn read_table(bytes: &[u8]) -> Table {
    let length = bytes.len();
    assert_eq!(
        (&bytes[..4], &bytes[length - 4..]),
        (&b"PAR1"[..], &b"PAR1"[..])
    );
    let footer = u32::from_le_bytes(bytes[length - 8..length - 4].try_into().unwrap()) as usize;
    let mut reader = Reader {
        bytes,
        at: length - 8 - footer,
    };
    let footer = reader.structure();
    assert_eq!(reader.at, length - 8);
    let schema = footer.get(2).list();
    assert_eq!(schema[0].get(5).integer() as usize, schema.len() - 1);
    let names: Vec<String> = schema[1..]
        .iter()
        .map(|column| column.get(4).text())
        .collect();
    let mut rows = Vec::new();
    for group in footer.get(4).list() {
        let columns: Vec<Vec<String>> = group
            .get(1)
            .list()
            .iter()
            .map(|chunk| column(bytes, chunk.get(3)))
            .collect();
        let count = group.get(3).integer() as usize;
        assert!(columns.iter().all(|column| column.len() == count));
        rows.extend((0..count).map(|row| {
            columns
                .iter()
                .map(|column| column[row].clone())
                .collect::<Vec<_>>()
                .join(",")
        }));
        let size: i64 = group
            .get(1)
            .list()
            .iter()
            .map(|chunk| chunk.get(3).get(6).integer())
            .sum();
        assert_eq!(group.get(2).integer(), size);
    }
    assert_eq!(footer.get(3).integer() as usize, rows.len());
    let fact = |fact: &Value| (fact.get(1).text(), fact.get(2).text());
    Table {
        names,
        rows,
        facts: footer.get(5).list().iter().map(fact).collect(),
    }
}

fn column(bytes: &[u8], meta: &Value) -> Vec<String> {
    let start = meta.get(9).integer() as usize;
    let mut reader = Reader { bytes, at: start };
    let page = reader.structure();
    let packed = page.get(3).integer() as usize;
    assert_eq!((reader.at + packed - start) as i64, meta.get(7).integer());
    let plain = zstd::decode_all(&bytes[reader.at..reader.at + packed]).unwrap();
    assert_eq!(plain.len() as i64, page.get(2).integer());
    assert_eq!(page.get(5).get(1).integer(), meta.get(5).integer());
    let numbers = |width: usize| plain.chunks_exact(width);
    match meta.get(1).integer() {
        1 => numbers(4)
            .map(|b| i32::from_le_bytes(b.try_into().unwrap()).to_string())
            .collect(),
        2 => numbers(8)
            .map(|b| i64::from_le_bytes(b.try_into().unwrap()).to_string())
            .collect(),
        5 => numbers(8)
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()).to_string())
            .collect(),
        other => panic!("type {other}"),
    }
}

fn written(program: &Program, network: &flowcast::model::network::Network) -> (String, Vec<u8>) {
    let placement = Placement::new(&network.machine, None, program.ranks()).unwrap();
    let rendezvous = flowcast::replay::costs::Rendezvous::from_network(network, None);
    let engine = ReplayEngine::new(program, network, placement.clone(), rendezvous).unwrap();
    let mut journal = ReplayJournal::new(program, JournalContents::FILES);
    let outcome = engine.observed(&mut journal).unwrap();
    let replayed = Replayed {
        trace: TraceRef::Program(program),
        placement: &placement,
        outcome: &outcome,
        journal: &journal,
    };
    let provenance = BTreeMap::from([("host".to_owned(), "here".to_owned())]);
    let (mut csv, mut bytes) = (Vec::new(), Vec::new());
    tables::messages(replayed, &provenance, &mut csv).unwrap();
    parquet::messages(replayed, &provenance, &mut bytes).unwrap();
    (String::from_utf8(csv).unwrap(), bytes)
}

proptest! {
    #[test]
    fn parquet_and_csv_hold_the_same_rows(records in any_records(), numbers in any_numbers()) {
        let program = records.program();
        let (csv, bytes) = written(&program, &numbers.network(program.ranks()));
        let mut lines = csv.lines().filter(|line| !line.starts_with('#'));
        let table = read_table(&bytes);
        prop_assert_eq!(lines.next().unwrap(), table.names.join(","));
        prop_assert_eq!(lines.collect::<Vec<_>>(), table.rows);
        prop_assert_eq!(&table.facts["schema"], "flowcast/messages/1");
        prop_assert_eq!(&table.facts["host"], "here");
    }
}

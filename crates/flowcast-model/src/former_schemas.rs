//! Names of documents in files of former versions.

/// The former name, and what the document is now: its schema and its kind.
const FORMER: [(&str, &str, &str); 3] = [
    ("flowcast/conflict-samples/1", "flowcast/samples/2", ""),
    ("flowcast/pair-samples/1", "flowcast/samples/2", ""),
    ("flowcast/prtt-samples/1", "flowcast/samples/2", ""),
];

/// The present schema of a document, and its kind where the former schema says it; other names stay as they are.
pub fn current(schema: &str) -> (&str, &str) {
    let former = FORMER.iter().find(|(former, ..)| *former == schema);
    former.map_or((schema, ""), |(_, schema, kind)| (schema, kind))
}

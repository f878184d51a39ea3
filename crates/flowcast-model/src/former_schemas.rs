//! Names of documents in files of former versions.

/// The former name, and what the document is now: its schema and its kind.
const FORMER: [(&str, &str, &str); 7] = [
    (
        "flowcast/app-validation-journal/1",
        "flowcast/journal/1",
        "app-validation",
    ),
    (
        "flowcast/app-validation/1",
        "flowcast/result/1",
        "app-validation",
    ),
    ("flowcast/conflict-samples/1", "flowcast/samples/2", ""),
    ("flowcast/network/1", "flowcast/network/2", ""),
    ("flowcast/pair-samples/1", "flowcast/samples/2", ""),
    ("flowcast/prtt-samples/1", "flowcast/samples/2", ""),
    (
        "flowcast/validation-journal/1",
        "flowcast/journal/1",
        "validation",
    ),
];

/// Schema and kind of a document as the present version names them.
pub fn current<'a>(schema: &'a str, kind: &'a str) -> (&'a str, &'a str) {
    let former = FORMER.iter().find(|(former, ..)| *former == schema);
    former.map_or((schema, kind), |(_, schema, kind)| (schema, kind))
}

/// The former names of a schema.
pub fn of(schema: &str) -> impl Iterator<Item = &'static str> {
    let all = FORMER
        .iter()
        .filter(move |(_, current, _)| *current == schema);
    all.map(|(former, ..)| *former)
}

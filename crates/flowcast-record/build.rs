//! Generates the recorder's table of MPI functions from the table of the recording format, and a wrapper for each name under
//! which programs call them.

use std::{env, fmt::Write, fs, path::PathBuf};

use flowcast_recording::table::{self, MpiFunction};

/// Argument that each letter of the table stands for.
const FIELDS: [(&str, char); 29] = [
    ("count", 'n'),
    ("datatype", 't'),
    ("recv_count", 'N'),
    ("recv_datatype", 'T'),
    ("counts", 'v'),
    ("recv_counts", 'V'),
    ("peer", 'd'),
    ("tag", 'g'),
    ("source", 'D'),
    ("source_tag", 'G'),
    ("communicator", 'c'),
    ("new_communicator", 'C'),
    ("root", 'r'),
    ("request", 'q'),
    ("length", 'l'),
    ("status", 's'),
    ("index", 'i'),
    ("outcount", 'o'),
    ("flag", 'f'),
    ("message", 'm'),
    ("buffer", 'b'),
    ("recv_buffer", 'B'),
    ("window", 'w'),
    ("new_window", 'W'),
    ("window_bytes", 'z'),
    ("lock", 'e'),
    ("group", 'u'),
    ("new_file", 'h'),
    ("file", 'k'),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut out = places();
    let mut all = Vec::new();
    for function in table::functions() {
        let large = function.keys.iter().any(|(key, _)| "nNvVxz".contains(*key));
        all.push((function, false));
        if large {
            all.push((function, true));
        }
    }
    writeln!(
        out,
        "/// All functions that are wrapped.\npub(crate) static FUNCTIONS: [WrappedFunction; {}] = [",
        all.len()
    )
    .unwrap();
    for (index, (function, large)) in all.iter().enumerate() {
        write_entry(&mut out, function, index, *large);
    }
    writeln!(out, "];").unwrap();
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(folder.join("functions.rs"), &out).expect("the output folder can be written");
    fs::write(folder.join("wrappers.rs"), wrappers(&all))
        .expect("the output folder can be written");
}

/// Definition of the type of `WrappedFunction::at`.
fn places() -> String {
    let fields: String = FIELDS
        .iter()
        .map(|(field, _)| format!("    pub {field}: u8,\n"))
        .collect();
    format!(
        "/// Which argument is what; [`NONE`] where there is none.\n#[derive(Debug, Clone, Copy)]\npub(crate) struct Places {{\n{fields}}}\n\n"
    )
}

fn name(function: &MpiFunction, large: bool) -> String {
    format!("{}{}", function.name, if large { "_c" } else { "" })
}

fn write_entry(out: &mut String, function: &MpiFunction, index: usize, large: bool) {
    let at = |letter: char| function.position(letter).unwrap_or(usize::from(u8::MAX));
    let mut places = String::new();
    for (field, letter) in FIELDS {
        write!(places, "{field}: {}, ", at(letter)).unwrap();
    }
    let (kind, shape) = kind(&function.kind);
    let name = name(function, large);
    writeln!(
        out,
        "    WrappedFunction {{ number: {index}, name: \"{name}\", arity: {}, kind: FunctionKind::{kind}, \
         shape: BufferShape::{shape}, large: {large}, at: Places {{ {places} }} }},",
        function.arity
    )
    .unwrap();
}

const SHAPES: [&str; 9] = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "alltoallw",
    "reduce",
    "reduce-scatter",
];

/// Returns the recorder's kind for a kind of the table, and the shape of a collective.
fn kind(text: &str) -> (String, String) {
    let (bare, persistent) = match text.strip_suffix("-init") {
        Some(bare) => (bare, true),
        None => (text, false),
    };
    if let Some(shape) = bare
        .strip_prefix("neighbor-")
        .or_else(|| bare.strip_prefix("ineighbor-"))
    {
        return (
            if persistent {
                "NeighborInit"
            } else {
                "Neighbor"
            }
            .into(),
            camel(shape),
        );
    }
    let shape = SHAPES
        .iter()
        .find(|shape| bare == **shape || bare.strip_prefix('i') == Some(shape));
    match shape {
        Some(shape) if persistent => ("CollectiveInit".into(), camel(shape)),
        Some(shape) => ("Collective".into(), camel(shape)),
        None => (camel(text), "Barrier".into()),
    }
}

fn camel(text: &str) -> String {
    text.split('-')
        .map(|part: &str| part[..1].to_uppercase() + &part[1..])
        .collect()
}

/// Returns the wrappers and their table, which is sorted by name.
fn wrappers(all: &[(&MpiFunction, bool)]) -> String {
    let numbered = all.iter().enumerate();
    let mut names: Vec<Name> = numbered
        .flat_map(|(index, (function, large))| names(function, index, *large))
        .collect();
    names.sort_by(|one, other| one.symbol.cmp(&other.symbol));
    let mut entries = String::new();
    let mut out = String::new();
    for (place, name) in names.iter().enumerate() {
        let (symbol, index, language) = (&name.symbol, name.index, name.language);
        writeln!(
            entries,
            "    WrappedName::new(&FUNCTIONS[{index}], Language::{language}, c\"{symbol}\", {symbol} as *const ()),"
        )
        .unwrap();
        write_wrapper(&mut out, name, place);
    }
    format!(
        "/// All names that are wrapped, in their order.\npub(crate) static ENTRIES: [WrappedName; {}] = [\n{entries}];\n{out}",
        names.len()
    )
}

/// Name under which programs call a function.
struct Name {
    symbol: String,
    /// Position of the function in the table.
    index: usize,
    language: &'static str,
    arguments: usize,
}

/// Returns the names for C, Fortran and `mpi_f08`; Open MPI has two for `mpi_f08`. A function for large counts has only a C
/// name.
fn names(function: &MpiFunction, index: usize, large: bool) -> Vec<Name> {
    let name = name(function, large);
    let lower = name.to_lowercase();
    let of = |symbol, language, arguments| Name {
        symbol,
        index,
        language,
        arguments,
    };
    let mut names = vec![of(format!("MPI_{name}"), "C", function.arity)];
    if !large {
        // One more argument is the error, one more the hidden length of a text.
        let arguments = function.arity + 2;
        names.push(of(format!("mpi_{lower}_"), "Fortran", arguments));
        names.push(of(format!("ompi_{lower}_f"), "Fortran", arguments));
        names.push(of(format!("mpi_{lower}_f08_"), "Fortran2008", arguments));
    }
    names
}

/// Writes a wrapper. Registers hold six arguments, so shorter argument lists need no variants of their own.
fn write_wrapper(out: &mut String, name: &Name, place: usize) {
    let arity = name.arguments.max(6);
    let list = |form: &dyn Fn(usize) -> String| (0..arity).map(form).collect::<Vec<_>>().join(", ");
    let parameters = list(&|number| format!("a{number}: usize"));
    let arguments = list(&|number| format!("a{number}"));
    let symbol = &name.symbol;
    writeln!(
        out,
        "unsafe extern \"C-unwind\" fn {symbol}({parameters}) -> c_int {{\n    \
         // SAFETY: the caller passes the arguments of the function's prototype.\n    \
         unsafe {{ call(&ENTRIES[{place}], &mut [{arguments}]) }}\n}}"
    )
    .unwrap();
}

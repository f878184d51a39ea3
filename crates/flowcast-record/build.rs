//! Makes the recorder's table of the functions of MPI from that of the recording format, and a wrapper for each in each of
//! the names under which programs call it.

use std::{env, fmt::Write, fs, path::PathBuf};

use flowcast_recording::table::{self, Function};

/// Which argument a letter of the table stands for.
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
        all.push((function.clone(), false));
        if large {
            all.push((function, true));
        }
    }
    writeln!(
        out,
        "/// All functions that are wrapped.\npub(crate) static FUNCTIONS: [Function; {}] = [",
        all.len()
    )
    .unwrap();
    for (index, (function, large)) in all.iter().enumerate() {
        write_entry(&mut out, function, index, *large);
    }
    writeln!(out, "];").unwrap();
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(folder.join("functions.rs"), &out).expect("the output folder can be written");
    out.clear();
    for (index, (function, large)) in all.iter().enumerate() {
        write_wrappers(&mut out, function, index, *large);
    }
    fs::write(folder.join("wrappers.rs"), out).expect("the output folder can be written");
}

/// The type of `Function::at`.
fn places() -> String {
    let fields: String = FIELDS
        .iter()
        .map(|(field, _)| format!("    pub {field}: u8,\n"))
        .collect();
    format!(
        "/// Which argument is what; [`NONE`] where there is none.\n#[derive(Debug, Clone, Copy)]\npub(crate) struct Places {{\n{fields}}}\n\n"
    )
}

fn name(function: &Function, large: bool) -> String {
    format!("{}{}", function.name, if large { "_c" } else { "" })
}

fn write_entry(out: &mut String, function: &Function, index: usize, large: bool) {
    let at = |letter: char| function.position(letter).unwrap_or(usize::from(u8::MAX));
    let mut places = String::new();
    for (field, letter) in FIELDS {
        write!(places, "{field}: {}, ", at(letter)).unwrap();
    }
    let (kind, shape) = kind(&function.kind);
    let name = name(function, large);
    writeln!(
        out,
        "    Function {{ number: {index}, name: \"{name}\", kind: Kind::{kind}, shape: Shape::{shape}, large: {large}, \
         at: Places {{ {places} }} }},"
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

/// The recorder's kind of a kind of the table, and the shape of a collective.
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
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    text.split('-').map(capital).collect()
}

/// The names of C, of Fortran and of `mpi_f08`, where Open MPI has two. A large count has a C name only.
fn write_wrappers(out: &mut String, function: &Function, index: usize, large: bool) {
    let name = name(function, large);
    write_wrapper(out, &format!("MPI_{name}"), index, "C", function.arity);
    if !large {
        let lower = name.to_lowercase();
        // One argument more for the error, and one for the hidden length of a text.
        for symbol in [format!("mpi_{lower}_"), format!("ompi_{lower}_f")] {
            write_wrapper(out, &symbol, index, "Fortran", function.arity + 2);
        }
        write_wrapper(
            out,
            &format!("mpi_{lower}_f08_"),
            index,
            "Fortran2008",
            function.arity + 2,
        );
    }
}

/// Six arguments come in registers, so fewer need not be told apart.
fn write_wrapper(out: &mut String, symbol: &str, index: usize, language: &str, arity: usize) {
    let arity = arity.max(6);
    let list = |form: &dyn Fn(usize) -> String| (0..arity).map(form).collect::<Vec<_>>().join(", ");
    let parameters = list(&|number| format!("a{number}: usize"));
    let arguments = list(&|number| format!("a{number}"));
    writeln!(
        out,
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({parameters}) -> c_int {{\n    \
         static ENTRY: Entry = Entry::new(&FUNCTIONS[{index}], Language::{language}, c\"{symbol}\");\n    \
         // SAFETY: the caller passes what the function's prototype asks for.\n    \
         unsafe {{ call(&ENTRY, &mut [{arguments}]) }}\n}}"
    )
    .unwrap();
}

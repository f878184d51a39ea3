//! Texts in the encodings of editors and other systems: each reader accepts them like the same lines in UTF-8.

use std::{fs, path::Path, process::Command};

/// Commands that read the file `{}`, which is one of the examples.
const READERS: [(&str, &str); 15] = [
    ("ring.dim", "predict {} -n gige-tcp"),
    ("ring.goal", "predict {} -n gige-tcp"),
    ("figure5.pattern", "predict {} -n gige-lam"),
    (
        "broadcast.steps",
        "place {} -n gige-lam --nodes 4 --ranks-per-node 2 --objective hops",
    ),
    (
        "shuffled-grid.csv",
        "place {} -n gige-tcp --nodes 4 --ranks-per-node 4 --objective hops",
    ),
    ("columns.map", "mapping {}"),
    ("columns.map", "predict halo.dim -n gige-tcp --mapping {}"),
    ("halo.cfg", "predict halo.dim -n {}"),
    ("links64.toml", "networks show {}"),
    (
        "scenarios.toml",
        "predict halo.dim -n gige-tcp --scenarios {}",
    ),
    ("gige-samples.csv", "fit {} --replicates 5"),
    ("osu-latency.txt", "fit {}"),
    ("dahu-calls.csv", "fit {}"),
    (
        "burst.csv",
        "rails simulate --rail a=1,0.001,1,5us --rail b=1,0.01,1,5us --messages {}",
    ),
    ("ti.txt", "predict {} -n gige-tcp"),
];

fn said(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_flowcast"))
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn all_readers_accept_byte_order_marks_utf16_and_all_line_ends() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    fs::copy(examples.join("halo.dim"), folder.path().join("halo.dim")).unwrap();
    for (name, reader) in READERS {
        let text = match fs::read_to_string(examples.join(name)) {
            Ok(text) => text,
            Err(_) => "0 init\n0 send 1 0 1000\n0 finalize\n1 init\n1 recv 0 0 1000\n1 finalize\n"
                .to_owned(),
        };
        let file = folder.path().join(name);
        let arguments = reader.replace("{}", name);
        fs::write(&file, &text).unwrap();
        let plain = said(folder.path(), &arguments);
        assert_eq!(plain.0, Some(0), "{arguments}: {}", plain.1);
        let utf16 = |text: &str| -> Vec<u8> {
            let units = text.encode_utf16();
            [0xfeff]
                .into_iter()
                .chain(units)
                .flat_map(u16::to_le_bytes)
                .collect()
        };
        let lines = text.replace('\n', "\r\n");
        for bytes in [
            format!("\u{feff}{lines}").into_bytes(),
            utf16(&lines),
            text.replace('\n', "\r").into_bytes(),
            text.replace('\n', " \t\n").into_bytes(),
            text.trim_end_matches('\n').as_bytes().to_vec(),
        ] {
            fs::write(&file, &bytes).unwrap();
            assert_eq!(
                said(folder.path(), &arguments),
                plain,
                "{arguments}: {:?}",
                &bytes[..bytes.len().min(20)]
            );
        }
    }
}

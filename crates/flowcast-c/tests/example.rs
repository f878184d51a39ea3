//! Compiles and runs the C example with the header, and compares its output with the library's results.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use flowcast::{Contention, Options, why};

/// Folder with the library of this build.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}

fn compiled() -> PathBuf {
    let (root, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")), built());
    let program = folder.join("flowcast-c-example");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compiler
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("examples/predict.c"));
    compiler
        .arg("-L")
        .arg(&folder)
        .arg("-L")
        .arg(folder.join("deps"))
        .arg("-lflowcast_c")
        .arg("-o")
        .arg(&program);
    assert!(compiler.status().unwrap().success());
    program
}

fn run(program: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let paths = std::env::join_paths([built(), built().join("deps")]).unwrap();
    let ran = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .env("LD_LIBRARY_PATH", paths)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ran.status.code(), text(ran.stdout), text(ran.stderr))
}

#[test]
fn the_example_prints_the_results_of_the_library() {
    let program = compiled();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ring.dim");
    let trace = flowcast::read_text("ring.dim", std::fs::read(path).unwrap()).unwrap();
    let network = flowcast::model::builtin::network("gige-tcp").unwrap();
    let outcome = flowcast::predict(&trace, &network, &Options::default())
        .unwrap()
        .outcome;
    let (code, out, err) = run(&program, &["examples/ring.dim", "gige-tcp"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[0].strip_suffix(" s").unwrap().parse(),
        Ok(outcome.makespan().as_seconds())
    );
    assert_eq!(lines.len(), outcome.ranks.len() + 3);
    let options = Options {
        contention: Contention::named("independent").unwrap(),
        ..Options::default()
    };
    let path = why::path(&trace, &network, &options).unwrap();
    assert_eq!(lines[lines.len() - 2], path.json().unwrap().to_string());
    assert_eq!(*lines.last().unwrap(), "rails 0 1");
    let (code, _, err) = run(&program, &["examples/ring.dim", "gige"]);
    assert_eq!(code, Some(2));
    assert!(
        err.starts_with("network: ") && err.contains("gige-tcp"),
        "{err}"
    );
}

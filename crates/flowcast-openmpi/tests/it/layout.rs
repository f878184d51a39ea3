//! Comparison of the bindings and the table of series with the installed headers: a C program prints the series, and the
//! offset of each used field.
//!
//! The test needs libopenmpi-dev. It is therefore ignored by default and run by `cargo xtask test openmpi`.

use std::{
    collections::BTreeMap,
    mem::offset_of,
    path::{Path, PathBuf},
    process::Command,
};

use mca_bml_flowcast::{bindings::*, series::SERIES};

macro_rules! fields {
    ($map:ident, $($type:ident: $($field:ident)+;)+) => {
        $($($map.insert(format!("{}.{}", stringify!($type), stringify!($field)), offset_of!($type, $field) as i64);)+)+
    };
}

macro_rules! sizes {
    ($map:ident, $($type:ident)+) => {
        $($map.insert(stringify!($type).to_owned(), size_of::<$type>() as i64);)+
    };
}

fn ours() -> BTreeMap<String, i64> {
    let mut map = BTreeMap::new();
    sizes!(map, Component ComponentData BmlComponent OpalList BtlSegment Trigger ProcessName BmlBtl BtlArray);
    sizes!(map, Descriptor BmlEndpoint ReceiveDescriptor);
    fields!(map,
        Component: mca_type_name mca_component_name mca_open_component mca_register_component_params;
        BmlComponent: bml_init;
        BmlModule: bml_add_proc bml_add_procs bml_del_procs bml_del_btl bml_del_proc_btl bml_register_error bml_finalize;
        BtlModule: btl_component btl_eager_limit btl_max_send_size btl_exclusivity btl_latency btl_bandwidth btl_alloc
            btl_free btl_prepare_src btl_send btl_sendi btl_put btl_registration_handle_size;
        OpalList: opal_list_sentinel;
        OpalClass: cls_sizeof;
        Framework: framework_selection;
        ListItem: opal_list_next;
        SelectedBtl: btl_module;
        BtlSegment: seg_addr seg_len;
        Descriptor: des_segments des_segment_count des_cbfunc des_flags;
        ReceiveDescriptor: endpoint des_segments des_segment_count tag cbdata;
        Trigger: cbfunc cbdata;
        OpalProc: proc_name proc_flags;
        OmpiProc: proc_endpoints;
        BmlBtl: btl_weight btl btl_endpoint;
        BtlArray: arr_size bml_btls;
        BmlEndpoint: btl_proc btl_eager btl_send btl_rdma;
    );
    for (name, value) in [
        ("OPAL_ERR_RESOURCE_BUSY", i64::from(ERR_RESOURCE_BUSY)),
        ("OPAL_ERR_OUT_OF_RESOURCE", i64::from(ERR_OUT_OF_RESOURCE)),
        ("MCA_BTL_DES_FLAGS_PRIORITY", i64::from(DES_PRIORITY)),
        (
            "MCA_BTL_DES_FLAGS_BTL_OWNERSHIP",
            i64::from(DES_BTL_OWNERSHIP),
        ),
        (
            "MCA_BTL_DES_SEND_ALWAYS_CALLBACK",
            i64::from(DES_ALWAYS_CALLBACK),
        ),
        ("MCA_BTL_DES_FLAGS_SIGNAL", i64::from(DES_SIGNAL)),
        ("MCA_BTL_TAG_PML", i64::from(TAG_PML)),
        ("MCA_BTL_NO_ORDER", i64::from(NO_ORDER)),
        ("MCA_BTL_TAG_MAX", TAG_MAX as i64),
        ("OMPI_PROC_ENDPOINT_TAG_BML", PROC_ENDPOINT_TAG_BML as i64),
        ("OMPI_PROC_ENDPOINT_TAG_MAX", PROC_ENDPOINT_TAG_MAX as i64),
        ("OPAL_PROC_ON_HOST", i64::from(PROC_ON_HOST)),
        ("MCA_BASE_VAR_TYPE_INT", i64::from(VAR_TYPE_INT)),
        ("MCA_BASE_VAR_TYPE_STRING", i64::from(VAR_TYPE_STRING)),
        ("OPAL_INFO_LVL_3", i64::from(INFO_LEVEL_3)),
        ("MCA_BASE_VAR_SCOPE_READONLY", i64::from(VAR_SCOPE_READONLY)),
    ] {
        map.insert(name.to_owned(), value);
    }
    map
}

/// Folders that `mpicc.openmpi` passes to the compiler, the folder of the component headers below them, and for the headers of
/// 5.0 Debian's folder of PMIx and, last, headers that Debian 13 lacks.
pub(crate) fn include_folders() -> Vec<PathBuf> {
    let compilers = ["mpicc.openmpi", "mpicc"];
    let shown = |compiler: &str| {
        let output = Command::new(compiler)
            .arg("--showme:incdirs")
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let folders = compilers
        .into_iter()
        .find_map(shown)
        .expect("mpicc of Open MPI (package libopenmpi-dev)");
    folders
        .split_whitespace()
        .flat_map(|folder| {
            let below = |name: &str| Path::new(folder).join(name);
            [
                folder.into(),
                below("openmpi"),
                below("../../pmix2/include"),
            ]
        })
        .chain([Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/debian-13")])
        .collect()
}

fn headers() -> BTreeMap<String, i64> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("layout");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/layout.c");
    let includes = include_folders();
    let compiled = Command::new("cc")
        .args(
            includes
                .iter()
                .map(|folder| format!("-I{}", folder.display())),
        )
        .arg("-o")
        .arg(&program)
        .arg(source)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap();
    let line = |line: &str| {
        let (name, number) = line.split_once(' ').unwrap();
        (name.to_owned(), number.parse().unwrap())
    };
    printed.lines().map(line).collect()
}

#[test]
#[ignore = "needs the headers of Open MPI (libopenmpi-dev): cargo xtask test openmpi"]
fn every_field_has_the_offset_of_the_headers() {
    let (mut ours, mut headers) = (ours(), headers());
    let mut number = |name: &str| headers.remove(name).unwrap();
    let version = format!(
        "{}.{}.",
        number("OMPI_MAJOR_VERSION"),
        number("OMPI_MINOR_VERSION")
    );
    let series = SERIES.iter().find(|series| series.prefix == version);
    let series = series.unwrap_or_else(|| panic!("{version} is not in the table"));
    assert_eq!(number("OpalProc"), series.process_bytes as i64);
    // Ours has the fields of every series.
    assert!(number("BmlModule") <= size_of::<BmlModule>() as i64);
    // 4.1 has no such struct.
    ours.retain(|name, _| headers.contains_key(name) || !name.starts_with("ReceiveDescriptor"));
    assert_eq!(ours, headers);
}

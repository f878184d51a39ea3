//! Files and variables for an MPI launcher: the names of the nodes, and a remote shell that enters them.
//!
//! The control network carries the launcher's own traffic, so only the program's messages are shaped.

use std::fmt::Write;

use crate::lab::{
    names,
    spec::{LabSpec, Window},
};

/// Returns the file of host names and the lists of hosts, by file name.
pub(crate) fn files(spec: &LabSpec) -> Vec<(String, String)> {
    let mut hosts = String::from("127.0.0.1 localhost\n");
    let (mut open_mpi, mut mpich) = (String::new(), String::new());
    let slots = spec.cluster.ranks_per_node;
    for node in spec.nodes() {
        let name = names::host(node);
        let _ = writeln!(hosts, "{} {name}", names::control_address(node));
        let _ = writeln!(open_mpi, "{name} slots={slots}");
        let _ = writeln!(mpich, "{name}:{slots}");
    }
    [
        ("hosts", hosts),
        ("hosts.openmpi", open_mpi),
        ("hosts.mpich", mpich),
    ]
    .map(|(name, text)| (name.into(), text))
    .into()
}

/// Returns environment variables that let `mpirun` of Open MPI and of MPICH use the lab's nodes. Options on the command line
/// of `mpirun` take precedence.
pub(crate) fn environment(spec: &LabSpec, namespaces: &str) -> Vec<(String, String)> {
    let interfaces: Vec<String> = (0..spec.nic.bandwidth.0.len())
        .map(names::interface)
        .collect();
    let interfaces = interfaces.join(",");
    let agent = format!("{namespaces}/remote-shell");
    let mut all: Vec<(String, String)> = open_mpi(spec, &agent, &interfaces, namespaces);
    let mpich = [
        ("HYDRA_LAUNCHER", "rsh".to_owned()),
        ("HYDRA_LAUNCHER_EXEC", agent),
        ("HYDRA_HOST_FILE", format!("{namespaces}/hosts.mpich")),
        ("HYDRA_IFACE", names::CONTROL.to_owned()),
        ("UCX_TLS", "tcp,self,posix".to_owned()),
        ("UCX_NET_DEVICES", interfaces.clone()),
        ("FI_PROVIDER", "tcp".to_owned()),
        ("FI_TCP_IFACE", names::interface(0)),
        ("MPIR_CVAR_CH3_NETWORK_IFACE", names::interface(0)),
    ];
    all.extend(mpich.map(|(name, value)| (name.to_owned(), value)));
    all
}

fn open_mpi(
    spec: &LabSpec,
    agent: &str,
    interfaces: &str,
    namespaces: &str,
) -> Vec<(String, String)> {
    let parameters = [
        ("plm", "rsh".to_owned()),
        ("plm_rsh_agent", agent.to_owned()),
        ("plm_rsh_no_tree_spawn", "1".to_owned()),
        (
            "orte_default_hostfile",
            format!("{namespaces}/hosts.openmpi"),
        ),
        ("orte_tmpdir_base", format!("{namespaces}/tmp")),
        ("oob_tcp_if_include", names::CONTROL.to_owned()),
        ("pml", "ob1".to_owned()),
        ("btl", "tcp,self".to_owned()),
        ("btl_tcp_if_include", interfaces.to_owned()),
        ("mpi_yield_when_idle", "1".to_owned()),
        ("hwloc_base_binding_policy", "none".to_owned()),
        ("mpi_warn_on_fork", "0".to_owned()),
    ];
    let mut all: Vec<(String, String)> = parameters
        .into_iter()
        .map(|(name, value)| (format!("OMPI_MCA_{name}"), value))
        .collect();
    for rail in 0..spec.nic.bandwidth.0.len() {
        let megabits = (spec.wire_rate(rail).as_bytes_per_second() * 8e-6)
            .round()
            .max(1.0);
        all.push((
            format!("OMPI_MCA_btl_tcp_bandwidth_{}", names::interface(rail)),
            megabits.to_string(),
        ));
    }
    if let Window::Fixed(window) = spec.tcp.window {
        for buffer in ["sndbuf", "rcvbuf"] {
            all.push((format!("OMPI_MCA_btl_tcp_{buffer}"), window.0.to_string()));
        }
    }
    // The user of the lab is root in the lab and nowhere else.
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        all.push((name.to_owned(), "1".to_owned()));
    }
    all
}

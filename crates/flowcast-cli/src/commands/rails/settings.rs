//! Settings of message-passing libraries that approximate an advice.
//!
//! No library chooses the rail of a small message by size and load. The available settings are the rail of all small
//! messages, the division of large messages, and the size that separates the two.

use flowcast::{model::loggp::LogGp, scheduler::advise::Advice, table::shell_word, units::Bytes};

/// Settings of one library.
pub(super) struct Settings {
    /// Name of the library.
    pub of: &'static str,
    /// Lines for a command or an environment.
    pub lines: Vec<String>,
    /// Sentence that explains the lines.
    pub remark: &'static str,
}

/// Settings for Open MPI, UCX and libfabric.
pub(super) fn nearest(interfaces: &[String], costs: &[LogGp], advice: &Advice) -> [Settings; 3] {
    let together = threshold(advice).is_some() && interfaces.len() > 1;
    let small = advice.sizes.first().map_or(0, |at| at.alone.index());
    let mut order: Vec<usize> = (0..interfaces.len()).collect();
    // The rail of the small messages is first. It is the only one if no size gains from the others.
    order.sort_by_key(|rail| (*rail != small, *rail));
    order.truncate(if together { order.len() } else { 1 });
    let from = threshold(advice).filter(|_| together);
    [
        open_mpi(&order, interfaces, costs, from),
        ucx(&order, interfaces, costs, from),
        libfabric(&order, interfaces, from),
    ]
}

/// Size that separates small from large messages in the settings.
fn threshold(advice: &Advice) -> Option<Bytes> {
    advice.split_from.or(advice.together_from)
}

/// Names of the devices in this order, as one word of a shell.
fn devices(order: &[usize], interfaces: &[String]) -> String {
    let names = order.iter().map(|rail| interfaces[*rail].as_str());
    shell_word(&names.collect::<Vec<_>>().join(",")).into_owned()
}

/// `true` if one of the rails is a port of an RDMA device, such as mlx5_0:1. The kernel's interfaces have no ports.
fn has_port(order: &[usize], interfaces: &[String]) -> bool {
    order.iter().any(|rail| interfaces[*rail].contains(':'))
}

fn open_mpi(
    order: &[usize],
    interfaces: &[String],
    costs: &[LogGp],
    from: Option<Bytes>,
) -> Settings {
    if has_port(order, interfaces) {
        return Settings {
            of: "Open MPI",
            lines: vec!["  --mca pml ucx".to_owned()],
            remark: "UCX divides the messages, by the settings below. Through libfabric (mtl_ofi, btl_ofi) each process uses one \
                     device, and no setting of Open MPI changes that.",
        };
    }
    let mut lines = vec![format!(
        "  --mca btl tcp,self,vader --mca btl_tcp_if_include {}",
        devices(order, interfaces)
    )];
    for rail in order {
        let (name, cost) = (&interfaces[*rail], &costs[*rail]);
        let megabits = (8000.0 / cost.gap_per_byte.as_nanos()).round().max(1.0);
        let micros = (cost.overhead * 2.0 + cost.latency)
            .as_micros()
            .round()
            .max(1.0);
        lines.push(format!(
            "  --mca btl_tcp_bandwidth_{name} {megabits} --mca btl_tcp_latency_{name} {micros}"
        ));
    }
    lines.extend(from.map(|size| format!("  --mca btl_tcp_eager_limit {}", size.0)));
    Settings {
        of: "Open MPI",
        lines,
        remark: "Messages up to the eager limit take the interface with the lowest latency; longer ones are divided by bandwidth. \
                 These settings apply to TCP over Ethernet; for InfiniBand and other RDMA networks, give the ports of their devices \
                 with --name, such as mlx5_0:1.",
    }
}

fn ucx(order: &[usize], interfaces: &[String], costs: &[LogGp], from: Option<Bytes>) -> Settings {
    let rails = if from.is_some() { order.len() } else { 1 };
    let mut lines = vec![
        format!("  UCX_NET_DEVICES={}", devices(order, interfaces)),
        "  UCX_MAX_EAGER_RAILS=1".to_owned(),
        format!("  UCX_MAX_RNDV_RAILS={rails}"),
    ];
    lines.extend(from.map(|size| format!("  UCX_RNDV_THRESH={}", size.0)));
    let speeds = order
        .iter()
        .map(|rail| costs[*rail].gap_per_byte.as_nanos());
    let (fastest, slowest) = (
        speeds.clone().fold(f64::INFINITY, f64::min),
        speeds.fold(0.0, f64::max),
    );
    // By default, UCX ignores devices that are more than four times slower than the fastest.
    if from.is_some() && fastest > 0.0 && slowest > 4.0 * fastest {
        lines.push(format!(
            "  UCX_MULTI_LANE_MAX_RATIO={:.1}",
            slowest / fastest + 0.1
        ));
    }
    Settings {
        of: "UCX",
        lines,
        remark: "Messages below the threshold take one device, which UCX chooses; longer ones are divided over devices within the \
                 given ratio of speeds.",
    }
}

fn libfabric(order: &[usize], interfaces: &[String], from: Option<Bytes>) -> Settings {
    let names = devices(order, interfaces);
    // A rail is an interface or an address. A port is neither.
    let rails = match has_port(order, interfaces) {
        true => format!("ADDRESS-OF-{}", names.replace(',', ",ADDRESS-OF-")),
        false => names,
    };
    let policy = match from {
        Some(size) => format!("{}:fixed,ULONG_MAX:striping", size.0),
        None => "ULONG_MAX:fixed".to_owned(),
    };
    let lines = vec![
        format!("  FI_OFI_MRAIL_ADDR={rails}"),
        format!("  FI_OFI_MRAIL_CONFIG={policy}"),
    ];
    Settings {
        of: "libfabric (provider ofi_mrail)",
        lines,
        remark: "Messages up to the first size take one rail; longer ones are cut into equal stripes, regardless of the \
                 bandwidths.",
    }
}

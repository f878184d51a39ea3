//! Machine and tasks in Paraver's header and names.

use std::io::{self, Write};

use super::{
    super::{Replayed, nanos, text::ShortText},
    Stamp,
};
use flowcast_units::Node;

/// Processors of the nodes, numbered consecutively from 1, and the processor of each rank.
pub(super) struct ProcessorLayout {
    cpus_of_node: Vec<u32>,
    cpu_of_rank: Vec<u64>,
    node_of_rank: Vec<u32>,
}

impl ProcessorLayout {
    /// Assigns the processors of a node to its ranks in turn.
    pub(super) fn new(replayed: Replayed<'_>) -> ProcessorLayout {
        let placement = replayed.placement;
        let cpus_of_node: Vec<u32> = (0..placement.nodes() as u32)
            .map(|node| {
                placement.groups()[placement.group_index(Node(node))]
                    .cpus
                    .max(1)
            })
            .collect();
        let mut first_cpu = Vec::with_capacity(cpus_of_node.len());
        let mut next = 1;
        for cpus in &cpus_of_node {
            first_cpu.push(next);
            next += u64::from(*cpus);
        }
        let mut ranks_on = vec![0; cpus_of_node.len()];
        let node_of_rank: Vec<u32> = replayed
            .ranks()
            .map(|rank| placement.node(rank).0)
            .collect();
        let cpu_of_rank = node_of_rank
            .iter()
            .map(|node| {
                let node = *node as usize;
                let turn: u32 = ranks_on[node];
                ranks_on[node] += 1;
                first_cpu[node] + u64::from(turn % cpus_of_node[node])
            })
            .collect();
        ProcessorLayout {
            cpus_of_node,
            cpu_of_rank,
            node_of_rank,
        }
    }

    /// Position of each rank's records, as `:cpu:application:task:thread:`, with one character in front for the kind.
    pub(super) fn places(&self) -> Vec<ShortText> {
        let cpus = self.cpu_of_rank.iter().zip(1..);
        cpus.map(|(cpu, task): (&u64, u32)| ShortText::new(&format!(" :{cpu}:1:{task}:1:")))
            .collect()
    }

    /// Writes the header and the communicators.
    pub(super) fn write_header(
        &self,
        replayed: Replayed<'_>,
        stamp: &Stamp,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let cpus: Vec<String> = self.cpus_of_node.iter().map(u32::to_string).collect();
        let tasks: Vec<String> = self
            .node_of_rank
            .iter()
            .map(|node| format!("1:{}", node + 1))
            .collect();
        let end = replayed
            .outcome
            .makespan()
            .max(replayed.journal.last_arrival());
        write!(out, "#Paraver ({}):{}_ns", stamp.0, nanos(end))?;
        write!(
            out,
            ":{}({}):1:{}({})",
            cpus.len(),
            cpus.join(","),
            tasks.len(),
            tasks.join(",")
        )?;
        writeln!(out, ",{}", replayed.trace.communicators().len())?;
        for communicator in replayed.trace.communicators() {
            write!(
                out,
                "c:1:{}:{}",
                communicator.id,
                communicator.members.len()
            )?;
            communicator
                .members
                .iter()
                .try_for_each(|member| write!(out, ":{}", member.0 + 1))?;
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes the names of all lines.
    pub(super) fn write_names(&self, ranks: usize, out: &mut dyn Write) -> io::Result<()> {
        let cpus: u64 = self.cpus_of_node.iter().map(|cpus| u64::from(*cpus)).sum();
        writeln!(out, "LEVEL CPU SIZE {cpus}")?;
        for (node, cpus) in self.cpus_of_node.iter().enumerate() {
            (1..=*cpus).try_for_each(|cpu| writeln!(out, "CPU {}.{cpu}", node + 1))?;
        }
        writeln!(out, "\nLEVEL NODE SIZE {}", self.cpus_of_node.len())?;
        (1..=self.cpus_of_node.len()).try_for_each(|node| writeln!(out, "NODE {node}"))?;
        writeln!(out, "\nLEVEL APPL SIZE 1\nAPPL 1")?;
        writeln!(out, "\nLEVEL TASK SIZE {ranks}")?;
        (1..=ranks).try_for_each(|task| writeln!(out, "TASK 1.{task}"))?;
        writeln!(out, "\nLEVEL THREAD SIZE {ranks}")?;
        (1..=ranks).try_for_each(|task| writeln!(out, "THREAD 1.{task}.1"))
    }
}

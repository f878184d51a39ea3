//! Neighbours of a rank in a communicator with a topology, in the order that neighbourhood collectives use.

use std::ffi::c_int;

use crate::library::{LoadedMpi, function};

/// Ranks in the communicator. At the border of a grid, some are `MPI_PROC_NULL`.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    pub destinations: Vec<c_int>,
    pub sources: Vec<c_int>,
}

type Count = unsafe extern "C" fn(usize, *mut c_int) -> c_int;
type CartShift = unsafe extern "C" fn(usize, c_int, c_int, *mut c_int, *mut c_int) -> c_int;
type GraphCount = unsafe extern "C" fn(usize, c_int, *mut c_int) -> c_int;
type GraphNeighbours = unsafe extern "C" fn(usize, c_int, c_int, *mut c_int) -> c_int;
type DistCounts = unsafe extern "C" fn(usize, *mut c_int, *mut c_int, *mut c_int) -> c_int;
type DistNeighbours = unsafe extern "C" fn(
    usize,
    c_int,
    *mut c_int,
    *mut c_int,
    c_int,
    *mut c_int,
    *mut c_int,
) -> c_int;

impl Neighbours {
    /// Returns the neighbours of this process in a communicator, or `None` if its topology is missing or unknown.
    pub(crate) fn query(library: &LoadedMpi, communicator: usize) -> Option<Neighbours> {
        let topology = ask(function(c"PMPI_Topo_test")?, communicator);
        let [grid, graph, distributed] = library.topologies?;
        match topology {
            _ if topology == grid => in_grid(communicator),
            _ if topology == graph => in_graph(communicator),
            _ if topology == distributed => in_distributed_graph(communicator),
            _ => None,
        }
    }
}

fn ask(count: Count, communicator: usize) -> c_int {
    let mut answer = 0;
    // SAFETY: the communicator came from the program.
    unsafe { count(communicator, &mut answer) };
    answer
}

/// Returns the neighbours in a grid: the lower and then the upper one for each dimension. All of them are both sources and
/// destinations.
fn in_grid(communicator: usize) -> Option<Neighbours> {
    let shift: CartShift = function(c"PMPI_Cart_shift")?;
    let mut all = Vec::new();
    for dimension in 0..ask(function(c"PMPI_Cartdim_get")?, communicator) {
        let (mut below, mut above) = (0, 0);
        // SAFETY: the communicator has this dimension.
        unsafe { shift(communicator, dimension, 1, &mut below, &mut above) };
        all.extend([below, above]);
    }
    Some(Neighbours {
        destinations: all.clone(),
        sources: all,
    })
}

fn in_graph(communicator: usize) -> Option<Neighbours> {
    let count: GraphCount = function(c"PMPI_Graph_neighbors_count")?;
    let list: GraphNeighbours = function(c"PMPI_Graph_neighbors")?;
    let (rank, mut length) = (ask(function(c"PMPI_Comm_rank")?, communicator), 0);
    // SAFETY: the communicator has a graph with this rank.
    unsafe { count(communicator, rank, &mut length) };
    let mut all = vec![0; length.max(0) as usize];
    // SAFETY: the list has room for `length` ranks.
    unsafe { list(communicator, rank, length, all.as_mut_ptr()) };
    Some(Neighbours {
        destinations: all.clone(),
        sources: all,
    })
}

fn in_distributed_graph(communicator: usize) -> Option<Neighbours> {
    let counts: DistCounts = function(c"PMPI_Dist_graph_neighbors_count")?;
    let lists: DistNeighbours = function(c"PMPI_Dist_graph_neighbors")?;
    let (mut incoming, mut outgoing, mut weighted) = (0, 0, 0);
    // SAFETY: the communicator has a distributed graph.
    unsafe { counts(communicator, &mut incoming, &mut outgoing, &mut weighted) };
    let mut sources = vec![0; incoming.max(0) as usize];
    let mut destinations = vec![0; outgoing.max(0) as usize];
    let (mut source_weights, mut destination_weights) = (sources.clone(), destinations.clone());
    // SAFETY: the lists have room for the number of ranks passed.
    unsafe {
        lists(
            communicator,
            incoming,
            sources.as_mut_ptr(),
            source_weights.as_mut_ptr(),
            outgoing,
            destinations.as_mut_ptr(),
            destination_weights.as_mut_ptr(),
        );
    }
    Some(Neighbours {
        destinations,
        sources,
    })
}

//! Execution of accesses to memory or files by a rank, on every engine.
//!
//! | operation | the rank | its data |
//! |---|---|---|
//! | put, get, accumulate | spends a send's overhead, continues | take latency and `size/bandwidth`, no target processor |
//! | flush | waits until its transfers to the target are complete | |
//! | lock | spends the overhead, the latency of the request, the wait for other ranks' locks, the answer's latency | |
//! | unlock | the same as flush; then the lock is free | |
//! | fence | the same as flush, then a barrier of all ranks of the window | |
//! | file | waits while the file system serves its maximum number of requests, then `latency + size/bandwidth` | |

use super::{AccessCosts, AccessFlight, Accesses, LockRequest};
use crate::{costs::ClassCost, observer::Accessed, transit::Departure};
use flowcast_program::{
    access::{Access, TransferKind},
    slot::Slot,
};
use flowcast_units::{Rank, Time};

/// An engine on which ranks access memory and files. When a waiting rank may continue, the engine executes its access again.
pub(crate) trait AccessEngine<'a> {
    /// State of a rank that is not stored in the engine itself.
    type State;

    /// The accesses so far, and the ranks that may continue.
    fn accesses(&mut self) -> (&mut Accesses<'a>, &mut Vec<Rank>);

    /// Executes the processor's part of an access, once the interface is free for the data that the rank sends. Returns
    /// `None` while that takes time.
    fn begin(
        &mut self,
        rank: Rank,
        state: &mut Self::State,
        overhead: Time,
        data: Option<ClassCost>,
    ) -> Option<Accessed>;

    /// Starts the data of a transfer from one rank to another.
    fn transfer(&mut self, transfer: AccessFlight, ends: [Rank; 2]);

    /// Lets a rank wait for the answer to a request.
    fn ask(&mut self, state: &mut Self::State, request: LockRequest);

    /// Lets a rank continue after an access with this overhead.
    fn end(&mut self, rank: Rank, state: &mut Self::State, overhead: Time, accessed: Accessed);
}

/// Executes an access of a rank; `None` if the rank has to wait.
pub(crate) fn carry_out<'a, E: AccessEngine<'a>>(
    engine: &mut E,
    rank: Rank,
    state: &mut E::State,
    index: u32,
) -> Option<()> {
    let Accesses {
        program,
        placement,
        costs,
        ..
    } = *engine.accesses().0;
    let access = *program.access(index);
    let AccessCosts {
        overhead,
        way,
        latency,
        data,
    } = AccessCosts::new(costs, placement, rank, (index, access));
    let begun = Accessed {
        access: index,
        ..engine.begin(rank, state, overhead, data)?
    };
    let time = begun.came + way;
    let (accesses, ready) = engine.accesses();
    match access {
        Access::Transfer {
            kind,
            window,
            target,
            size,
        } => {
            let ends = match kind {
                TransferKind::Get => [target, rank],
                _ => [rank, target],
            };
            let [from, to] = ends.map(|rank| placement.node(rank));
            let departure = Departure {
                slot: Slot(index),
                start: begun.came,
                size,
                cost: data.unwrap_or_default(),
                rts: None,
                latency: way,
                ends: Some((from, to)),
            };
            let transfer = AccessFlight {
                rank,
                memory: (window, target),
                departure,
                flight: Time::ZERO,
            };
            engine.end(rank, state, overhead, begun);
            engine.transfer(transfer, ends);
        }
        Access::Flush { window, .. } | Access::Unlock { window, .. } => {
            let done = accesses.transfers.flush(rank, window, access.target())?;
            let accessed = done.awaited(begun);
            if let Access::Unlock { target, .. } = access {
                let memory = (window, target);
                accesses.requests.unlock(memory, accessed.end, ready);
            }
            engine.end(rank, state, overhead, accessed);
        }
        Access::Lock { .. } | Access::File { .. } => {
            let Some((granted, end)) = accesses.requests.take(rank) else {
                let request = LockRequest {
                    time,
                    rank,
                    access,
                    way,
                };
                engine.ask(state, request);
                return None;
            };
            let queued = granted - time;
            let accessed = Accessed {
                queued,
                latency,
                end,
                ..begun
            };
            engine.end(rank, state, overhead, accessed);
        }
    }
    Some(())
}

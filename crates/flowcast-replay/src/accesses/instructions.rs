//! What a rank does to access memory or files, on every engine.
//!
//! | operation | the rank | its data |
//! |---|---|---|
//! | put, get, accumulate | spends the overhead of a send, goes on | are done after latency and `size/bandwidth`, as a message's; the target's processor takes no part |
//! | flush | waits until its transfers to the target are done | |
//! | lock | spends the overhead, then a latency for the request, waits for others' locks, a latency for the answer | |
//! | unlock | as flush; the lock is free then | |
//! | fence | as flush, then a barrier of all ranks of the window | |
//! | file | waits for one of the places at the file system, then `latency + size/bandwidth` | |

use super::{AccessCosts, AccessFlight, Accesses, LockRequest};
use crate::{costs::ClassCost, observer::Accessed, transit::Departure};
use flowcast_program::{
    access::{Access, TransferKind},
    slot::Slot,
};
use flowcast_units::{Rank, Time};

/// An engine on which ranks access memory and files. When a rank may go on, the engine carries its access out again.
pub(crate) trait AccessEngine<'a> {
    /// State of a rank that the engine does not have itself.
    type State;

    /// The accesses so far, and the ranks that may go on.
    fn accesses(&mut self) -> (&mut Accesses<'a>, &mut Vec<Rank>);

    /// The processor's part of an access, once the interface is free for the data that the rank sends. `None` while that
    /// takes time.
    fn begin(
        &mut self,
        rank: Rank,
        state: &mut Self::State,
        overhead: Time,
        data: Option<ClassCost>,
    ) -> Option<Accessed>;

    /// The data of a transfer leave one rank for another.
    fn transfer(&mut self, transfer: AccessFlight, ends: [Rank; 2]);

    /// A rank waits for the answer to a request.
    fn ask(&mut self, state: &mut Self::State, request: LockRequest);

    /// A rank goes on after an access that has cost this overhead.
    fn end(&mut self, rank: Rank, state: &mut Self::State, overhead: Time, accessed: Accessed);
}

/// Carries out an access of a rank; `None` if the rank has to wait.
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

//! Calls of several threads in one order.
//!
//! Threads of a rank call at the same time, and a replay's rank does one thing after the other. So what blocks is
//! begun where its call began and waited for where it ended, all in order of time; between two of these moments the
//! rank computes if any thread is outside of MPI.

use super::lower::{Action, Lowered, Step};

/// Puts the steps of several threads in order and computation between them; leaves a single thread's as they are.
pub fn order(lowered: &mut Lowered) {
    if lowered.calls.is_empty() {
        return;
    }
    let calls = std::mem::take(&mut lowered.calls);
    let outside = outside(&calls);
    // What one call does at one moment stays in its order, and what ends comes before what begins.
    lowered.steps.sort_by_key(|step| step.time);
    let mut steps = Vec::with_capacity(lowered.steps.len() * 2);
    let mut now = 0;
    let mut spans = outside.iter().peekable();
    for step in lowered.steps.drain(..) {
        let mut computed = 0;
        while let Some((begin, end)) = spans.peek() {
            let (begin, until) = ((*begin).max(now), (*end).min(step.time));
            computed += until.saturating_sub(begin);
            if *end > step.time {
                break;
            }
            spans.next();
        }
        if computed > 0 {
            steps.push(Step { action: Action::Compute(computed), ..step });
        }
        now = now.max(step.time);
        steps.push(step);
    }
    lowered.steps = steps;
}

/// The times in which at least one thread is between two of its calls, in order and without overlap. The first thread
/// is there from the start.
fn outside(calls: &[(u32, u64, u64)]) -> Vec<(u64, u64)> {
    let mut last: Vec<Option<u64>> = Vec::new();
    let mut spans = Vec::new();
    for (thread, begin, end) in calls {
        let thread = *thread as usize;
        if last.len() <= thread {
            last.resize(thread + 1, None);
        }
        let before = if thread == 0 { Some(0) } else { None };
        if let Some(before) = last[thread].or(before) {
            spans.push((before, *begin));
        }
        last[thread] = Some(*end);
    }
    spans.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in spans {
        match joined.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((begin, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_computes_while_any_of_its_threads_does() {
        // Thread 0 is in MPI from 10 to 20, thread 1 from 15 to 40; between 20 and 30 only thread 0 computes.
        let calls = [(0, 10, 20), (1, 15, 16), (0, 30, 35), (1, 36, 40)];
        assert_eq!(outside(&calls), [(0, 10), (16, 36)]);
        let step = |time, action| Step { item: 0, time, action };
        let steps = vec![
            step(10, Action::Send(0)),
            step(20, Action::WaitSend(0)),
            step(15, Action::Irecv(0)),
            step(40, Action::WaitRecv(0)),
        ];
        let mut lowered = Lowered { steps, calls: calls.to_vec(), ..Lowered::default() };
        order(&mut lowered);
        let actions: Vec<Action> = lowered.steps.iter().map(|step| step.action).collect();
        assert_eq!(
            actions,
            [
                Action::Compute(10),
                Action::Send(0),
                Action::Irecv(0),
                Action::Compute(4),
                Action::WaitSend(0),
                Action::Compute(16),
                Action::WaitRecv(0)
            ]
        );
    }
}

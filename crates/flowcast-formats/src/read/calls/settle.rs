//! Completion of requests by tests whose results the trace lacks. A request counts as completed at the last test before its
//! handle is used again, or before the end.

use std::collections::BTreeMap;

use super::{CompletedRequest, TracedCall};

/// Adds to each test the requests that it completed.
pub(super) fn settle(calls: &mut [TracedCall]) {
    if calls.iter().all(|call| call.tests.is_empty()) {
        return;
    }
    let mut live: BTreeMap<u64, LiveRequest> = BTreeMap::new();
    let mut found: Vec<(usize, u64)> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        for done in &call.completes {
            match live.get_mut(&done.request) {
                Some(request) if request.persistent => request.tested = None,
                _ => drop(live.remove(&done.request)),
            }
        }
        for request in &call.tests {
            if let Some(request) = live.get_mut(request) {
                request.tested = Some(index);
            }
        }
        for request in call.starts.iter().chain(&call.makes).chain(&call.frees) {
            let tested = live.get_mut(request).and_then(|known| known.tested.take());
            found.extend(tested.map(|test| (test, *request)));
        }
        if let Some(request) = call.makes {
            live.insert(
                request,
                LiveRequest {
                    persistent: call.persistent,
                    tested: None,
                },
            );
        }
        if let Some(request) = call.frees {
            live.remove(&request);
        }
    }
    found.extend(
        live.into_iter()
            .filter_map(|(request, known)| Some((known.tested?, request))),
    );
    for (test, request) in found {
        calls[test].completes.push(CompletedRequest::new(request));
    }
}

/// Request in flight: made, and neither completed nor freed. Persistent requests remain until they are freed.
struct LiveRequest {
    persistent: bool,
    /// Index of its last test.
    tested: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_test_before_a_handle_is_reused_completes_the_request() {
        let make = || TracedCall {
            function: "Irecv",
            makes: Some(7),
            ..TracedCall::default()
        };
        let test = || TracedCall {
            function: "Test",
            tests: vec![7],
            ..TracedCall::default()
        };
        let mut calls = vec![make(), test(), test(), make(), test(), make()];
        settle(&mut calls);
        let completed: Vec<usize> = (0..calls.len())
            .filter(|index| !calls[*index].completes.is_empty())
            .collect();
        assert_eq!(completed, [2, 4], "the third is never tested for");
    }
}

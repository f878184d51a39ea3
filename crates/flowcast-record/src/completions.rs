//! Requests that are passed to waits and tests, and the requests that these complete.

use crate::{
    arguments::Arguments,
    communicators::Key,
    functions::{FunctionKind, NONE},
    memory,
    requests::wants_statuses,
};

/// Number of requests and statuses that are stored here, enough for most calls. Longer lists are allocated.
const FEW: usize = 16;

/// Memory for one call, on its stack.
pub(crate) struct Scratch {
    keys: [u64; FEW],
    many_keys: Vec<u64>,
    count: usize,
    /// Statuses of up to eight words, the size of the largest one.
    statuses: [[i32; 8]; FEW],
    many_statuses: Vec<[i32; 8]>,
}

impl FunctionKind {
    #[inline]
    pub(crate) fn completes(self) -> bool {
        use FunctionKind::*;
        matches!(
            self,
            Wait | Waitall | Waitany | Waitsome | Test | Testall | Testany | Testsome
        )
    }
}

impl Scratch {
    #[inline]
    pub(crate) fn new() -> Scratch {
        Scratch {
            keys: [0; FEW],
            many_keys: Vec::new(),
            count: 0,
            statuses: [[0; 8]; FEW],
            many_statuses: Vec::new(),
        }
    }

    /// Returns the memory in which the real function can store the statuses that the program ignores and the recording
    /// needs.
    pub(crate) fn stand_in(&mut self, arguments: &Arguments<'_>) -> Option<usize> {
        let function = arguments.function;
        if function.at.status == NONE || !needs_status(arguments) {
            return None;
        }
        let is_list = matches!(
            function.kind,
            FunctionKind::Waitall
                | FunctionKind::Testall
                | FunctionKind::Waitsome
                | FunctionKind::Testsome
        );
        let library = arguments.library;
        let ignored = if is_list {
            library.statuses_ignore
        } else {
            library.status_ignore
        };
        if arguments.word(function.at.status) != ignored[arguments.fortran] {
            return None;
        }
        if is_list && self.count > FEW {
            if !memory::may_grow(&mut self.many_statuses, self.count) {
                return None;
            }
            self.many_statuses.resize(self.count, [0; 8]);
            return Some(self.many_statuses.as_mut_ptr() as usize);
        }
        Some(self.statuses.as_mut_ptr() as usize)
    }
}

fn needs_status(arguments: &Arguments<'_>) -> bool {
    let function = arguments.function;
    match function.kind {
        kind if kind.completes() => wants_statuses(),
        FunctionKind::Recv => is_wildcard(arguments, function.at.peer, function.at.tag),
        FunctionKind::Sendrecv => {
            is_wildcard(arguments, function.at.source, function.at.source_tag)
        }
        FunctionKind::Probe
        | FunctionKind::Iprobe
        | FunctionKind::Mprobe
        | FunctionKind::Improbe => true,
        _ => false,
    }
}

/// Returns `true` if the source or the tag is a wildcard.
pub(crate) fn is_wildcard(arguments: &Arguments<'_>, source: u8, tag: u8) -> bool {
    let library = arguments.library;
    arguments.int(source) == library.any_source || arguments.int(tag) == library.any_tag
}

/// Requests of a wait or test, copied before the call changes them.
pub(crate) struct RequestCompletion {
    keys: *const u64,
    count: usize,
}

impl RequestCompletion {
    /// Copies the requests before the call.
    pub(crate) fn before(arguments: &Arguments<'_>, scratch: &mut Scratch) -> RequestCompletion {
        let at = &arguments.function.at;
        let mut count = arguments.count_or_one(at.length) as usize;
        let address = arguments.word(at.request);
        if count > FEW && !memory::may_grow(&mut scratch.many_keys, count) {
            count = 0;
        }
        scratch.count = count;
        let keys: &mut [u64] = if count <= FEW {
            &mut scratch.keys
        } else {
            scratch.many_keys.resize(count, 0);
            &mut scratch.many_keys
        };
        for (index, key) in keys[..count].iter_mut().enumerate() {
            // SAFETY: the list has `count` requests.
            *key = unsafe { arguments.key_at(address, index) }.0;
        }
        RequestCompletion {
            keys: keys.as_ptr(),
            count,
        }
    }

    /// Returns the request at an index. `Scratch` lives as long as the call.
    pub(crate) fn key(&self, index: usize) -> Key {
        // SAFETY: the keys are in the scratch memory of the call that this belongs to, which is still on the stack.
        Key(if index < self.count {
            unsafe { *self.keys.wrapping_add(index) }
        } else {
            0
        })
    }

    /// Calls `take` with the index of each completed request and the index of its status. Returns `false` if the test found
    /// nothing.
    pub(crate) fn completed(
        &self,
        arguments: &Arguments<'_>,
        mut take: impl FnMut(usize, usize),
    ) -> bool {
        let at = &arguments.function.at;
        if at.flag != NONE && arguments.out_int(at.flag, 0) == 0 {
            return false;
        }
        match arguments.function.kind {
            FunctionKind::Waitany | FunctionKind::Testany => {
                let Some(index) = index(arguments, 0) else {
                    return arguments.function.kind == FunctionKind::Waitany;
                };
                take(index, 0);
            }
            FunctionKind::Waitsome | FunctionKind::Testsome => {
                let count = arguments.out_int(at.outcount, 0);
                for place in 0..count.max(0) as usize {
                    if let Some(index) = index(arguments, place) {
                        take(index, place);
                    }
                }
                return count > 0 || arguments.function.kind == FunctionKind::Waitsome;
            }
            _ => (0..self.count).for_each(|index| take(index, index)),
        }
        true
    }
}

/// Returns an index that the call stored. Indices of Fortran begin at 1.
fn index(arguments: &Arguments<'_>, place: usize) -> Option<usize> {
    usize::try_from(
        arguments.out_int(arguments.function.at.index, place) - arguments.fortran as i32,
    )
    .ok()
}

//! Numbers of communicators, windows and files, keyed by each handle that the program uses for them.

use crate::{handles::Handles, library::LoadedMpi};

/// Handle of C or of Fortran, as one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(pub u64);

const FORTRAN: u64 = 1 << 62;

impl Key {
    pub(crate) fn c(handle: usize) -> Key {
        Key(handle as u64)
    }

    pub(crate) fn fortran(number: i32) -> Key {
        Key(FORTRAN | u64::from(number as u32))
    }

    /// Returns the Fortran number if this is a handle of Fortran.
    pub(crate) fn as_fortran(self) -> Option<i32> {
        (self.0 & FORTRAN != 0).then_some(self.0 as u32 as i32)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemberGroup {
    /// Number of the communicator in the recording.
    pub number: u32,
    pub size: u32,
    /// Rank of this process in the group, or -1.
    pub rank: i32,
    /// `true` for an intercommunicator.
    pub between: bool,
    /// `true` if some processes of the communicator are outside the world because they were spawned or connected to.
    pub outside: bool,
}

/// Communicators of the program.
#[derive(Debug, Default)]
pub(crate) struct KnownCommunicators {
    handles: Handles,
    groups: Vec<MemberGroup>,
    /// Handles of each communicator in C and in Fortran; 0 if there is none.
    keys: Vec<[u64; 2]>,
    /// Result of the last query: most programs use one communicator at a time.
    last: Option<(u64, MemberGroup)>,
}

/// Communicator that was unknown before, with its description for the recording.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LearnedGroup {
    /// World ranks of the group.
    pub own: Vec<i32>,
    /// World ranks of the remote group; `None` unless this is an intercommunicator.
    pub remote: Option<Vec<i32>>,
}

impl KnownCommunicators {
    #[inline]
    pub(crate) fn get(&mut self, key: Key) -> Option<MemberGroup> {
        if let Some((known, group)) = self.last
            && known == key.0
        {
            return Some(group);
        }
        let group = self.groups[self.handles.get(key.0)? as usize];
        self.last = Some((key.0, group));
        Some(group)
    }

    /// Adds a communicator under a new handle. A communicator with a Fortran handle may already be known by its C handle.
    pub(crate) fn learn(
        &mut self,
        key: Key,
        library: &LoadedMpi,
    ) -> (MemberGroup, Option<LearnedGroup>) {
        let handle = c_handle(key, library) as u64;
        if let Some(known) = self.handles.get(handle) {
            self.handles.set(key.0, known);
            self.keys[known as usize] = [handle, key.0];
            return (self.groups[known as usize], None);
        }
        let (mut own, mut remote) = library.members(handle as usize);
        let mut all = own.iter().chain(remote.iter().flatten());
        let outside = all.any(|member| *member < 0);
        let world_rank = library.world_rank();
        let rank = own
            .iter()
            .position(|member| *member == world_rank)
            .map_or(-1, |rank| rank as i32);
        let number = self.groups.len() as u32;
        let group = MemberGroup {
            number,
            size: own.len() as u32,
            rank,
            between: remote.is_some(),
            outside,
        };
        for members in [Some(&mut own), remote.as_mut()].into_iter().flatten() {
            members.retain(|member| *member >= 0);
        }
        self.handles.set(handle, number);
        self.handles.set(key.0, number);
        self.groups.push(group);
        self.keys.push([handle, key.0]);
        (group, Some(LearnedGroup { own, remote }))
    }

    /// Forgets the handles of a communicator: from now on they may stand for another one.
    pub(crate) fn forget(&mut self, key: Key) {
        self.last = None;
        if let Some(known) = self.handles.get(key.0) {
            for handle in self.keys[known as usize] {
                self.handles.remove(handle);
            }
        }
    }
}

pub(crate) fn c_handle(key: Key, library: &LoadedMpi) -> usize {
    key.as_fortran()
        .map_or(key.0 as usize, |number| library.comm_of_fortran(number))
}

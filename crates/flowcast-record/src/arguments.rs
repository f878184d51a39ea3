//! Arguments of a call, independent of its language.

use crate::{
    communicators::Key,
    entry::WrappedName,
    functions::{Language, NONE, WrappedFunction},
    library::LoadedMpi,
};

/// Arguments of a call as machine words.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a> {
    pub words: &'a [usize],
    pub function: &'static WrappedFunction,
    /// 0 for C, 1 for Fortran, where every word is an address.
    pub fortran: usize,
    pub library: &'static LoadedMpi,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(
        words: &'a [usize],
        entry: &WrappedName,
        library: &'static LoadedMpi,
    ) -> Self {
        Arguments {
            words,
            function: entry.function,
            fortran: usize::from(entry.language != Language::C),
            library,
        }
    }

    /// Returns the word at a position, or 0 if the function has no such argument.
    #[inline]
    pub(crate) fn word(&self, place: u8) -> usize {
        if place == NONE {
            0
        } else {
            self.words[place as usize]
        }
    }

    #[inline]
    pub(crate) fn int(&self, place: u8) -> i32 {
        let word = self.word(place);
        if self.fortran == 0 || word == 0 {
            return word as i32;
        }
        // SAFETY: a Fortran argument is the address of its value.
        unsafe { (word as *const i32).read_unaligned() }
    }

    /// Returns the error code of a Fortran function, or 0 if the program does not request it.
    pub(crate) fn fortran_error(&self) -> i32 {
        self.int(self.function.arity)
    }

    /// Returns a count, which may be a large one.
    #[inline]
    pub(crate) fn count(&self, place: u8) -> u64 {
        let count = if self.function.large {
            self.word(place) as i64
        } else {
            i64::from(self.int(place))
        };
        count.max(0) as u64
    }

    /// Returns the count of a function, or 1 if it has none.
    #[inline]
    pub(crate) fn count_or_one(&self, place: u8) -> u64 {
        if place == NONE { 1 } else { self.count(place) }
    }

    /// Returns an element of a list of counts.
    pub(crate) fn count_at(&self, place: u8, index: usize) -> u64 {
        let list = self.word(place);
        // SAFETY: the list has an element for each rank.
        let count = unsafe {
            if self.function.large {
                (list as *const i64).wrapping_add(index).read_unaligned()
            } else {
                i64::from((list as *const i32).wrapping_add(index).read_unaligned())
            }
        };
        count.max(0) as u64
    }

    /// Returns a handle that is passed as an argument.
    #[inline]
    pub(crate) fn key(&self, place: u8) -> Key {
        if self.fortran == 0 {
            return Key::c(self.library.handle(self.word(place)));
        }
        self.fortran_key(self.int(place))
    }

    /// MPICH's handles are the same numbers in C and Fortran.
    #[inline]
    fn fortran_key(&self, number: i32) -> Key {
        if self.library.handle_bytes == 4 {
            Key::c(number as u32 as usize)
        } else {
            Key::fortran(number)
        }
    }

    /// Returns a handle in a list, or in the variable that an argument points to.
    ///
    /// # Safety
    /// `address` must be the address of a variable or of a list with more than `index` elements.
    #[inline]
    pub(crate) unsafe fn key_at(&self, address: usize, index: usize) -> Key {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.fortran == 1 {
                self.fortran_key((address as *const i32).wrapping_add(index).read_unaligned())
            } else if self.library.handle_bytes == 4 {
                Key::c((address as *const u32).wrapping_add(index).read_unaligned() as usize)
            } else {
                Key::c(
                    (address as *const usize)
                        .wrapping_add(index)
                        .read_unaligned(),
                )
            }
        }
    }

    /// Returns a handle that functions take by value in both languages, or by address in C as well (`MPI_Comm_free`).
    #[inline]
    pub(crate) fn key_behind(&self, place: u8) -> Key {
        // SAFETY: such arguments are addresses in both languages.
        unsafe { self.key_at(self.word(place), 0) }
    }

    /// Returns a 32-bit number in a variable that an argument points to, or in a list.
    #[inline]
    pub(crate) fn out_int(&self, place: u8, index: usize) -> i32 {
        // SAFETY: output arguments are addresses in both languages.
        unsafe {
            (self.word(place) as *const i32)
                .wrapping_add(index)
                .read_unaligned()
        }
    }

    /// Returns `true` if a test or probe found nothing.
    pub(crate) fn found_nothing(&self) -> bool {
        let flag = self.function.at.flag;
        flag != NONE && self.out_int(flag, 0) == 0
    }

    /// Converts a peer to its form in recordings.
    #[inline]
    pub(crate) fn peer(&self, rank: i32) -> i64 {
        if rank == self.library.proc_null {
            -1
        } else {
            i64::from(rank)
        }
    }

    /// Returns `true` if the argument at this position is `MPI_IN_PLACE`: the buffer of the other side serves for both.
    pub(crate) fn is_in_place(&self, place: u8) -> bool {
        place != NONE && self.word(place) == self.library.in_place[self.fortran]
    }
}

/// Returns `true` if a call under this name must be recorded. MPICH's Fortran functions call its C functions, and so do its
/// `mpi_f08` functions with a buffer. The remaining `mpi_f08` functions call functions that cannot be intercepted.
pub(crate) fn is_recorded(language: Language, library: &LoadedMpi) -> bool {
    language != Language::Fortran || library.is_open_mpi
}

//! The arguments of a call, whichever language it came from.

use crate::{
    communicators::Key,
    entry::WrappedName,
    functions::{Language, NONE, WrappedFunction},
    library::LoadedMpi,
};

/// A call's arguments as machine words.
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

    /// The word at a place, 0 where the function has no such argument.
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

    /// The error code that a function of Fortran gives; 0 where the program does not ask for it.
    pub(crate) fn fortran_error(&self) -> i32 {
        self.int(self.function.arity)
    }

    /// A count, which may be large.
    #[inline]
    pub(crate) fn count(&self, place: u8) -> u64 {
        let count = if self.function.large {
            self.word(place) as i64
        } else {
            i64::from(self.int(place))
        };
        count.max(0) as u64
    }

    /// The count of a function that has one, else 1.
    #[inline]
    pub(crate) fn count_or_one(&self, place: u8) -> u64 {
        if place == NONE { 1 } else { self.count(place) }
    }

    /// An element of a list of counts.
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

    /// A handle that is an argument.
    #[inline]
    pub(crate) fn key(&self, place: u8) -> Key {
        if self.fortran == 0 {
            return Key::c(self.library.handle(self.word(place)));
        }
        self.fortran_key(self.int(place))
    }

    /// MPICH's handles are the same numbers in both languages.
    #[inline]
    fn fortran_key(&self, number: i32) -> Key {
        if self.library.handle_bytes == 4 {
            Key::c(number as u32 as usize)
        } else {
            Key::fortran(number)
        }
    }

    /// A handle in a list, or in the variable that an argument points to.
    ///
    /// # Safety
    /// `address` is that of a variable or a list with more than `index` elements.
    #[inline]
    pub(crate) unsafe fn key_at(&self, address: usize, index: usize) -> Key {
        // SAFETY: the caller's.
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

    /// A handle that a function takes by value in both languages, or by address in C as well (`MPI_Comm_free`).
    #[inline]
    pub(crate) fn key_behind(&self, place: u8) -> Key {
        // SAFETY: such arguments are addresses in both languages.
        unsafe { self.key_at(self.word(place), 0) }
    }

    /// A 32-bit number in a variable that an argument points to, or in a list.
    #[inline]
    pub(crate) fn out_int(&self, place: u8, index: usize) -> i32 {
        // SAFETY: output arguments are addresses in both languages.
        unsafe {
            (self.word(place) as *const i32)
                .wrapping_add(index)
                .read_unaligned()
        }
    }

    /// Whether a test or probe found nothing.
    pub(crate) fn found_nothing(&self) -> bool {
        let flag = self.function.at.flag;
        flag != NONE && self.out_int(flag, 0) == 0
    }

    /// A peer as recordings have it.
    #[inline]
    pub(crate) fn peer(&self, rank: i32) -> i64 {
        if rank == self.library.proc_null {
            -1
        } else {
            i64::from(rank)
        }
    }

    /// Whether the buffer at this place stands for the other one.
    pub(crate) fn is_in_place(&self, place: u8) -> bool {
        place != NONE && self.word(place) == self.library.in_place[self.fortran]
    }
}

/// Whether a call by this name is to be recorded. MPICH's Fortran functions call those of C, and so do those of its
/// `mpi_f08` that have a buffer; the others call what cannot be intercepted.
pub(crate) fn is_recorded(language: Language, library: &LoadedMpi) -> bool {
    language != Language::Fortran || library.is_open_mpi
}

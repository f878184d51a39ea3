//! The program and its loaded libraries as the dynamic linker sees them: their symbols, and the places in which they store
//! the addresses of other libraries' functions.
//!
//! This module allocates no memory, because it runs inside `dlsym`, which the program's allocator may call.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::size_of,
    ptr,
};

use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_iterate_phdr, dl_phdr_info};

// Tags of the dynamic section, which the C library's bindings lack.
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_RPATH: i64 = 15;
const DT_JMPREL: i64 = 23;
const DT_RUNPATH: i64 = 29;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// Types of relocation that hold the address of a symbol: in tables of functions, for calls, and in data.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 3] = [6, 7, 1];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u32; 3] = [1025, 1026, 257];

/// Name of a symbol and its two hashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol<'a> {
    name: &'a CStr,
    gnu: u32,
    system_v: u32,
}

impl<'a> Symbol<'a> {
    pub(crate) const fn new(name: &'a CStr) -> Symbol<'a> {
        let bytes = name.to_bytes();
        let (mut gnu, mut system_v, mut at) = (5381_u32, 0_u32, 0);
        while at < bytes.len() {
            gnu = gnu.wrapping_mul(33).wrapping_add(bytes[at] as u32);
            system_v = (system_v << 4).wrapping_add(bytes[at] as u32);
            let high = system_v & 0xF000_0000;
            system_v = (system_v ^ (high >> 24)) & !high;
            at += 1;
        }
        Symbol {
            name,
            gnu,
            system_v,
        }
    }
}

/// The program or a loaded library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object {
    base: usize,
    headers: *const Elf64_Phdr,
    header_count: usize,
    name: *const c_char,
    dynamic: *const [i64; 2],
    symbols: *const Elf64_Sym,
    strings: *const c_char,
    gnu_hash: *const u32,
    system_v_hash: *const u32,
    /// Tables of relocations with their sizes in bytes.
    relocations: [(*const Elf64_Rela, usize); 2],
    /// `true` if the object has its own folders in which libraries are searched.
    has_search_path: bool,
}

/// Calls `visit` for the program and then for each library in look-up order, until `visit` returns `false`.
pub(crate) fn each(mut visit: impl FnMut(&Object) -> bool) {
    unsafe extern "C" fn one<F: FnMut(&Object) -> bool>(
        info: *mut dl_phdr_info,
        _size: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the linker passes the description of a loaded object, and the pointer to the closure that `each` gave it.
        unsafe {
            let visit = &mut *visit.cast::<F>();
            Object::from_info(&*info).is_some_and(|object| !visit(&object)) as c_int
        }
    }
    fn start<F: FnMut(&Object) -> bool>(visit: &mut F) {
        // SAFETY: the closure lives as long as the call.
        unsafe { dl_iterate_phdr(Some(one::<F>), ptr::from_mut(visit).cast()) };
    }
    start(&mut visit);
}

/// Returns the number of times that the linker has loaded and has removed an object.
pub(crate) fn changes() -> (u64, u64) {
    unsafe extern "C" fn first(info: *mut dl_phdr_info, _size: usize, count: *mut c_void) -> c_int {
        // SAFETY: as in `each`.
        unsafe { *count.cast() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut count = (0_u64, 0_u64);
    // SAFETY: the variable lives as long as the call.
    unsafe { dl_iterate_phdr(Some(first), ptr::from_mut(&mut count).cast()) };
    count
}

impl Object {
    fn from_info(info: &dl_phdr_info) -> Option<Object> {
        let mut object = Object {
            base: info.dlpi_addr as usize,
            headers: info.dlpi_phdr,
            header_count: usize::from(info.dlpi_phnum),
            name: info.dlpi_name,
            dynamic: ptr::null(),
            symbols: ptr::null(),
            strings: ptr::null(),
            gnu_hash: ptr::null(),
            system_v_hash: ptr::null(),
            relocations: [(ptr::null(), 0); 2],
            has_search_path: false,
        };
        let section = object
            .headers()
            .iter()
            .find(|header| header.p_type == libc::PT_DYNAMIC)?;
        object.dynamic = (object.base + section.p_vaddr as usize) as *const [i64; 2];
        object.read_dynamic();
        (!object.symbols.is_null() && !object.strings.is_null()).then_some(object)
    }

    fn headers(&self) -> &[Elf64_Phdr] {
        // SAFETY: the linker passes the object's headers and their number.
        unsafe { std::slice::from_raw_parts(self.headers, self.header_count) }
    }

    fn read_dynamic(&mut self) {
        let mut at = self.dynamic;
        loop {
            // SAFETY: the section ends with an entry of tag 0.
            let [tag, value] = unsafe { *at };
            let size = value as usize;
            match tag {
                0 => return,
                DT_SYMTAB => self.symbols = self.address(value),
                DT_STRTAB => self.strings = self.address(value),
                DT_GNU_HASH => self.gnu_hash = self.address(value),
                DT_HASH => self.system_v_hash = self.address(value),
                DT_RELA => self.relocations[0].0 = self.address(value),
                DT_RELASZ => self.relocations[0].1 = size,
                DT_JMPREL => self.relocations[1].0 = self.address(value),
                DT_PLTRELSZ => self.relocations[1].1 = size,
                DT_RPATH | DT_RUNPATH => self.has_search_path = true,
                _ => {}
            }
            at = at.wrapping_add(1);
        }
    }

    /// Converts a number of the dynamic section to an address. Most linkers add the object's base to these numbers when they
    /// load it.
    fn address<T>(&self, value: i64) -> *const T {
        let value = value as usize;
        (if value < self.base {
            self.base + value
        } else {
            value
        }) as *const T
    }

    /// Returns a value that distinguishes loaded objects.
    pub(crate) fn identity(&self) -> usize {
        self.dynamic as usize
    }

    pub(crate) fn path(&self) -> &CStr {
        if self.name.is_null() {
            return c"";
        }
        // SAFETY: the linker keeps the name while the object is loaded.
        unsafe { CStr::from_ptr(self.name) }
    }

    pub(crate) fn has_search_path(&self) -> bool {
        self.has_search_path
    }

    pub(crate) fn contains(&self, address: usize) -> bool {
        self.headers().iter().any(|header| {
            header.p_type == libc::PT_LOAD
                && address.wrapping_sub(self.base + header.p_vaddr as usize)
                    < header.p_memsz as usize
        })
    }

    /// Returns `true` if the object's memory at this address is executable.
    fn is_executable(&self, address: usize) -> bool {
        self.headers().iter().any(|header| {
            header.p_flags & libc::PF_X != 0
                && address.wrapping_sub(self.base + header.p_vaddr as usize)
                    < header.p_memsz as usize
        })
    }

    /// Returns the address of a symbol that the object defines.
    pub(crate) fn find(&self, symbol: Symbol<'_>) -> Option<usize> {
        self.definition(symbol)
            .map(|found| self.base.wrapping_add(found.st_value as usize))
    }

    /// Changes the address of a symbol that the object defines, for all later look-ups. Returns `false` if it fails.
    pub(crate) fn redirect(&self, symbol: Symbol<'_>, to: usize, writer: &mut Writer) -> bool {
        self.definition(symbol).is_some_and(|found| {
            let place = ptr::from_ref(&found.st_value) as usize;
            writer.write(self, place, to.wrapping_sub(self.base))
        })
    }

    /// Calls `replacement` with the name and the value of each place that holds the address of a symbol, and writes the
    /// result to the place. Returns `false` if a place cannot be written.
    pub(crate) fn replace_addresses(
        &self,
        writer: &mut Writer,
        replacement: impl Fn(&CStr, usize) -> Option<usize>,
    ) -> bool {
        self.relocations.iter().all(|(first, bytes)| {
            (0..bytes / size_of::<Elf64_Rela>()).all(|index| {
                // SAFETY: the index is below the number of entries of the table.
                let relocation = unsafe { &*first.wrapping_add(index) };
                if !ADDRESSES.contains(&(relocation.r_info as u32)) {
                    return true;
                }
                let place = self.base.wrapping_add(relocation.r_offset as usize);
                // SAFETY: the relocation names a symbol of the table, and a word of the object.
                let (name, value) = unsafe {
                    let symbol = &*self
                        .symbols
                        .wrapping_add((relocation.r_info >> 32) as usize);
                    (self.text(symbol), (place as *const usize).read_unaligned())
                };
                replacement(name, value).is_none_or(|new| writer.write(self, place, new))
            })
        })
    }

    /// # Safety
    /// The symbol must belong to the object.
    unsafe fn text(&self, symbol: &Elf64_Sym) -> &CStr {
        // SAFETY: names are zero-terminated texts in the table of strings.
        unsafe { CStr::from_ptr(self.strings.wrapping_add(symbol.st_name as usize)) }
    }

    fn definition(&self, symbol: Symbol<'_>) -> Option<&Elf64_Sym> {
        if !self.gnu_hash.is_null() {
            self.by_gnu_hash(symbol)
        } else if !self.system_v_hash.is_null() {
            self.by_system_v_hash(symbol)
        } else {
            None
        }
    }

    fn by_gnu_hash(&self, symbol: Symbol<'_>) -> Option<&Elf64_Sym> {
        let word = |at: usize| {
            // SAFETY: the table has a header of four words, the filter, the buckets and the chains, whose end is marked by a
            // bit.
            unsafe { *self.gnu_hash.wrapping_add(at) as usize }
        };
        let (buckets, offset, filters, shift) = (word(0), word(1), word(2), word(3) as u32);
        let hash = symbol.gnu as usize;
        let filter = 4 + (hash / 64) % filters * 2;
        let bits = word(filter) | word(filter + 1) << 32;
        if (bits >> (hash % 64)) & (bits >> ((hash >> shift) % 64)) & 1 == 0 {
            return None;
        }
        let first_chain = 4 + filters * 2 + buckets;
        let mut index = word(4 + filters * 2 + hash % buckets);
        if index < offset {
            return None;
        }
        loop {
            let chain = word(first_chain + index - offset);
            if (chain ^ hash) >> 1 == 0
                && let Some(found) = self.if_defined(index, symbol)
            {
                return Some(found);
            }
            if chain & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }

    fn by_system_v_hash(&self, symbol: Symbol<'_>) -> Option<&Elf64_Sym> {
        let word = |at: usize| {
            // SAFETY: the table has a header of two words, the buckets and the chains, which end with 0.
            unsafe { *self.system_v_hash.wrapping_add(at) as usize }
        };
        let buckets = word(0);
        let mut index = word(2 + symbol.system_v as usize % buckets);
        while index != 0 {
            if let Some(found) = self.if_defined(index, symbol) {
                return Some(found);
            }
            index = word(2 + buckets + index);
        }
        None
    }

    fn if_defined(&self, index: usize, symbol: Symbol<'_>) -> Option<&Elf64_Sym> {
        const INDIRECT: u8 = 10;
        const THREAD_LOCAL: u8 = 6;
        // SAFETY: the index comes from the object's own table.
        let (found, name) = unsafe {
            let found = &*self.symbols.wrapping_add(index);
            (found, self.text(found))
        };
        let is_plain = ![INDIRECT, THREAD_LOCAL].contains(&(found.st_info & 15));
        (found.st_shndx != 0 && found.st_value != 0 && is_plain && name == symbol.name)
            .then_some(found)
    }
}

/// Writer into the memory of objects, which may be write-protected.
pub(crate) struct Writer {
    /// Descriptor of `/proc/self/mem`, which leaves the protection unchanged; -1 if it is not available.
    memory: c_int,
}

impl Writer {
    pub(crate) fn open() -> Writer {
        let flags = libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the path ends in a zero.
        let memory = unsafe { libc::open(c"/proc/self/mem".as_ptr(), flags) };
        Writer { memory }
    }

    /// Writes a word at an address of an object. Returns `false` if it cannot be written.
    fn write(&mut self, object: &Object, address: usize, word: usize) -> bool {
        let bytes = size_of::<usize>();
        // SAFETY: the word lives as long as the call; the kernel checks the address.
        let written = unsafe {
            libc::pwrite(
                self.memory,
                ptr::from_ref(&word).cast(),
                bytes,
                address as i64,
            )
        };
        written == bytes as isize || write_protected(object, address, word)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.memory >= 0 {
            // SAFETY: `open` opened the descriptor.
            unsafe { libc::close(self.memory) };
        }
    }
}

/// Makes the page writable and writes the word. The page stays writable, because the linker may be about to write to it as
/// well.
fn write_protected(object: &Object, address: usize, word: usize) -> bool {
    // SAFETY: the query changes nothing.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let begin = address & !(page - 1);
    let bytes = (address + size_of::<usize>()).next_multiple_of(page) - begin;
    let execute = if object.is_executable(address) {
        libc::PROT_EXEC
    } else {
        0
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE | execute;
    // SAFETY: the pages belong to the object and keep their rights.
    unsafe {
        if libc::mprotect(begin as *mut c_void, bytes, protection) != 0 {
            return false;
        }
        (address as *mut usize).write_unaligned(word);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_c_library_is_found_at_its_address_and_an_unknown_one_is_not() {
        let first = |name| {
            let mut found = None;
            each(|object| {
                found = object.find(Symbol::new(name));
                found.is_none()
            });
            found
        };
        assert_eq!(first(c"getppid"), Some(libc::getppid as *const () as usize));
        assert_eq!(first(c"getppid_of_nobody"), None);
    }

    #[test]
    fn a_word_that_must_not_be_written_is_replaced() {
        static KEPT: [usize; 2] = [1, 2];
        let place = ptr::from_ref(&KEPT[1]) as usize;
        for protected in [false, true] {
            each(|object| {
                if object.contains(place) {
                    let word = 7 + usize::from(protected);
                    let written = if protected {
                        write_protected(object, place, word)
                    } else {
                        Writer::open().write(object, place, word)
                    };
                    assert!(written);
                }
                true
            });
            // SAFETY: the word is there.
            let word = unsafe { (place as *const usize).read_volatile() };
            assert_eq!(word, 7 + usize::from(protected));
        }
    }
}

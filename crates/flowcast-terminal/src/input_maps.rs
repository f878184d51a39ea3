//! Bytes of input files: small files are read, large ones are mapped.
//!
//! If a mapped file is truncated while it is read, a signal ends the process; if it is changed, checks of its content may no
//! longer hold. Both become an error that names the file: the signal handler and the panic hook check if a map is at fault,
//! and every mapped file is compared with its original state before anything is written and at the end.

#![expect(unsafe_code, reason = "memory maps, and the signal that they raise")]

use std::{
    fs::{File, Metadata},
    io,
    mem::MaybeUninit,
    os::unix::fs::MetadataExt,
    panic,
    path::{Path, PathBuf},
    process::exit,
    ptr,
    sync::{Arc, Mutex, Once, PoisonError},
};

use anyhow::{Result, bail};
use flowcast::trace::SharedBytes;
use flowcast_io::read_file;
use memmap2::Mmap;

use crate::{files::inputs::note_read, say};

/// Size from which files are mapped, in bytes. Reading a smaller file costs less than a tenth of the work on it.
const MAPPED_FROM: u64 = 64 << 20;

/// A mapped file and its state at the time of mapping.
#[derive(Debug)]
struct Mapped {
    path: PathBuf,
    file: File,
    state: MapState,
}

/// Length, and time of the last change in seconds and nanoseconds.
type MapState = (u64, i64, i64);

static MAPPED: Mutex<Vec<Mapped>> = Mutex::new(Vec::new());

/// Bytes of a file, mapped if possible.
pub fn bytes(path: &Path) -> io::Result<SharedBytes> {
    match map(path)? {
        Some(map) => Ok(map),
        None => Ok(Arc::new(read_file(path)?)),
    }
}

/// Maps a large file. `None` for a smaller one, or for anything but a regular file.
pub fn map(path: &Path) -> io::Result<Option<Arc<Mmap>>> {
    note_read(path);
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() < MAPPED_FROM || !metadata.is_file() {
        return Ok(None);
    }
    watch();
    // SAFETY: the map is only read. If another process changes the file in the meantime, the content is not used: see above.
    let map = Arc::new(unsafe { Mmap::map(&file)? });
    let mapped = Mapped {
        path: path.to_owned(),
        file,
        state: state(&metadata),
    };
    MAPPED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(mapped);
    Ok(Some(map))
}

/// Releases the memory of the map. Pages are mapped again when they are needed.
pub fn release(map: &Mmap) {
    // SAFETY: the map is read-only, so the file still has the dropped content. A failure is harmless.
    let _ = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
}

/// Checks that no mapped file was changed.
///
/// # Errors
/// A changed file.
pub fn verify() -> Result<()> {
    let mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = mapped.iter().find(|one| {
        one.file
            .metadata()
            .map_or(true, |metadata| state(&metadata) != one.state)
    });
    if let Some(one) = changed {
        bail!(
            "{}: found a file that was changed while it was read, expected an unchanged file",
            one.path.display()
        );
    }
    Ok(())
}

fn state(metadata: &Metadata) -> MapState {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// Installs a panic hook and a signal handler, once a file is mapped, that report a changed file as the cause.
fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if let Err(error) = verify() {
                say!("error: {error}");
                exit(2);
            }
            usual(panic);
        }));
        // SAFETY: zeroes are a valid sigaction; the handler only does what is allowed in a handler.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            action.sa_sigaction = fault as *const () as usize;
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
        }
    });
}

/// Handles access to a page beyond the end of a mapped file. The file cannot be determined here, because locks may be held.
extern "C" fn fault(_signal: i32) {
    const TOLD: &[u8] =
        b"error: found an input file that was shortened while it was read, expected an unchanged file\n";
    // SAFETY: `write` and `_exit` may be called in a handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, TOLD.as_ptr().cast(), TOLD.len());
        libc::_exit(2);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, process::Command};

    use super::*;

    const FILE: &str = "FLOWCAST_TEST_SHORTENS";

    /// Shortens a mapped file in a second process of the test binary.
    #[test]
    fn shorten_a_map_when_asked() {
        let Ok(path) = std::env::var(FILE) else {
            return;
        };
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        file.set_len(MAPPED_FROM).unwrap();
        let mapped = bytes(Path::new(&path)).unwrap();
        println!("{:?}", verify());
        file.set_len(1 << 20).unwrap();
        println!("{:?}", verify());
        println!("read {}", (*mapped).as_ref()[MAPPED_FROM as usize - 1]);
    }

    #[test]
    fn a_mapped_file_that_is_shortened_is_an_error_and_not_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([
            "input_maps::tests::shorten_a_map_when_asked",
            "--exact",
            "--nocapture",
        ]);
        let ended = again
            .env(FILE, folder.path().join("large"))
            .output()
            .unwrap();
        let (out, said) = (
            String::from_utf8_lossy(&ended.stdout),
            String::from_utf8_lossy(&ended.stderr),
        );
        assert_eq!(ended.status.code(), Some(2), "{out}{said}");
        assert!(
            out.contains("Ok(())") && out.contains("large: found a file that was changed"),
            "{out}"
        );
        assert!(
            said.contains("an input file that was shortened while it was read")
                && !out.contains("read 0"),
            "{out}{said}"
        );
    }
}

//! Output of the recorder from inside the user's process: its files, and messages to the user.
//!
//! The program may have closed the descriptor of a recorder's file and opened a file of its own, which then has the same
//! number. A limit of the file size, or a standard error without a reader, raises a signal that by default ends the program.
//! Neither may affect the program.

use std::{
    env,
    ffi::c_int,
    fs::{File, OpenOptions},
    io::{self, Write},
    mem::{ManuallyDrop, MaybeUninit},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::Path,
    ptr,
};

use flowcast_recording::format::{REASON, REASON_BYTES};

/// Environment variable with the folder of the recording. Without it, nothing is recorded.
pub(crate) const FOLDER: &str = "FLOWCAST_RECORD";

/// Lowest descriptor of the recorder's files. Programs and their launchers count from 0, so high numbers do not conflict
/// with theirs.
const FIRST: i32 = 512;

/// Signals raised in the thread that writes.
const RAISED: [i32; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Guard that protects its thread from cancellation, which would otherwise end the recorder in the middle of its own system
/// calls.
pub(crate) struct Uncancelled(c_int);

impl Uncancelled {
    pub(crate) fn new() -> Uncancelled {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: the variable is valid for the call.
        unsafe { pthread_setcancelstate(DISABLE, &mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the state is the former one.
        unsafe { pthread_setcancelstate(self.0, ptr::null_mut()) };
    }
}

/// File that the recorder has created.
pub(crate) struct OwnFile {
    file: ManuallyDrop<File>,
    /// Device and inode.
    identity: (u64, u64),
}

impl OwnFile {
    /// Creates a file. Fails if the file exists, because it then belongs to another recording.
    pub(crate) fn create(path: &Path) -> io::Result<OwnFile> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let file = ManuallyDrop::new(moved(file));
        Ok(OwnFile {
            identity: identity(&file)?,
            file,
        })
    }

    /// Writes all bytes, or returns the reason why the recording ends here.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_there() {
            return Err(io::Error::other("the program has closed its file"));
        }
        without_signals(|| self.file.write_all(bytes))
    }

    /// Returns `true` if the descriptor still refers to the file.
    fn is_there(&self) -> bool {
        identity(&self.file).is_ok_and(|found| found == self.identity)
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if self.is_there() {
            // SAFETY: the file is dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// Reports why the recording of this rank ends or did not begin. `flowcast record` shows the reason after the end of the
/// program. If the reason cannot be stored for `flowcast record`, it is written as a line to the program's standard error,
/// if possible.
pub(crate) fn report(line: &str) {
    let _uncancelled = Uncancelled::new();
    if leave(line).is_err() {
        let _ = without_signals(|| writeln!(io::stderr(), "flowcast record: {line}"));
    }
}

/// Stores the reason in the file for reasons. The file was created at its full size, so a full disk has room for it.
fn leave(line: &str) -> io::Result<()> {
    let folder = env::var_os(FOLDER).ok_or(io::ErrorKind::NotFound)?;
    let file = OpenOptions::new()
        .write(true)
        .open(Path::new(&folder).join(REASON))?;
    let mut block = [0; REASON_BYTES];
    let length = line.len().min(REASON_BYTES - 1);
    block[..length].copy_from_slice(&line.as_bytes()[..length]);
    without_signals(|| file.write_all_at(&block, 0))
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Moves the file to a high descriptor number if the limit of descriptors allows it.
fn moved(file: File) -> File {
    // SAFETY: the descriptor is open, and the one that the call returns has no owner yet.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) } {
        -1 => file,
        // SAFETY: as above.
        number => unsafe { File::from_raw_fd(number) },
    }
}

/// Writes without the signals that writing can raise: they are blocked in this thread and then removed.
fn without_signals(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: zeroes are valid sets of signals, and each set lives as long as the calls need it.
    unsafe {
        let [mut raised, mut before, mut waiting] =
            [MaybeUninit::<libc::sigset_t>::zeroed().assume_init(); 3];
        libc::sigemptyset(&mut raised);
        libc::sigpending(&mut waiting);
        for signal in RAISED {
            // Signals that are already pending belong to the program.
            if libc::sigismember(&waiting, signal) == 0 {
                libc::sigaddset(&mut raised, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raised, &mut before);
        let written = write();
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        while libc::sigtimedwait(&raised, ptr::null_mut(), &at_once) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        written
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_descriptor_that_the_program_has_reused_is_neither_written_to_nor_closed() {
        let folder = tempfile::tempdir().unwrap();
        let mut own = OwnFile::create(&folder.path().join("own")).unwrap();
        own.write_all(b"begun").unwrap();
        let victim = File::create(folder.path().join("victim")).unwrap();
        let number = own.file.as_raw_fd();
        // SAFETY: both descriptors are open. The recorder's becomes another name of the program's file.
        assert_eq!(unsafe { libc::dup2(victim.as_raw_fd(), number) }, number);
        assert!(
            own.write_all(b"more")
                .unwrap_err()
                .to_string()
                .contains("has closed its file")
        );
        drop(own);
        // SAFETY: the query changes nothing.
        assert_ne!(
            unsafe { libc::fcntl(number, libc::F_GETFD) },
            -1,
            "the program's descriptor was closed"
        );
        assert_eq!(fs::read(folder.path().join("victim")).unwrap(), b"");
        assert_eq!(fs::read(folder.path().join("own")).unwrap(), b"begun");
        // SAFETY: no other object owns this descriptor.
        drop(unsafe { File::from_raw_fd(number) });
    }

    #[test]
    fn a_closed_pipe_is_an_error_and_no_signal() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        // The test harness ignores the signal; a program does not.
        // SAFETY: the default disposition is installed, and then the old one is restored.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let written = without_signals(|| (&writer).write_all(b"lost"));
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPIPE, before) };
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}

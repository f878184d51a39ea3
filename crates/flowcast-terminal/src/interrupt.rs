//! A signal that ends the process removes the temporary files first, and says where a run that keeps what it has finished
//! goes on.
//!
//! The handler passes the signal on to a thread, which removes what is registered and lets the signal have its usual effect.

#![expect(unsafe_code, reason = "the standard library has no signals")]

use std::{
    fs,
    io::{self, PipeReader, Read, pipe},
    mem::MaybeUninit,
    os::fd::IntoRawFd,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    ptr,
    sync::{
        Mutex, MutexGuard, Once,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread,
};

use crate::say;

/// Those that end a process unless it says otherwise, but for `SIGKILL`, which nobody can wait for, and those by which the
/// processor tells a fault of the program.
const SIGNALS: [i32; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
];

/// Files, and folders before the files in them.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The files that the next run can go on with.
static KEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// The process to which signals are passed on.
static PROGRAM: AtomicI32 = AtomicI32::new(NO_PROGRAM);
const NO_PROGRAM: i32 = 0;
const STARTING: i32 = -1;
static PASSED_ON: AtomicBool = AtomicBool::new(false);
/// Where the handler writes.
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// The list of what is removed when a signal comes. No signal ends the process while it is held: whoever makes a temporary
/// file, or gives it its name, holds it meanwhile.
pub fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(watch);
    TEMPORARY
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A write beyond the limit of the size of files fails from now on as on a full disk, and raises no signal that ends the
/// process. Programs that it starts have the usual disposition.
pub fn survive_file_limits() {
    // SAFETY: the handler does nothing.
    unsafe { replace_default(libc::SIGXFSZ, go_on) };
}

extern "C" fn go_on(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Runs a program and waits for its end. A signal meanwhile is the program's: it ends the program, and this process goes on.
///
/// # Errors
/// The program does not start.
pub fn pass_on_to(command: &mut Command) -> io::Result<ExitStatus> {
    // Watches for signals, too.
    drop(temporary());
    PROGRAM.store(STARTING, Ordering::SeqCst);
    let ended = command.spawn().and_then(|mut program| {
        PROGRAM.store(program.id().cast_signed(), Ordering::SeqCst);
        program.wait()
    });
    PROGRAM.store(NO_PROGRAM, Ordering::SeqCst);
    ended
}

/// Whether a signal has come while a program ran.
pub fn was_passed_on() -> bool {
    PASSED_ON.load(Ordering::SeqCst)
}

/// From now on a signal names this file.
pub fn keeps(path: &Path) {
    // Watches for signals, too.
    let _temporary = temporary();
    kept().push(path.to_owned());
}

/// The file is gone.
pub(crate) fn keeps_no_more(path: &Path) {
    kept().retain(|known| known != path);
}

fn kept() -> MutexGuard<'static, Vec<PathBuf>> {
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn watch() {
    // Without a pipe or a thread signals have their usual effect.
    let Ok((signals, told)) = pipe() else { return };
    let thread = thread::Builder::new().name("signals".to_owned());
    if thread.spawn(move || end_by(signals)).is_ok() {
        // The process keeps it open.
        TOLD.store(told.into_raw_fd(), Ordering::SeqCst);
        // SAFETY: `tell` is async-signal-safe.
        SIGNALS
            .into_iter()
            .for_each(|signal| unsafe { replace_default(signal, tell) });
    }
}

/// Waits for a signal.
fn end_by(mut signals: PipeReader) {
    let mut signal = [0];
    if signals.read_exact(&mut signal).is_err() {
        return;
    }
    let temporary = temporary();
    for path in temporary.iter().rev() {
        // What cannot be removed stays.
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
    for path in kept().iter() {
        say!(
            "\nflowcast: interrupted; {} holds what is finished: the same command with --resume goes on with it",
            path.display()
        );
    }
    let signal = i32::from(signal[0]);
    // SAFETY: the signal is one of SIGNALS, whose default disposition ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn tell(signal: i32, from: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let program = PROGRAM.load(Ordering::SeqCst);
    if program != NO_PROGRAM {
        PASSED_ON.store(true, Ordering::SeqCst);
        // SAFETY: the system passes what it knows of the signal; `kill` may be called in a handler. A terminal sends its signals
        // to the program as well.
        unsafe {
            if program != STARTING && (*from).si_code <= 0 {
                libc::kill(program, signal);
            }
        }
        return;
    }
    let signal = signal as u8;
    // SAFETY: `write` may be called in a handler; the byte lives until it returns. If the pipe is full, a signal has been told.
    unsafe {
        libc::write(
            TOLD.load(Ordering::SeqCst),
            ptr::from_ref(&signal).cast(),
            1,
        )
    };
}

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

/// Puts a handler in the place of the default disposition. A signal that is ignored, as under `nohup`, stays ignored.
///
/// # Safety
/// The handler is async-signal-safe.
unsafe fn replace_default(signal: i32, handler: Handler) {
    // SAFETY: zeroes are a valid sigaction; the first call only asks, the second has the handler.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        if libc::sigaction(signal, ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
        {
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

//! The Open MPI that loaded us: its version, functions and variables.
//!
//! The symbols are looked up while the component starts. It therefore builds without an Open MPI. With another Open MPI it
//! still loads and can report why it steps aside.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fs, mem,
    path::{Path, PathBuf},
    ptr,
};

use libc::{
    RTLD_DEFAULT, RTLD_GLOBAL, RTLD_NODELETE, RTLD_NOLOAD, RTLD_NOW, dladdr, dlopen, dlsym,
};

use crate::{
    Refusal,
    bindings::{
        BmlComponent, BtlModule, BtlSegment, Component, Framework, OmpiProc, OpalClass, OpalList,
        OpalProc, ProcessName, Trigger,
    },
    series::{MessageHandler, OpenMpiSeries},
};

const LIBMPI: &CStr = c"libmpi.so.40";
const R2: &str = "mca_bml_r2.so";
const R2_COMPONENT: &CStr = c"mca_bml_r2_component";

/// `opal_output`.
pub(crate) type Output = unsafe extern "C" fn(c_int, *const c_char, ...);
/// `mca_base_component_var_register`.
pub(crate) type RegisterVariable = unsafe extern "C" fn(
    *const Component,
    *const c_char,
    *const c_char,
    c_int,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
    *mut c_void,
) -> c_int;

/// Symbols of `libmpi` and `libopen-pal` in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenMpiLibrary {
    series: &'static OpenMpiSeries,
    pub btl_modules: *const OpalList,
    pub triggers: *mut Trigger,
    pub progress: unsafe extern "C-unwind" fn(),
    pub progress_register: unsafe extern "C" fn(unsafe extern "C-unwind" fn() -> c_int) -> c_int,
    pub progress_unregister: unsafe extern "C" fn(unsafe extern "C-unwind" fn() -> c_int) -> c_int,
    pub local_process: unsafe extern "C" fn() -> *const OpalProc,
    pub process_by_name: unsafe extern "C" fn(ProcessName) -> *mut OmpiProc,
    pub world_size: unsafe extern "C" fn() -> c_int,
    pub initialized: unsafe extern "C" fn(*mut c_int) -> c_int,
    pub variable_find:
        unsafe extern "C" fn(*const c_char, *const c_char, *const c_char, *const c_char) -> c_int,
    pub variable_value:
        unsafe extern "C" fn(c_int, *mut *const c_void, *mut c_int, *mut *const c_char) -> c_int,
}

// SAFETY: addresses of functions and of variables that live as long as the process.
unsafe impl Send for OpenMpiLibrary {}
// SAFETY: the same as above.
unsafe impl Sync for OpenMpiLibrary {}

impl OpenMpiLibrary {
    /// Checks the version and the layout, and looks up all symbols.
    ///
    /// # Errors
    /// Another series, another layout, or a missing symbol.
    pub(crate) fn find() -> Result<OpenMpiLibrary, Refusal> {
        let series = OpenMpiSeries::find(&version()?)?;
        check_layout(series)?;
        // SAFETY: each symbol has the type of its declaration in the headers of the series checked above.
        unsafe {
            Ok(OpenMpiLibrary {
                series,
                btl_modules: symbol(c"mca_btl_base_modules_initialized")?.cast(),
                triggers: symbol(c"mca_btl_base_active_message_trigger")?.cast(),
                progress: function(c"opal_progress")?,
                progress_register: function(c"opal_progress_register")?,
                progress_unregister: function(c"opal_progress_unregister")?,
                local_process: function(c"opal_proc_local_get")?,
                process_by_name: function(c"ompi_proc_for_name")?,
                world_size: function(c"ompi_proc_world_size")?,
                initialized: function(c"PMPI_Initialized")?,
                variable_find: function(c"mca_base_var_find")?,
                variable_value: function(c"mca_base_var_get_value")?,
            })
        }
    }

    /// Registers `handler` for all messages with `tag`, which is one of the component's own.
    pub(crate) fn listen(&self, tag: u8, handler: MessageHandler) {
        let trigger = self.series.trigger(handler);
        // SAFETY: the library's table has an entry for each tag; BTLs read it when a message arrives.
        unsafe { self.triggers.add(tag as usize).write(trigger) };
    }

    /// Passes a message to the owner of its tag, as if a network had delivered it.
    ///
    /// # Safety
    /// The owner has registered the tag, and the segment contains such a message.
    pub(crate) unsafe fn deliver(&self, by: *mut BtlModule, tag: u8, segment: &mut BtlSegment) {
        // SAFETY: guaranteed by the caller; the library's table.
        unsafe {
            let trigger = &*self.triggers.add(tag as usize);
            self.series.deliver(trigger, by, tag, segment);
        }
    }
}

/// # Safety
/// `F` is a function pointer of the symbol's type.
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Result<F, Refusal> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = symbol(name)?;
    // SAFETY: all function pointers have the same size, and the caller knows the type.
    Ok(unsafe { mem::transmute_copy(&found) })
}

/// Looks a symbol up in the process, or in `libmpi` and its dependencies if the program loaded that with local scope.
pub(crate) fn symbol(name: &CStr) -> Result<*mut c_void, Refusal> {
    // SAFETY: both take C strings.
    let found = unsafe {
        let found = dlsym(RTLD_DEFAULT, name.as_ptr());
        if found.is_null() {
            dlsym(
                dlopen(LIBMPI.as_ptr(), RTLD_NOW | RTLD_NOLOAD),
                name.as_ptr(),
            )
        } else {
            found
        }
    };
    if found.is_null() {
        Err(Refusal::Symbol(name.to_string_lossy().into_owned()))
    } else {
        Ok(found)
    }
}

/// Returns `mca_base_component_var_register`, which exists in every series. `ompi_info` uses it before the version is known.
pub(crate) fn register_variable() -> Option<RegisterVariable> {
    // SAFETY: unchanged since 1.7.
    unsafe { function(c"mca_base_component_var_register") }.ok()
}

/// Prints a line with the reason and ends all processes of the job.
pub(crate) fn end_job(why: &str) -> ! {
    say(&format!("bml flowcast: {why}; aborting the job"));
    type Abort = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    // SAFETY: unchanged in all series: the communicator's handle is the address of its struct.
    unsafe {
        let abort = function::<Abort>(c"PMPI_Abort");
        if let (Ok(world), Ok(abort)) = (symbol(c"ompi_mpi_comm_world"), abort) {
            abort(world, 1);
        }
    }
    std::process::abort()
}

/// Prints a line in Open MPI's format, which begins with host and process.
pub(crate) fn say(text: &str) {
    let Ok(line) = CString::new(text) else { return };
    // SAFETY: stream 0 is standard error; the format takes one C string.
    match unsafe { function::<Output>(c"opal_output") } {
        // SAFETY: the same as above.
        Ok(output) => unsafe { output(0, c"%s".as_ptr(), line.as_ptr()) },
        Err(_) => eprintln!("{text}"),
    }
}

/// Returns the version, such as `4.1.4` from `Open MPI v4.1.4, package: ...`.
///
/// # Errors
/// The process has no Open MPI.
pub(crate) fn version() -> Result<String, Refusal> {
    let mut text: [c_char; 1024] = [0; 1024];
    let mut length = 0;
    // SAFETY: the function of the MPI standard; it writes less than MPI_MAX_LIBRARY_VERSION_STRING (256) characters.
    let text = unsafe {
        let ask: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
            function(c"MPI_Get_library_version")?;
        ask(text.as_mut_ptr(), &raw mut length);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    Ok(version_in(&text).unwrap_or(&text).to_owned())
}

fn version_in(text: &str) -> Option<&str> {
    text.strip_prefix("Open MPI v")?.split([',', ' ']).next()
}

/// Compares the layout of the library with the layout of its series. They differ with `--enable-debug`.
fn check_layout(series: &OpenMpiSeries) -> Result<(), Refusal> {
    for (name, bytes) in series.classes() {
        let class: *mut OpalClass = symbol(name)?.cast();
        // SAFETY: a class of the library, whose own layout is the same in every build.
        if unsafe { (*class).cls_sizeof } != bytes {
            return Err(Refusal::Layout(name.to_string_lossy().into_owned()));
        }
    }
    Ok(())
}

/// Returns `true` if the framework has opened `r2` as well.
///
/// # Errors
/// The library has no such framework.
pub(crate) fn r2_is_open() -> Result<bool, Refusal> {
    let framework: *mut Framework = symbol(c"ompi_bml_base_framework")?.cast();
    // SAFETY: the part in use is the same in every series and build; the selection is null or a C string.
    Ok(unsafe {
        let selection = (*framework).framework_selection;
        selection.is_null() || includes_r2(&CStr::from_ptr(selection).to_string_lossy())
    })
}

/// Returns `true` if a selection of components, such as `r2,flowcast` or `^flowcast`, includes `r2`.
fn includes_r2(selection: &str) -> bool {
    let names = selection.trim_start_matches('^');
    let is_named = names.split(',').any(|name| name == "r2");
    names.is_empty() || is_named != selection.starts_with('^')
}

/// Returns `r2`: a part of the library, or a file beside its components. The file is kept open, because the framework closes
/// components that it does not choose.
///
/// # Errors
/// No `r2` in the library or beside the loaded components.
pub(crate) fn open_r2() -> Result<*const BmlComponent, Refusal> {
    if let Ok(component) = symbol(R2_COMPONENT) {
        return Ok(component.cast_const().cast());
    }
    let file = fs::read_to_string("/proc/self/maps")
        .unwrap_or_default()
        .lines()
        .filter_map(|line| component_folder(Path::new(&line[line.find('/')?..])))
        .map(|folder| folder.join(R2))
        .find(|file| file.is_file())
        .ok_or(Refusal::NoR2)?;
    let path =
        CString::new(file.into_os_string().into_encoded_bytes()).map_err(|_| Refusal::NoR2)?;
    // SAFETY: C strings; the handle is never closed.
    let component = unsafe {
        let handle = dlopen(path.as_ptr(), RTLD_NOW | RTLD_GLOBAL);
        if handle.is_null() {
            ptr::null_mut()
        } else {
            dlsym(handle, R2_COMPONENT.as_ptr())
        }
    };
    if component.is_null() {
        Err(Refusal::NoR2)
    } else {
        Ok(component.cast_const().cast())
    }
}

/// Returns the folder of a loaded component of Open MPI.
fn component_folder(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let component =
        name.starts_with("mca_") && name.ends_with(".so") && !name.starts_with("mca_bml_flowcast");
    component
        .then(|| file.parent().map(Path::to_owned))
        .flatten()
}

/// Keeps our code in memory until the process ends. Hooks, callbacks and the runtime's thread-local data outlive the
/// framework's attempt to unload us.
pub(crate) fn stay_loaded() {
    let mut info = mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is one of our own functions; dladdr fills `info` when it returns non-zero.
    unsafe {
        if dladdr(stay_loaded as *const c_void, info.as_mut_ptr()) != 0 {
            dlopen(
                info.assume_init().dli_fname,
                RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_version_text_of_the_library() {
        let text = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
        assert_eq!(version_in(text), Some("4.1.4"));
        assert_eq!(version_in("MPICH Version: 4.0.2"), None);
    }

    #[test]
    fn r2_is_open_unless_the_selection_leaves_it_out() {
        for (selection, expected) in [
            ("", true),
            ("flowcast", false),
            ("r2,flowcast", true),
            ("^none", true),
            ("^r2", false),
        ] {
            assert_eq!(includes_r2(selection), expected, "{selection}");
        }
    }

    #[test]
    fn components_are_distinguished_from_other_libraries() {
        let folder = |file: &str| component_folder(Path::new(file));
        assert_eq!(
            folder("/usr/lib/openmpi3/mca_pml_ob1.so"),
            Some("/usr/lib/openmpi3".into())
        );
        assert_eq!(folder("/usr/lib/libmpi.so.40.30.4"), None);
        assert_eq!(
            folder("/home/me/.openmpi/components/mca_bml_flowcast.so"),
            None
        );
    }
}

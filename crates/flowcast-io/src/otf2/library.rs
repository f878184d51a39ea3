//! Functions of the library, looked up by name.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

use super::Otf2Error;

/// Names of the library: Debian's first, then the project's, with and without the version of the interface.
const NAMES: [&str; 5] = [
    "libopen-trace-format2.so.10",
    "libopen-trace-format2.so",
    "libotf2.so.10",
    "libotf2.so.12",
    "libotf2.so",
];

/// An opaque object of the library.
pub(crate) type Handle = *mut c_void;
/// Address of a function of ours that the library calls.
pub(crate) type Callback = *const c_void;
/// Result of a function; 0 is success.
pub(crate) type Code = c_int;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions that are needed for reading.
        #[allow(missing_docs)]
        pub(crate) struct Library {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Further functions are looked up by name when needed.
            symbols: libloading::Library,
        }

        impl Library {
            fn load(symbols: libloading::Library) -> Result<Library, &'static str> {
                Ok(Library { $($field: function(&symbols, $name)?,)* symbols })
            }
        }
    };
}

functions! {
    open = c"OTF2_Reader_Open": fn(*const c_char) -> Handle;
    close = c"OTF2_Reader_Close": fn(Handle) -> Code;
    creator = c"OTF2_Reader_GetCreator": fn(Handle, *mut *mut c_char) -> Code;
    set_serial = c"OTF2_Reader_SetSerialCollectiveCallbacks": fn(Handle) -> Code;
    global_definitions = c"OTF2_Reader_GetGlobalDefReader": fn(Handle) -> Handle;
    register_definitions = c"OTF2_Reader_RegisterGlobalDefCallbacks": fn(Handle, Handle, Handle, *mut c_void) -> Code;
    read_definitions = c"OTF2_Reader_ReadAllGlobalDefinitions": fn(Handle, Handle, *mut u64) -> Code;
    close_definitions = c"OTF2_Reader_CloseGlobalDefReader": fn(Handle, Handle) -> Code;
    select = c"OTF2_Reader_SelectLocation": fn(Handle, u64) -> Code;
    open_definition_files = c"OTF2_Reader_OpenDefFiles": fn(Handle) -> Code;
    close_definition_files = c"OTF2_Reader_CloseDefFiles": fn(Handle) -> Code;
    local_definitions = c"OTF2_Reader_GetDefReader": fn(Handle, u64) -> Handle;
    read_local_definitions = c"OTF2_Reader_ReadAllLocalDefinitions": fn(Handle, Handle, *mut u64) -> Code;
    close_local_definitions = c"OTF2_Reader_CloseDefReader": fn(Handle, Handle) -> Code;
    open_event_files = c"OTF2_Reader_OpenEvtFiles": fn(Handle) -> Code;
    close_event_files = c"OTF2_Reader_CloseEvtFiles": fn(Handle) -> Code;
    local_events = c"OTF2_Reader_GetEvtReader": fn(Handle, u64) -> Handle;
    register_events = c"OTF2_Reader_RegisterEvtCallbacks": fn(Handle, Handle, Handle, *mut c_void) -> Code;
    read_local_events = c"OTF2_Reader_ReadAllLocalEvents": fn(Handle, Handle, *mut u64) -> Code;
    close_local_events = c"OTF2_Reader_CloseEvtReader": fn(Handle, Handle) -> Code;
    definition_callbacks = c"OTF2_GlobalDefReaderCallbacks_New": fn() -> Handle;
    free_definition_callbacks = c"OTF2_GlobalDefReaderCallbacks_Delete": fn(Handle);
    event_callbacks = c"OTF2_EvtReaderCallbacks_New": fn() -> Handle;
    free_event_callbacks = c"OTF2_EvtReaderCallbacks_Delete": fn(Handle);
    on_error = c"OTF2_Error_RegisterCallback": fn(Callback, *mut c_void) -> Callback;
    describe = c"OTF2_Error_GetDescription": fn(Code) -> *const c_char;
}

/// Function that sets one callback. Its arguments are the callbacks and the address.
pub(crate) type Setter = unsafe extern "C" fn(Handle, Callback) -> Code;

impl Library {
    /// Function that sets a callback. Older libraries lack the newest ones.
    pub(crate) fn setter(&self, name: &'static CStr) -> Option<Setter> {
        function(&self.symbols, name).ok()
    }

    /// Description of a result code.
    pub(crate) fn problem(&self, code: Code) -> String {
        // SAFETY: the text is a constant of the library.
        let text = unsafe { (self.describe)(code) };
        if text.is_null() {
            return format!("code {code}");
        }
        // SAFETY: the text ends in a zero.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }
}

fn function<T: Copy>(
    symbols: &libloading::Library,
    name: &'static CStr,
) -> Result<T, &'static str> {
    // SAFETY: the function with this name has this type in OTF2's headers.
    let found = unsafe { symbols.get::<T>(name.to_bytes_with_nul()) };
    found
        .map(|function| *function)
        .map_err(|_| name.to_str().unwrap_or("a function"))
}

/// The library, which is loaded once.
pub(crate) fn library() -> Result<&'static Library, Otf2Error> {
    static LIBRARY: OnceLock<Option<Result<Library, &'static str>>> = OnceLock::new();
    let found = LIBRARY.get_or_init(|| {
        // SAFETY: the effects of loading the library are only known from its documentation.
        let symbols = NAMES
            .into_iter()
            .find_map(|name| unsafe { libloading::Library::new(name) }.ok())?;
        let library = Library::load(symbols);
        if let Ok(library) = &library {
            // SAFETY: the function exists as long as the program.
            unsafe { (library.on_error)(quiet as *const () as Callback, std::ptr::null_mut()) };
        }
        Some(library)
    });
    match found {
        None => Err(Otf2Error::NoLibrary),
        Some(Err(name)) => Err(Otf2Error::OldLibrary(name)),
        Some(Ok(library)) => Ok(library),
    }
}

/// Suppresses the library's own messages. This is safe because every result code is checked.
extern "C" fn quiet(
    _data: *mut c_void,
    _file: *const c_char,
    _line: u64,
    _function: *const c_char,
    code: Code,
    _format: *const c_char,
    _arguments: *mut c_void,
) -> Code {
    code
}

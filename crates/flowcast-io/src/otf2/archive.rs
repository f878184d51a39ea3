//! Open OTF2 archives: reads their definitions and events with functions of the OTF2 library.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use flowcast::formats::otf2::{Definitions, Events};

use super::{
    Otf2Error, anchor,
    callbacks::{DEFINITIONS, EVENTS},
    library::{Code, Handle, Library},
};

/// An open archive, with the library that reads it.
pub(crate) struct Archive<'a> {
    library: &'static Library,
    reader: Handle,
    path: &'a Path,
}

impl Drop for Archive<'_> {
    fn drop(&mut self) {
        // SAFETY: the reader is open.
        unsafe { (self.library.close)(self.reader) };
    }
}

impl<'a> Archive<'a> {
    /// Opens the archive of an anchor file.
    pub(crate) fn open(
        library: &'static Library,
        path: &'a Path,
    ) -> Result<Archive<'a>, Otf2Error> {
        let fault = |problem: &str| Otf2Error::Archive {
            path: path.to_owned(),
            step: "opening the anchor file",
            problem: problem.to_owned(),
        };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| fault("the name contains a zero byte"))?;
        let anchor = std::fs::read(path).map_err(|error| fault(&error.to_string()))?;
        if !anchor::has_its_properties(&anchor) {
            return Err(fault("it contains fewer properties than it declares"));
        }
        // SAFETY: the name ends in a zero.
        let reader = unsafe { (library.open)(name.as_ptr()) };
        if reader.is_null() {
            return Err(fault("the library gives no reason"));
        }
        let archive = Archive {
            library,
            reader,
            path,
        };
        // SAFETY: the reader is open.
        archive.check("preparing", unsafe { (library.set_serial)(reader) })?;
        Ok(archive)
    }

    fn fault(&self, step: &'static str, problem: String) -> Otf2Error {
        Otf2Error::Archive {
            path: self.path.to_owned(),
            step,
            problem,
        }
    }

    fn check(&self, step: &'static str, code: Code) -> Result<(), Otf2Error> {
        if code == 0 {
            Ok(())
        } else {
            Err(self.fault(step, self.library.problem(code)))
        }
    }

    fn creator(&self) -> String {
        let mut text: *mut c_char = std::ptr::null_mut();
        // SAFETY: the reader is open; the text is a small copy that is owned by this process and not freed.
        let code = unsafe { (self.library.creator)(self.reader, &mut text) };
        if code != 0 || text.is_null() {
            return String::new();
        }
        // SAFETY: the text ends in a zero.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }

    /// All definitions.
    pub(crate) fn definitions(&self) -> Result<Definitions, Otf2Error> {
        let library = self.library;
        let mut definitions = Definitions::by(self.creator());
        let mut count = 0;
        // SAFETY: handles come from the library and are used while the reader is open; the definitions outlive the call.
        let code = unsafe {
            let reader = (library.global_definitions)(self.reader);
            if reader.is_null() {
                return Err(self.fault(
                    "opening the definitions",
                    "the library gives no reason".to_owned(),
                ));
            }
            let callbacks = (library.definition_callbacks)();
            for (name, callback) in DEFINITIONS {
                if let Some(set) = library.setter(name) {
                    set(callbacks, callback());
                }
            }
            let data: *mut Definitions = &mut definitions;
            let code = (library.register_definitions)(
                self.reader,
                reader,
                callbacks,
                data.cast::<c_void>(),
            );
            (library.free_definition_callbacks)(callbacks);
            let code = if code == 0 {
                (library.read_definitions)(self.reader, reader, &mut count)
            } else {
                code
            };
            (library.close_definitions)(self.reader, reader);
            code
        };
        self.check("reading the definitions", code)?;
        Ok(definitions)
    }

    /// Reads all events of the locations of ranks and of other threads, one location after the other.
    pub(crate) fn events(
        &self,
        definitions: &Definitions,
        events: &mut Events<'_>,
    ) -> Result<(), Otf2Error> {
        let mut locations = definitions.ranks();
        locations.extend(definitions.threads());
        locations.sort_unstable();
        locations.dedup();
        let readers = self.event_readers(&locations)?;
        for reader in readers {
            self.read_location(reader, events)?;
        }
        // SAFETY: no event reader is open.
        unsafe { (self.library.close_event_files)(self.reader) };
        Ok(())
    }

    /// Opens the events of all locations, after the local definitions of these locations, which determine the meaning of
    /// numbers in the events.
    fn event_readers(&self, locations: &[u64]) -> Result<Vec<Handle>, Otf2Error> {
        let library = self.library;
        let mut readers = Vec::with_capacity(locations.len());
        // SAFETY: handles come from the library and are used while the reader is open.
        unsafe {
            for location in locations {
                self.check(
                    "selecting a location",
                    (library.select)(self.reader, *location),
                )?;
            }
            let has_definitions = (library.open_definition_files)(self.reader) == 0;
            self.check(
                "opening the events",
                (library.open_event_files)(self.reader),
            )?;
            for location in locations {
                let definitions = if has_definitions {
                    (library.local_definitions)(self.reader, *location)
                } else {
                    std::ptr::null_mut()
                };
                if !definitions.is_null() {
                    let mut count = 0;
                    let code =
                        (library.read_local_definitions)(self.reader, definitions, &mut count);
                    (library.close_local_definitions)(self.reader, definitions);
                    self.check("reading the definitions of a location", code)?;
                }
                let events = (library.local_events)(self.reader, *location);
                if events.is_null() {
                    return Err(self.fault(
                        "opening the events of a location",
                        format!("location {location}"),
                    ));
                }
                readers.push(events);
            }
            if has_definitions {
                (library.close_definition_files)(self.reader);
            }
        }
        Ok(readers)
    }

    fn read_location(&self, reader: Handle, events: &mut Events<'_>) -> Result<(), Otf2Error> {
        let library = self.library;
        let mut count = 0;
        // SAFETY: handles come from the library and are used while the reader is open; the events outlive the call.
        let code = unsafe {
            let callbacks = (library.event_callbacks)();
            for (name, callback) in EVENTS {
                if let Some(set) = library.setter(name) {
                    set(callbacks, callback());
                }
            }
            let data: *mut Events<'_> = events;
            let code =
                (library.register_events)(self.reader, reader, callbacks, data.cast::<c_void>());
            (library.free_event_callbacks)(callbacks);
            let code = if code == 0 {
                (library.read_local_events)(self.reader, reader, &mut count)
            } else {
                code
            };
            (library.close_local_events)(self.reader, reader);
            code
        };
        self.check("reading the events of a location", code)
    }
}

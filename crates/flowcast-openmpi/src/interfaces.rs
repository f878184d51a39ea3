//! What the networks are called: the interface of a TCP BTL, `eth1`, or `eth1:1` for a second link over it.
//!
//! The BTL keeps its interface in a private struct. But it lets users set `btl_tcp_bandwidth_eth1`, and the variable
//! stored there lies in the module: the interface whose variable is this module's is the one.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_int, c_void},
    ptr,
};

use crate::{
    bindings::{BtlModule, Component},
    library::OpenMpiLibrary,
};

/// Open MPI makes this many links of an interface at most before names are given up.
const MOST_LINKS: u32 = 16;

/// A name for each module, all different.
pub(crate) fn names(library: &OpenMpiLibrary, modules: &[*mut BtlModule]) -> Vec<String> {
    let interfaces = interfaces();
    let mut unnamed: BTreeMap<String, u32> = BTreeMap::new();
    modules
        .iter()
        .map(|module: &*mut BtlModule| {
            interface_of(library, *module, &interfaces).unwrap_or_else(|| {
                let component = component_name(*module);
                let number = unnamed.entry(component.clone()).or_default();
                *number += 1;
                format!("{component}.{}", *number - 1)
            })
        })
        .collect()
}

/// `tcp`, `openib`, ...
// Modules come from the library alone, which keeps them until it ends.
#[allow(clippy::not_unsafe_ptr_arg_deref)]
pub(crate) fn component_name(module: *mut BtlModule) -> String {
    // SAFETY: a module that its BTL has initialised; its component begins with the common part.
    unsafe { name_in((*module).btl_component) }
}

/// # Safety
/// `component` is null or a component.
unsafe fn name_in(component: *const Component) -> String {
    if component.is_null() {
        return String::new();
    }
    // SAFETY: a field of a component, ended by a zero.
    unsafe {
        CStr::from_ptr((*component).mca_component_name.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

fn interface_of(
    library: &OpenMpiLibrary,
    module: *mut BtlModule,
    interfaces: &[String],
) -> Option<String> {
    let component = CString::new(component_name(module)).ok()?;
    // SAFETY: an address within a module.
    let place: *const c_void = unsafe { (&raw const (*module).btl_bandwidth).cast() };
    let names = interfaces.iter().flat_map(|name| {
        std::iter::once(name.clone())
            .chain((1..MOST_LINKS).map(move |link| format!("{name}:{link}")))
    });
    // Every link registers the plain name as well, and the last one has it: the numbered name of link 0 tells them apart.
    let is_at_place =
        |name: &str| variable_is_at(library, &component, &format!("bandwidth_{name}"), place);
    names.into_iter().find(|name| {
        if name.contains(':') {
            is_at_place(name)
        } else {
            is_at_place(&format!("{name}:0")) || is_at_place(name)
        }
    })
}

fn variable_is_at(
    library: &OpenMpiLibrary,
    component: &CStr,
    variable: &str,
    place: *const c_void,
) -> bool {
    let Ok(variable) = CString::new(variable) else {
        return false;
    };
    let mut value: *const c_void = ptr::null();
    // SAFETY: C strings; the value is a pointer to the variable's storage.
    unsafe {
        let index = (library.variable_find)(
            c"opal".as_ptr(),
            c"btl".as_ptr(),
            component.as_ptr(),
            variable.as_ptr(),
        );
        index >= 0
            && (library.variable_value)(
                index,
                &raw mut value,
                ptr::null_mut::<c_int>(),
                ptr::null_mut(),
            ) == 0
            && value == place
    }
}

fn interfaces() -> Vec<String> {
    // SAFETY: the list ends with an entry of index 0 and is freed once.
    unsafe {
        let list = libc::if_nameindex();
        let mut names = Vec::new();
        let mut entry = list;
        while !entry.is_null() && (*entry).if_index != 0 {
            names.push(
                CStr::from_ptr((*entry).if_name)
                    .to_string_lossy()
                    .into_owned(),
            );
            entry = entry.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_loopback_interface() {
        assert!(interfaces().iter().any(|name| name == "lo"));
    }
}

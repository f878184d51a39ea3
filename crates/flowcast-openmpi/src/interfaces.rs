//! Names of the networks: the interface of a TCP BTL such as `eth1`, or `eth1:1` for a second link over it.
//!
//! The BTL keeps its interface in a private struct. But users can set `btl_tcp_bandwidth_eth1`, and the storage of that
//! variable lies in the module. The module therefore belongs to the interface whose variable is stored in it.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_int, c_void},
    ptr,
};

use crate::{
    bindings::{BtlModule, Component},
    connections::interface_addresses,
    library::OpenMpiLibrary,
};

/// Largest number of links per interface for which names are tried.
const MOST_LINKS: u32 = 16;

/// Returns a name for each module, all different.
pub(crate) fn names(library: &OpenMpiLibrary, modules: &[*mut BtlModule]) -> Vec<String> {
    let addresses = interface_addresses();
    let interfaces: Vec<String> = addresses.into_iter().map(|(name, _)| name).collect();
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

/// Name of the module's component, such as `tcp` or `openib`.
// Modules come from the library alone, which keeps them until it ends.
#[allow(clippy::not_unsafe_ptr_arg_deref)]
pub(crate) fn component_name(module: *mut BtlModule) -> String {
    // SAFETY: a module that its BTL has initialised; its component begins with the common part.
    unsafe { name_in((*module).btl_component) }
}

/// # Safety
/// `component` is null or points to a component.
unsafe fn name_in(component: *const Component) -> String {
    if component.is_null() {
        return String::new();
    }
    // SAFETY: the name is a field of a component and ends with a zero.
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
    // Every link also registers the plain name, and the last one owns it. The numbered name of link 0 distinguishes them.
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

//! Structs of Open MPI that the component uses, written by hand from the headers of 4.1.4 and 5.0.7 (`libopenmpi-dev`).
//!
//! Their fields have the same offsets in both versions; `series` has the differences. Fields that the component does not use
//! are omitted at the end of a struct that Open MPI allocates. Elsewhere padding replaces them if the size matters.
//! `tests/it/layout.rs` compiles a C program against the installed headers and compares the offset of each field used here.
//! The component is not linked to Open MPI: see `library`.

#![expect(missing_docs, reason = "the names are Open MPI's")]

use std::ffi::{c_char, c_int, c_void};

/// `OPAL_SUCCESS`.
pub const SUCCESS: c_int = 0;
/// `OPAL_ERR_RESOURCE_BUSY`.
pub const ERR_RESOURCE_BUSY: c_int = -4;
/// `OPAL_ERR_OUT_OF_RESOURCE`.
pub const ERR_OUT_OF_RESOURCE: c_int = -2;

/// `MCA_BTL_DES_FLAGS_PRIORITY`: ob1 sets it on all but the fragments of long messages.
pub const DES_PRIORITY: u32 = 0x01;
/// `MCA_BTL_DES_FLAGS_BTL_OWNERSHIP`: the BTL frees the descriptor.
pub const DES_BTL_OWNERSHIP: u32 = 0x02;
/// `MCA_BTL_DES_SEND_ALWAYS_CALLBACK`.
pub const DES_ALWAYS_CALLBACK: u32 = 0x04;
/// `MCA_BTL_DES_FLAGS_SIGNAL`.
pub const DES_SIGNAL: u32 = 0x40;
/// Bits of a tag that select the layer which receives it.
pub const TAG_LAYER: u8 = 0xE0;
/// `MCA_BTL_TAG_PML`: the layer ob1.
pub const TAG_PML: u8 = 0x40;
/// `MCA_PML_OB1_HDR_TYPE_MATCH`: a message that is sent whole.
pub const TAG_MATCH: u8 = 0x41;
/// `MCA_PML_OB1_HDR_TYPE_RNDV`: the start of a long message.
pub const TAG_RNDV: u8 = 0x42;
/// `MCA_PML_OB1_HDR_TYPE_FIN`: the data written into the receiver's memory are complete.
pub const TAG_FIN: u8 = 0x49;
/// `MCA_PML_OB1_HDR_TYPE_CID` of 5.0: the start of a message whose receiver has not sent its number of the communicator yet.
pub const TAG_CID: u8 = 0x4A;
/// `MCA_BTL_NO_ORDER`.
pub const NO_ORDER: u8 = 255;
/// Entries of `mca_btl_base_active_message_trigger` (`MCA_BTL_TAG_MAX`).
pub const TAG_MAX: usize = 255;

/// `OMPI_PROC_ENDPOINT_TAG_BML`.
pub const PROC_ENDPOINT_TAG_BML: usize = 0;
/// `OMPI_PROC_ENDPOINT_TAG_MAX`.
pub const PROC_ENDPOINT_TAG_MAX: usize = 4;

/// `OPAL_PROC_ON_HOST`, in `proc_flags`: the process is on this host.
pub const PROC_ON_HOST: u16 = 0x4;
/// `MCA_BASE_VAR_TYPE_INT`.
pub const VAR_TYPE_INT: c_int = 0;
/// `MCA_BASE_VAR_TYPE_STRING`.
pub const VAR_TYPE_STRING: c_int = 5;
/// `OPAL_INFO_LVL_3`.
pub const INFO_LEVEL_3: c_int = 2;
/// `MCA_BASE_VAR_SCOPE_READONLY`.
pub const VAR_SCOPE_READONLY: c_int = 1;

/// `mca_base_component_2_1_0_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Component {
    pub mca_major_version: c_int,
    pub mca_minor_version: c_int,
    pub mca_release_version: c_int,
    pub mca_project_name: [c_char; 16],
    pub mca_project_major_version: c_int,
    pub mca_project_minor_version: c_int,
    pub mca_project_release_version: c_int,
    pub mca_type_name: [c_char; 32],
    pub mca_type_major_version: c_int,
    pub mca_type_minor_version: c_int,
    pub mca_type_release_version: c_int,
    pub mca_component_name: [c_char; 64],
    pub mca_component_major_version: c_int,
    pub mca_component_minor_version: c_int,
    pub mca_component_release_version: c_int,
    pub mca_open_component: Option<unsafe extern "C" fn() -> c_int>,
    pub mca_close_component: Option<unsafe extern "C" fn() -> c_int>,
    pub mca_query_component: Option<unsafe extern "C" fn(*mut *mut c_void, *mut c_int) -> c_int>,
    pub mca_register_component_params: Option<unsafe extern "C" fn() -> c_int>,
    pub mca_component_flags: i32,
    pub reserved: [c_char; 28],
}

/// `mca_base_component_data_2_0_0_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ComponentData {
    pub param_field: u32,
    pub reserved: [c_char; 32],
}

/// `mca_bml_base_component_init_fn_t`: priority, progress threads, MPI threads.
pub type BmlInit = unsafe extern "C" fn(*mut c_int, bool, bool) -> *mut BmlModule;

/// `mca_bml_base_component_2_0_0_t`.
#[repr(C)]
#[derive(Debug)]
pub struct BmlComponent {
    pub bml_version: Component,
    pub bml_data: ComponentData,
    pub bml_init: Option<BmlInit>,
}

/// `mca_bml_base_module_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BmlModule {
    pub bml_component: *const BmlComponent,
    pub bml_add_proc: Option<unsafe extern "C" fn(*mut OmpiProc) -> c_int>,
    pub bml_add_procs:
        Option<unsafe extern "C" fn(usize, *mut *mut OmpiProc, *mut c_void) -> c_int>,
    pub bml_del_procs: Option<unsafe extern "C" fn(usize, *mut *mut OmpiProc) -> c_int>,
    pub bml_add_btl: *const c_void,
    pub bml_del_btl: Option<unsafe extern "C" fn(*mut BtlModule) -> c_int>,
    pub bml_del_proc_btl: Option<unsafe extern "C" fn(*mut OmpiProc, *mut BtlModule) -> c_int>,
    pub bml_register: *const c_void,
    pub bml_register_error: Option<unsafe extern "C" fn(Option<ErrorCallback>) -> c_int>,
    pub bml_finalize: Option<unsafe extern "C" fn() -> c_int>,
    /// Only in 4.1. In 5.0 the module ends before this field; the module of `r2` has private fields there.
    pub bml_ft_event: *const c_void,
}

// SAFETY: a table of functions that any thread may call when ob1 would.
unsafe impl std::marker::Send for BmlModule {}
// SAFETY: the same as above.
unsafe impl Sync for BmlModule {}

/// `mca_btl_base_module_error_cb_fn_t`.
pub type ErrorCallback = unsafe extern "C" fn(*mut BtlModule, i32, *mut OpalProc, *mut c_char);
/// `mca_btl_base_completion_fn_t`.
pub type Completion =
    unsafe extern "C-unwind" fn(*mut BtlModule, *mut Endpoint, *mut Descriptor, c_int);
/// `mca_btl_base_module_alloc_fn_t`.
pub type Alloc =
    unsafe extern "C-unwind" fn(*mut BtlModule, *mut Endpoint, u8, usize, u32) -> *mut Descriptor;
/// `mca_btl_base_module_free_fn_t`.
pub type Free = unsafe extern "C-unwind" fn(*mut BtlModule, *mut Descriptor) -> c_int;
/// `mca_btl_base_module_prepare_fn_t`; we never read the convertor.
pub type PrepareSource = unsafe extern "C-unwind" fn(
    *mut BtlModule,
    *mut Endpoint,
    *mut c_void,
    u8,
    usize,
    *mut usize,
    u32,
) -> *mut Descriptor;
/// `mca_btl_base_module_send_fn_t`.
pub type Send =
    unsafe extern "C-unwind" fn(*mut BtlModule, *mut Endpoint, *mut Descriptor, u8) -> c_int;
/// `mca_btl_base_module_sendi_fn_t`.
pub type SendImmediate = unsafe extern "C-unwind" fn(
    *mut BtlModule,
    *mut Endpoint,
    *mut c_void,
    *mut c_void,
    usize,
    usize,
    u8,
    u32,
    u8,
    *mut *mut Descriptor,
) -> c_int;
/// `mca_btl_base_module_put_fn_t`.
pub type Put = unsafe extern "C-unwind" fn(
    *mut BtlModule,
    *mut Endpoint,
    *mut c_void,
    u64,
    *mut c_void,
    *mut c_void,
    usize,
    c_int,
    c_int,
    Option<RdmaCompletion>,
    *mut c_void,
    *mut c_void,
) -> c_int;
/// `mca_btl_base_rdma_completion_fn_t`: module, endpoint, local address, local handle, context, data, status.
pub type RdmaCompletion = unsafe extern "C-unwind" fn(
    *mut BtlModule,
    *mut Endpoint,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    c_int,
);

/// `mca_btl_base_module_t` up to `btl_put`; the BTL allocates it.
#[repr(C)]
#[derive(Debug)]
pub struct BtlModule {
    /// A `mca_btl_base_component_t`, which begins with a [`Component`].
    pub btl_component: *const Component,
    pub btl_eager_limit: usize,
    pub btl_rndv_eager_limit: usize,
    pub btl_max_send_size: usize,
    pub btl_rdma_pipeline_send_length: usize,
    pub btl_rdma_pipeline_frag_size: usize,
    pub btl_min_rdma_pipeline_size: usize,
    pub btl_exclusivity: u32,
    pub btl_latency: u32,
    pub btl_bandwidth: u32,
    pub btl_flags: u32,
    pub btl_atomic_flags: u32,
    pub btl_registration_handle_size: usize,
    pub btl_get_limit: usize,
    pub btl_get_alignment: usize,
    pub btl_put_limit: usize,
    pub btl_put_alignment: usize,
    pub btl_get_local_registration_threshold: usize,
    pub btl_put_local_registration_threshold: usize,
    pub btl_add_procs: *const c_void,
    pub btl_del_procs: *const c_void,
    pub btl_register: *const c_void,
    pub btl_finalize: *const c_void,
    pub btl_alloc: Option<Alloc>,
    pub btl_free: Option<Free>,
    pub btl_prepare_src: Option<PrepareSource>,
    pub btl_send: Option<Send>,
    pub btl_sendi: Option<SendImmediate>,
    pub btl_put: Option<Put>,
}

/// `mca_btl_base_endpoint_t`: its content differs between BTLs; only its address is used.
#[repr(C)]
#[derive(Debug)]
pub struct Endpoint {
    opaque: [u8; 0],
}

/// `opal_object_t` of a library built without `--enable-debug`.
#[repr(C)]
#[derive(Debug)]
pub struct OpalObject {
    pub obj_class: *mut c_void,
    pub obj_reference_count: i32,
}

/// `opal_list_item_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ListItem {
    pub super_: OpalObject,
    pub opal_list_next: *mut ListItem,
    pub opal_list_prev: *mut ListItem,
    pub item_free: i32,
}

/// `opal_list_t`.
#[repr(C)]
#[derive(Debug)]
pub struct OpalList {
    pub super_: OpalObject,
    pub opal_list_sentinel: ListItem,
    pub opal_list_length: usize,
}

/// `mca_base_framework_t` up to the user's selection of components.
#[repr(C)]
#[derive(Debug)]
pub struct Framework {
    front: [usize; 8],
    pub framework_selection: *const c_char,
}

/// `opal_class_t`.
#[repr(C)]
#[derive(Debug)]
pub struct OpalClass {
    front: [usize; 7],
    pub cls_sizeof: usize,
}

/// `mca_btl_base_selected_module_t`: an item of `mca_btl_base_modules_initialized`.
#[repr(C)]
#[derive(Debug)]
pub struct SelectedBtl {
    pub super_: ListItem,
    pub btl_component: *mut c_void,
    pub btl_module: *mut BtlModule,
}

/// `mca_btl_base_segment_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BtlSegment {
    pub seg_addr: *mut u8,
    pub seg_len: u64,
}

/// `mca_btl_base_descriptor_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    /// `opal_free_list_item_t`.
    pub super_: ListItem,
    pub registration: *mut c_void,
    pub ptr: *mut c_void,
    pub des_segments: *mut BtlSegment,
    pub des_segment_count: usize,
    pub des_cbfunc: Option<Completion>,
    pub des_cbdata: *mut c_void,
    pub des_context: *mut c_void,
    pub des_flags: u32,
    pub order: u8,
}

/// `mca_btl_base_receive_descriptor_t` of 5.0.
#[repr(C)]
#[derive(Debug)]
pub struct ReceiveDescriptor {
    pub endpoint: *mut Endpoint,
    pub des_segments: *const BtlSegment,
    pub des_segment_count: usize,
    pub tag: u8,
    pub cbdata: *mut c_void,
}

/// `mca_btl_active_message_callback_t`: an entry of `mca_btl_base_active_message_trigger`.
#[repr(C)]
#[derive(Debug)]
pub struct Trigger {
    /// `mca_btl_base_module_recv_cb_fn_t`, whose arguments depend on the series.
    pub cbfunc: *const c_void,
    pub cbdata: *mut c_void,
}

/// `opal_process_name_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessName {
    pub jobid: u32,
    pub vpid: u32,
}

/// `opal_proc_t`.
#[repr(C)]
#[derive(Debug)]
pub struct OpalProc {
    pub super_: ListItem,
    pub proc_name: ProcessName,
    pub proc_arch: u32,
    pub proc_flags: u16,
    pub proc_convertor: *mut c_void,
    /// `proc_hostname` in 4.1. In 5.0 `proc_active` of [`OmpiProc`] and its padding.
    pub end: usize,
}

/// `ompi_proc_t` up to its endpoints.
#[repr(C)]
#[derive(Debug)]
pub struct OmpiProc {
    pub super_: OpalProc,
    pub proc_endpoints: [*mut c_void; PROC_ENDPOINT_TAG_MAX],
}

/// `mca_bml_base_btl_t`.
#[repr(C)]
#[derive(Debug)]
pub struct BmlBtl {
    pub btl_flags: u32,
    pub btl_weight: f32,
    pub btl: *mut BtlModule,
    pub btl_endpoint: *mut Endpoint,
}

/// `mca_bml_base_btl_array_t`.
#[repr(C)]
#[derive(Debug)]
pub struct BtlArray {
    pub super_: OpalObject,
    pub arr_size: usize,
    pub arr_reserve: usize,
    pub arr_index: usize,
    pub bml_btls: *mut BmlBtl,
}

/// `mca_bml_base_endpoint_t`: the networks that reach a process.
#[repr(C)]
#[derive(Debug)]
pub struct BmlEndpoint {
    pub super_: ListItem,
    pub btl_proc: *mut OmpiProc,
    pub btl_pipeline_send_length: usize,
    pub btl_send_limit: usize,
    pub btl_max_send_size: usize,
    pub btl_eager: BtlArray,
    pub btl_send: BtlArray,
    pub btl_rdma: BtlArray,
    pub btl_rdma_index: usize,
    pub btl_flags_or: u32,
}

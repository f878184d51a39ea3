//! Differences between the series of Open MPI that the component supports.
//!
//! All fields in use have the same offsets in every series of [`SERIES`] (`bindings`). The series differ as follows:
//!
//! | | 4.1 | 5.0 |
//! |---|---|---|
//! | receiver of a message | called with tag, descriptor and data | called with a struct that contains them |
//! | `opal_proc_t` | ends with the host name | one word shorter |
//! | `r2` | a file beside the other components | part of `libmpi` |
//! | folder of a job on a node | made by ORTE | made by PRRTE |
//! | one-sided messages over TCP | sent by ob1 | sent by the BTL base, on tags of its own |
//! | waiting for sockets | `poll` | epoll |
//!
//! `library` finds `r2` in both places. `hooks` leave the tags of the BTL base to Open MPI. Under epoll, `polling` has no
//! work.

use std::{
    ffi::{CStr, c_void},
    mem, ptr, slice,
};

use crate::{
    NoPanic, Refusal,
    bindings::{BmlEndpoint, BtlModule, BtlSegment, Descriptor, ReceiveDescriptor, Trigger},
};

/// A series of Open MPI whose layout is the layout of the bindings.
#[derive(Debug)]
pub struct OpenMpiSeries {
    /// Beginning of its versions.
    pub prefix: &'static str,
    /// Size of `opal_proc_t`, in bytes.
    pub process_bytes: usize,
    form: ReceiverForm,
}

/// Arguments of a receiver of messages.
#[derive(Debug, Clone, Copy)]
enum ReceiverForm {
    Separate,
    Struct,
}

/// The supported series.
pub static SERIES: [OpenMpiSeries; 2] = [
    OpenMpiSeries {
        prefix: "4.1.",
        process_bytes: 72,
        form: ReceiverForm::Separate,
    },
    OpenMpiSeries {
        prefix: "5.0.",
        process_bytes: 64,
        form: ReceiverForm::Struct,
    },
];

/// Variables with the folder of an `mpirun` on a node and with the name of the job.
pub(crate) const JOB_FOLDERS: [(&str, &str); 2] = [
    (
        "OMPI_MCA_orte_jobfam_session_dir",
        "OMPI_MCA_ess_base_jobid",
    ),
    ("PMIX_SERVER_TMPDIR", "PMIX_NAMESPACE"),
];

/// Receives messages on a tag of our own: the network by which a message arrived, and its content.
pub(crate) type MessageHandler = fn(*mut BtlModule, &[u8]);

/// `mca_btl_base_module_recv_cb_fn_t` of 4.1.
type SeparateReceiver =
    unsafe extern "C-unwind" fn(*mut BtlModule, u8, *mut Descriptor, *mut c_void);
/// `mca_btl_base_module_recv_cb_fn_t` of 5.0.
type StructReceiver = unsafe extern "C-unwind" fn(*mut BtlModule, *const ReceiveDescriptor);

impl OpenMpiSeries {
    /// Returns the series of a version.
    ///
    /// # Errors
    /// A series that is not supported.
    pub(crate) fn find(version: &str) -> Result<&'static OpenMpiSeries, Refusal> {
        SERIES
            .iter()
            .find(|series| version.starts_with(series.prefix))
            .ok_or_else(|| Refusal::Version(version.to_owned()))
    }

    /// Classes of the library and the sizes of their objects, in bytes. Other sizes mean another layout.
    pub(crate) fn classes(&self) -> [(&'static CStr, usize); 3] {
        [
            (c"opal_proc_t_class", self.process_bytes),
            (c"mca_btl_base_descriptor_t_class", size_of::<Descriptor>()),
            (c"mca_bml_base_endpoint_t_class", size_of::<BmlEndpoint>()),
        ]
    }

    /// Creates the entry of a tag whose messages `handler` receives.
    pub(crate) fn trigger(&self, handler: MessageHandler) -> Trigger {
        Trigger {
            cbfunc: match self.form {
                ReceiverForm::Separate => receive_separate as *const c_void,
                ReceiverForm::Struct => receive_struct as *const c_void,
            },
            cbdata: handler as *mut c_void,
        }
    }

    /// Passes a message to the receiver of a tag, as if a network had delivered it.
    ///
    /// # Safety
    /// The trigger belongs to the tag, and `segment` to the content of a message for it.
    pub(crate) unsafe fn deliver(
        &self,
        trigger: &Trigger,
        by: *mut BtlModule,
        tag: u8,
        segment: &mut BtlSegment,
    ) {
        if trigger.cbfunc.is_null() {
            return;
        }
        // SAFETY: guaranteed by the caller; the receiver has the form of the series. All zeros are a valid descriptor, of
        // which receivers read only the segments. ob1 uses no endpoint.
        unsafe {
            match self.form {
                ReceiverForm::Separate => {
                    let mut descriptor: Descriptor = mem::zeroed();
                    descriptor.des_segments = segment;
                    descriptor.des_segment_count = 1;
                    let receive: SeparateReceiver = mem::transmute(trigger.cbfunc);
                    receive(by, tag, &raw mut descriptor, trigger.cbdata);
                }
                ReceiverForm::Struct => {
                    let message = ReceiveDescriptor {
                        endpoint: ptr::null_mut(),
                        des_segments: segment,
                        des_segment_count: 1,
                        tag,
                        cbdata: trigger.cbdata,
                    };
                    let receive: StructReceiver = mem::transmute(trigger.cbfunc);
                    receive(by, &raw const message);
                }
            }
        }
    }
}

unsafe extern "C-unwind" fn receive_separate(
    by: *mut BtlModule,
    _: u8,
    descriptor: *mut Descriptor,
    handler: *mut c_void,
) {
    // SAFETY: a BTL's descriptor for one of our tags.
    unsafe { handle(handler, by, (*descriptor).des_segments) };
}

unsafe extern "C-unwind" fn receive_struct(by: *mut BtlModule, message: *const ReceiveDescriptor) {
    // SAFETY: a BTL's message for one of our tags.
    unsafe { handle((*message).cbdata, by, (*message).des_segments) };
}

/// # Safety
/// `handler` is a [`MessageHandler`]; the first segment contains the whole message, as in all messages with our tags.
unsafe fn handle(handler: *mut c_void, by: *mut BtlModule, segments: *const BtlSegment) {
    let _no_panic = NoPanic;
    // SAFETY: guaranteed by the caller; the content stays valid until the handler returns.
    unsafe {
        let handler: MessageHandler = mem::transmute(handler);
        let segment = &*segments;
        let content = slice::from_raw_parts(segment.seg_addr, segment.seg_len as usize);
        handler(by, content);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static RECEIVED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    fn note(_: *mut BtlModule, content: &[u8]) {
        let content = String::from_utf8_lossy(content).into_owned();
        RECEIVED.lock().unwrap().push(content);
    }

    #[test]
    fn only_a_series_of_the_table_is_accepted() {
        for (version, prefix) in [("4.1.4", "4.1."), ("4.1.8", "4.1."), ("5.0.7", "5.0.")] {
            assert_eq!(OpenMpiSeries::find(version).unwrap().prefix, prefix);
        }
        for other in ["4.0.7", "4.10.1", "5.1.0a1", "6.0.0", "", "MPICH"] {
            let refusal = OpenMpiSeries::find(other).unwrap_err().to_string();
            assert!(refusal.contains(other), "{other}");
        }
    }

    #[test]
    fn a_delivered_message_reaches_its_handler_in_every_series() {
        for series in &SERIES {
            let mut content = series.prefix.as_bytes().to_vec();
            let mut segment = BtlSegment {
                seg_addr: content.as_mut_ptr(),
                seg_len: content.len() as u64,
            };
            // SAFETY: a segment with its bytes.
            unsafe { series.deliver(&series.trigger(note), ptr::null_mut(), 1, &mut segment) };
        }
        assert_eq!(*RECEIVED.lock().unwrap(), ["4.1.", "5.0."]);
    }
}

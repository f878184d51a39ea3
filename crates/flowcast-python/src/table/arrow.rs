//! Parts of Arrow's C data and stream interfaces that tables of numbers and texts need
//! (<https://arrow.apache.org/docs/format/CStreamInterface.html>). Structures share the buffers of the table and keep
//! it alive.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr::{null, null_mut},
    sync::Arc,
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyCapsule};

use super::{Columns, Values};

/// `ArrowSchema` of the C data interface: a type with a name.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    children_len: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private: *mut c_void,
}

/// `ArrowArray` of the C data interface: buffers of a column, or columns of a table.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    buffers_len: i64,
    children_len: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private: *mut c_void,
}

/// `ArrowArrayStream` of the C stream interface.
#[repr(C)]
struct ArrowStream {
    get_schema: unsafe extern "C" fn(*mut ArrowStream, *mut Schema) -> c_int,
    get_next: unsafe extern "C" fn(*mut ArrowStream, *mut Array) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut ArrowStream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut ArrowStream)>,
    private: *mut c_void,
}

/// Data that a schema points to.
struct SchemaParts {
    format: CString,
    name: CString,
    children: Vec<*mut Schema>,
}

/// Data that an array points to.
struct ArrayParts {
    _columns: Arc<Columns>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

/// Table that the stream returns once.
struct PendingTable {
    columns: Arc<Columns>,
    is_given: bool,
}

/// Returns the table as a stream of one batch.
pub(crate) fn stream(py: Python<'_>, columns: Arc<Columns>) -> PyResult<Bound<'_, PyCapsule>> {
    let left = Box::new(PendingTable {
        columns,
        is_given: false,
    });
    let stream = ArrowStream {
        get_schema: stream_schema,
        get_next: stream_next,
        get_last_error: stream_error,
        release: Some(release_stream),
        private: Box::into_raw(left).cast(),
    };
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Returns the type of the table.
pub(crate) fn schema<'py>(py: Python<'py>, columns: &Columns) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = Schema::of_table(columns)
        .ok_or_else(|| PyValueError::new_err("found a NUL character in the name of a column"))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

// SAFETY: what the structures point to is theirs alone, or is only read.
unsafe impl Send for ArrowStream {}
// SAFETY: as above.
unsafe impl Send for Schema {}

impl Drop for ArrowStream {
    /// A consumer that takes the stream sets `release` to `None`.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the stream is whole and is not used any more.
            unsafe { release(self) }
        }
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for streams.
            unsafe { release(self) }
        }
    }
}

impl Schema {
    /// Returns `None` if a name contains a NUL character.
    fn new(format: &str, name: &str, children: Vec<Schema>) -> Option<Schema> {
        let children = children
            .into_iter()
            .map(|child| Box::into_raw(Box::new(child)))
            .collect();
        let parts = SchemaParts {
            format: CString::new(format).ok()?,
            name: CString::new(name).ok()?,
            children,
        };
        let mut parts = Box::new(parts);
        Some(Schema {
            format: parts.format.as_ptr(),
            name: parts.name.as_ptr(),
            metadata: null(),
            flags: 0,
            children_len: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_schema),
            private: Box::into_raw(parts).cast(),
        })
    }

    fn of_table(columns: &Columns) -> Option<Schema> {
        let fields = columns
            .names
            .iter()
            .zip(&columns.values)
            .map(|(name, values): (&String, &Values)| match values {
                Values::Integers(_) => Schema::new("l", name, Vec::new()),
                Values::Floats(_) => Schema::new("g", name, Vec::new()),
                Values::Texts(_) => Schema::new("u", name, Vec::new()),
            })
            .collect::<Option<Vec<_>>>()?;
        Schema::new("+s", "", fields)
    }
}

impl Array {
    fn new(columns: &Arc<Columns>, buffers: Vec<*const c_void>, children: Vec<Array>) -> Array {
        let children = children
            .into_iter()
            .map(|child| Box::into_raw(Box::new(child)))
            .collect();
        let mut parts = Box::new(ArrayParts {
            _columns: columns.clone(),
            buffers,
            children,
        });
        Array {
            length: columns.rows as i64,
            null_count: 0,
            offset: 0,
            buffers_len: parts.buffers.len() as i64,
            children_len: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_array),
            private: Box::into_raw(parts).cast(),
        }
    }

    /// The first buffer would mark missing values, but none is missing.
    fn of_table(columns: &Arc<Columns>) -> Array {
        Array::new(
            columns,
            vec![null()],
            columns
                .values
                .iter()
                .map(|values: &Values| match values {
                    Values::Integers(values) => {
                        Array::new(columns, vec![null(), values.as_ptr().cast()], Vec::new())
                    }
                    Values::Floats(values) => {
                        Array::new(columns, vec![null(), values.as_ptr().cast()], Vec::new())
                    }
                    Values::Texts(texts) => {
                        let buffers = vec![
                            null(),
                            texts.offsets.as_ptr().cast(),
                            texts.bytes.as_ptr().cast(),
                        ];
                        Array::new(columns, buffers, Vec::new())
                    }
                })
                .collect(),
        )
    }

    /// Returns the array that marks the end of a stream.
    fn end() -> Array {
        let (buffers, children) = (null_mut(), null_mut());
        let (private, dictionary) = (null_mut(), null_mut());
        Array {
            length: 0,
            null_count: 0,
            offset: 0,
            buffers_len: 0,
            children_len: 0,
            buffers,
            children,
            dictionary,
            release: None,
            private,
        }
    }
}

unsafe extern "C" fn stream_schema(stream: *mut ArrowStream, out: *mut Schema) -> c_int {
    const INVALID: c_int = 22;
    // SAFETY: the consumer hands in the stream that it was given and room for a schema.
    unsafe {
        let left = &*(*stream).private.cast::<PendingTable>();
        match Schema::of_table(&left.columns) {
            Some(schema) => out.write(schema),
            None => return INVALID,
        }
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowStream, out: *mut Array) -> c_int {
    // SAFETY: as above, with room for an array.
    unsafe {
        let left = &mut *(*stream).private.cast::<PendingTable>();
        out.write(if left.is_given {
            Array::end()
        } else {
            Array::of_table(&left.columns)
        });
        left.is_given = true;
    }
    0
}

unsafe extern "C" fn stream_error(_stream: *mut ArrowStream) -> *const c_char {
    c"found a NUL character in the name of a column".as_ptr()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowStream) {
    // SAFETY: called once for a stream whose private part was boxed here.
    unsafe {
        drop(Box::from_raw((*stream).private.cast::<PendingTable>()));
        (*stream).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: called once for a schema whose parts were boxed here. A consumer may have taken parts of the children; the
    // remaining parts are dropped with them.
    unsafe {
        let parts = Box::from_raw((*schema).private.cast::<SchemaParts>());
        parts
            .children
            .iter()
            .for_each(|child| drop(Box::from_raw(*child)));
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as for schemas.
    unsafe {
        let parts = Box::from_raw((*array).private.cast::<ArrayParts>());
        for child in &parts.children {
            let mut child = Box::from_raw(*child);
            if let Some(release) = child.release {
                release(&mut *child);
            }
        }
        (*array).release = None;
    }
}

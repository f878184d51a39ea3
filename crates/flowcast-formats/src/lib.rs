//! Traces of message-passing programs as files: readers of ten formats, writers of several formats, and generated workloads.
//!
//! [`read()`] recognises the format by content and unpacks gzip and zstd first:
//!
//! ```
//! use std::{io, sync::Arc};
//! use flowcast_formats::read;
//! use flowcast_program::ReadOptions;
//!
//! let text = "#DIMEMAS:\"ping\":1,0:2(1,1),1\nd:1:1:2:0:1\n\
//!     1:0:0:0.000001000\n2:0:0:1:-1:8:7:1:0\n\
//!     1:1:0:0.000000000\n3:1:0:0:-1:8:7:1:0\n";
//! let no_other_file = &mut |name: &str| Err(io::Error::other(format!("{name} is not needed")));
//! let trace = read("ping.dim", Arc::new(text), no_other_file, ReadOptions::default())?;
//! assert_eq!((trace.ranks(), trace.messages()), (2, 1));
//! # Ok::<(), flowcast_program::TraceError>(())
//! ```

pub mod convert;
mod lowest_free;
pub mod otf2;
pub mod read;

pub use read::{read, read_text};

//! Descriptors of Open MPI: their content, and the rail stored in their flags.

use flowcast_scheduler::RailId;

use crate::bindings::{BtlSegment, Descriptor};

const RAIL_SHIFT: u32 = 24;
const FLAGS: u32 = (1 << RAIL_SHIFT) - 1;

/// Stores the rail in a descriptor.
///
/// # Safety
/// `descriptor` was just allocated by a BTL.
#[inline]
pub(crate) unsafe fn note(descriptor: *mut Descriptor, rail: RailId) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        (*descriptor).des_flags =
            (*descriptor).des_flags & FLAGS | (u32::from(rail.0) + 1) << RAIL_SHIFT
    }
}

/// Returns the rail stored in a descriptor.
///
/// # Safety
/// `descriptor` is a descriptor.
#[inline]
pub(crate) unsafe fn noted(descriptor: *const Descriptor) -> Option<RailId> {
    // SAFETY: guaranteed by the caller.
    match unsafe { (*descriptor).des_flags } >> RAIL_SHIFT {
        0 => None,
        number => Some(RailId((number - 1) as u8)),
    }
}

/// # Safety
/// `descriptor` is a descriptor with its segments.
#[inline]
pub(crate) unsafe fn segments<'a>(descriptor: *const Descriptor) -> &'a [BtlSegment] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (first, count) = ((*descriptor).des_segments, (*descriptor).des_segment_count);
        if first.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts(first, count)
        }
    }
}

/// # Safety
/// `descriptor` is a descriptor with its segments.
#[inline]
pub(crate) unsafe fn length(descriptor: *const Descriptor) -> u64 {
    // SAFETY: guaranteed by the caller.
    let segments = unsafe { segments(descriptor) };
    segments.iter().map(|segment| segment.seg_len).sum()
}

/// Copies `length` bytes, starting at `offset`, out of the segments of a descriptor.
///
/// # Safety
/// The segments contain these bytes, and `place` has room for them.
pub(crate) unsafe fn copy_range(
    descriptor: *const Descriptor,
    mut offset: usize,
    mut length: usize,
    mut place: *mut u8,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for segment in segments(descriptor) {
            let there = segment.seg_len as usize;
            if offset >= there {
                offset -= there;
                continue;
            }
            let taken = length.min(there - offset);
            place.copy_from_nonoverlapping(segment.seg_addr.add(offset), taken);
            place = place.add(taken);
            (offset, length) = (0, length - taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::{DES_PRIORITY, DES_SIGNAL};

    fn empty() -> Descriptor {
        // SAFETY: all zeros are a valid descriptor.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn the_rail_is_noted_beside_the_flags() {
        let mut descriptor = empty();
        descriptor.des_flags = DES_PRIORITY | DES_SIGNAL;
        // SAFETY: a descriptor.
        unsafe {
            assert_eq!(noted(&raw const descriptor), None);
            note(&raw mut descriptor, RailId(15));
            assert_eq!(noted(&raw const descriptor), Some(RailId(15)));
        }
        assert_eq!(descriptor.des_flags & FLAGS, DES_PRIORITY | DES_SIGNAL);
    }

    #[test]
    fn a_range_is_copied_across_segments() {
        let (mut header, mut data) = (*b"head", *b"payload");
        let mut all = [(header.as_mut_ptr(), 4), (data.as_mut_ptr(), 7)]
            .map(|(seg_addr, seg_len)| BtlSegment { seg_addr, seg_len });
        let mut descriptor = empty();
        (descriptor.des_segments, descriptor.des_segment_count) = (all.as_mut_ptr(), 2);
        // SAFETY: two segments with their bytes.
        let range = |offset, length| unsafe {
            let mut place = vec![0; length];
            copy_range(&raw const descriptor, offset, length, place.as_mut_ptr());
            String::from_utf8(place).unwrap()
        };
        assert_eq!(range(0, 11), "headpayload");
        assert_eq!((range(2, 4), range(5, 3)), ("adpa".into(), "ayl".into()));
        // SAFETY: the same as above.
        assert_eq!(unsafe { length(&raw const descriptor) }, 11);
    }
}

//! A buffer that several threads write in disjoint parts.

use std::marker::PhantomData;

/// A mutable slice whose parts are handed to several threads.
pub(super) struct SharedMut<'a> {
    start: *mut f32,
    len: usize,
    lifetime: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is a `&mut [f32]`, which may move between threads; access goes through `part`, whose caller answers for
// disjointness.
unsafe impl Send for SharedMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedMut<'_> {}

impl<'a> SharedMut<'a> {
    pub(super) fn new(slice: &'a mut [f32]) -> SharedMut<'a> {
        SharedMut { start: slice.as_mut_ptr(), len: slice.len(), lifetime: PhantomData }
    }

    /// The part `from..from + len`, which must lie inside (checked).
    ///
    /// # Safety
    /// No two parts that are alive at a time may overlap.
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn part(&self, from: usize, len: usize) -> &mut [f32] {
        assert!(from <= self.len && len <= self.len - from, "part {from}+{len} of {}", self.len);
        // SAFETY: inside the slice by the assertion, which the slice borrowed mutably for 'a; exclusive by contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), len) }
    }
}

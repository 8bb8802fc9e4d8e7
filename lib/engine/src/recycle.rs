//! Vectors whose buffers serve again.

/// The empty vector with the buffer of another, whose items may have been of another lifetime.
///
/// The standard library collects in place where sizes are equal; `tests/allocations.rs` sees it if that ever ends.
pub(crate) fn recycle<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().filter_map(|_| None).collect()
}

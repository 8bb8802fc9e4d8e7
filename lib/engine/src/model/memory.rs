//! The allocator's habits.

/// Makes glibc keep memory that is freed, up to 62 MiB, instead of handing it back to the system at once.
///
/// The activations of a prefill are megabytes that every layer allocates and frees. By default each round goes back to the
/// system and is faulted in again page by page. glibc keeps twice the size of the largest mapped block that was freed so
/// far, counting blocks up to 32 MiB, so freeing one teaches it. Other allocators have their own rules, and lose nothing.
pub(super) fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

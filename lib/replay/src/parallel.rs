//! Independent pieces of work side by side.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// `work(0)`, `work(1)` … `work(count - 1)`, at most `jobs` at a time, in that order in the result. The first error ends it: pieces that have not begun
/// by then are left out.
pub(crate) fn in_order<T: Send, E: Send>(
    jobs: usize,
    count: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new((0..count).map(|_| None).collect::<Vec<_>>()));
    let one = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let result = work(index);
            if result.is_err() {
                next.store(count, Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
        }
    };
    match jobs.min(count) {
        0 | 1 => one(),
        jobs => std::thread::scope(|scope| {
            (0..jobs).for_each(|_| {
                scope.spawn(one);
            });
        }),
    }
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn results_keep_their_order_and_an_error_ends_it() {
        for jobs in [1, 3, 50] {
            let squares = in_order(jobs, 20, |n| Ok::<_, ()>(n * n)).expect("no errors");
            assert_eq!(squares, (0..20).map(|n| n * n).collect::<Vec<_>>());
            assert_eq!(in_order(jobs, 20, |n| if n == 7 { Err("seven") } else { Ok(n) }), Err("seven"));
        }
        assert_eq!(in_order(4, 0, |_| Err::<(), _>("never")), Ok(Vec::new()));
    }
}

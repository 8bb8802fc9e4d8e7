//! Cutting a product into tasks.

use rayon::prelude::*;
use std::ops::Range;

/// Rows of a task.
pub(super) const TASK_ROWS: usize = 96;

/// Multiplications below which threads cost more than they save.
const PARALLEL_FROM: usize = 1 << 16;

/// Runs `task(rows, panels)` over a product of `rows` rows and `panels` panels of weights, on several threads where it is
/// worth it. `panel_work` is the number of multiplications of one row with one panel. Tasks never overlap.
pub(super) fn for_each(
    rows: usize,
    panels: usize,
    panel_work: usize,
    task: impl Fn(Range<usize>, Range<usize>) + Sync,
) {
    let row_tasks = rows.div_ceil(TASK_ROWS).max(1);
    // Four tasks a thread let the threads finish together; more would only cost.
    let panel_tasks = (rayon::current_num_threads() * 4).div_ceil(row_tasks);
    let per_task = panels.div_ceil(panel_tasks).max(1);
    let panel_tasks = panels.div_ceil(per_task);
    let run = |index: usize| {
        let (row_task, panel_task) = (index % row_tasks, index / row_tasks);
        task(
            row_task * TASK_ROWS..rows.min((row_task + 1) * TASK_ROWS),
            panel_task * per_task..panels.min((panel_task + 1) * per_task),
        );
    };
    if rows * panels * panel_work < PARALLEL_FROM {
        (0..row_tasks * panel_tasks).for_each(run);
    } else {
        (0..row_tasks * panel_tasks).into_par_iter().for_each(run);
    }
}

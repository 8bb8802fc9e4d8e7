//! Routing tables: what each changed, and what it did to the hit while caches warmed again.

use cr_report::events::Plan;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout as Split, Rect};
use ratatui::text::{Line, Span};

use super::charts;
use super::look::Look;
use super::table::{Column, Layout};
use crate::figures::{count, maybe_percent, percent, seconds};
use crate::palette::Role;
use crate::state::app::{App, View};
use crate::state::live::Live;
use crate::state::series::Hits;

/// The time before and after a change over which the hit is compared, in seconds.
const AROUND_S: f64 = 10.0;

const COLUMNS: [Column; 9] = [
    Column { title: "AT", width: 8, stretch: 0, rank: 99, right: true },
    Column { title: "ADMITTED", width: 8, stretch: 0, rank: 90, right: true },
    Column { title: "MOVED", width: 7, stretch: 0, rank: 80, right: true },
    Column { title: "CHURN", width: 7, stretch: 0, rank: 85, right: true },
    Column { title: "MAX/MEAN", width: 8, stretch: 0, rank: 60, right: true },
    Column { title: "COLD", width: 8, stretch: 0, rank: 50, right: true },
    Column { title: "BEFORE", width: 6, stretch: 0, rank: 70, right: true },
    Column { title: "AFTER", width: 6, stretch: 0, rank: 71, right: true },
    Column { title: "DIP", width: 9, stretch: 0, rank: 75, right: true },
];

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, live: &Live, look: Look) {
    let rows = live.plans.len() as u16 + 2;
    let chart = area.height.saturating_sub(rows.min(area.height / 2 + 1));
    let chart = if chart < 6 { 0 } else { chart };
    let [top, bottom] = Split::vertical([Constraint::Length(chart), Constraint::Fill(1)]).areas(area);
    if chart > 0 {
        charts::draw(Rect { x: top.x + 1, width: top.width - 2, ..top }, buffer, live, look);
    }
    let area = Rect { x: bottom.x + 1, width: bottom.width - 2, ..bottom };
    if area.height < 2 {
        return;
    }
    if live.plans.is_empty() {
        let text = "no table was installed; charts mark one by ╎";
        buffer.set_line(area.x, area.y, &Line::from(look.span(Role::Dim, text)), area.width);
        return;
    }
    let about = format!("newest first; hit {AROUND_S:.0} s before, after, and the deepest second of the dip");
    buffer.set_line(area.x, area.y, &Line::from(look.span(Role::Dim, about)), area.width);
    let layout = Layout::new(&COLUMNS, area.width);
    let heading = Rect { y: area.y + 1, height: 1, ..area };
    layout.row(&COLUMNS, heading, buffer, |at, _| vec![look.span(Role::Dim, COLUMNS[at].title)]);
    let room = usize::from(area.height.saturating_sub(2));
    let first = app.places[View::Plan as usize].fit(live.plans.len(), room);
    for (row, plan) in live.plans.iter().rev().skip(first).take(room).enumerate() {
        let line = Rect { y: area.y + 2 + row as u16, height: 1, ..area };
        let around = Around::of(live, plan.t_s);
        layout.row(&COLUMNS, line, buffer, |at, _| vec![cell(at, plan, &around, look)]);
    }
}

/// The hit around an instant.
struct Around {
    before: Option<f64>,
    after: Option<f64>,
    deepest: Option<f64>,
}

impl Around {
    fn of(live: &Live, t_s: f64) -> Around {
        let (slots, width_s) = (live.series.slots(), live.series.width_s());
        let at = (((t_s - live.series.start_s(0)) / width_s).max(0.0) as usize).min(slots.len());
        let span = ((AROUND_S / width_s).ceil() as usize).max(1);
        let hit = |from: usize, to: usize| {
            let mut hits = Hits::default();
            slots[from..to].iter().for_each(|slot| hits.add(slot.hits.prompt, slot.hits.cached));
            hits.ratio()
        };
        let (end, settled) = ((at + span).min(slots.len()), live.series.settled().len());
        Around {
            before: hit(at.saturating_sub(span), at),
            after: hit(at, end),
            deepest: slots[at..end.min(settled).max(at)]
                .iter()
                .filter_map(|slot| slot.hits.ratio())
                .reduce(f64::min),
        }
    }
}

fn cell<'a>(at: usize, plan: &Plan, around: &Around, look: Look) -> Span<'a> {
    match at {
        0 => Span::raw(seconds(plan.t_s)),
        1 => Span::raw(count(plan.admitted_keys)),
        2 => Span::raw(count(plan.moved_keys)),
        3 => Span::raw(percent(plan.churn)),
        4 => Span::raw(format!("{:.2}", plan.imbalance)),
        5 => Span::raw(format!("{:.1}/s", plan.cold_rate)),
        6 => Span::raw(maybe_percent(around.before)),
        7 => Span::raw(maybe_percent(around.after)),
        _ => match around.before.zip(around.deepest) {
            Some((before, deepest)) if before - deepest > 0.05 => {
                look.span(Role::Warn, format!("▼ {:.1} pt", (before - deepest) * 100.0))
            }
            Some(_) => Span::raw("none"),
            None => Span::raw("–"),
        },
    }
}

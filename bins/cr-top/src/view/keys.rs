//! The hottest keys: where they go, at what rate, with what hit, and whether that is what was planned.

use compact_str::CompactString;
use cr_routing::table::RoutingTable;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::table::{Column, Layout};
use super::text::cut;
use crate::figures::{count, maybe_percent, maybe_seconds, percent, times};
use crate::palette::Role;
use crate::state::app::{App, KeyColumn, View};
use crate::state::keys::{KeyStat, MAX_KEYS};
use crate::state::live::Live;

/// An actual rate this many times the planned one, or this part of it, is a plan that was wrong.
const MISPLANNED: f64 = 1.5;

const COLUMNS: [Column; 9] = [
    Column { title: "KEY", width: 10, stretch: 30, rank: 99, right: false },
    Column { title: "REQUESTS", width: 9, stretch: 0, rank: 90, right: true },
    Column { title: "SHARE", width: 6, stretch: 0, rank: 60, right: true },
    Column { title: "RATE", width: 7, stretch: 0, rank: 70, right: true },
    Column { title: "PLANNED", width: 7, stretch: 0, rank: 75, right: true },
    Column { title: "OFF", width: 7, stretch: 0, rank: 76, right: true },
    Column { title: "HIT", width: 6, stretch: 0, rank: 85, right: true },
    Column { title: "TTFT p99", width: 8, stretch: 0, rank: 80, right: true },
    Column { title: "SHARDS", width: 10, stretch: 70, rank: 65, right: false },
];

const SORT: [Option<KeyColumn>; 9] = [
    None,
    Some(KeyColumn::Requests),
    None,
    None,
    None,
    Some(KeyColumn::Deviation),
    Some(KeyColumn::Hit),
    Some(KeyColumn::P99),
    Some(KeyColumn::Shards),
];

/// A key with what the table says of it.
struct Row<'a> {
    key: &'a CompactString,
    stat: &'a KeyStat,
    rate: f64,
    planned: Option<f64>,
}

impl Row<'_> {
    /// Actual / planned rate.
    fn deviation(&self) -> Option<f64> {
        self.planned.filter(|planned| *planned > 0.0).map(|planned| self.rate / planned)
    }

    fn value(&self, column: KeyColumn) -> f64 {
        match column {
            KeyColumn::Requests => self.stat.requests as f64,
            // Twice and half as much are equally wrong.
            KeyColumn::Deviation => self.deviation().map_or(-1.0, |off| off.max(1e-9).ln().abs()),
            KeyColumn::Hit => self.stat.hits.ratio().unwrap_or(-1.0),
            KeyColumn::P99 => self.stat.ttft.quantile(0.99).unwrap_or(-1.0),
            KeyColumn::Shards => self.stat.shards.len() as f64,
        }
    }
}

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, live: &Live, look: Look) {
    let area = Rect { x: area.x + 1, width: area.width - 2, ..area };
    if area.height < 3 {
        return;
    }
    let sort = app.sorts[View::Keys as usize];
    let by = KeyColumn::ALL[sort.column % KeyColumn::ALL.len()];
    let rows = rows(app, live, by, sort.reverse);
    let about = about(live, rows.len());
    buffer.set_line(
        area.x,
        area.y,
        &Line::from(look.span(Role::Dim, cut(&about, area.width.into()))),
        area.width,
    );
    let planned = live.table().is_some();
    let longest = rows.iter().map(|row| row.key.chars().count()).max().unwrap_or(0);
    let mut columns = COLUMNS;
    columns[0].stretch = columns[0].stretch.min((longest + 2).saturating_sub(columns[0].width.into()) as u16);
    let layout = Layout::without(&columns, area.width, |at| {
        !planned && matches!(COLUMNS[at].title, "PLANNED" | "OFF")
    });
    let heading = Rect { y: area.y + 1, height: 1, ..area };
    layout.row(&columns, heading, buffer, |at, _| {
        let arrow = if sort.reverse { "▲" } else { "▼" };
        if SORT[at] == Some(by) {
            vec![look.span(Role::Accent, format!("{}{arrow}", COLUMNS[at].title))]
        } else {
            vec![look.span(Role::Dim, COLUMNS[at].title)]
        }
    });
    let room = usize::from(area.height - 2);
    let first = app.places[View::Keys as usize].fit(rows.len(), room);
    for (at, row) in rows.iter().skip(first).take(room).enumerate() {
        let line = Rect { y: area.y + 2 + at as u16, height: 1, ..area };
        let scene = Scene { live, look };
        layout.row(&columns, line, buffer, |column, width| scene.cell(column, width, row));
    }
}

fn rows<'a>(app: &App, live: &'a Live, by: KeyColumn, reverse: bool) -> Vec<Row<'a>> {
    let span_s = (live.t_s - live.series.start_s(0)).max(1e-9);
    let table = live.table();
    let row = |(key, stat): (&'a CompactString, &'a KeyStat)| Row {
        key,
        stat,
        rate: stat.requests as f64 / span_s,
        planned: table.and_then(|table| table.rate_of(key)),
    };
    let mut rows: Vec<(f64, Row)> = live
        .keys
        .hottest()
        .map(row)
        .filter(|row| app.passes(row.key))
        .map(|row| (row.value(by), row))
        .collect();
    // Stable: equal keys stay in order of their requests.
    if reverse {
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    } else {
        rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn about(live: &Live, shown: usize) -> String {
    let exact = if live.keys.is_exact() {
        String::new()
    } else {
        format!("; the {MAX_KEYS} hottest, counts marked ~ are upper bounds")
    };
    let plan = if live.table().is_some() { "" } else { "; --table T shows the planned rates beside" };
    format!("{} keys of {} requests{exact}{plan}", count(shown as u64), count(live.keys.total()))
}

struct Scene<'a> {
    live: &'a Live,
    look: Look,
}

impl Scene<'_> {
    fn cell<'a>(&self, column: usize, width: usize, row: &Row) -> Vec<Span<'a>> {
        let (stat, look) = (row.stat, self.look);
        match column {
            0 => {
                let (glyph, role) = if stat.admitted { ("◆ ", Role::Accent) } else { ("○ ", Role::Dim) };
                vec![look.span(role, glyph), Span::raw(cut(row.key, width.saturating_sub(2)))]
            }
            1 => {
                vec![Span::raw(format!("{}{}", if stat.error > 0 { "~" } else { "" }, count(stat.requests)))]
            }
            2 => vec![Span::raw(percent(stat.requests as f64 / self.live.keys.total().max(1) as f64))],
            3 => vec![Span::raw(format!("{:.2}/s", row.rate))],
            4 => vec![Span::raw(row.planned.map_or("–".into(), |rate| format!("{rate:.2}/s")))],
            5 => vec![self.off(row)],
            6 => vec![Span::raw(maybe_percent(stat.hits.ratio()))],
            7 => vec![Span::raw(maybe_seconds(stat.ttft.quantile(0.99)))],
            _ => self.shards(row, width),
        }
    }

    fn off<'a>(&self, row: &Row) -> Span<'a> {
        match row.deviation() {
            Some(off) if off >= MISPLANNED => self.look.span(Role::Bad, format!("▲{}", times(Some(off)))),
            Some(off) if off <= 1.0 / MISPLANNED => {
                self.look.span(Role::Warn, format!("▼{}", times(Some(off))))
            }
            off => Span::raw(times(off)),
        }
    }

    /// The shards that served it, the busiest first; those that the table does not name are marked.
    fn shards<'a>(&self, row: &Row, width: usize) -> Vec<Span<'a>> {
        let mut used: Vec<(u32, u64)> = row.stat.shards.iter().map(|(shard, n)| (*shard, *n)).collect();
        used.sort_by_key(|(shard, n)| (u64::MAX - n, *shard));
        let planned = self.live.table().and_then(|table: &RoutingTable| table.shards_of(row.key));
        let total: u64 = used.iter().map(|(_, n)| n).sum();
        let mut spans: Vec<Span> = Vec::new();
        let mut left = width;
        for (shard, n) in used {
            let strange = planned.is_some_and(|planned| planned.iter().all(|place| place.0 != shard));
            let share = n as f64 / total.max(1) as f64 * 100.0;
            let text = format!("{}{shard}:{share:.0}% ", if strange { "!" } else { "" });
            if text.len() > left {
                spans.push(self.look.span(Role::Dim, "…"));
                break;
            }
            left -= text.len();
            spans.push(self.look.span(if strange { Role::Warn } else { Role::Plain }, text));
        }
        spans
    }
}

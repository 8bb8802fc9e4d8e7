//! The fleet: key figures, charts, and one row a shard.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::bars::{bar, diverging};
use super::look::Look;
use super::table::{Column, Layout};
use super::{charts, figures_panel, strip};
use crate::figures::{count, maybe_percent, maybe_seconds, percent, times};
use crate::palette::Role;
use crate::state::app::{App, FleetColumn, View};
use crate::state::fleet::Shard;
use crate::state::live::Live;

/// The least and the most height of the charts.
const CHARTS: (u16, u16) = (6, 30);

/// From this height on, blank lines part what belongs apart.
const ROOMY: u16 = 26;

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, live: &Live, look: Look) {
    let figures = if area.height >= 12 { figures_panel::HEIGHT } else { 1 };
    let shards = live.fleet.shards().len();
    let table_height = u16::try_from(shards + 1).unwrap_or(u16::MAX);
    let inner = area.width - 2;
    // A fleet that has more shards than the table will have rows gets a strip that shows all of them.
    let strip = strip::height(shards, inner);
    let strip = if shards + 1 > usize::from(area.height / 2) && strip <= area.height / 4 { strip } else { 0 };
    // Where there is room, a blank line between the parts.
    let gap = u16::from(area.height >= ROOMY);
    let left = area.height.saturating_sub(figures + strip + 2 * gap);
    // The charts get what the table does not need, but the table always keeps a good half.
    let charts = left.saturating_sub(table_height.min(left / 2 + 1)).min(CHARTS.1);
    let charts = if charts < CHARTS.0 { 0 } else { charts };
    let mut y = area.y;
    let mut next = |height: u16| {
        let rows = Rect { y, height: height.min(area.bottom().saturating_sub(y)), ..area };
        y += rows.height;
        rows
    };
    figures_panel::draw(next(figures), buffer, live, look);
    next(gap);
    if charts > 0 {
        let area = next(charts);
        charts::draw(Rect { x: area.x + 1, width: area.width - 2, ..area }, buffer, live, look);
        next(gap);
    }
    let inset = |rows: Rect| Rect { x: rows.x + 1, width: inner, ..rows };
    let ratios = load_ratios(live);
    strip::draw(inset(next(strip)), buffer, live, &ratios, look);
    table(inset(next(area.height)), buffer, app, live, &ratios, look);
}

/// Where room is short, numbers stand for bars.
const NARROW: u16 = 60;

const fn columns(kv: u16, load: u16) -> [Column; 9] {
    let mut columns = COLUMNS;
    columns[4].width = kv;
    columns[6].width = load;
    if load < 9 {
        columns[6].title = "LOAD";
    }
    columns
}

const COLUMNS: [Column; 9] = [
    Column { title: "SHARD", width: 5, stretch: 0, rank: 99, right: true },
    Column { title: "STATE", width: 6, stretch: 0, rank: 10, right: false },
    Column { title: "QUEUE", width: 5, stretch: 0, rank: 90, right: true },
    Column { title: "RUN", width: 4, stretch: 0, rank: 80, right: true },
    Column { title: "KV", width: 6, stretch: 20, rank: 70, right: false },
    Column { title: "HIT", width: 6, stretch: 0, rank: 85, right: true },
    Column { title: "LOAD/MEAN", width: 6, stretch: 34, rank: 88, right: false },
    Column { title: "TTFT p99", width: 8, stretch: 0, rank: 60, right: true },
    Column { title: "EVICTED", width: 7, stretch: 0, rank: 50, right: true },
];

/// The columns as the sort key knows them.
const SORT: [Option<FleetColumn>; 9] = [
    Some(FleetColumn::Id),
    None,
    Some(FleetColumn::Queue),
    Some(FleetColumn::Running),
    Some(FleetColumn::Kv),
    Some(FleetColumn::Hit),
    Some(FleetColumn::Load),
    Some(FleetColumn::P99),
    Some(FleetColumn::Evicted),
];

/// The column that the list is sorted by.
fn sorted_by(app: &App) -> FleetColumn {
    FleetColumn::ALL[app.sorts[View::Fleet as usize].column % FleetColumn::ALL.len()]
}

fn table(area: Rect, buffer: &mut Buffer, app: &mut App, live: &Live, ratios: &[Option<f64>], look: Look) {
    if area.height == 0 {
        return;
    }
    let columns = if area.width < NARROW { columns(6, 6) } else { columns(12, 16) };
    let layout = Layout::new(&columns, area.width);
    let heading = Rect { height: 1, ..area };
    let protects = live.fleet.shards().iter().any(|shard| shard.now.kv_protected_blocks > 0);
    layout.row(&columns, heading, buffer, |at, width| {
        let sorted = SORT[at] == Some(sorted_by(app));
        let arrow = if descending(app) { "▼" } else { "▲" };
        let title = columns[at].title;
        if title == "KV" && protects && !sorted && width > 10 {
            let word = if width > 15 { " protected" } else { " prot." };
            vec![look.span(Role::Dim, "KV, "), look.span(Role::Second, "▓"), look.span(Role::Dim, word)]
        } else if sorted {
            vec![look.span(Role::Accent, format!("{title}{arrow}"))]
        } else {
            vec![look.span(Role::Dim, title)]
        }
    });
    let order = order(app, live, ratios);
    let rows = usize::from(area.height - 1);
    let first = app.places[View::Fleet as usize].fit(order.len(), rows);
    // One scale for all bars, so that they compare: the farthest off the mean, at least a quarter.
    let span = ratios.iter().flatten().map(|ratio| (ratio - 1.0).abs()).fold(0.25, f64::max).min(1.0);
    for (row, index) in order.iter().skip(first).take(rows).enumerate() {
        let line = Rect { y: area.y + 1 + row as u16, height: 1, ..area };
        let shard = &live.fleet.shards()[*index];
        layout.row(&columns, line, buffer, |at, width| cell(at, width, shard, ratios[*index], span, look));
    }
}

/// Each shard's tokens of work per second up, over the fleet's; the measured part's once there is one.
fn load_ratios(live: &Live) -> Vec<Option<f64>> {
    let totals = &live.totals;
    let (tokens, up_s) =
        totals.iter().fold((0.0, 0.0), |sum, shard| (sum.0 + shard.tokens() as f64, sum.1 + shard.up_s));
    let ratio = |index: usize| {
        let shard = totals.get(index).filter(|shard| shard.up_s > 0.0 && tokens > 0.0)?;
        Some(shard.tokens() as f64 / shard.up_s / (tokens / up_s))
    };
    (0..live.fleet.shards().len()).map(ratio).collect()
}

/// Whether the largest comes first: for all columns but the id, unless turned around.
fn descending(app: &App) -> bool {
    (sorted_by(app) != FleetColumn::Id) != app.sorts[View::Fleet as usize].reverse
}

/// The indices of the shards that pass the filter, in order.
fn order(app: &App, live: &Live, ratios: &[Option<f64>]) -> Vec<usize> {
    let shards = live.fleet.shards();
    let passes = |index: &usize| app.passes(&format!("{index} {}", state(&shards[*index]).1));
    let mut order: Vec<usize> = (0..shards.len()).filter(passes).collect();
    let values: Vec<f64> =
        shards.iter().zip(ratios).map(|(shard, ratio)| value(sorted_by(app), shard, *ratio)).collect();
    // A stable sort: equal shards stay in order of their id.
    if descending(app) {
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    } else {
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    }
    order
}

fn value(column: FleetColumn, shard: &Shard, ratio: Option<f64>) -> f64 {
    match column {
        FleetColumn::Id => f64::from(shard.now.shard.0),
        FleetColumn::Queue => shard.now.queued as f64,
        FleetColumn::Running => shard.now.running as f64,
        FleetColumn::Kv => shard.kv_use(),
        FleetColumn::Hit => shard.hit().unwrap_or(-1.0),
        FleetColumn::Load => ratio.unwrap_or(-1.0),
        FleetColumn::P99 => shard.p99_s().unwrap_or(-1.0),
        FleetColumn::Evicted => shard.now.evicted_blocks as f64,
    }
}

fn state(shard: &Shard) -> (&'static str, &'static str, Role) {
    if shard.now.up { ("●", "up", Role::Good) } else { ("✖", "down", Role::Bad) }
}

fn cell<'a>(
    at: usize,
    width: usize,
    shard: &Shard,
    ratio: Option<f64>,
    span: f64,
    look: Look,
) -> Vec<Span<'a>> {
    match at {
        0 => {
            let role = if shard.now.up { Role::Plain } else { Role::Bad };
            let mark = if shard.now.up { "" } else { "✖" };
            vec![look.span(role, format!("{mark}{}", shard.now.shard))]
        }
        1 => {
            let (glyph, word, role) = state(shard);
            vec![look.span(role, glyph), Span::raw(" "), look.span(role, word)]
        }
        2 => vec![Span::raw(count(shard.now.queued))],
        3 => vec![Span::raw(count(shard.now.running))],
        4 => kv(shard, width, look),
        5 => vec![Span::raw(maybe_percent(shard.hit()))],
        6 => load(ratio, span, width, look),
        7 => vec![Span::raw(maybe_seconds(shard.p99_s()))],
        _ => vec![Span::raw(count(shard.now.evicted_blocks))],
    }
}

/// The used share as a bar, its protected part in another shade, and as a number.
fn kv<'a>(shard: &Shard, width: usize, look: Look) -> Vec<Span<'a>> {
    let number = format!("{:>6}", percent(shard.kv_use()));
    let Some(room) = width.checked_sub(7).filter(|room| *room >= 4) else { return vec![Span::raw(number)] };
    // A pool that is full is as it should be: prefixes stay until room is needed. A protected part is never too small to be seen.
    let share = shard.kv_protected();
    let protected = ((share * room as f64).round() as usize).max(usize::from(share > 0.0));
    let mut spans = vec![look.span(Role::Second, "▓".repeat(protected.min(room)))];
    let rest = room - protected.min(room);
    let share = (shard.kv_use() * room as f64 - protected as f64) / (rest as f64).max(1.0);
    spans.extend(bar(share, rest, look.style(Role::Accent), look.style(Role::Dim)));
    spans.push(Span::raw(format!(" {number}")));
    spans
}

fn load<'a>(ratio: Option<f64>, span: f64, width: usize, look: Look) -> Vec<Span<'a>> {
    let role = match ratio {
        Some(ratio) if ratio > 1.5 => Role::Bad,
        Some(ratio) if ratio > 1.2 => Role::Warn,
        _ => Role::Plain,
    };
    let number = look.span(role, format!("{:>6}", times(ratio)));
    let Some(room) = width.checked_sub(7).filter(|room| *room >= 7) else { return vec![number] };
    let bar = diverging(ratio.unwrap_or(1.0), span, room);
    vec![look.span(if role == Role::Plain { Role::Accent } else { role }, bar), Span::raw(" "), number]
}

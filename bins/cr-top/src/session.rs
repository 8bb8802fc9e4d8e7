//! The runs that are watched, live or replayed.

use cr_routing::table::RoutingTable;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use crate::ingest::{Feed, Until};
use crate::source::{Follow, Input};
use crate::state::app::{Replay, Transport};
use crate::state::live::Live;
use crate::state::run::Run;

/// Slowest and fastest replay, run time per wall time.
const SPEEDS: (f64, f64) = (0.125, 1024.0);

/// One to four runs.
#[derive(Debug)]
pub struct Session {
    inputs: Vec<Input>,
    follow: Follow,
    tables: Arc<Vec<RoutingTable>>,
    feeds: Vec<Feed>,
    /// Feeds that read up to an earlier time; they take over once they are there, so that a seek does not flicker.
    coming: Option<Vec<Feed>>,
    player: Option<Player>,
}

#[derive(Debug)]
struct Player {
    replay: Replay,
    worst_s: f64,
    last: Instant,
}

impl Session {
    /// Starts to read all inputs.
    pub fn open(inputs: Vec<Input>, follow: Follow, tables: Vec<RoutingTable>) -> Session {
        let mut session = Session {
            inputs,
            follow,
            tables: Arc::new(tables),
            feeds: Vec::new(),
            coming: None,
            player: None,
        };
        let open = |input: &Input| session.read(input, Until::END);
        session.feeds = session.inputs.iter().map(open).collect();
        session
    }

    fn read(&self, input: &Input, until: Until) -> Feed {
        Feed::open(input.clone(), self.follow, Arc::clone(&self.tables), until)
    }

    /// Reads all inputs anew, up to an instant of the runs that are shown.
    fn read_until(&self, t_s: f64) -> Vec<Feed> {
        let runs = self.feeds.iter().map(|feed| feed.run().live.runs_before);
        self.inputs.iter().zip(runs).map(|(input, runs)| self.read(input, Until { runs, t_s })).collect()
    }

    /// The feeds that are shown.
    pub fn feeds(&self) -> &[Feed] {
        &self.feeds
    }

    /// All runs as they are now. Hold them for a moment only.
    pub fn lock(&self) -> Vec<MutexGuard<'_, Run>> {
        self.feeds.iter().map(Feed::run).collect()
    }

    /// What made an input unusable, in one sentence.
    pub fn fault(&self) -> Option<String> {
        self.feeds.iter().chain(self.coming.iter().flatten()).find_map(Feed::fault)
    }

    /// Whether a reading thread died of an error of its own.
    pub fn is_broken(&self) -> bool {
        self.feeds.iter().any(Feed::is_broken)
    }

    /// Where the replay stands.
    pub fn replay(&self) -> Option<Replay> {
        self.player.as_ref().map(|player| player.replay)
    }

    /// Whether a seek back is under way: what is shown is still the picture before it.
    pub fn is_seeking(&self) -> bool {
        self.coming.is_some()
    }

    /// Moves through the run; says why where it cannot.
    pub fn transport(&mut self, step: Transport) -> Option<String> {
        if self.inputs.iter().any(|input| !input.is_file()) {
            return Some("a pipe cannot be replayed: write the events to a file and name it".into());
        }
        if step == Transport::Follow {
            self.player = None;
            let feeds = self.coming.take().unwrap_or_default();
            self.feeds = if feeds.is_empty() { std::mem::take(&mut self.feeds) } else { feeds };
            self.feeds.iter().for_each(|feed| feed.set_limit(f64::INFINITY));
            return None;
        }
        let mut player = self.player.take().unwrap_or_else(|| self.enter());
        let replay = &mut player.replay;
        let at_end = replay.t_s >= replay.end_s;
        let target_s = match step {
            Transport::Toggle => {
                replay.playing = !replay.playing;
                (replay.playing && at_end).then_some(0.0)
            }
            Transport::Faster(up) => {
                let factor = if up { 2.0 } else { 0.5 };
                replay.speed = (replay.speed * factor).clamp(SPEEDS.0, SPEEDS.1);
                None
            }
            Transport::Seek(by_s) => Some(replay.t_s + by_s),
            Transport::Worst => Some(player.worst_s),
            Transport::Start | Transport::Follow => Some(0.0),
        };
        player.last = Instant::now();
        if let Some(target_s) = target_s {
            player.replay.t_s = target_s.clamp(0.0, player.replay.end_s);
            self.go(player.replay.t_s);
        }
        self.player = Some(player);
        None
    }

    /// Replays from the start; says why where it cannot.
    pub fn start_replay(&mut self, speed: f64) -> Option<String> {
        let refused = self.transport(Transport::Start);
        if let Some(player) = &mut self.player {
            (player.replay.speed, player.replay.playing) = (speed.clamp(SPEEDS.0, SPEEDS.1), true);
        }
        refused
    }

    /// A replay that stands at the end of what is known.
    fn enter(&self) -> Player {
        let runs = self.lock();
        let end_s = runs.iter().map(|run| run.live.t_s).fold(0.0, f64::max);
        let worst_s = runs.first().map_or(0.0, |run| worst_second(&run.live));
        for feed in &self.feeds {
            feed.set_limit(end_s);
        }
        let replay = Replay { playing: false, speed: 1.0, t_s: end_s, end_s };
        Player { replay, worst_s, last: Instant::now() }
    }

    /// Shows the runs as they were at `t_s`.
    fn go(&mut self, t_s: f64) {
        let ahead = self.coming.is_some() || self.lock().iter().any(|run| run.live.t_s > t_s);
        if ahead {
            self.coming = Some(self.read_until(t_s));
        } else {
            self.feeds.iter().for_each(|feed| feed.set_limit(t_s));
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self) {
        if self.coming.as_ref().is_some_and(|feeds| feeds.iter().all(Feed::has_caught_up)) {
            self.feeds = self.coming.take().unwrap_or_default();
            self.lock().iter_mut().for_each(|run| run.refresh());
        }
        let Some(player) = &mut self.player else { return };
        let passed_s = player.last.elapsed().as_secs_f64();
        player.last = Instant::now();
        let replay = &mut player.replay;
        // Time stands still until a seek has arrived.
        if !replay.playing || self.coming.is_some() {
            return;
        }
        replay.t_s = (replay.t_s + passed_s * replay.speed).min(replay.end_s);
        replay.playing = replay.t_s < replay.end_s;
        self.feeds.iter().for_each(|feed| feed.set_limit(replay.t_s));
    }
}

/// The end of the slot with the highest 99th percentile of TTFT: what led to it is in sight.
fn worst_second(live: &Live) -> f64 {
    let p99 =
        |(index, slot): (usize, &crate::state::series::Slot)| Some((index, slot.ttft.percentiles()?.p99));
    let worst = live.series.slots().iter().enumerate().filter_map(p99).max_by(|a, b| a.1.total_cmp(&b.1));
    worst.map_or(0.0, |(index, _)| live.series.start_s(index + 1).min(live.t_s))
}

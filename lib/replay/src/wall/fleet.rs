//! What the desk knows of shards that run on threads of their own: what they reported last, and what was sent since.

use super::Zero;
use super::worker::{Inbox, Order, Worker};
use crate::serving::Serving;
use crate::{Fleet, ReplayError};
use cr_engine::{Departed, EngineError, Refused, ShardConfig};
use cr_report::events::{ShardState, Shards};
use cr_routing::ShardView;
use cr_trace::{Request, ShardId, Time};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

/// What a shard reports.
pub(super) struct News {
    pub(super) shard: ShardId,
    pub(super) at: Time,
    /// Requests it has taken so far.
    pub(super) taken: u64,
    pub(super) pending_tokens: u64,
    pub(super) state: ShardState,
    pub(super) departed: Vec<Departed>,
    pub(super) what: What,
}

/// Why it reports.
pub(super) enum What {
    Stepped,
    Evacuated(&'static str),
    Stopped,
    Failed(EngineError),
}

/// One shard, seen from the desk.
struct Far {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
    state: ShardState,
    pending_tokens: u64,
    /// Prompt tokens of requests sent and not reported as taken.
    untaken: VecDeque<u64>,
    sent: u64,
}

/// Threads that a shard's operations run on. All shards may be busy at once, and more threads than cores would only wait for one another.
fn threads_of_each(shards: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / shards.max(1)).max(1)
}

/// All shards, seen from the desk.
pub(crate) struct WallFleet {
    config: ShardConfig,
    shards: Vec<Far>,
    views: Vec<ShardView>,
}

impl WallFleet {
    /// Starts a thread for every shard.
    pub(super) fn start(fleet: Fleet, zero: Zero) -> Result<(WallFleet, Receiver<News>), ReplayError> {
        let config = fleet.config().copied().unwrap_or_default();
        let threads = threads_of_each(fleet.len());
        let failed = |e: String| ReplayError::Config(format!("cannot start the threads of the shards: {e}"));
        let (news, receiver) = channel();
        let mut shards = Vec::new();
        for (index, shard) in fleet.into_shards().into_iter().enumerate() {
            let id = ShardId(index as u32);
            let inbox = Arc::new(Inbox::default());
            let state = crate::fleet::state(id, &shard, true, Time::ZERO);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|e| failed(e.to_string()))?;
            let (inbox_there, news) = (Arc::clone(&inbox), news.clone());
            let worker = Worker { id, shard, inbox: inbox_there, news, zero, taken: 0, broken: false };
            let thread = std::thread::Builder::new().name(format!("shard {id}"));
            let thread = thread.spawn(move || worker.work(Some(pool))).map_err(|e| failed(e.to_string()))?;
            let untaken = VecDeque::new();
            shards.push(Far { inbox, thread: Some(thread), state, pending_tokens: 0, untaken, sent: 0 });
        }
        let views = vec![ShardView { up: true, ..ShardView::default() }; shards.len()];
        Ok((WallFleet { config, shards, views }, receiver))
    }

    /// Whether no shard has anything.
    pub(super) fn is_empty(&self) -> bool {
        self.views.iter().all(|view| view.load == 0)
    }

    /// A shard whose thread has ended though nobody told it to.
    pub(super) fn ended(&self) -> Option<ShardId> {
        let ended = |far: &Far| far.thread.as_ref().is_some_and(JoinHandle::is_finished);
        self.shards.iter().position(ended).map(|index| ShardId(index as u32))
    }

    /// Tells every shard to stop, and waits for none.
    pub(super) fn stop(&self) {
        self.shards.iter().for_each(|far| far.inbox.push(Order::Stop));
    }

    /// Takes in a report; gives back who has left, and why it came.
    pub(super) fn hear(&mut self, news: News) -> Option<(Vec<Departed>, What)> {
        let far = self.shards.get_mut(news.shard.index())?;
        let up = far.state.up;
        far.state = ShardState { up, ..news.state };
        far.pending_tokens = news.pending_tokens;
        while far.sent - (far.untaken.len() as u64) < news.taken {
            far.untaken.pop_front();
        }
        self.look(news.shard);
        Some((news.departed, news.what))
    }

    fn look(&mut self, id: ShardId) {
        let (far, view) = (&self.shards[id.index()], &mut self.views[id.index()]);
        view.load = (far.state.queued + far.state.running) as u32 + far.untaken.len() as u32;
        view.running = far.state.running as u32;
        view.pending_tokens = far.pending_tokens + far.untaken.iter().sum::<u64>();
    }
}

impl Drop for WallFleet {
    fn drop(&mut self) {
        self.stop();
        for far in &mut self.shards {
            if let Some(thread) = far.thread.take() {
                // A thread that panicked has said so itself.
                let _ = thread.join();
            }
        }
    }
}

impl Serving for WallFleet {
    fn views(&self) -> &[ShardView] {
        &self.views
    }

    fn kv_tokens(&self) -> u64 {
        u64::from(self.config.kv_blocks) * u64::from(self.config.block_tokens)
    }

    fn enqueue(
        &mut self,
        id: ShardId,
        _now: Time,
        request: Arc<Request>,
        arrival: Time,
        admitted: bool,
    ) -> Result<bool, Refused> {
        if let Err(rejection) = self.config.fits(&request) {
            return Err(Refused { request, rejection });
        }
        let far = &mut self.shards[id.index()];
        far.untaken.push_back(request.prompt_tokens());
        far.sent += 1;
        far.inbox.push(Order::Enqueue { request, arrival, admitted });
        self.look(id);
        Ok(false)
    }

    fn set_up(&mut self, id: ShardId, up: bool) {
        self.views[id.index()].up = up;
        self.shards[id.index()].state.up = up;
    }

    fn set_pace(&mut self, id: ShardId, _now: Time, pace: f64) {
        self.shards[id.index()].inbox.push(Order::Pace(pace));
    }

    fn evacuate(&mut self, id: ShardId, _now: Time, kind: &'static str) -> Option<Vec<Departed>> {
        self.shards[id.index()].inbox.push(Order::Evacuate(kind));
        None
    }

    fn lift_protection(&mut self, _now: Time) {
        self.shards.iter().for_each(|far| far.inbox.push(Order::LiftProtection));
    }

    fn is_idle(&self) -> bool {
        self.is_empty()
    }

    fn snapshot(&mut self, now: Time, _started: bool, window_start: bool) -> Shards {
        let states = self.shards.iter().map(|far| {
            let queued = far.state.queued + far.untaken.len() as u64;
            ShardState { queued, ..far.state.clone() }
        });
        Shards { t_s: now.as_s(), shards: states.collect(), window_start }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_engine::{Backend, Batch};
    use cr_trace::{ContentId, Key, RequestId, Segment};
    use std::sync::Mutex;

    /// Notes how many threads an operation of its steps would find.
    struct Counts(Arc<Mutex<Vec<usize>>>);

    impl Backend for Counts {
        fn step(&mut self, _: &Batch<'_>) -> Result<Time, EngineError> {
            self.0.lock().expect("no test has panicked").push(rayon::current_num_threads());
            Ok(Time(1))
        }
    }

    #[test]
    fn steps_find_as_many_threads_as_there_are_cores_for_a_shard() {
        for shards in [1, 2, 40] {
            let counts = Arc::default();
            let backend = |_| Box::new(Counts(Arc::clone(&counts))) as Box<dyn Backend>;
            let fleet = Fleet::new(ShardConfig::default(), (0..shards).map(backend).collect());
            let (mut fleet, news) = WallFleet::start(fleet, Zero(std::time::Instant::now())).expect("starts");
            let request = Arc::new(Request {
                id: RequestId(0),
                t_s: 0.0,
                key: Key::new("k"),
                tenant: None,
                session: None,
                turn: None,
                after: None,
                think_s: None,
                prompt: [Segment(ContentId::global("t"), 4)].into_iter().collect(),
                output_tokens: 1,
            });
            fleet.enqueue(ShardId(0), Time::ZERO, request, Time::ZERO, false).expect("fits");
            while news.recv().expect("the shard reports").departed.is_empty() {}
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            assert_eq!(*counts.lock().expect("no test has panicked"), [(cores / shards).max(1)]);
        }
    }
}

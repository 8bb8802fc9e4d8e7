//! Stale views (`--view-lag`): the state of the fleet d ago, plus the router's own later sends.
//!
//! A router sees every change up to the instant now − d, and none after it, but what it has itself sent since: each such
//! request counts as assigned, with its whole prompt pending, until the view has caught up with it (though it may have
//! finished by then). Whether a shard is up is known at once: a connection to a dead one is refused.

use cr_routing::{FleetView, ShardView};
use cr_trace::{ShardId, Time};
use std::collections::VecDeque;

/// What the fleet was a while ago. Holds the changes of the last d.
pub(crate) struct Lag {
    lag: Time,
    changes: VecDeque<(Time, ShardId, ShardView)>,
    /// As of the last view.
    then: Vec<ShardView>,
    view: Vec<ShardView>,
}

/// What one router has sent within the last d.
#[derive(Default)]
pub(crate) struct Sent(VecDeque<(Time, ShardId, u64)>);

impl Sent {
    /// A prompt of `tokens` was sent to a shard.
    pub(crate) fn push(&mut self, now: Time, shard: ShardId, tokens: u64) {
        self.0.push_back((now, shard, tokens));
    }
}

impl Lag {
    /// A view of this many shards, `lag` behind.
    pub(crate) fn new(lag: Time, shards: u32) -> Lag {
        let then = vec![ShardView { up: true, ..ShardView::default() }; shards as usize];
        Lag { lag, changes: VecDeque::new(), view: then.clone(), then }
    }

    /// A shard has changed.
    pub(crate) fn observe(&mut self, now: Time, shard: ShardId, view: ShardView) {
        self.changes.push_back((now, shard, view));
    }

    /// What the router that has sent `sent` sees at `now`, when the shards are in truth as `shards` say.
    pub(crate) fn view(&mut self, sent: &mut Sent, shards: &[ShardView], now: Time) -> FleetView<'_> {
        // Before d has passed there is nothing to see but the start: idle shards.
        let horizon = now.0.checked_sub(self.lag.0).map(Time);
        let seen = |at: Time| horizon.is_some_and(|horizon| at <= horizon);
        while self.changes.front().is_some_and(|&(at, ..)| seen(at)) {
            if let Some((_, shard, view)) = self.changes.pop_front() {
                self.then[shard.index()] = view;
            }
        }
        while sent.0.front().is_some_and(|&(at, ..)| seen(at)) {
            sent.0.pop_front();
        }
        self.view.clone_from(&self.then);
        for (view, truth) in self.view.iter_mut().zip(shards) {
            view.up = truth.up;
        }
        for &(_, shard, tokens) in &sent.0 {
            let view = &mut self.view[shard.index()];
            view.load += 1;
            view.pending_tokens += tokens;
        }
        FleetView { shards: &self.view, as_of: horizon.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Milliseconds, shard, and a load that was observed or (none) a request that was sent.
    type Step = (u64, u32, Option<u32>);

    proptest! {
        /// The view is what a search through all of history gives.
        #[test]
        fn it_is_the_state_a_while_ago_and_own_sends(steps in proptest::collection::vec((0u64..4, 0u32..3, proptest::option::of(0u32..9)), 1..60), lag in 1u64..12) {
            let (mut view, mut sent) = (Lag::new(Time(lag), 3), Sent::default());
            let mut history: Vec<Step> = Vec::new();
            let mut now = 0;
            let mut up = [true; 3];
            for (gap, shard, load) in steps {
                now += gap;
                up[shard as usize] = load != Some(0);
                match load {
                    Some(load) => view.observe(Time(now), ShardId(shard), ShardView { load, up: up[shard as usize], ..ShardView::default() }),
                    None => sent.push(Time(now), ShardId(shard), 10),
                }
                history.push((now, shard, load));
                let truth = up.map(|up| ShardView { up, ..ShardView::default() });
                let seen = view.view(&mut sent, &truth, Time(now));
                for shard in 0..3 {
                    let mine = |step: &&Step| step.1 == shard;
                    let then = history.iter().filter(mine).rfind(|step| step.2.is_some() && step.0 + lag <= now);
                    let own = history.iter().filter(mine).filter(|step| step.2.is_none() && step.0 + lag > now).count() as u32;
                    let expect = then.and_then(|step| step.2).unwrap_or(0) + own;
                    let got = seen.shard(ShardId(shard));
                    prop_assert_eq!((got.load, got.pending_tokens, got.up), (expect, u64::from(own) * 10, up[shard as usize]));
                }
            }
        }
    }
}

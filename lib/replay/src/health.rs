//! Which faults are in force on which shard.

use crate::faults::FaultKind;
use cr_trace::ShardId;

/// The faults of one shard; they may overlap.
#[derive(Clone, Debug, Default)]
struct Ailing {
    down: u32,
    /// Factors of the periods of slowness in force, by the place of the fault in its list.
    slow: Vec<(usize, f64)>,
}

/// The faults of all shards.
#[derive(Debug)]
pub(crate) struct Health(Vec<Ailing>);

/// What a change of faults means for a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    Dies,
    Returns,
    Paces(f64),
    Nothing,
}

impl Health {
    pub(crate) fn new(shards: usize) -> Health {
        Health(vec![Ailing::default(); shards])
    }

    /// A fault begins, or ends.
    pub(crate) fn change(&mut self, place: usize, shard: ShardId, kind: FaultKind, begins: bool) -> Change {
        let Some(ailing) = self.0.get_mut(shard.index()) else { return Change::Nothing };
        match kind {
            FaultKind::Down(_) => {
                let before = ailing.down;
                ailing.down = if begins { before + 1 } else { before.saturating_sub(1) };
                match (before, ailing.down) {
                    (0, 1) => Change::Dies,
                    (1, 0) => Change::Returns,
                    _ => Change::Nothing,
                }
            }
            FaultKind::Slow(by, _) => {
                if begins {
                    ailing.slow.push((place, by));
                } else {
                    ailing.slow.retain(|(other, _)| *other != place);
                }
                Change::Paces(ailing.slow.iter().map(|(_, by)| by).product())
            }
            FaultKind::Cold => Change::Nothing,
        }
    }

    /// Whether a shard is down.
    pub(crate) fn is_down(&self, shard: ShardId) -> bool {
        self.0.get(shard.index()).is_some_and(|ailing| ailing.down > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_overlap() {
        let mut health = Health::new(2);
        let one = ShardId(1);
        assert_eq!(health.change(0, one, FaultKind::Down(None), true), Change::Dies);
        assert_eq!(health.change(1, one, FaultKind::Down(None), true), Change::Nothing);
        assert_eq!(health.change(0, one, FaultKind::Down(None), false), Change::Nothing);
        assert!(health.is_down(one) && !health.is_down(ShardId(0)));
        assert_eq!(health.change(1, one, FaultKind::Down(None), false), Change::Returns);
        assert_eq!(health.change(2, one, FaultKind::Slow(2.0, None), true), Change::Paces(2.0));
        assert_eq!(health.change(3, one, FaultKind::Slow(1.5, None), true), Change::Paces(3.0));
        assert_eq!(health.change(2, one, FaultKind::Slow(2.0, None), false), Change::Paces(1.5));
        assert_eq!(health.change(3, one, FaultKind::Slow(1.5, None), false), Change::Paces(1.0));
        assert_eq!(health.change(0, ShardId(9), FaultKind::Down(None), true), Change::Nothing);
    }
}

//! Power of two choices.

use super::*;
use cr_trace::stream;

/// Loads after `balls` arrivals that never leave, by `choices` shards looked at each time.
fn loads(shards: u32, balls: u64, choose: impl Fn(&[ShardView], &mut Stream) -> ShardId) -> Vec<u32> {
    let mut fleet = idle(shards);
    let mut rng = stream(11, "policy");
    for _ in 0..balls {
        let chosen = choose(&fleet, &mut rng);
        fleet[chosen.index()].load += 1;
    }
    fleet.iter().map(|shard| shard.load).collect()
}

fn flat(fleet: &[ShardView], rng: &mut Stream) -> ShardId {
    Flat.route(&request(0, "k"), &view(fleet), rng).expect("all are up")
}

/// With n balls in n bins the fullest bin has about ln n / ln ln n balls under one choice and about ln ln n / ln 2
/// under two (Azar et al. 1994): for n = 10,000 about 7 against 4.
#[test]
fn two_choices_beat_one_as_published() {
    use rand::RngExt;
    let n = 10_000;
    let one = loads(n, u64::from(n), |fleet, rng| ShardId(rng.random_range(0..fleet.len() as u32)));
    let two = loads(n, u64::from(n), flat);
    let (one, two) = (one.into_iter().max().expect("has bins"), two.into_iter().max().expect("has bins"));
    assert!((6..=9).contains(&one), "one choice: {one}");
    assert!((3..=4).contains(&two), "two choices: {two}");
}

/// With all loads fixed and distinct, the shard of rank r (0 the least loaded) of n wins against the n − 1 − r above
/// it: its share is 2·(n − 1 − r) / (n·(n − 1)), and the most loaded one is never chosen.
#[test]
fn choices_are_distinct_and_uniform() {
    let mut fleet = idle(6);
    for (rank, shard) in fleet.iter_mut().enumerate() {
        shard.load = rank as u32;
    }
    let mut rng = stream(5, "policy");
    let mut counts = [0u32; 6];
    let draws = 60_000;
    for _ in 0..draws {
        counts[flat(&fleet, &mut rng).index()] += 1;
    }
    for (rank, &count) in counts.iter().enumerate() {
        let expected = f64::from(draws) * 2.0 * (5 - rank) as f64 / 30.0;
        // Five standard deviations of a binomial count.
        assert!((f64::from(count) - expected).abs() <= 5.0 * expected.sqrt(), "{counts:?}");
    }
    assert_eq!(counts[5], 0);
}

#[test]
fn ties_are_broken_evenly() {
    let fleet = idle(2);
    let mut rng = stream(6, "policy");
    let first = (0..10_000).filter(|_| flat(&fleet, &mut rng) == ShardId(0)).count();
    assert!((4_750..5_250).contains(&first), "{first}");
}

#[test]
fn a_lone_shard_that_is_up_is_found_among_many_that_are_down() {
    let mut fleet = vec![ShardView::default(); 1_000];
    fleet[777].up = true;
    let mut rng = stream(1, "policy");
    assert!((0..100).all(|_| flat(&fleet, &mut rng) == ShardId(777)));
}

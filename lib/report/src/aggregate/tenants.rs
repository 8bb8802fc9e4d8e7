//! Fairness between tenants, and between keys with a place of their own and the others.

use super::Distribution;
use crate::events::Finish;
use crate::summary::{Fairness, ServedAs};
use compact_str::CompactString;
use rustc_hash::FxHashMap;

/// Requests below which a tenant's p99 is not told: it would be its slowest one.
const FEW: u64 = 100;

/// Sums of every tenant and of both kinds of keys. Grows with the tenants, not with the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tenants {
    by_tenant: FxHashMap<CompactString, Tenant>,
    admitted: Kind,
    cold: Kind,
}

#[derive(Clone, Debug, Default)]
struct Tenant {
    requests: u64,
    ttft_s: f64,
    slowdown: f64,
    ttfts: Buckets,
}

/// Requests whose keys have a place of their own, or the others.
#[derive(Clone, Debug, Default)]
struct Kind {
    ttft_s: Distribution,
    slowdown: f64,
    prompt_tokens: u64,
    cached_tokens: u64,
}

/// How many times as long as its service a request took: 1 where it never waited.
fn slowdown(finish: &Finish) -> f64 {
    let service_s = finish.e2e_s - finish.queue_s;
    if service_s > 0.0 { finish.e2e_s / service_s } else { 1.0 }
}

impl Tenants {
    pub(super) fn record(&mut self, finish: &Finish) {
        let slowdown = slowdown(finish);
        let kind = if finish.admitted { &mut self.admitted } else { &mut self.cold };
        kind.ttft_s.record(finish.ttft_s);
        kind.slowdown += slowdown;
        kind.prompt_tokens = kind.prompt_tokens.saturating_add(finish.prompt_tokens);
        kind.cached_tokens = kind.cached_tokens.saturating_add(finish.cached_tokens);
        // Known tenants, by far the most, need no copy of the name.
        match self.by_tenant.get_mut(&finish.tenant) {
            Some(tenant) => tenant.record(finish.ttft_s, slowdown),
            None => {
                let mut tenant = Tenant::default();
                tenant.record(finish.ttft_s, slowdown);
                self.by_tenant.insert(finish.tenant.clone(), tenant);
            }
        }
    }

    /// TTFT of all requests, which is kept by kind only.
    pub(super) fn ttft_s(&self) -> Distribution {
        let mut all = self.admitted.ttft_s.clone();
        all.merge(&self.cold.ttft_s);
        all
    }

    pub(super) fn fairness(&self) -> Fairness {
        // By name, so that sums and ties do not depend on the order of a hash map.
        let mut tenants: Vec<(&str, &Tenant)> =
            self.by_tenant.iter().map(|(name, tenant)| (name.as_str(), tenant)).collect();
        tenants.sort_unstable_by_key(|&(name, _)| name);
        if tenants.is_empty() {
            return Fairness::default();
        }
        let each =
            |value: fn(&Tenant) -> f64| tenants.iter().map(move |&(name, tenant)| (name, value(tenant)));
        let ttft = |tenant: &Tenant| tenant.ttft_s / tenant.requests as f64;
        let slow = |tenant: &Tenant| tenant.slowdown / tenant.requests as f64;
        let p99s = tenants.iter().filter(|(_, tenant)| tenant.requests >= FEW);
        let worst_p99 = worst(p99s.map(|&(name, tenant)| (name, tenant.ttfts.p99_s())));
        let worst_ttft = worst(each(ttft)).unwrap_or_default();
        let worst_slow = worst(each(slow)).unwrap_or_default();
        let sum: f64 = each(ttft).map(|(_, x)| x).sum();
        Fairness {
            jain: jain(each(ttft).map(|(_, x)| x)),
            worst_tenant: Some(worst_ttft.0.to_owned()),
            worst_ratio: if sum > 0.0 { worst_ttft.1 * tenants.len() as f64 / sum } else { 1.0 },
            tenants: tenants.len() as u64,
            jain_slowdown: jain(each(slow).map(|(_, x)| x)),
            worst_slowdown_tenant: Some(worst_slow.0.to_owned()),
            worst_slowdown: worst_slow.1,
            worst_p99_tenant: worst_p99.map(|(name, _)| name.to_owned()),
            worst_p99_s: worst_p99.map(|(_, p99_s)| p99_s),
            admitted: self.admitted.served(),
            cold: self.cold.served(),
        }
    }
}

impl Tenant {
    fn record(&mut self, ttft_s: f64, slowdown: f64) {
        self.requests += 1;
        self.ttft_s += ttft_s;
        self.slowdown += slowdown;
        self.ttfts.record(ttft_s);
    }
}

impl Kind {
    fn served(&self) -> ServedAs {
        let requests = self.ttft_s.count();
        let over = |sum: f64, n: f64| if n > 0.0 { sum / n } else { 0.0 };
        ServedAs {
            requests,
            served_hit: over(self.cached_tokens as f64, self.prompt_tokens as f64),
            ttft_mean_s: self.ttft_s.mean(),
            ttft_p99_s: self.ttft_s.quantiles().p99,
            slowdown: over(self.slowdown, requests as f64),
        }
    }
}

/// Jain, Chiu and Hawe (1984): (Σ x)² / (n Σ x²); 1 where all are 0.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum, squares) =
        values.fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    if squares > 0.0 { f64::min(sum * sum / (n * squares), 1.0) } else { 1.0 }
}

/// The highest value, of the first tenant by name among equals.
fn worst<'a>(values: impl Iterator<Item = (&'a str, f64)>) -> Option<(&'a str, f64)> {
    values.reduce(|worst, next| if next.1 > worst.1 { next } else { worst })
}

/// A coarse histogram that costs next to nothing where it is nearly empty: buckets a sixteenth of an octave of nanoseconds
/// wide, ascending, with their counts.
#[derive(Clone, Debug, Default)]
struct Buckets(Vec<(u16, u32)>);

/// Bits of the mantissa that tell buckets of one octave apart.
const FINE_BITS: u32 = 4;

impl Buckets {
    fn record(&mut self, value_s: f64) {
        // A float to integer cast saturates.
        let nanos = ((value_s * 1e9) as u64).max(1 << FINE_BITS);
        let octave = nanos.ilog2();
        let fine = (nanos >> (octave - FINE_BITS)) & ((1 << FINE_BITS) - 1);
        let bucket = ((octave << FINE_BITS) | fine as u32) as u16;
        match self.0.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(1),
            Err(at) => self.0.insert(at, (bucket, 1)),
        }
    }

    /// The upper edge of the bucket of the 99th percentile: at most 6.25 % above it.
    fn p99_s(&self) -> f64 {
        let total: u64 = self.0.iter().map(|&(_, n)| u64::from(n)).sum();
        let rank = (total * 99).div_ceil(100);
        let mut below = 0;
        for &(bucket, n) in &self.0 {
            below += u64::from(n);
            if below >= rank {
                let (octave, fine) =
                    (u32::from(bucket) >> FINE_BITS, u64::from(bucket) & ((1 << FINE_BITS) - 1));
                let edge = ((1u64 << FINE_BITS) + fine + 1) as f64;
                return edge * (1u64 << (octave - FINE_BITS)) as f64 / 1e9;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ScopeTokens;
    use cr_trace::{RequestId, ShardId};

    fn finish(tenant: &str, ttft_s: f64) -> Finish {
        Finish {
            t_s: 1.0 + ttft_s,
            id: RequestId(0),
            key: tenant.into(),
            tenant: tenant.into(),
            shard: ShardId(0),
            admitted: false,
            arrival_s: 1.0,
            queue_s: 0.0,
            ttft_s,
            tpot_s: None,
            e2e_s: ttft_s,
            prompt_tokens: 100,
            cached_tokens: 0,
            cached_by_scope: ScopeTokens::default(),
            output_tokens: 1,
            retries: 0,
            preemptions: 0,
            measured: true,
        }
    }

    fn of(values: &[(&str, f64)]) -> Fairness {
        let mut tenants = Tenants::default();
        values.iter().for_each(|&(tenant, ttft_s)| tenants.record(&finish(tenant, ttft_s)));
        tenants.fairness()
    }

    #[test]
    fn equal_tenants_are_fair() {
        let fair = of(&[("a", 0.2), ("b", 0.1), ("b", 0.3)]);
        assert!((fair.jain - 1.0).abs() < 1e-12);
        assert_eq!(fair.worst_tenant.as_deref(), Some("a"));
        assert!((fair.worst_ratio - 1.0).abs() < 1e-12);
        assert_eq!((fair.tenants, fair.worst_slowdown, fair.jain_slowdown), (2, 1.0, 1.0));
    }

    #[test]
    fn one_that_waits_alone_is_one_in_n() {
        let unfair = of(&[("a", 0.0), ("b", 0.0), ("c", 0.0), ("d", 8.0)]);
        assert_eq!(unfair.jain, 0.25);
        assert_eq!(unfair.worst_tenant.as_deref(), Some("d"));
        assert_eq!(unfair.worst_ratio, 4.0);
    }

    #[test]
    fn nobody_and_no_waiting() {
        assert_eq!(of(&[]), Fairness::default());
        assert_eq!(of(&[("a", 0.0), ("b", 0.0)]).jain, 1.0);
    }

    #[test]
    fn slowdown_is_time_over_service() {
        let mut tenants = Tenants::default();
        tenants.record(&Finish { queue_s: 0.3, e2e_s: 0.4, ..finish("waits", 0.35) });
        tenants.record(&Finish { admitted: true, cached_tokens: 96, ..finish("goes", 0.1) });
        let fairness = tenants.fairness();
        assert_eq!(fairness.worst_slowdown_tenant.as_deref(), Some("waits"));
        assert!((fairness.worst_slowdown - 4.0).abs() < 1e-9);
        // (4 + 1)² / (2 · (16 + 1)).
        assert!((fairness.jain_slowdown - 25.0 / 34.0).abs() < 1e-9);
        assert_eq!((fairness.admitted.requests, fairness.cold.requests), (1, 1));
        assert_eq!((fairness.admitted.served_hit, fairness.cold.served_hit), (0.96, 0.0));
        assert!(
            (fairness.admitted.slowdown - 1.0).abs() < 1e-9 && (fairness.cold.slowdown - 4.0).abs() < 1e-9
        );
    }

    #[test]
    fn a_tenants_p99_needs_a_hundred_requests_and_is_near_the_true_one() {
        let mut tenants = Tenants::default();
        (0..99).for_each(|_| tenants.record(&finish("few", 9.0)));
        assert_eq!(tenants.fairness().worst_p99_tenant, None);
        // 1,000 values from 1 ms to 1 s: the 990th is 0.99 s.
        (1..=1_000).for_each(|n| tenants.record(&finish("many", f64::from(n) / 1e3)));
        let fairness = tenants.fairness();
        assert_eq!(fairness.worst_p99_tenant.as_deref(), Some("many"));
        let p99_s = fairness.worst_p99_s.expect("is told");
        assert!((0.99..=0.99 * 1.0625).contains(&p99_s), "{p99_s}");
        let mut none = Buckets::default();
        none.record(0.0);
        assert!(none.p99_s() > 0.0 && none.p99_s() < 1e-7);
    }
}

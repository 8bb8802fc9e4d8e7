//! Fairness between tenants.

use crate::summary::Fairness;
use compact_str::CompactString;
use rustc_hash::FxHashMap;

/// Each tenant's sum and number of TTFTs. Grows with the tenants, not with the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tenants {
    by_tenant: FxHashMap<CompactString, (f64, u64)>,
}

impl Tenants {
    pub(super) fn record(&mut self, tenant: &CompactString, ttft_s: f64) {
        // Known tenants, by far the most, need no copy of the name.
        match self.by_tenant.get_mut(tenant) {
            Some((sum_s, count)) => {
                *sum_s += ttft_s;
                *count += 1;
            }
            None => {
                self.by_tenant.insert(tenant.clone(), (ttft_s, 1));
            }
        }
    }

    /// Jain, Chiu and Hawe (1984): (Σ x)² / (n Σ x²) over the tenants' mean TTFT x.
    pub(super) fn fairness(&self) -> Fairness {
        let mut means: Vec<(&str, f64)> = self
            .by_tenant
            .iter()
            .map(|(tenant, &(sum_s, count))| (tenant.as_str(), sum_s / count as f64))
            .collect();
        if means.is_empty() {
            return Fairness::default();
        }
        // By name, so that sums and ties do not depend on the order of a hash map.
        means.sort_unstable_by_key(|&(tenant, _)| tenant);
        let n = means.len() as f64;
        let sum: f64 = means.iter().map(|(_, x)| x).sum();
        let squares: f64 = means.iter().map(|(_, x)| x * x).sum();
        let mut worst = means[0];
        for &tenant in &means[1..] {
            if tenant.1 > worst.1 {
                worst = tenant;
            }
        }
        let all_zero = squares <= 0.0;
        Fairness {
            jain: if all_zero { 1.0 } else { (sum * sum / (n * squares)).min(1.0) },
            worst_tenant: Some(worst.0.to_owned()),
            worst_ratio: if all_zero { 1.0 } else { worst.1 * n / sum },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(&str, f64)]) -> Fairness {
        let mut tenants = Tenants::default();
        values.iter().for_each(|&(tenant, ttft_s)| tenants.record(&tenant.into(), ttft_s));
        tenants.fairness()
    }

    #[test]
    fn equal_tenants_are_fair() {
        let fair = of(&[("a", 0.2), ("b", 0.1), ("b", 0.3)]);
        assert!((fair.jain - 1.0).abs() < 1e-12);
        assert_eq!(fair.worst_tenant.as_deref(), Some("a"));
        assert!((fair.worst_ratio - 1.0).abs() < 1e-12);
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
}

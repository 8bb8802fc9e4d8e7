//! What a result hangs on: the ranking and the verdict as each parameter moves by itself over its plausible range.

use crate::record::Record;
use crate::regimes;
use crate::verdict::{self, Outcome};

/// One value of one parameter, all others as the suite has them.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The value.
    pub point: String,
    /// Policies from the best down, and what each is ranked by.
    pub ranking: Vec<(String, String)>,
    /// The candidate against the baseline.
    pub outcome: Outcome,
    /// Their ratio (see [`regimes::ratio`]), and whether it is only a bound.
    pub ratio: Option<(f64, bool)>,
}

/// A parameter and its values.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its values, in order.
    pub settings: Vec<Setting>,
}

/// The suite as it stands, and every parameter.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// As it stands.
    pub base: Setting,
    /// In the order of the suite.
    pub parameters: Vec<Parameter>,
}

impl Setting {
    fn of(point: &str, part: &Record) -> Setting {
        Setting {
            point: point.into(),
            ranking: ranking(part),
            outcome: verdict::of_record(part).map_or(Outcome::Open, |verdict| verdict.outcome),
            ratio: regimes::ratio(part),
        }
    }

    /// The names, best first.
    pub fn order(&self) -> Vec<&str> {
        self.ranking.iter().map(|(policy, _)| policy.as_str()).collect()
    }

    /// The best policy.
    pub fn first(&self) -> Option<&str> {
        self.ranking.first().map(|(policy, _)| policy.as_str())
    }

    /// What is another here than in `base`: nothing, the order, who is first, or the verdict.
    pub fn change(&self, base: &Setting) -> &'static str {
        match () {
            () if self.outcome != base.outcome => "verdict flips",
            () if self.first() != base.first() => "another is first",
            () if self.order() != base.order() => "order changes",
            () => "",
        }
    }
}

impl Parameter {
    /// The lowest and the highest ratio, with that of the base.
    pub fn reach(&self, base: &Setting) -> Option<(f64, f64)> {
        let ratios =
            self.settings.iter().chain([base]).filter_map(|setting| setting.ratio).map(|(ratio, _)| ratio);
        ratios.fold(None, |reach, ratio| {
            let (low, high): (f64, f64) = reach.unwrap_or((ratio, ratio));
            Some((low.min(ratio), high.max(ratio)))
        })
    }
}

/// Policies from the best down: by mean capacity where there is one, otherwise by the p99 of TTFT at the rate of comparison,
/// saturated ones last. Equal ones keep the order of the suite.
pub fn ranking(part: &Record) -> Vec<(String, String)> {
    let at = part.reference_rate();
    let mut ranked: Vec<(f64, String, String)> = part
        .policies()
        .into_iter()
        .filter_map(|policy| {
            let capacity = part.objective().and_then(|objective| part.capacity(policy, objective));
            let (key, text) = match (capacity, part.cell(policy, at)?) {
                (Some(capacity), _) => (-capacity.mean_qps.mean, capacity.quoted()),
                (None, cell) if cell.saturated() => (f64::INFINITY, "saturated".into()),
                (None, cell) => {
                    let p99 = cell.metric("ttft_p99_s");
                    (p99.mean, crate::format::seconds_plus_minus(p99.mean, p99.ci95))
                }
            };
            Some((key, policy.to_owned(), text))
        })
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked.into_iter().map(|(_, policy, text)| (policy, text)).collect()
}

/// From a record whose variants move one parameter each; the variant without a point is the base. None for other records.
pub fn of_record(record: &Record) -> Option<Sensitivity> {
    let design = &record.file.design;
    if !design.one_at_a_time {
        return None;
    }
    let base = design.variants.iter().find(|variant| variant.at.is_empty())?;
    let parameter = |axis: &crate::design::Axis| {
        let settings = axis.points.iter().filter_map(|point| {
            let variant = design.variants.iter().find(|variant| variant.at.get(&axis.name) == Some(point))?;
            Some(Setting::of(point, &record.of_variant(&variant.label)))
        });
        Parameter { name: axis.name.clone(), settings: settings.collect() }
    };
    Some(Sensitivity {
        base: Setting::of(&base.label, &record.of_variant(&base.label)),
        parameters: design.axes.iter().map(parameter).collect(),
    })
}

//! Parameters that vary: named axes over any field of the suite.

use super::Suite;
use cr_trace::config_text::near_miss;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Most variants of one suite.
const MAX_VARIANTS: usize = 10_000;

/// Fields that belong to the suite as a whole; no variant may set them.
const WHOLE: [&str; 13] = [
    "schema",
    "name",
    "title",
    "vary",
    "seeds",
    "policies",
    "baseline",
    "candidate",
    "load",
    "sensitivity",
    "map",
    "claims",
    "published",
];

/// A parameter that varies: a field and its values, or points that set several fields each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Its name in reports.
    pub name: String,
    /// The field, as in `fleet.shards` or `workload.prompt.1.tokens` (counted from 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Its values, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Value>,
    /// Instead of field and values: points that set several fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
}

/// A point of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Its name in reports.
    pub label: String,
    /// Values by field.
    pub set: BTreeMap<String, Value>,
}

/// One combination of points, as a suite of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// As in `shards 8, keys 128`; none where nothing varies.
    pub label: Option<String>,
    /// The point on each axis.
    pub at: BTreeMap<String, String>,
    /// The suite with the points' values set.
    pub suite: Suite,
}

impl Axis {
    /// Its points, however they were written.
    pub fn points(&self) -> Vec<Point> {
        match &self.field {
            Some(field) => {
                let set = |value: &Value| BTreeMap::from([(field.clone(), value.clone())]);
                self.values.iter().map(|value| Point { label: label(value), set: set(value) }).collect()
            }
            None => self.points.clone(),
        }
    }

    fn fault(&self) -> Option<String> {
        let name = &self.name;
        match (&self.field, self.values.is_empty(), self.points.is_empty()) {
            (Some(_), false, true) | (None, true, false) => {}
            _ => {
                return Some(format!(
                    "vary {name:?} needs either field and values, or points with label and set"
                ));
            }
        }
        let labels: Vec<String> = self.points().into_iter().map(|point| point.label).collect();
        let twice = labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label));
        twice.map(|(_, label)| format!("vary {name:?} has the point {label} twice"))
    }
}

/// Two axes of one name, or that set the same field: the later one would win without a word.
fn clash(axes: &[Axis]) -> Option<String> {
    for (index, axis) in axes.iter().enumerate() {
        let sets = |axis: &Axis| -> Vec<String> {
            axis.points().into_iter().flat_map(|point| point.set.into_keys()).collect()
        };
        let own = sets(axis);
        for other in &axes[..index] {
            if other.name == axis.name {
                return Some(format!("vary has two axes named {:?}", axis.name));
            }
            // A table holds its fields.
            let holds = |one: &str, other: &str| {
                one == other || other.strip_prefix(one).is_some_and(|rest| rest.starts_with('.'))
            };
            let meets = |field: &String| own.iter().any(|mine| holds(mine, field) || holds(field, mine));
            if let Some(field) = sets(other).into_iter().find(meets) {
                return Some(format!("vary {:?} and {:?} both set {field}", other.name, axis.name));
            }
        }
    }
    None
}

/// A value as a report writes it.
fn label(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Suite {
    /// Every combination of the points of all axes, the last axis fastest; the suite itself where nothing varies.
    ///
    /// # Errors
    /// An axis without points, a field that there is not, or a value that it cannot have.
    pub fn variants(&self) -> Result<Vec<Variant>, String> {
        if self.vary.is_empty() {
            return Ok(vec![Variant { label: None, at: BTreeMap::new(), suite: self.clone() }]);
        }
        if let Some(fault) = self.vary.iter().find_map(Axis::fault).or_else(|| clash(&self.vary)) {
            return Err(fault);
        }
        let axes: Vec<Vec<Point>> = self.vary.iter().map(Axis::points).collect();
        let count = axes.iter().try_fold(1usize, |count, points| count.checked_mul(points.len()));
        let Some(count) = count.filter(|&count| count <= MAX_VARIANTS) else {
            return Err(format!("the axes of vary make more than {MAX_VARIANTS} variants"));
        };
        (0..count).map(|index| self.variant(&axes, index)).collect()
    }

    /// The suite as it stands (its first variant, where parameters vary), then one variant for every value of every parameter of
    /// `sensitivity`, moved by itself.
    ///
    /// # Errors
    /// As [`Suite::variants`].
    pub fn sensitivity_variants(&self) -> Result<Vec<Variant>, String> {
        let base = match self.variants()?.into_iter().next() {
            Some(first) => Suite { vary: Vec::new(), ..first.suite },
            None => return Err("the suite has no variant".into()),
        };
        let label = Some("as it stands".to_owned());
        let mut variants = vec![Variant { label, at: BTreeMap::new(), suite: base.clone() }];
        for axis in &self.sensitivity {
            if let Some(fault) = axis.fault() {
                return Err(fault.replacen("vary", "sensitivity", 1));
            }
            for point in axis.points() {
                let label = format!("{} {}", axis.name, point.label);
                let suite =
                    base.with(point.set.iter()).map_err(|what| format!("sensitivity {label:?}: {what}"))?;
                let at = BTreeMap::from([(axis.name.clone(), point.label)]);
                variants.push(Variant { label: Some(label), at, suite });
            }
        }
        Ok(variants)
    }

    fn variant(&self, axes: &[Vec<Point>], index: usize) -> Result<Variant, String> {
        let mut left = index;
        let mut chosen: Vec<&Point> = Vec::with_capacity(axes.len());
        for points in axes.iter().rev() {
            chosen.push(&points[left % points.len()]);
            left /= points.len();
        }
        chosen.reverse();
        let named = || self.vary.iter().zip(&chosen);
        let label = named().map(|(axis, point)| format!("{} {}", axis.name, point.label)).collect::<Vec<_>>();
        let label = label.join(", ");
        let suite = self
            .with(chosen.iter().flat_map(|point| &point.set))
            .map_err(|what| format!("variant {label:?}: {what}"))?;
        let at = named().map(|(axis, point)| (axis.name.clone(), point.label.clone())).collect();
        Ok(Variant { label: Some(label), at, suite })
    }

    /// The suite with fields set, and nothing varied.
    ///
    /// # Errors
    /// A field that there is not, or a value that it cannot have.
    pub fn with<'a>(&self, set: impl Iterator<Item = (&'a String, &'a Value)>) -> Result<Suite, String> {
        let plain = Suite {
            vary: Vec::new(),
            sensitivity: Vec::new(),
            claims: Vec::new(),
            published: Vec::new(),
            map: None,
            ..self.clone()
        };
        let mut root = Value::try_from(&plain).map_err(|error| error.to_string())?;
        for (field, value) in set {
            put(&mut root, field, value)?;
        }
        let mut suite: Suite =
            root.try_into().map_err(|error: toml::de::Error| near_miss(error.message()))?;
        suite.folder.clone_from(&self.folder);
        match suite.fault() {
            Some(what) => Err(what),
            None => Ok(suite),
        }
    }
}

/// Sets one field of a table by its dotted path; numbers count the entries of a list.
fn put(root: &mut Value, field: &str, value: &Value) -> Result<(), String> {
    if WHOLE.contains(&field.split('.').next().unwrap_or_default()) {
        return Err(format!("{field} belongs to the whole suite and cannot vary"));
    }
    let mut at = root;
    for step in field.split('.') {
        at = match at {
            _ if step.is_empty() => return Err(format!("{field:?} is no field")),
            Value::Table(inner) => inner.entry(step.to_owned()).or_insert_with(|| Value::Table(Table::new())),
            Value::Array(items) => entry(items, step, field)?,
            _ => return Err(format!("{field}: {step:?} lies in no table")),
        };
    }
    *at = value.clone();
    Ok(())
}

fn entry<'a>(items: &'a mut [Value], step: &str, field: &str) -> Result<&'a mut Value, String> {
    let count = items.len();
    step.parse::<usize>()
        .ok()
        .and_then(|index| items.get_mut(index))
        .ok_or_else(|| format!("{field}: {step:?} is no entry of a list of {count}; entries count from 0"))
}

//! The JSON of a table, in the order of fields that the contract shows. Keys come sorted, shards ascending.

use super::{RoutingTable, SCHEMA, ShardSet, TableMeta};
use cr_trace::{Key, TraceDigest};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

impl Serialize for RoutingTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = &self.meta;
        let optional = [
            self.rates.is_empty(),
            self.prefix_tokens.is_empty(),
            meta.shard_capacity.is_empty(),
            meta.expected_work.is_empty(),
            meta.source.is_none(),
        ];
        let optional = optional.into_iter().filter(|is_empty| !is_empty).count();
        let mut out = serializer.serialize_struct("RoutingTable", 14 + optional)?;
        out.serialize_field("schema", SCHEMA)?;
        out.serialize_field("generator", &meta.generator)?;
        out.serialize_field("shards", &meta.shards)?;
        out.serialize_field("qcap", &meta.qcap)?;
        out.serialize_field("warm_slots", &meta.warm_slots)?;
        out.serialize_field("capacity", &meta.capacity)?;
        out.serialize_field("from_s", &meta.from_s)?;
        out.serialize_field("in_sample", &meta.in_sample)?;
        if let Some(source) = &meta.source {
            out.serialize_field("source", source)?;
        }
        out.serialize_field("admitted_keys", &self.places.len())?;
        out.serialize_field("admitted_rate", &meta.admitted_rate)?;
        out.serialize_field("cold_rate", &meta.cold_rate)?;
        out.serialize_field("expected_load", &meta.expected_load)?;
        out.serialize_field("imbalance", &meta.imbalance)?;
        if !meta.shard_capacity.is_empty() {
            out.serialize_field("shard_capacity", &meta.shard_capacity)?;
        }
        if !meta.expected_work.is_empty() {
            out.serialize_field("expected_work", &meta.expected_work)?;
        }
        out.serialize_field("keys", &self.places)?;
        if !self.rates.is_empty() {
            out.serialize_field("rates", &AsMap(&self.rates))?;
        }
        if !self.prefix_tokens.is_empty() {
            out.serialize_field("prefix_tokens", &AsMap(&self.prefix_tokens))?;
        }
        out.end()
    }
}

/// Pairs, written as a JSON object in their order.
struct AsMap<'a, T>(&'a [(Key, T)]);

impl<T: Serialize> Serialize for AsMap<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A JSON object as pairs in file order, so that a key that is there twice is seen and not overwritten.
struct Pairs<T>(Vec<(Key, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Pairs<T> {
        Pairs(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<T>, D::Error> {
        struct Collect<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Collect<T> {
            type Value = Pairs<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one entry a key")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect(PhantomData))
    }
}

/// The fields as they stand in a file. Unknown ones are ignored: a field may be added to the schema.
#[derive(Deserialize)]
#[serde(expecting = "a routing table, which is a JSON object")]
struct Wire {
    schema: String,
    #[serde(default)]
    generator: String,
    shards: u32,
    qcap: f64,
    warm_slots: f64,
    capacity: f64,
    #[serde(default)]
    from_s: f64,
    #[serde(default)]
    in_sample: bool,
    #[serde(default)]
    source: Option<TraceDigest>,
    admitted_keys: usize,
    admitted_rate: f64,
    cold_rate: f64,
    expected_load: Vec<f64>,
    imbalance: f64,
    #[serde(default)]
    shard_capacity: Vec<f64>,
    #[serde(default)]
    expected_work: Vec<f64>,
    keys: Pairs<ShardSet>,
    #[serde(default)]
    rates: Pairs<f64>,
    #[serde(default)]
    prefix_tokens: Pairs<u64>,
}

impl<'de> Deserialize<'de> for RoutingTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RoutingTable, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        if wire.schema != SCHEMA {
            return Err(D::Error::custom(format!("schema is {:?}, expected {SCHEMA:?}", wire.schema)));
        }
        if wire.admitted_keys != wire.keys.0.len() {
            let (said, found) = (wire.admitted_keys, wire.keys.0.len());
            return Err(D::Error::custom(format!("admitted_keys is {said}, but keys has {found} entries")));
        }
        let meta = TableMeta {
            generator: wire.generator,
            shards: wire.shards,
            qcap: wire.qcap,
            warm_slots: wire.warm_slots,
            capacity: wire.capacity,
            from_s: wire.from_s,
            in_sample: wire.in_sample,
            source: wire.source,
            admitted_rate: wire.admitted_rate,
            cold_rate: wire.cold_rate,
            expected_load: wire.expected_load,
            imbalance: wire.imbalance,
            shard_capacity: wire.shard_capacity,
            expected_work: wire.expected_work,
        };
        RoutingTable::new(meta, wire.keys.0)
            .and_then(|table| table.with_rates(wire.rates.0))
            .and_then(|table| table.with_prefix_tokens(wire.prefix_tokens.0))
            .map_err(D::Error::custom)
    }
}

//! What the planner is told, and what it refuses.

use crate::table::MAX_SHARDS;
use cr_trace::number::plain;

/// The shards of a fleet and how fast each is, relative to the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// One entry a shard; 0 marks one that is down.
    speeds: Vec<f64>,
}

impl Fleet {
    /// Equal shards, all up.
    pub fn uniform(shards: u32) -> Fleet {
        // One more than allowed is refused just as well, and never asks for gigabytes.
        Fleet { speeds: vec![1.0; shards.min(MAX_SHARDS + 1) as usize] }
    }

    /// Shards of these relative speeds, 0 for one that is down.
    pub fn with_speeds(speeds: Vec<f64>) -> Fleet {
        Fleet { speeds }
    }

    /// Whether all shards are alike and up.
    pub fn is_uniform(&self) -> bool {
        self.speeds.iter().all(|&speed| speed == 1.0)
    }

    /// The number of shards, up or not.
    pub fn shards(&self) -> u32 {
        self.speeds.len() as u32
    }

    /// The number of shards that are up.
    pub fn up(&self) -> u32 {
        self.speeds.iter().filter(|&&speed| speed > 0.0).count() as u32
    }

    /// Relative speed of each shard.
    pub fn speeds(&self) -> &[f64] {
        &self.speeds
    }

    /// Σ of the speeds: how many shards of speed 1 the fleet is worth.
    pub fn total_speed(&self) -> f64 {
        self.speeds.iter().sum()
    }
}

/// Who gets a place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Admission {
    /// Every prefix takes one warm slot: the paper's rule, by decreasing rate.
    #[default]
    Slots,
    /// Every prefix takes its tokens: by hit tokens won per second and KV token kept.
    Tokens {
        /// KV tokens that one shard of speed 1 can keep.
        kv_tokens: f64,
    },
}

/// Where admitted keys go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Longest processing time first: the paper's rule.
    #[default]
    Lpt,
    /// The same, then moves and swaps until none lowers the highest load.
    LptRefine,
    /// Distinct shards at random.
    Random {
        /// Of the stream `placement`.
        seed: u64,
    },
    /// The first distinct shards clockwise on the consistent ring of `sticky`.
    Hash,
    /// The next shards in turn, in plan order.
    RoundRobin,
}

/// What a plan is made for.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanConfig {
    /// The shards.
    pub fleet: Fleet,
    /// The rate that one shard can serve of one key, in requests per second; above 0.
    pub qcap: f64,
    /// Warm prefixes that one shard of speed 1 can keep; measured, may be fractional.
    pub warm_slots: f64,
    /// The work that one shard of speed 1 can do for one key, in seconds of prefill per second; above 0. Counts only
    /// where the demand tells the work of keys.
    pub work_cap: Option<f64>,
    /// Who gets a place.
    pub admission: Admission,
    /// Where.
    pub placement: Placement,
}

impl PlanConfig {
    /// The paper's plan for equal shards.
    pub fn new(shards: u32, qcap: f64, warm_slots: f64) -> PlanConfig {
        PlanConfig::for_fleet(Fleet::uniform(shards), qcap, warm_slots)
    }

    /// The paper's plan for these shards.
    pub fn for_fleet(fleet: Fleet, qcap: f64, warm_slots: f64) -> PlanConfig {
        PlanConfig {
            fleet,
            qcap,
            warm_slots,
            work_cap: None,
            admission: Admission::default(),
            placement: Placement::default(),
        }
    }

    /// `C = R·W`, the copies that may be placed in all. Shards count by their speed, those that are down not at all.
    pub fn capacity(&self) -> f64 {
        self.fleet.total_speed() * self.warm_slots
    }

    /// Scales what a shard keeps: slots, or tokens where these decide.
    pub(super) fn scale_budget(&mut self, factor: f64) {
        match &mut self.admission {
            Admission::Slots => self.warm_slots *= factor,
            Admission::Tokens { kv_tokens } => *kv_tokens *= factor,
        }
    }

    pub(super) fn check(&self) -> Result<(), PlanError> {
        let shards = self.fleet.speeds.len();
        if shards == 0 || shards > MAX_SHARDS as usize {
            return Err(PlanError::Shards { shards });
        }
        if let Some((shard, &speed)) =
            self.fleet.speeds.iter().enumerate().find(|(_, speed)| !(0.0..=1e6).contains(*speed))
        {
            return Err(PlanError::Speed { shard, speed });
        }
        if self.fleet.up() == 0 {
            return Err(PlanError::AllDown);
        }
        if !(self.qcap.is_finite() && self.qcap > 0.0) {
            return Err(PlanError::Qcap { qcap: self.qcap });
        }
        if !(0.0..=1e15).contains(&self.warm_slots) {
            return Err(PlanError::WarmSlots { warm_slots: self.warm_slots });
        }
        if let Some(work_cap) = self.work_cap
            && !(work_cap.is_finite() && work_cap > 0.0)
        {
            return Err(PlanError::WorkCap { work_cap });
        }
        if let Admission::Tokens { kv_tokens } = self.admission
            && !(0.0..=1e15).contains(&kv_tokens)
        {
            return Err(PlanError::KvTokens { kv_tokens });
        }
        Ok(())
    }
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The fleet is empty or absurd.
    #[error("{shards} shards; a fleet has 1 to {MAX_SHARDS}")]
    Shards {
        /// What was given.
        shards: usize,
    },
    /// A speed that no shard has.
    #[error("shard {shard} has the relative capacity {}; it is a number from 0 (down) to 1,000,000", plain(*.speed))]
    Speed {
        /// Which shard.
        shard: usize,
        /// What was given.
        speed: f64,
    },
    /// Nobody left to serve.
    #[error("no shard is up")]
    AllDown,
    /// A ceiling that makes no sense.
    #[error("qcap is {}; it is a finite rate above 0, in requests per second", plain(*.qcap))]
    Qcap {
        /// What was given.
        qcap: f64,
    },
    /// A number of slots that makes no sense.
    #[error("warm_slots is {}; it is a finite number of prefixes a shard, not negative", plain(*.warm_slots))]
    WarmSlots {
        /// What was given.
        warm_slots: f64,
    },
    /// A ceiling that makes no sense.
    #[error("work_cap is {}; it is a finite number of seconds of prefill per second, above 0", plain(*.work_cap))]
    WorkCap {
        /// What was given.
        work_cap: f64,
    },
    /// A pool that makes no sense.
    #[error("kv_tokens is {}; it is a finite number of tokens a shard, not negative", plain(*.kv_tokens))]
    KvTokens {
        /// What was given.
        kv_tokens: f64,
    },
    /// Admission by tokens without knowing them.
    #[error(
        "admission by tokens needs each key's prefix_tokens; plan from a trace, or give them beside the rates"
    )]
    NoPrefixTokens,
    /// Placement by hash without names.
    #[error("placement by hash needs the names of the keys")]
    NoNames,
    /// Lists of different lengths.
    #[error("{what} has {found} entries for {keys} keys")]
    Lengths {
        /// Which list.
        what: &'static str,
        /// Its entries.
        found: usize,
        /// The number of rates.
        keys: usize,
    },
    /// A rate that no key can have.
    #[error("the rate at position {at} is {}; a rate is finite and not negative", plain(*.rate))]
    Rate {
        /// Position in the list, from 0.
        at: usize,
        /// What was given.
        rate: f64,
    },
    /// Work that no key can need.
    #[error("the work at position {at} is {}; it is finite and not negative", plain(*.work))]
    Work {
        /// Position in the list, from 0.
        at: usize,
        /// What was given.
        work: f64,
    },
    /// The rates overflow.
    #[error("the rates add up to more than a floating-point number holds")]
    Overflow,
    /// The table of the plan is refused.
    #[error(transparent)]
    Table(#[from] crate::table::TableError),
    /// More keys than ids.
    #[error("{keys} keys; at most 4,294,967,295 can be planned at once")]
    TooMany {
        /// What was given.
        keys: usize,
    },
}

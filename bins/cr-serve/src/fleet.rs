//! Flags that say what happens to the fleet: faults, replanning, routers and what they see, what policies assume.

use clap::{Args as ClapArgs, ValueEnum};
use cr_cli::{bad_input, quantity};
use cr_engine::ShardConfig;
use cr_replay::{Assume, Engine, Fault, Replan};
use cr_routing::policy::{PolicyTuning, Redirect};

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Control loop")]
pub(crate) struct ReplanArgs {
    /// Plan anew every interval, from the rates of the one before
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) replan: Option<f64>,
    /// With --replan: use rates that are this many intervals older
    #[arg(long, value_name = "K", requires = "replan", default_value_t = 0)]
    stale: u32,
    /// With --replan: plan each interval from its own requests, an oracle
    #[arg(long, requires = "replan", conflicts_with = "stale")]
    fresh: bool,
    /// With --replan: change at most this share of the (key, shard) pairs; a plain plan where absent
    #[arg(long, value_name = "SHARE", requires = "replan", value_parser = quantity::share)]
    max_churn: Option<f64>,
    /// With --replan: count with decay instead of by interval; a count halves every N requests
    #[arg(long, value_name = "N", requires = "replan", conflicts_with = "fresh", value_parser = quantity::positive_u32)]
    half_life: Option<u32>,
}

impl ReplanArgs {
    /// The control loop that was asked for.
    pub(crate) fn replan(
        &self,
        qcap: Option<f64>,
        warm_slots: Option<f64>,
    ) -> anyhow::Result<Option<Replan>> {
        let Some(interval_s) = self.replan else { return Ok(None) };
        let replan = Replan {
            interval_s,
            stale: self.stale,
            fresh: self.fresh,
            max_churn: self.max_churn,
            half_life: self.half_life.map(f64::from),
            qcap,
            warm_slots,
        };
        replan.fault().map_or(Ok(Some(replan)), |what| Err(bad_input(format!("--replan: {what}"))))
    }
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// What happens to a shard, in quotes: "down 3 at 60s for 30s", "slow 3 at 60s for 30s by 2x", "cold 3 at 60s";
    /// may be repeated
    #[arg(long = "fault", value_name = "FAULT", value_parser = fault)]
    pub(crate) faults: Vec<Fault>,
    /// Routers see the fleet as it was this long ago, and their own sends since
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = quantity::seconds)]
    pub(crate) view_lag: f64,
    /// Routers that share the fleet; requests are dealt to them in turn
    #[arg(long, value_name = "N", default_value = "1", value_parser = routers)]
    pub(crate) routers: u32,
    /// Evict blocks of keys that are not admitted first
    #[arg(long)]
    pub(crate) protect_admitted: bool,
}

fn fault(text: &str) -> Result<Fault, String> {
    text.parse().map_err(|e: cr_replay::faults::FaultError| e.to_string())
}

fn routers(text: &str) -> Result<u32, String> {
    match quantity::positive_u32(text)? {
        n if n <= cr_replay::limits::MAX_ROUTERS => Ok(n),
        n => Err(format!("{n} routers; at most {}", cr_replay::limits::MAX_ROUTERS)),
    }
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "What policies assume")]
pub(crate) struct AssumeArgs {
    /// chwbl: slack over the mean load
    #[arg(long, value_name = "E", default_value = "0.25", value_parser = epsilon)]
    chwbl_epsilon: f64,
    /// dualmap: TTFT within which pending prefill must clear [default: --slo-ttft-p99, else 3.5s]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    dualmap_slo: Option<f64>,
    /// dualmap: prefill tokens per second that a shard clears [default: of the cost model in use, else the published 70B]
    #[arg(long, value_name = "N", value_parser = quantity::positive)]
    dualmap_drain: Option<f64>,
    /// dualmap, preble, lru-oracle: KV tokens that they take a shard to have [default: what it has]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    assumed_kv_tokens: Option<u64>,
    /// preble: the history that loads look back on, in whole seconds [default: 180s]
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    preble_window: Option<u32>,
    /// preble: the ratio of loads above which a holder gives way [default: 1.5]
    #[arg(long, value_name = "RATIO", value_parser = quantity::positive)]
    preble_load_ratio: Option<f64>,
    /// preble: which holders give way [default: heaviest]
    #[arg(long, value_name = "RULE", value_enum)]
    preble_redirect: Option<RedirectRule>,
}

/// The choices of `--preble-redirect`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RedirectRule {
    /// The most loaded, above the ratio times the least load
    Heaviest,
    /// Any, above the ratio times the least load
    OverLeast,
    /// Any, above the ratio times the mean load
    OverMean,
}

impl From<RedirectRule> for Redirect {
    fn from(rule: RedirectRule) -> Redirect {
        match rule {
            RedirectRule::Heaviest => Redirect::Heaviest,
            RedirectRule::OverLeast => Redirect::OverLeast,
            RedirectRule::OverMean => Redirect::OverMean,
        }
    }
}

fn whole_seconds(text: &str) -> Result<u32, String> {
    match quantity::seconds(text)? {
        value if value >= 1.0 && value.fract() == 0.0 && value <= f64::from(u32::MAX) => Ok(value as u32),
        _ => Err(format!("{text:?} is no number of whole seconds; write 180s or 3m")),
    }
}

fn epsilon(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err(format!("{text:?} is no slack; it is a number from 0 on, such as 0.25")),
    }
}

impl AssumeArgs {
    /// What policies assume of these shards.
    pub(crate) fn tuning(
        &self,
        engine: &Engine,
        shard: &ShardConfig,
        slo_ttft_s: Option<f64>,
    ) -> PolicyTuning {
        let assume = Assume {
            chwbl_epsilon: Some(self.chwbl_epsilon),
            dualmap_slo_s: self.dualmap_slo,
            dualmap_drain: self.dualmap_drain,
            kv_tokens: self.assumed_kv_tokens,
            preble_window_s: self.preble_window,
            preble_load_ratio: self.preble_load_ratio,
            preble_redirect: self.preble_redirect.map(Redirect::from),
        };
        assume.over(engine.tuning(shard), slo_ttft_s)
    }
}

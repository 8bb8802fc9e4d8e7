//! Planning: rates in, a table out.

use crate::args::{ChurnArgs, Format, OutputArgs, PlanArgs};
use crate::{model, show, stream};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, Input, InputContext, Output, bad_input};
use cr_cost::CostModel;
use cr_routing::planner::{
    ChurnLimits, PlanConfig, RATES_BELOW_KEYS, ReplanReport, TableOptions, TokenBudget, plan_demand, replan,
};
use cr_routing::rates::{KeyRates, Source, read_rates};
use cr_routing::table::{RoutingTable, read_tables, write_table};
use std::io::Write;

/// The `generator` of tables.
const GENERATOR: &str = concat!("cr-plan ", env!("CARGO_PKG_VERSION"));

pub(crate) fn run(args: &PlanArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let planner = Planner::new(args)?;
    planner.scaled().iter().for_each(|note| common.note(note));
    if let Some(interval_s) = args.stream.interval {
        return stream::run(args, planner, interval_s, common);
    }
    Interrupt::end_at_once()?;
    let input = Input::open(&args.input)?;
    let (rates, source) = read_rates(input.reader, &input.name).bad_input()?;
    let planned = planner.plan(&rates, 0.0, source == Source::Trace)?;
    let mut out = Output::create(args.output.output.as_deref())?;
    write(&planned.table, args.output.format, &mut out)?;
    out.finish()?;
    planned.notes(rates.len()).iter().for_each(|note| common.note(note));
    Ok(Exit::Done)
}

pub(crate) fn write(table: &RoutingTable, format: Format, out: &mut Output) -> std::io::Result<()> {
    match format {
        Format::Json => write_table(table, out),
        Format::Text => out.write_all(show::overview(table).as_bytes()),
    }
}

/// Everything that turns rates into a table.
pub(crate) struct Planner {
    config: PlanConfig,
    cost: Option<CostModel>,
    /// Whether to carry rates; by the number of keys where nothing is said.
    with_rates: Option<bool>,
    limits: Option<ChurnLimits>,
    previous: Option<RoutingTable>,
}

/// A table and what there is to say about it.
pub(crate) struct Planned {
    pub(crate) table: RoutingTable,
    tokens: Option<TokenBudget>,
    replan: Option<ReplanReport>,
}

impl Planner {
    fn new(args: &PlanArgs) -> anyhow::Result<Planner> {
        let previous = previous(&args.churn)?;
        let ChurnArgs { max_churn, move_cost, .. } = args.churn;
        let bounded = max_churn.is_some() || move_cost.is_some();
        if bounded && previous.is_none() && args.stream.interval.is_none() {
            return Err(bad_input(
                "--max-churn and --move-cost need a table to start from: --previous TABLE",
            ));
        }
        let OutputArgs { with_rates, no_rates, .. } = args.output;
        Ok(Planner {
            config: args.model.config()?,
            cost: args.model.cost()?,
            with_rates: (with_rates || no_rates).then_some(with_rates),
            limits: (bounded || previous.is_some()).then_some(ChurnLimits { max_churn, move_cost }),
            previous,
        })
    }

    /// What there is to say where the previous table is for another fleet.
    fn scaled(&self) -> Option<String> {
        let (before, now) = (self.previous.as_ref()?.shards(), self.config.fleet.shards());
        match now {
            _ if now == before => None,
            _ if now < before => Some(format!(
                "the previous table is for {before} shards, this plan for {now}: what shards {now} to {} kept has to move",
                before - 1
            )),
            _ => Some(format!(
                "the previous table is for {before} shards, this plan for {now}: shards {before} to {} begin empty, and fill as \
                 far as --max-churn lets them",
                now - 1
            )),
        }
    }

    /// Plans, from the previous table where there is one.
    pub(crate) fn plan(&self, rates: &KeyRates, from_s: f64, in_sample: bool) -> anyhow::Result<Planned> {
        let options = TableOptions {
            generator: GENERATOR.into(),
            from_s,
            in_sample,
            source: rates.source(),
            with_rates: self.with_rates.unwrap_or(rates.len() < RATES_BELOW_KEYS),
        };
        let work = model::work(rates, self.cost.as_ref())?;
        let demand = model::demand(rates, work.as_deref());
        if let (Some(previous), Some(limits)) = (&self.previous, &self.limits) {
            let (table, report) =
                replan(previous, rates, &demand, &self.config, limits, &options).bad_input()?;
            return Ok(Planned { table, tokens: None, replan: Some(report) });
        }
        let plan = plan_demand(&demand, &self.config).bad_input()?;
        let tokens = plan.tokens();
        Ok(Planned { table: plan.into_table(rates, &options).bad_input()?, tokens, replan: None })
    }

    /// Starts the next plan from this table, where churn is bounded.
    pub(crate) fn continue_from(&mut self, table: RoutingTable) {
        if self.limits.is_some() {
            self.previous = Some(table);
        }
    }
}

fn previous(churn: &ChurnArgs) -> anyhow::Result<Option<RoutingTable>> {
    match &churn.previous {
        None => Ok(None),
        Some(path) => {
            let input = Input::open(path)?;
            Ok(read_tables(input.reader, &input.name).bad_input()?.pop())
        }
    }
}

impl Planned {
    /// Lines for people.
    pub(crate) fn notes(&self, keys: usize) -> Vec<String> {
        let meta = self.table.meta();
        let total = meta.admitted_rate + meta.cold_rate;
        let cold = if total > 0.0 { 100.0 * meta.cold_rate / total } else { 0.0 };
        let mut notes = vec![format!(
            "{} of {keys} keys have a place on {} shards; planned imbalance {:.3}, cold {cold:.1} % of the rate",
            self.table.admitted_keys(),
            meta.shards,
            meta.imbalance
        )];
        if let Some(tokens) = &self.tokens {
            notes.push(format!(
                "{:.0} of {:.0} KV tokens kept win {:.1} hit tokens/s; no choice of keys wins more than {:.1}",
                tokens.used, tokens.budget, tokens.won, tokens.bound
            ));
        }
        if let Some(replan) = &self.replan {
            let rewarm =
                replan.diff.rewarm_tokens.map_or(String::new(), |n| format!(", {n} tokens to rewarm"));
            notes.push(format!(
                "churn {:.1} % ({} keys changed{rewarm}), imbalance {:.3} before; a plain plan: churn {:.1} %, imbalance {:.3}",
                100.0 * replan.diff.churn(),
                replan.diff.changed_keys(),
                replan.imbalance_before,
                100.0 * replan.churn_plain,
                replan.imbalance_plain
            ));
        }
        notes
    }
}

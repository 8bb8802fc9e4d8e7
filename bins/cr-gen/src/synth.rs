//! The synthetic workloads: flags or a file become a specification, and the specification requests.

use crate::cli::{
    AggregateArgs, Arrivals, OutArgs, PopulationArgs, SpecArgs, SynthArgs, ThreadsArgs, WhalesArgs, ZipfArgs,
};
use crate::emit::{GENERATOR, emit};
use cr_cli::{CommonArgs, Exit, InputContext, Output, bad_input};
use cr_trace::TraceHeader;
use cr_workload::arrivals::{self, Process};
use cr_workload::drift::Drift;
use cr_workload::popularity::{Law, Popularity, Whales};
use cr_workload::profile::Profile;
use cr_workload::prompt::{Part, PartScope};
use cr_workload::threads::{Loop, Threads};
use cr_workload::{Generator, Length, Spec};
use std::io::Write;
use std::path::Path;

/// σ of the published primary workload.
const PRIMARY_SIGMA: f64 = 1.648;
const DEFAULT_REQUESTS: u64 = 10_000;

impl ZipfArgs {
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        self.synth.spec(self.population.popularity(Law::Zipf, self.keys, self.alpha, 1.0))
    }
}

impl AggregateArgs {
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        self.synth.spec(self.population.popularity(Law::Lognormal, self.keys, self.sigma, PRIMARY_SIGMA))
    }
}

impl WhalesArgs {
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        let base = self.population.popularity(Law::Lognormal, self.keys, self.sigma, PRIMARY_SIGMA);
        let whales = Whales { count: self.count, share: self.share };
        self.synth.spec(Popularity { whales: Some(whales), ..base })
    }
}

impl ThreadsArgs {
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        let mut spec = self.synth.spec(self.population.popularity(Law::Zipf, self.keys, self.alpha, 1.0))?;
        spec.threads = Some(Threads {
            mean_turns: self.turns,
            single_turn_share: self.single_turn_share,
            max_turns: self.max_turns,
            think_s: self.think,
            think_sigma: None,
            mode: if self.closed { Loop::Closed } else { Loop::Open },
            key_per_thread: self.key_per_thread,
        });
        let user = spec.prompt.iter().position(|part| part.scope == PartScope::Request);
        spec.prompt.insert(user.unwrap_or(spec.prompt.len()), Part::thread());
        Ok(spec)
    }
}

impl PopulationArgs {
    /// A law by its parameter, or by --gini, or by a default where neither is given.
    fn popularity(&self, model: Law, keys: u64, parameter: Option<f64>, default: f64) -> Popularity {
        let base = match (model, parameter.or(self.gini.is_none().then_some(default))) {
            (Law::Zipf, Some(alpha)) => Popularity::zipf(keys, alpha),
            (Law::Lognormal, Some(sigma)) => Popularity::lognormal(keys, sigma),
            (model, _) => Popularity::fitted(model, keys, self.gini.unwrap_or_default()),
        };
        let drift = self.drift_sigma.map(|sigma| Drift { sigma, interval_s: self.drift_interval });
        Popularity { max_share: self.max_share, seed: self.population_seed, top_k: self.top_k, drift, ..base }
    }
}

impl Arrivals {
    pub(crate) fn process(self) -> Process {
        match self {
            Arrivals::Poisson => Process::Poisson,
            Arrivals::Constant => Process::Constant,
            Arrivals::Gamma => Process::Gamma,
            Arrivals::Weibull => Process::Weibull,
        }
    }
}

impl SynthArgs {
    fn spec(&self, popularity: Popularity) -> anyhow::Result<Spec> {
        let parts = [
            (PartScope::Global, self.global_tokens, 0.0),
            (PartScope::Key, self.key_tokens, self.key_sigma),
            (PartScope::Request, self.user_tokens, self.user_sigma),
        ];
        let mut prompt = Vec::new();
        for (scope, tokens, sigma) in parts {
            let tokens = u32::try_from(tokens)
                .map_err(|_| bad_input(format!("{tokens} tokens are too many for a part of a prompt")))?;
            if tokens > 0 {
                prompt.push(Part::new(scope, Length::lognormal(tokens, sigma)));
            }
        }
        let process = self.arrivals.process();
        Ok(Spec {
            about: None,
            seed: self.seed,
            requests: self.requests.or(self.duration.is_none().then_some(DEFAULT_REQUESTS)),
            duration_s: self.duration,
            output_tokens: Length::lognormal(self.output_tokens, self.output_sigma),
            popularity,
            arrivals: arrivals::Arrivals { process, cv: self.cv, ..arrivals::Arrivals::poisson(self.qps) },
            rate: self.rate_walk.map(|sigma| Profile::Walk {
                sigma,
                interval_s: self.rate_interval,
                limit: None,
            }),
            threads: None,
            prompt,
        })
    }
}

/// Generates what flags stand for.
pub(crate) fn run(spec: &Spec, args: &SynthArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    generate(spec, Path::new(""), args.print_spec, &args.out, common)
}

/// Generates what a file specifies, with what flags change.
pub(crate) fn run_file(args: &SpecArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let file = args.file.as_str();
    let text = cr_cli::input::read_to_string(file)?;
    let name = if file == "-" { "<stdin>" } else { file };
    let mut spec = Spec::from_toml(&text, name).bad_input()?;
    if args.requests.is_some() || args.duration.is_some() {
        (spec.requests, spec.duration_s) = (args.requests, args.duration);
    }
    spec.arrivals.qps = args.qps.unwrap_or(spec.arrivals.qps);
    spec.seed = args.seed.unwrap_or(spec.seed);
    let folder = if file == "-" { Path::new("") } else { Path::new(file).parent().unwrap_or(Path::new("")) };
    cr_cli::opened::reserve_named(&serde_json::to_value(&spec)?, folder);
    generate(&spec, folder, args.print_spec, &args.out, common)
}

fn generate(
    spec: &Spec,
    folder: &Path,
    print_spec: bool,
    out: &OutArgs,
    common: &CommonArgs,
) -> anyhow::Result<Exit> {
    if print_spec {
        spec.check().bad_input()?;
        let mut output = Output::create(Some(&out.output))?;
        output.write_all(spec.to_toml().bad_input()?.as_bytes())?;
        output.finish()?;
        return Ok(Exit::Done);
    }
    let generator = Generator::new(spec, folder).bad_input()?;
    let header = TraceHeader {
        seed: Some(spec.seed),
        requests: Some(generator.total()),
        duration_s: Some(spec.nominal_duration_s()),
        spec: serde_json::to_value(spec)?,
        ..TraceHeader::new(GENERATOR)
    };
    emit(&mut generator.map(Ok), &header, out, common)
}

//! The synthetic workloads: flags become a specification, and the specification requests.

use crate::cli::{AggregateArgs, Arrivals, PopulationArgs, SynthArgs, ZipfArgs};
use crate::emit::{GENERATOR, emit};
use cr_cli::{CommonArgs, Exit, InputContext};
use cr_trace::TraceHeader;
use cr_workload::arrivals::{self, Process};
use cr_workload::popularity::{Law, Popularity};
use cr_workload::prompt::{Part, PartScope};
use cr_workload::{Generator, Length, Spec};

/// σ of the published primary workload.
const PRIMARY_SIGMA: f64 = 1.648;
const DEFAULT_REQUESTS: u64 = 10_000;

impl ZipfArgs {
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        let alpha = self.alpha.or(self.population.gini.is_none().then_some(1.0));
        self.synth.spec(self.population.popularity(Law::Zipf, self.keys, alpha))
    }
}

impl AggregateArgs {
    pub(crate) fn spec(&self) -> anyhow::Result<Spec> {
        let sigma = self.sigma.or(self.population.gini.is_none().then_some(PRIMARY_SIGMA));
        self.synth.spec(self.population.popularity(Law::Lognormal, self.keys, sigma))
    }
}

impl PopulationArgs {
    fn popularity(&self, model: Law, keys: u64, parameter: Option<f64>) -> Popularity {
        let (alpha, sigma) = match model {
            Law::Zipf => (parameter, None),
            Law::Lognormal => (None, parameter),
        };
        Popularity {
            model,
            keys,
            alpha,
            sigma,
            gini: self.gini,
            max_share: self.max_share,
            seed: self.population_seed,
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
            let tokens = u32::try_from(tokens).map_err(|_| {
                cr_cli::bad_input(format!("{tokens} tokens are too many for a part of a prompt"))
            })?;
            if tokens > 0 {
                prompt.push(Part::new(scope, Length::lognormal(tokens, sigma)));
            }
        }
        let process = match self.arrivals {
            Arrivals::Poisson => Process::Poisson,
            Arrivals::Constant => Process::Constant,
        };
        Ok(Spec {
            seed: self.seed,
            requests: self.requests.or(self.duration.is_none().then_some(DEFAULT_REQUESTS)),
            duration_s: self.duration,
            output_tokens: Length::lognormal(self.output_tokens, self.output_sigma),
            popularity,
            arrivals: arrivals::Arrivals { qps: self.qps, process },
            prompt,
        })
    }
}

/// Generates and writes.
pub(crate) fn run(spec: &Spec, args: &SynthArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let generator = Generator::new(spec).bad_input()?;
    let header = TraceHeader {
        seed: Some(spec.seed),
        requests: Some(generator.total()),
        duration_s: Some(spec.nominal_duration_s()),
        spec: serde_json::to_value(spec)?,
        ..TraceHeader::new(GENERATOR)
    };
    emit(&mut generator.map(Ok), &header, &args.out, common)
}

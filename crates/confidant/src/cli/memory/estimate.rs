//! `confidant memory estimate`: what keeping an artifact costs.

use clap::Args;
use clap::builder::PossibleValuesParser;
use confidant_mcp::{PROVIDERS, provider};
use confidant_memory::cost::{Estimate, Prices, Question, estimate_storage_cost};

use super::super::shared::{JsonArg, Outcome};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  confidant memory estimate 1024 --redundancy 3
  confidant memory estimate 1048576 --provider cascade --json")]
pub(in crate::cli) struct EstimateArgs {
    /// The size of the artifact
    bytes: u64,
    /// How many copies you keep
    #[arg(long, value_name = "N", default_value_t = 1)]
    redundancy: u32,
    /// Whose prices
    #[arg(long, value_name = "PROVIDER", default_value = "s3", value_parser = PossibleValuesParser::new(PROVIDERS))]
    provider: String,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) fn run(args: &EstimateArgs, prices: &Prices) -> anyhow::Result<Outcome> {
    let EstimateArgs { bytes, redundancy, .. } = *args;
    let question = Question { bytes, redundancy, provider: provider(&args.provider)? };
    let estimate = estimate_storage_cost(question, prices)?;
    if args.output.json {
        output::json(&estimate)?;
    } else {
        told(&estimate)?;
    }
    Ok(Outcome::Done)
}

fn told(estimate: &Estimate) -> anyhow::Result<()> {
    let usd = |amount: Option<f64>| match amount {
        Some(amount) => format!("{amount:.12} USD"),
        None => "no exchange rate is set".to_owned(),
    };
    output::line(&format!("storage a month  {}", usd(Some(estimate.monthly_storage_usd))))?;
    output::line(&format!("requests, fees   {}", usd(estimate.estimated_request_usd)))?;
    output::line(&format!("first month      {}", usd(estimate.total_estimated_usd)))?;
    let assumed = &estimate.assumptions;
    if let Some(fee) = &assumed.one_off_fee {
        output::line(&format!("paid once        {} LUME", fee.lume))?;
    }
    output::line(&format!("prices           {}, as of {}", assumed.price_table, assumed.prices_as_of))?;
    output::line(&format!("formula          {}", assumed.formula))
}

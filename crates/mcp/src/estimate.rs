//! `estimate_storage_cost`: arithmetic on dated price tables.

use confidant_memory::cost::{Estimate, Provider, Question, estimate_storage_cost};
use serde_json::{Map, Value};

use super::access::LazyMemory;
use super::arguments::Arguments;
use super::failure::Failure;

/// Reads the arguments and answers, by the prices that the settings name.
pub(super) fn estimate(arguments: &Map<String, Value>, memory: &LazyMemory) -> Result<Estimate, Failure> {
    // Without a memory nothing can be stored, but it can still be said what it would cost.
    Ok(estimate_storage_cost(read(arguments)?, &memory.prices()?)?)
}

pub(super) fn read(arguments: &Map<String, Value>) -> Result<Question, Failure> {
    let given = Arguments::of(arguments, &["bytes", "redundancy", "provider"])?;
    let bytes = given.count("bytes", 0..=confidant_memory::cost::MAX_BYTES)?.ok_or_else(|| {
        Failure::invalid(
            "\"bytes\" is missing",
            "give the size of the artifact: crypto.bytes of a stored one",
        )
    })?;
    let redundancy = given.count("redundancy", 1..=u64::from(confidant_memory::cost::MAX_REDUNDANCY))?;
    Ok(Question {
        bytes,
        redundancy: redundancy.and_then(|copies| u32::try_from(copies).ok()).unwrap_or(1),
        provider: provider(given.word("provider", &PROVIDERS)?.unwrap_or("s3"))?,
    })
}

/// The provider of this name.
pub fn provider(name: &str) -> Result<Provider, Failure> {
    serde_json::from_value(Value::from(name)).map_err(|_| {
        Failure::invalid(format!("the provider must be one of {}", PROVIDERS.join(", ")), "use one of these")
    })
}

/// Whose prices are known.
pub const PROVIDERS: [&str; 5] = ["local", "s3", "azure", "gcs", "cascade"];

#[cfg(test)]
mod tests {
    use confidant_memory::cost::Prices;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_provider_has_a_name_and_a_price() {
        for name in PROVIDERS {
            let arguments = json!({"bytes": 1024, "redundancy": 3, "provider": name});
            let question = read(arguments.as_object().unwrap()).unwrap();
            let answer = estimate_storage_cost(question, &Prices::default()).unwrap();
            let answer = serde_json::to_value(answer).unwrap();
            for field in
                ["ok", "bytes", "gb", "monthly_storage_usd", "estimated_request_usd", "total_estimated_usd"]
            {
                assert!(answer.get(field).is_some(), "{name}: {field}");
            }
            assert_eq!(answer["assumptions"]["provider"], json!(name));
        }
    }
}

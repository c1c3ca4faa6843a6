//! What keeping an artifact costs: the fields of seed 001's `estimate_storage_cost`, and the assumptions behind them.
//!
//! The formula, for stores that are paid by the month:
//!
//! ```text
//! gb                    = bytes / 2^30
//! monthly_storage_usd   = gb * usd_per_gb_month * redundancy
//! estimated_request_usd = redundancy * usd_per_1000_writes / 1000 + reads_per_month * usd_per_1000_reads / 1000
//! total_estimated_usd   = monthly_storage_usd + estimated_request_usd
//! ```
//!
//! Cascade is paid once: `base_fee_ulume + fee_per_kb_ulume * ceil(bytes / 1024)`, with its redundancy in the fee, so
//! ours is not applied again. Its monthly figure is 0 and its fee stands under requests.
//!
//! Rounding: the seed rounds to 6 decimals, which makes a card of 1 KB cost nothing, and its example (0.00003 a month
//! for 1 KB in three copies) is not what its own formula gives (0.0000000858 at its 0.03 a GB). Here amounts have 12
//! decimals, so that one byte in one copy is still not 0.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is to be estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Size of the sealed artifact, at most [`MAX_BYTES`].
    pub bytes: u64,
    /// Copies that the user keeps, 1 to [`MAX_REDUNDANCY`]; the copies a provider makes by itself are in its price.
    pub redundancy: u32,
    /// Where it would be kept.
    pub provider: Provider,
}

/// Whose prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// A local folder: nobody asks for money.
    Local,
    /// S3 and what speaks like it.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Gcs,
    /// The Cascade network.
    Cascade,
}

/// The answer. Field names are seed 001's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Always true: a failure is an error.
    pub ok: bool,
    /// As asked.
    pub bytes: u64,
    /// `bytes / 2^30`, one copy.
    pub gb: f64,
    /// Storage for a month, all copies.
    pub monthly_storage_usd: f64,
    /// Requests in the first month, or the one-off fee; `None` if no exchange rate is configured.
    pub estimated_request_usd: Option<f64>,
    /// The sum for the first month; `None` if no exchange rate is configured.
    pub total_estimated_usd: Option<f64>,
    /// How the numbers came about.
    pub assumptions: Assumptions,
}

/// How the numbers of an [`Estimate`] came about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assumptions {
    /// Whose prices.
    pub provider: Provider,
    /// As asked.
    pub redundancy: u32,
    /// Whether the price was multiplied by it, in words.
    pub redundancy_note: &'static str,
    /// The formula, in words.
    pub formula: String,
    /// Name of the price table.
    pub price_table: String,
    /// When its prices were looked up.
    pub prices_as_of: String,
    /// Reads that a month is taken to have.
    pub estimated_requests_per_month: u32,
    /// The fee that is paid once; Cascade only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_off_fee: Option<Fee>,
    /// What is left out.
    pub note: &'static str,
}

/// A fee in the chain's own money.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fee {
    /// In millionths of a LUME.
    pub ulume: u64,
    /// In LUME.
    pub lume: f64,
    /// The rate that was used, if one is configured.
    pub usd_per_lume: Option<f64>,
}

/// Price tables. Each is dated, and each can be configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// For [`Provider::S3`].
    pub s3: MonthlyPrices,
    /// For [`Provider::Azure`].
    pub azure: MonthlyPrices,
    /// For [`Provider::Gcs`].
    pub gcs: MonthlyPrices,
    /// For [`Provider::Cascade`].
    pub cascade: CascadePrices,
    /// Reads that a month is taken to have; the seed's assumption is 100.
    pub reads_per_month: u32,
}

/// Prices of a store that is paid by the month.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MonthlyPrices {
    /// Name of the table.
    pub name: String,
    /// When the prices were looked up.
    pub as_of: String,
    /// A GB (2^30 bytes) for a month.
    pub usd_per_gb_month: f64,
    /// A thousand writes.
    pub usd_per_1000_writes: f64,
    /// A thousand reads.
    pub usd_per_1000_reads: f64,
}

/// Prices of Cascade. The chain's governance sets them; `GET …/action/v1/params` has today's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CascadePrices {
    /// Name of the table.
    pub name: String,
    /// When the prices were looked up.
    pub as_of: String,
    /// For an action of any size.
    pub base_fee_ulume: u64,
    /// For each KB begun.
    pub fee_per_kb_ulume: u64,
    /// What a LUME is worth. There is no default: it moves by the hour.
    pub usd_per_lume: Option<f64>,
}

/// The most bytes that are estimated: 2^50.
pub const MAX_BYTES: u64 = 1 << 50;
/// The most copies that are estimated.
pub const MAX_REDUNDANCY: u32 = 100;

/// Estimates what keeping an artifact costs. See the module for the formula.
pub fn estimate_storage_cost(question: Question, prices: &Prices) -> Result<Estimate> {
    let Question { bytes, redundancy, provider } = question;
    if bytes > MAX_BYTES {
        return Err(Error::invalid(
            format!("bytes is {bytes}; at most {MAX_BYTES} (2^50) are estimated"),
            "give the size of one artifact in bytes",
        ));
    }
    if !(1..=MAX_REDUNDANCY).contains(&redundancy) {
        return Err(Error::invalid(
            format!("redundancy is {redundancy}; it must be 1 to {MAX_REDUNDANCY}"),
            "give the number of copies you keep; 1 if you keep one",
        ));
    }
    match provider {
        Provider::Local => Ok(local(question, prices)),
        Provider::S3 => monthly(question, &prices.s3, prices.reads_per_month),
        Provider::Azure => monthly(question, &prices.azure, prices.reads_per_month),
        Provider::Gcs => monthly(question, &prices.gcs, prices.reads_per_month),
        Provider::Cascade => one_off(question, &prices.cascade, prices.reads_per_month),
    }
}

/// What Cascade asks for once, in ulume.
#[must_use]
pub fn cascade_fee_ulume(bytes: u64, prices: &CascadePrices) -> u64 {
    prices.base_fee_ulume.saturating_add(prices.fee_per_kb_ulume.saturating_mul(bytes.div_ceil(1024)))
}

fn local(question: Question, prices: &Prices) -> Estimate {
    let assumptions = Assumptions {
        provider: question.provider,
        redundancy: question.redundancy,
        redundancy_note: "not applied: there is no price to multiply",
        formula: "nothing is paid: the artifact stays on this machine's disk".into(),
        price_table: "local folder".into(),
        prices_as_of: "always".into(),
        estimated_requests_per_month: prices.reads_per_month,
        one_off_fee: None,
        note: "The disk itself is not counted.",
    };
    answer(question, 0.0, Some(0.0), assumptions)
}

fn monthly(question: Question, prices: &MonthlyPrices, reads: u32) -> Result<Estimate> {
    let MonthlyPrices { name, as_of, usd_per_gb_month, usd_per_1000_writes, usd_per_1000_reads } = prices;
    for price in [usd_per_gb_month, usd_per_1000_writes, usd_per_1000_reads] {
        sound(*price, name)?;
    }
    let copies = f64::from(question.redundancy);
    let storage = gb(question.bytes) * usd_per_gb_month * copies;
    let requests = (copies * usd_per_1000_writes + f64::from(reads) * usd_per_1000_reads) / 1000.0;
    let assumptions = Assumptions {
        provider: question.provider,
        redundancy: question.redundancy,
        redundancy_note: "applied: storage and writes are paid once for each copy; the copies that the provider \
                          makes by itself are in its price",
        formula: format!(
            "monthly = bytes / 2^30 * {usd_per_gb_month} USD per GB-month * redundancy; requests = redundancy * \
             {usd_per_1000_writes} USD per 1000 writes / 1000 + {reads} reads a month * {usd_per_1000_reads} USD per \
             1000 reads / 1000; total = monthly + requests; amounts are rounded to 12 decimals"
        ),
        price_table: name.clone(),
        prices_as_of: as_of.clone(),
        estimated_requests_per_month: reads,
        one_off_fee: None,
        note: "List prices of the first tier, without taxes, traffic, free tiers and discounts. The total is of the \
               first month; later months have no write.",
    };
    Ok(answer(question, storage, Some(requests), assumptions))
}

fn one_off(question: Question, prices: &CascadePrices, reads: u32) -> Result<Estimate> {
    if let Some(rate) = prices.usd_per_lume {
        sound(rate, &prices.name)?;
    }
    let ulume = cascade_fee_ulume(question.bytes, prices);
    let lume = ulume as f64 / 1e6;
    let usd = prices.usd_per_lume.map(|rate| lume * rate);
    let (base, per_kb) = (prices.base_fee_ulume, prices.fee_per_kb_ulume);
    let assumptions = Assumptions {
        provider: question.provider,
        redundancy: question.redundancy,
        redundancy_note: "not applied: the network's redundancy is already in its fee",
        formula: format!(
            "paid once, kept for ever: fee = {base} ulume + {per_kb} ulume * ceil(bytes / 1024); 1 LUME = 1000000 \
             ulume; monthly = 0; requests = fee in USD; total = fee in USD; amounts are rounded to 12 decimals"
        ),
        price_table: prices.name.clone(),
        prices_as_of: prices.as_of.clone(),
        estimated_requests_per_month: reads,
        one_off_fee: Some(Fee { ulume, lume: rounded(lume), usd_per_lume: prices.usd_per_lume }),
        note: if usd.is_some() {
            "Gas for the transaction comes on top. The chain's governance may change the fee."
        } else {
            "No rate of LUME to USD is configured, so no USD amount is given. Gas for the transaction comes on top. \
             The chain's governance may change the fee."
        },
    };
    Ok(answer(question, 0.0, usd, assumptions))
}

fn answer(question: Question, monthly: f64, requests: Option<f64>, assumptions: Assumptions) -> Estimate {
    Estimate {
        ok: true,
        bytes: question.bytes,
        gb: rounded(gb(question.bytes)),
        monthly_storage_usd: rounded(monthly),
        estimated_request_usd: requests.map(rounded),
        total_estimated_usd: requests.map(|requests| rounded(monthly + requests)),
        assumptions,
    }
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / (1_u64 << 30) as f64
}

/// 12 decimals, which is less than a cent of a cent for anything one could be billed for.
fn rounded(amount: f64) -> f64 {
    // A large amount has no 12 decimals to begin with, and multiplying it would lose digits.
    if amount >= 1e3 { amount } else { (amount * 1e12).round() / 1e12 }
}

fn sound(price: f64, table: &str) -> Result<()> {
    if price.is_finite() && price >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(
        format!("a price in the table \"{table}\" is not a number of 0 or more"),
        "correct the price table in the configuration",
    ))
}

impl Default for Prices {
    fn default() -> Self {
        let table = |name: &str, usd_per_gb_month| MonthlyPrices {
            name: name.into(),
            as_of: "2025-01".into(),
            usd_per_gb_month,
            usd_per_1000_writes: 0.005,
            usd_per_1000_reads: 0.0004,
        };
        Self {
            // Public list prices. https://aws.amazon.com/s3/pricing/, https://cloud.google.com/storage/pricing,
            // https://azure.microsoft.com/pricing/details/storage/blobs/
            s3: table("Amazon S3 Standard, us-east-1, first 50 TB", 0.023),
            azure: table("Azure Blob Storage, hot tier, LRS, East US, first 50 TB", 0.018),
            gcs: table("Google Cloud Storage Standard, us-central1", 0.02),
            cascade: CascadePrices::default(),
            reads_per_month: 100,
        }
    }
}

impl Default for CascadePrices {
    fn default() -> Self {
        Self {
            name: "Cascade, the chain's default parameters".into(),
            as_of: "2026-08".into(),
            base_fee_ulume: 10_000,
            fee_per_kb_ulume: 10,
            usd_per_lume: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(bytes: u64, redundancy: u32, provider: Provider) -> Result<Estimate> {
        estimate_storage_cost(Question { bytes, redundancy, provider }, &Prices::default())
    }

    #[test]
    fn the_question_of_the_seed_has_all_its_fields() {
        let estimate = ask(1024, 3, Provider::S3).unwrap();
        let mut value = serde_json::to_value(&estimate).unwrap();
        let assumptions = value.as_object_mut().unwrap().remove("assumptions").unwrap();
        assert_eq!(
            value,
            serde_json::json!({
                "ok": true,
                "bytes": 1024,
                "gb": 0.000_000_953_674,
                "monthly_storage_usd": 0.000_000_065_804,
                "estimated_request_usd": 0.000_055,
                "total_estimated_usd": 0.000_055_065_804,
            })
        );
        assert_eq!(assumptions["redundancy"], 3);
        assert_eq!(assumptions["estimated_requests_per_month"], 100);
        assert_eq!(assumptions["provider"], "s3");
        assert!(assumptions.get("one_off_fee").is_none());
    }

    #[test]
    fn nothing_small_becomes_nothing() {
        for provider in [Provider::S3, Provider::Azure, Provider::Gcs] {
            let estimate = ask(1, 1, provider).unwrap();
            assert!(estimate.gb > 0.0 && estimate.monthly_storage_usd > 0.0, "{estimate:?}");
        }
    }

    #[test]
    fn copies_multiply_what_is_paid_by_the_month() {
        let (one, four) = (ask(1 << 30, 1, Provider::Gcs).unwrap(), ask(1 << 30, 4, Provider::Gcs).unwrap());
        assert_eq!((one.gb, one.monthly_storage_usd), (1.0, 0.02));
        assert_eq!((four.gb, four.monthly_storage_usd), (1.0, 0.08));
    }

    #[test]
    fn cascade_asks_once_and_copies_are_in_its_fee() {
        for (bytes, ulume) in [(0, 10_000), (1, 10_010), (1024, 10_010), (1025, 10_020), (1 << 20, 20_240)] {
            for redundancy in [1, 3] {
                let estimate = ask(bytes, redundancy, Provider::Cascade).unwrap();
                let fee = estimate.assumptions.one_off_fee.unwrap();
                assert_eq!((fee.ulume, fee.lume), (ulume, ulume as f64 / 1e6));
                assert_eq!(estimate.monthly_storage_usd, 0.0);
                assert_eq!(estimate.total_estimated_usd, None, "no rate, no amount");
            }
        }
    }

    #[test]
    fn cascade_in_usd_needs_a_rate() {
        let mut prices = Prices::default();
        prices.cascade.usd_per_lume = Some(0.05);
        let question = Question { bytes: 1 << 20, redundancy: 3, provider: Provider::Cascade };
        let estimate = estimate_storage_cost(question, &prices).unwrap();
        assert_eq!(estimate.total_estimated_usd, Some(0.001_012));
        assert_eq!(estimate.estimated_request_usd, Some(0.001_012));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (bytes, redundancy) in [(MAX_BYTES + 1, 1), (u64::MAX, 1), (1, 0), (1, 101)] {
            let error = ask(bytes, redundancy, Provider::S3).unwrap_err();
            assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
        }
        for (bytes, redundancy) in [(0, 1), (MAX_BYTES, 100)] {
            ask(bytes, redundancy, Provider::S3).unwrap();
            ask(bytes, redundancy, Provider::Cascade).unwrap();
        }
        for price in [f64::NAN, f64::INFINITY, -1.0] {
            let mut prices = Prices::default();
            prices.s3.usd_per_gb_month = price;
            let question = Question { bytes: 1, redundancy: 1, provider: Provider::S3 };
            assert!(estimate_storage_cost(question, &prices).is_err());
        }
    }

    #[test]
    fn price_tables_can_be_configured_in_part() {
        let prices: Prices = serde_json::from_str(r#"{"cascade": {"usd_per_lume": 0.1}}"#).unwrap();
        let expected = CascadePrices { usd_per_lume: Some(0.1), ..CascadePrices::default() };
        assert_eq!(prices, Prices { cascade: expected, ..Prices::default() });
        assert!(serde_json::from_str::<Prices>(r#"{"s4": {}}"#).is_err(), "unknown keys are errors");
    }
}

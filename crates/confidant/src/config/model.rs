//! `[model]`: who answers. Every `[models.NAME]` is the same.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::model::{Extractive, FormStyle, Model, Provider, Remote, RemoteSettings, Sampling};
use secrecy::SecretString;
use serde::de::{Deserialize, Deserializer, Error as _};

use super::{ConfigError, seconds};

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSection {
    provider: ProviderKind,
    model: Option<String>,
    base_url: Option<String>,
    /// The variable that has the server's key, when it is not the provider's usual one.
    api_key_env: Option<String>,
    #[serde(rename = "timeout_seconds", deserialize_with = "seconds::some")]
    timeout: Duration,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    /// The model of the same server that makes embeddings, for `/v1/embeddings`.
    embedding_model: Option<String>,
    /// What it is good at, for choosing among several.
    #[serde(deserialize_with = "strengths")]
    pub(super) strengths: Vec<String>,
    /// What it costs, relative to the others.
    #[serde(deserialize_with = "cost")]
    pub(super) cost: f32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProviderKind {
    /// Picks sentences from what was said; needs no network.
    Builtin,
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

impl ModelSection {
    /// Makes the model. Connects to nothing. `section` is what errors call it.
    pub(super) fn build(
        &self,
        section: &str,
        key: Option<&SecretString>,
        forms: FormStyle,
    ) -> Result<Arc<dyn Model>, ConfigError> {
        let provider = match self.provider {
            ProviderKind::Builtin => return Ok(Arc::new(Extractive)),
            ProviderKind::OpenAi => Provider::OpenAi,
            ProviderKind::Anthropic => Provider::Anthropic,
            ProviderKind::Gemini => Provider::Gemini,
            ProviderKind::Ollama => Provider::Ollama,
        };
        let settings = RemoteSettings {
            provider,
            model: self.model.clone().unwrap_or_default(),
            base_url: self.base_url.clone(),
            api_key: key.cloned(),
            timeout: self.timeout,
            sampling: Sampling {
                temperature: self.temperature,
                max_tokens: self.max_tokens,
                ..Sampling::default()
            },
            forms,
            embedding_model: self.embedding_model.clone().filter(|model| !model.trim().is_empty()),
        };
        let remote = Remote::new(settings).map_err(|error| {
            let message = error.to_string();
            let (what, hint) = message.split_once("; ").unwrap_or((&message, "see `confidant config`"));
            // The engine knows of one section only.
            let what = match what.strip_prefix("model.") {
                Some(rest) => format!("{section}.{rest}"),
                None => what.to_owned(),
            };
            ConfigError { source_name: format!("[{section}]"), what, hint: hint.to_owned() }
        })?;
        Ok(Arc::new(remote))
    }

    /// The variable that must have a key: the provider's own server always wants one, another may not, unless somebody
    /// named the variable.
    pub(super) fn wanted_key(&self) -> Option<&str> {
        let elsewhere = self.base_url.is_some() && self.api_key_env.is_none();
        self.key_variable().filter(|_| !elsewhere)
    }

    /// The variable that has the key, if the provider wants one.
    pub(super) fn key_variable(&self) -> Option<&str> {
        let usual = match self.provider {
            ProviderKind::OpenAi => Some("OPENAI_API_KEY"),
            ProviderKind::Anthropic => Some("ANTHROPIC_API_KEY"),
            ProviderKind::Gemini => Some("GEMINI_API_KEY"),
            ProviderKind::Builtin | ProviderKind::Ollama => None,
        };
        self.api_key_env.as_deref().or(usual)
    }
}

impl Default for ModelSection {
    fn default() -> Self {
        Self {
            provider: ProviderKind::Builtin,
            model: None,
            base_url: None,
            api_key_env: None,
            timeout: Duration::from_secs(60),
            temperature: None,
            max_tokens: None,
            embedding_model: None,
            strengths: Vec::new(),
            cost: 1.0,
        }
    }
}

fn strengths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let strengths = Vec::<String>::deserialize(deserializer)?;
    let short =
        |word: &String| !word.trim().is_empty() && word.len() <= 40 && !word.contains(char::is_control);
    if strengths.len() > 16 || !strengths.iter().all(short) {
        return Err(D::Error::custom(
            "these are not valid strengths; hint: give at most 16 short words, such as coding",
        ));
    }
    Ok(strengths)
}

fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    let cost = f32::deserialize(deserializer)?;
    if !cost.is_finite() || cost < 0.0 {
        return Err(D::Error::custom(
            "this is not a valid cost; hint: give a number of 0 or more; the default is 1",
        ));
    }
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_needs_nothing_and_a_remote_one_needs_a_name() {
        let build = |model: &ModelSection, section| model.build(section, None, FormStyle::Function);
        assert!(build(&ModelSection::default(), "model").is_ok());
        let remote = ModelSection { provider: ProviderKind::OpenAi, ..ModelSection::default() };
        assert_eq!(remote.key_variable(), Some("OPENAI_API_KEY"));
        for (section, error) in [
            ("model", "[model]: model.model is empty; hint: name a model that the server has"),
            (
                "models.fast",
                "[models.fast]: models.fast.model is empty; hint: name a model that the server has",
            ),
        ] {
            assert_eq!(build(&remote, section).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn what_models_are_chosen_by_is_bounded() {
        for text in ["cost = -1.0", "cost = nan", "strengths = ['']", "strengths = [\"a\\n\"]"] {
            assert!(toml::from_str::<ModelSection>(text).is_err(), "{text}");
        }
        let model: ModelSection = toml::from_str("cost = 2\nstrengths = ['coding']").unwrap();
        assert_eq!((model.cost, model.strengths), (2.0, vec!["coding".to_owned()]));
    }
}

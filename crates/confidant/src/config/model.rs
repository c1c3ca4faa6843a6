//! `[model]`: who answers.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::{Extractive, FormStyle, Model, Provider, Remote, RemoteSettings, Sampling};
use secrecy::SecretString;
use serde::Deserialize;

use super::{ConfigError, seconds};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelSection {
    provider: Kind,
    model: Option<String>,
    base_url: Option<String>,
    /// The variable that has the server's key, when it is not the provider's usual one.
    api_key_env: Option<String>,
    #[serde(rename = "timeout_seconds", deserialize_with = "seconds::some")]
    timeout: Duration,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Picks sentences from what was said; needs no network.
    Builtin,
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

impl ModelSection {
    /// Makes the model. Connects to nothing.
    pub(crate) fn build(&self, key: Option<&SecretString>) -> Result<Arc<dyn Model>, ConfigError> {
        let provider = match self.provider {
            Kind::Builtin => return Ok(Arc::new(Extractive)),
            Kind::OpenAi => Provider::OpenAi,
            Kind::Anthropic => Provider::Anthropic,
            Kind::Gemini => Provider::Gemini,
            Kind::Ollama => Provider::Ollama,
        };
        let settings = RemoteSettings {
            provider,
            model: self.model.clone().unwrap_or_default(),
            base_url: self.base_url.clone(),
            api_key: key.cloned(),
            timeout: self.timeout,
            sampling: Sampling { temperature: self.temperature, top_p: None, max_tokens: self.max_tokens },
            forms: FormStyle::default(),
        };
        let remote = Remote::new(settings).map_err(|error| {
            let message = error.to_string();
            let (what, hint) = message.split_once("; ").unwrap_or((&message, "see `confidant config`"));
            ConfigError { source_name: "[model]".to_owned(), what: what.to_owned(), hint: hint.to_owned() }
        })?;
        Ok(Arc::new(remote))
    }

    /// The variable that has the key, if the provider wants one.
    pub(super) fn key_variable(&self) -> Option<&str> {
        let usual = match self.provider {
            Kind::OpenAi => Some("OPENAI_API_KEY"),
            Kind::Anthropic => Some("ANTHROPIC_API_KEY"),
            Kind::Gemini => Some("GEMINI_API_KEY"),
            Kind::Builtin | Kind::Ollama => None,
        };
        self.api_key_env.as_deref().or(usual)
    }
}

impl Default for ModelSection {
    fn default() -> Self {
        Self {
            provider: Kind::Builtin,
            model: None,
            base_url: None,
            api_key_env: None,
            timeout: Duration::from_secs(60),
            temperature: None,
            max_tokens: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_needs_nothing_and_a_remote_one_needs_a_name() {
        assert!(ModelSection::default().build(None).is_ok());
        let remote = ModelSection { provider: Kind::OpenAi, ..ModelSection::default() };
        assert_eq!(remote.key_variable(), Some("OPENAI_API_KEY"));
        let error = remote.build(None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "[model]: model.model is empty; hint: name a model that the server has"
        );
    }
}

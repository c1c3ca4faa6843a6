//! `[models.NAME]`: other models beside `[model]`, which turns may choose and `[processing]` may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_engine::model::{ChosenModel, Model, Models};
use serde::Deserialize;

use super::model::ModelSection;
use super::{Config, ConfigError, Secrets};

/// Models by names that the operator gave them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "BTreeMap<String, ModelSection>")]
pub(crate) struct ModelsSection(BTreeMap<String, ModelSection>);

impl ModelsSection {
    /// Each with its name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &ModelSection)> {
        self.0.iter()
    }
}

impl TryFrom<BTreeMap<String, ModelSection>> for ModelsSection {
    type Error = &'static str;

    fn try_from(models: BTreeMap<String, ModelSection>) -> Result<Self, Self::Error> {
        if models.contains_key(Models::DEFAULT) {
            return Err("the default model does not belong here; hint: set it up in [model]");
        }
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
        let fits = |name: &String| (1..=64).contains(&name.len()) && name.chars().all(allowed);
        if !models.keys().all(fits) {
            return Err("this is not a valid model name; hint: use lower-case letters, digits, -, _ and .");
        }
        Ok(Self(models))
    }
}

impl Config {
    /// The model of `[model]`. Connects to nothing.
    pub(crate) fn default_model(&self, secrets: &Secrets) -> Result<Arc<dyn Model>, ConfigError> {
        self.model.build("model", secrets.model.as_ref(), self.processing.forms)
    }

    /// A line for each model that cannot answer because nobody gave its key, with the variable that would.
    pub(crate) fn missing_keys(&self, secrets: &Secrets) -> Vec<String> {
        let default = ("model".to_owned(), &self.model, secrets.model.is_some());
        let others = self
            .models
            .iter()
            .map(|(name, model)| (format!("models.{name}"), model, secrets.models.contains_key(name)));
        let missing = std::iter::once(default).chain(others).filter_map(|(section, model, given)| {
            let variable = model.wanted_key().filter(|_| !given)?;
            Some(format!(
                "warning: [{section}] has no API key, so its server will refuse to answer; hint: set {variable}, or \
                 {variable}_FILE to the name of a file with the key"
            ))
        });
        missing.collect()
    }

    /// All models, and which of them prepares. Connects to nothing.
    pub(crate) fn models(&self, secrets: &Secrets) -> Result<Models, ConfigError> {
        let chosen = |name: &str, section: &ModelSection, model| ChosenModel {
            name: name.to_owned(),
            model,
            strengths: section.strengths.clone(),
            cost: section.cost,
        };
        let mut others = Vec::new();
        for (name, section) in self.models.iter() {
            let key = secrets.models.get(name);
            let model = section.build(&format!("models.{name}"), key, self.processing.forms)?;
            others.push(chosen(name, section, model));
        }
        let default = chosen(Models::DEFAULT, &self.model, self.default_model(secrets)?);
        let models = Models::new(default, others);
        let Some(small) = &self.processing.model else { return Ok(models) };
        let Some(small) = models.all().find(|model| model.name == *small) else {
            let names: Vec<&str> = models.all().map(|model| model.name.as_str()).collect();
            return Err(ConfigError {
                source_name: "[processing]".to_owned(),
                what: "processing.model is not one of the models".to_owned(),
                hint: format!("name one of {}, or add [models.NAME]", names.join(", ")),
            });
        };
        let small = Arc::clone(&small.model);
        Ok(models.with_small(small))
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn models_are_offered_with_the_default_first() {
        let text = "[models.fast]\nprovider = 'openai'\nmodel = 'mini'\nstrengths = ['chat']\ncost = 0.1\n\
                    [models.a]\n[processing]\nmodel = 'fast'";
        let models = config(text).models(&Secrets::default()).unwrap();
        let offered = models.offered();
        let names: Vec<&str> = offered.iter().map(|offered| offered.name.as_str()).collect();
        assert_eq!(names, ["default", "a", "fast"]);
        assert_eq!((offered[2].strengths.as_slice(), offered[2].cost), (&["chat".to_owned()][..], 0.1));
        assert_eq!(models.small().unwrap().name(), models.choose("fast").name());
        assert!(config("").models(&Secrets::default()).unwrap().small().is_none());
        let own = config("[processing]\nmodel = 'default'").models(&Secrets::default()).unwrap();
        assert!(Arc::ptr_eq(own.small().unwrap(), own.default_model()));
    }

    #[test]
    fn a_model_that_is_not_there_is_named_at_the_start() {
        let text = "[models.fast]\n[processing]\nmodel = 'canary'";
        assert_eq!(
            config(text).models(&Secrets::default()).unwrap_err().to_string(),
            "[processing]: processing.model is not one of the models; hint: name one of default, fast, or add \
             [models.NAME]"
        );
    }

    #[test]
    fn every_model_gets_its_own_key() {
        let text = "[models.fast]\nprovider = 'openai'\nmodel = 'mini'";
        let mut secrets = Secrets::default();
        secrets.models.insert("fast".to_owned(), SecretString::from("line\nbreak"));
        let error = config(text).models(&secrets).unwrap_err().to_string();
        assert!(error.starts_with("[models.fast]: the model's API key holds characters"), "{error}");
    }

    #[test]
    fn names_are_plain() {
        for name in ["default", "Fast", "'a b'", "''"] {
            let refused = toml::from_str::<Config>(&format!("[models.{name}]")).unwrap_err();
            assert!(refused.message().contains("; hint: "), "{name}: {refused}");
        }
    }
}

//! The models of an engine: the default, those that a turn may choose instead, and the small one that prepares.

use std::sync::Arc;

use confidant_display::debug_without_content;

use super::{Attachment, Model, Sampling};

/// The models of an engine. Whatever name is asked for, there is one that answers.
#[derive(Clone, Debug)]
pub struct Models {
    default: ChosenModel,
    others: Vec<ChosenModel>,
    small: Option<Arc<dyn Model>>,
}

/// A model by the name that settings give it.
#[derive(Clone, Debug)]
pub struct ChosenModel {
    /// Its name in the settings.
    pub name: String,
    /// The model itself.
    pub model: Arc<dyn Model>,
    /// What it is good at, in words such as `coding`.
    pub strengths: Vec<String>,
    /// What it costs, relative to the others.
    pub cost: f32,
}

/// What choosing a model goes by.
#[derive(Clone, PartialEq)]
pub struct OfferedModel {
    /// Its name in the settings.
    pub name: String,
    /// What it is good at, as the operator says; words such as `coding` or `reasoning`.
    pub strengths: Vec<String>,
    /// What it costs, relative to the others.
    pub cost: f32,
}

debug_without_content!(OfferedModel { cost });

impl Models {
    /// The name of the default in settings and offers.
    pub const DEFAULT: &str = "default";

    /// One model for everything, and none to prepare.
    #[must_use]
    pub fn one(model: Arc<dyn Model>) -> Self {
        let name = Self::DEFAULT.to_owned();
        Self::new(ChosenModel { name, model, strengths: Vec::new(), cost: 1.0 }, Vec::new())
    }

    /// A default, and others that may be chosen. One of them that has the name of an earlier one is never chosen.
    #[must_use]
    pub fn new(default: ChosenModel, others: Vec<ChosenModel>) -> Self {
        Self { default, others, small: None }
    }

    /// The same, with a small model that prepares and enriches turns.
    #[must_use]
    pub fn with_small(self, small: Arc<dyn Model>) -> Self {
        Self { small: Some(small), ..self }
    }

    /// The model that answers when nobody chose.
    #[must_use]
    pub fn default_model(&self) -> &Arc<dyn Model> {
        &self.default.model
    }

    /// The model of this name; the default if there is none.
    #[must_use]
    pub fn choose(&self, name: &str) -> &Arc<dyn Model> {
        self.all().find(|chosen| chosen.name == name).map_or(&self.default.model, |chosen| &chosen.model)
    }

    /// The model that prepares and enriches turns, if there is one.
    #[must_use]
    pub fn small(&self) -> Option<&Arc<dyn Model>> {
        self.small.as_ref()
    }

    /// All that may answer, the default first.
    pub fn all(&self) -> impl Iterator<Item = &ChosenModel> {
        std::iter::once(&self.default).chain(&self.others)
    }

    /// The first thing in `sampling` that one of those who may answer cannot do.
    #[must_use]
    pub fn refuses(&self, sampling: &Sampling) -> Option<&'static str> {
        self.all().find_map(|chosen| chosen.model.refuses(sampling))
    }

    /// Whether all of those who may answer take this image or file.
    #[must_use]
    pub fn take(&self, attachment: &Attachment) -> bool {
        self.all().all(|chosen| chosen.model.takes(attachment))
    }

    /// Whether all of those who may answer call tools.
    #[must_use]
    pub fn call_tools(&self) -> bool {
        self.all().all(|chosen| chosen.model.calls_tools())
    }

    /// What preparing may choose from, the default first.
    #[must_use]
    pub fn offered(&self) -> Vec<OfferedModel> {
        let offered = self.all().map(|chosen| OfferedModel {
            name: chosen.name.clone(),
            strengths: chosen.strengths.clone(),
            cost: chosen.cost,
        });
        offered.collect()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::{Answer, Deltas, ModelError, Prompt};

    #[derive(Debug)]
    struct Named(&'static str);

    #[async_trait]
    impl Model for Named {
        fn name(&self) -> &str {
            self.0
        }

        async fn respond(&self, _: &Prompt, _: Deltas<'_>) -> Result<Answer, ModelError> {
            Err(ModelError::Unreachable)
        }

        async fn check(&self) -> Result<(), ModelError> {
            Ok(())
        }
    }

    #[test]
    fn a_name_chooses_and_an_unknown_one_gets_the_default() {
        let chosen = |name: &str, model, strengths: &[&str], cost| ChosenModel {
            name: name.to_owned(),
            model: Arc::new(Named(model)),
            strengths: strengths.iter().map(|strength| (*strength).to_owned()).collect(),
            cost,
        };
        let one = Models::one(Arc::new(Named("alone")));
        assert_eq!((one.choose("x").name(), one.small().is_none()), ("alone", true));
        let models =
            Models::new(chosen("default", "big", &[], 1.0), vec![chosen("fast", "small", &["chat"], 0.1)]);
        for (name, model) in [("default", "big"), ("fast", "small"), ("", "big"), ("slow", "big")] {
            assert_eq!(models.choose(name).name(), model, "{name}");
        }
        let expected = [("default", vec![], 1.0), ("fast", vec!["chat".to_owned()], 0.1)]
            .map(|(name, strengths, cost)| OfferedModel { name: name.to_owned(), strengths, cost });
        assert_eq!(models.offered(), expected);
        assert_eq!(
            models.with_small(Arc::new(Named("tiny"))).small().map(|small| small.name()),
            Some("tiny")
        );
    }
}

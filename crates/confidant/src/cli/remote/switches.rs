//! What questions leave out: the switches there are, with what the server offers, and each switched on or off on all devices.

use anyhow::anyhow;
use confidant_chat_protocol::CatalogueEntry;
use confidant_client::focus_switch;
use serde_json::json;

use super::Remote;
use crate::output::{clean, note};

/// Switches that every server knows, and what each keeps out of questions.
const KNOWN: &[(&str, &str)] = &[
    ("cache", "the server keeps a chat's words for a day, to go on"),
    ("settings", "the names of what you saved, and what you share of it"),
    ("similar", "summaries of similar chats"),
    ("search", "what your other chats say about some words"),
    ("concepts", "what the server keeps of a chat's concepts, where /keep allows it"),
    ("memory.concepts", "the shared graph of public concepts"),
    ("suggestions", "suggestions, tags and a summary after the answer"),
    ("focus", "all focus modes"),
    ("tools", "all tools"),
];

impl Remote<'_> {
    pub(super) async fn switch(&mut self, rest: &str) -> anyhow::Result<()> {
        match rest.rsplit_once(' ') {
            Some((name, to @ ("on" | "off"))) => {
                self.device.switch(name.trim(), to == "on")?;
                self.send().await?;
                self.show_off()
            }
            _ if rest.is_empty() => self.show_switches().await,
            _ => Err(anyhow!("say on or off; hint: /switch NAME off, and /switch lists the names")),
        }
    }

    /// What is off.
    fn show_off(&self) -> anyhow::Result<()> {
        for name in self.device.switched_off() {
            self.show(json!({ "off": name }), &format!("off: {}", clean(&name)), None)?;
        }
        Ok(())
    }

    /// Every switch that is known here.
    async fn show_switches(&mut self) -> anyhow::Result<()> {
        let own = |(name, about): &(&str, &str)| ((*name).to_owned(), (*about).to_owned());
        let mut switches: Vec<(String, String)> = KNOWN.iter().map(own).collect();
        match self.device.catalogue().await {
            Ok(catalogue) => {
                let mode = |mode: &CatalogueEntry| (focus_switch(mode.name.as_str()), about(mode));
                switches.extend(catalogue.focus_modes.iter().map(mode));
                let tool = |tool: &CatalogueEntry| (tool.name.as_str().to_owned(), about(tool));
                switches.extend(catalogue.tools.iter().map(tool));
                if !catalogue.whole {
                    note("the server may use more tools than it knows by name here");
                }
            }
            Err(error) => note(&format!("the server's tools and focus modes are not listed: {error}")),
        }
        let off = self.device.switched_off();
        let unknown = off.iter().filter(|name| !switches.iter().any(|(known, _)| known == *name));
        let unknown: Vec<_> = unknown.map(|name| (name.clone(), String::new())).collect();
        for (name, about) in switches.into_iter().chain(unknown) {
            let is_on = !off.contains(&name);
            let head = format!("{} {}", if is_on { "on " } else { "off" }, clean(&name));
            let line = json!({ "switch": name, "on": is_on, "about": about });
            self.show(line, &head, (!about.is_empty()).then_some(about.as_str()))?;
        }
        Ok(())
    }
}

/// What something is for, with what people call it.
fn about(entry: &CatalogueEntry) -> String {
    let (title, about) = (entry.title.as_ref().map_or("", |title| title.as_str()), entry.about.as_str());
    let between = if title.is_empty() || about.is_empty() { "" } else { ": " };
    format!("{title}{between}{about}")
}

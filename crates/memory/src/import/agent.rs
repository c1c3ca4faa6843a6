//! Whose files sessions are read from.

/// Whose files they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Agent {
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// `OpenAI`'s Codex.
    Codex,
    /// Google's Gemini CLI.
    Gemini,
    /// Aider.
    Aider,
    /// `OpenCode`.
    OpenCode,
    /// Cursor; best effort.
    Cursor,
    /// JSON lines of anybody.
    Generic,
    /// A map from id to session.
    Fixture,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Aider,
        Self::OpenCode,
        Self::Cursor,
        Self::Generic,
        Self::Fixture,
    ];

    /// Its name, which is the `tool_name` of its sessions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini-cli",
            Self::Aider => "aider",
            Self::OpenCode => "opencode",
            Self::Cursor => "cursor",
            Self::Generic => "generic",
            Self::Fixture => "fixture",
        }
    }

    /// The agent with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}

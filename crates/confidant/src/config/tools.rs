//! `[tools]`: the MCP servers whose tools a model may call, how far it may go with them, and who may let it.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use confidant_engine::tools::{ToolLimits, ToolPolicy, ToolRule, Verdict};
use confidant_mcp::tools::{Pattern, Reach, ServerName, ServerSettings, address};
use secrecy::SecretString;
use serde::Deserialize;

use super::secrets::{self, SECRETS};
use super::{ConfigError, Environment, seconds};

/// The section: limits for a turn, servers by name, rules in their order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolsSection {
    /// Rounds of calls in one turn.
    pub(crate) max_steps: NonZeroU32,
    /// Calls at the same time in one turn.
    pub(crate) max_parallel: NonZeroUsize,
    /// How long one call may take.
    #[serde(rename = "call_timeout_seconds", deserialize_with = "seconds::some")]
    pub(crate) call_timeout: Duration,
    /// How much of a result is read.
    pub(crate) max_result_bytes: NonZeroUsize,
    pub(crate) servers: BTreeMap<ServerName, ServerSection>,
    pub(crate) rules: Vec<RuleSection>,
}

/// One server: a program to start, or an address.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawServer")]
pub(crate) struct ServerSection {
    reach: Where,
    /// The tools that are taken from it; all when missing.
    tools: Option<Vec<Pattern>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Where {
    Process { command: Vec<String>, env: BTreeMap<String, String>, pass_env: Vec<String> },
    Http { url: reqwest::Url, token_env: Option<String> },
}

/// Who may have which tools called, and with whose consent. The first rule that fits decides.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RawRule")]
pub(crate) struct RuleSection {
    /// Over full names, such as `files.*`.
    pub(crate) tool: Pattern,
    /// Only in this tenant.
    pub(crate) tenant: Option<String>,
    /// Only for these people; for everybody when missing.
    pub(crate) users: Option<Vec<String>>,
    /// Only when the text of each of these arguments fits; a dotted path reaches into objects.
    pub(crate) when: BTreeMap<String, Pattern>,
    pub(crate) then: Then,
    /// Who may decide, for [`Then::Approve`].
    pub(crate) approvers: Vec<Approver>,
    /// How long a decision may take, for [`Then::Approve`].
    pub(crate) expires: Duration,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Then {
    Allow,
    /// Somebody has to agree to the very call.
    Approve,
    Deny,
}

/// Who may agree to a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum Approver {
    /// The person whose turn it is.
    Asker,
    /// Whoever has an administrator's token.
    Admin,
    /// This person.
    User(String),
}

/// What the environment gives to tool servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolSecrets {
    /// Bearer tokens, by the variable that has them.
    tokens: BTreeMap<String, SecretString>,
    /// Variables that processes may see, as far as they are set.
    variables: BTreeMap<String, SecretString>,
}

impl ToolsSection {
    /// How far a turn may go.
    pub(crate) fn limits(&self) -> ToolLimits {
        ToolLimits {
            max_steps: usize::try_from(self.max_steps.get()).unwrap_or(usize::MAX),
            max_parallel: self.max_parallel.get(),
            call_timeout: self.call_timeout,
            max_result_bytes: self.max_result_bytes.get(),
        }
    }

    /// Who may have what called.
    pub(crate) fn policy(&self) -> ToolPolicy {
        ToolPolicy::new(self.rules.iter().map(RuleSection::rule).collect())
    }

    /// The servers, each with what it needs from the environment or with the reason why it cannot be used.
    pub(crate) fn servers(&self, secrets: &ToolSecrets) -> Vec<Result<ServerSettings, ConfigError>> {
        self.servers.iter().map(|(name, section)| section.settings(name, secrets)).collect()
    }
}

impl RuleSection {
    fn rule(&self) -> ToolRule {
        let approver = |approver: &Approver| match approver {
            Approver::Asker => confidant_engine::approval::Approver::Asker,
            Approver::Admin => confidant_engine::approval::Approver::Admin,
            Approver::User(user) => confidant_engine::approval::Approver::User(user.clone()),
        };
        let then = match self.then {
            Then::Allow => Verdict::Allow,
            Then::Deny => Verdict::Deny,
            Then::Approve => Verdict::Approve {
                approvers: self.approvers.iter().map(approver).collect(),
                expires: self.expires,
            },
        };
        let text = |pattern: &Pattern| pattern.as_str().to_owned();
        ToolRule {
            tool: text(&self.tool),
            tenant: self.tenant.clone(),
            users: self.users.clone(),
            when: self.when.iter().map(|(path, pattern)| (path.clone(), text(pattern))).collect(),
            then,
        }
    }
}

impl ServerSection {
    fn settings(&self, name: &ServerName, secrets: &ToolSecrets) -> Result<ServerSettings, ConfigError> {
        let reach = match &self.reach {
            Where::Process { command, env, pass_env } => {
                let passed = PASSED.iter().copied().chain(pass_env.iter().map(String::as_str));
                let mut variables: BTreeMap<String, SecretString> = passed
                    .filter_map(|name| Some((name.to_owned(), secrets.variables.get(name)?.clone())))
                    .collect();
                let chosen = env.iter().map(|(name, value)| (name.clone(), value.clone().into()));
                variables.extend(chosen);
                Reach::Process { command: command.clone(), variables }
            }
            Where::Http { url, token_env: None } => Reach::Http { url: url.clone(), token: None },
            Where::Http { url, token_env: Some(variable) } => {
                let Some(token) = secrets.tokens.get(variable) else {
                    return Err(ConfigError {
                        source_name: format!("tools.servers.{name}"),
                        what: format!("{variable} is not set"),
                        hint: format!("set {variable} or {variable}_FILE, or remove token_env"),
                    });
                };
                Reach::Http { url: url.clone(), token: Some(token.clone()) }
            }
        };
        Ok(ServerSettings { name: name.clone(), reach, only: self.tools.clone() })
    }
}

impl ToolSecrets {
    pub(super) fn find(environment: &Environment, section: &ToolsSection) -> Result<Self, ConfigError> {
        let mut found = Self::default();
        for server in section.servers.values() {
            match &server.reach {
                Where::Http { token_env: Some(variable), .. } => {
                    if let Some((_, token)) = secrets::plain(environment, variable)? {
                        found.tokens.insert(variable.clone(), token.into());
                    }
                }
                Where::Http { token_env: None, .. } => {}
                Where::Process { pass_env, .. } => {
                    for name in PASSED.iter().copied().chain(pass_env.iter().map(String::as_str)) {
                        if let Some(value) = environment.value(name) {
                            found.variables.insert(name.to_owned(), value.to_owned().into());
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

/// What stands in the file for a server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    command: Option<Vec<String>>,
    url: Option<String>,
    token_env: Option<String>,
    env: Option<BTreeMap<String, String>>,
    pass_env: Option<Vec<String>>,
    tools: Option<Vec<Pattern>>,
}

impl TryFrom<RawServer> for ServerSection {
    type Error = String;

    fn try_from(raw: RawServer) -> Result<Self, String> {
        let wrong = |what: &str, hint: &str| Err(format!("{what}; hint: {hint}"));
        let reach = match (raw.command, raw.url) {
            (Some(_), Some(_)) => return wrong("command and url are both set", "choose one of them"),
            (None, None) => return wrong("neither command nor url is set", "set one of them"),
            (Some(command), None) => {
                if command.first().is_none_or(String::is_empty) {
                    return wrong("command is empty", "name a program and its arguments");
                }
                if raw.token_env.is_some() {
                    return wrong("token_env is for servers with a url", "use pass_env for a program");
                }
                let pass_env = raw.pass_env.unwrap_or_default();
                if pass_env.iter().any(|name| SECRETS.contains(&name.trim_end_matches("_FILE"))) {
                    return wrong(
                        "pass_env names one of Confidant's own secrets",
                        "give the program its own",
                    );
                }
                Where::Process { command, env: raw.env.unwrap_or_default(), pass_env }
            }
            (None, Some(url)) => {
                if raw.env.is_some() || raw.pass_env.is_some() {
                    return wrong("env and pass_env are for programs", "remove them, or use command");
                }
                Where::Http { url: address(&url, raw.token_env.is_some())?, token_env: raw.token_env }
            }
        };
        Ok(Self { reach, tools: raw.tools })
    }
}

/// What stands in the file for a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    tool: Pattern,
    tenant: Option<String>,
    users: Option<Vec<String>>,
    #[serde(default)]
    when: BTreeMap<String, Pattern>,
    then: Then,
    approvers: Option<Vec<Approver>>,
    #[serde(rename = "expires_seconds", default, deserialize_with = "seconds::maybe")]
    expires: Option<Duration>,
}

impl TryFrom<RawRule> for RuleSection {
    type Error = String;

    fn try_from(raw: RawRule) -> Result<Self, String> {
        if raw.then != Then::Approve && (raw.approvers.is_some() || raw.expires.is_some()) {
            return Err("approvers and expires_seconds are for then = \"approve\"; hint: remove them".into());
        }
        if raw.approvers.as_ref().is_some_and(Vec::is_empty) {
            return Err("approvers is empty; hint: name somebody, or deny".into());
        }
        if raw.users.as_ref().is_some_and(Vec::is_empty) {
            return Err("users is empty; hint: name somebody, or leave it out for everybody".into());
        }
        Ok(Self {
            tool: raw.tool,
            tenant: raw.tenant,
            users: raw.users,
            when: raw.when,
            then: raw.then,
            approvers: raw.approvers.unwrap_or_else(|| vec![Approver::Asker]),
            expires: raw.expires.unwrap_or(EXPIRES),
        })
    }
}

impl From<String> for Approver {
    fn from(text: String) -> Self {
        match text.as_str() {
            "asker" => Self::Asker,
            "admin" => Self::Admin,
            _ => Self::User(text),
        }
    }
}

impl Default for ToolsSection {
    fn default() -> Self {
        Self {
            max_steps: NonZeroU32::new(8).expect("8 is not zero"),
            max_parallel: NonZeroUsize::new(4).expect("4 is not zero"),
            call_timeout: Duration::from_secs(30),
            max_result_bytes: NonZeroUsize::new(64 * 1024).expect("64 KiB is not zero"),
            servers: BTreeMap::new(),
            rules: Vec::new(),
        }
    }
}

/// What every program needs to find its way, and nothing that is a secret.
const PASSED: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
const EXPIRES: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::config::parse_file;

    fn section(toml: &str) -> ToolsSection {
        parse_file("c.toml", toml).unwrap().tools
    }

    fn refused(toml: &str) -> String {
        parse_file("c.toml", toml).unwrap_err().to_string()
    }

    #[test]
    fn servers_get_what_they_are_given_and_nothing_else() {
        let section = section(
            "[tools.servers.files]\ncommand = ['serve', 'docs']\nenv = { LANG = 'C' }\npass_env = ['ROOT', 'GONE']\n\
             tools = ['read_*']\n[tools.servers.far]\nurl = 'https://host/mcp'\ntoken_env = 'FAR_TOKEN'",
        );
        let environment = Environment::from([
            ("PATH", "/bin"),
            ("LANG", "de_DE"),
            ("ROOT", "/srv"),
            ("OPENAI_API_KEY", "sk-1"),
            ("FAR_TOKEN", "hush"),
        ]);
        let secrets = ToolSecrets::find(&environment, &section).unwrap();
        assert!(!format!("{secrets:?}").contains("hush"));
        let servers: Vec<_> = section.servers(&secrets).into_iter().map(Result::unwrap).collect();
        let [far, files] = &servers[..] else { panic!("two servers") };
        let Reach::Process { command, variables } = &files.reach else { panic!("a process") };
        assert_eq!(command, &["serve", "docs"]);
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
        assert_eq!(variables, [("LANG", "C"), ("PATH", "/bin"), ("ROOT", "/srv")]);
        let Reach::Http { url, token } = &far.reach else { panic!("an address") };
        assert_eq!((url.as_str(), token.as_ref().unwrap().expose_secret()), ("https://host/mcp", "hush"));

        let without = ToolSecrets::find(&Environment::default(), &section).unwrap();
        let error = section.servers(&without).remove(0).unwrap_err().to_string();
        assert!(error.starts_with("tools.servers.far: FAR_TOKEN is not set; hint: "), "{error}");
    }

    #[test]
    fn rules_keep_their_order_and_their_defaults() {
        let section = section(
            "[[tools.rules]]\ntool = 'files.write_*'\nusers = ['@alice:example.org']\nwhen = { path = '/etc/*' }\n\
             then = 'approve'\napprovers = ['asker', 'admin', '@bob:x.org']\nexpires_seconds = 60\n\
             [[tools.rules]]\ntool = '*'\nthen = 'approve'",
        );
        let [first, second] = &section.rules[..] else { panic!("two rules") };
        assert_eq!(
            first.approvers,
            [Approver::Asker, Approver::Admin, Approver::User("@bob:x.org".to_owned())]
        );
        assert!(first.when["path"].matches("/etc/passwd") && first.expires == Duration::from_secs(60));
        assert_eq!((second.users.as_ref(), second.expires), (None, EXPIRES));
        assert_eq!(second.approvers, [Approver::Asker]);
    }

    #[test]
    fn what_is_wrong_is_named_however_deep_it_stands() {
        let server = |keys: &str| format!("[tools.servers.files]\n{keys}");
        let rule =
            |keys: &str| format!("[[tools.rules]]\ntool = '*'\nthen = 'deny'\n[[tools.rules]]\n{keys}");
        for (toml, key, hint) in [
            (
                server("comand = ['x']"),
                "unknown key tools.servers.files.comand",
                "did you mean tools.servers.files.command?",
            ),
            (server("command = 'x'"), "tools.servers.files.command: ", "confidant config"),
            (server("command = []"), "tools.servers.files: command is empty", "name a program"),
            (server(""), "tools.servers.files: neither command nor url", "set one"),
            (
                server("command = ['x']\nurl = 'https://x'"),
                "tools.servers.files: command and url",
                "choose one",
            ),
            (server("url = 'ftp://x'"), "tools.servers.files: url is neither https nor http", "https://host"),
            (
                server("url = 'https://u:canary@x'"),
                "tools.servers.files: url has a user or a password",
                "token_env",
            ),
            (
                server("url = 'http://x.example/mcp'\ntoken_env = 'T'"),
                "tools.servers.files: url is not encrypted",
                "https",
            ),
            (
                server("command = ['x']\npass_env = ['CHECKPOINT_ENCRYPTION_KEY']"),
                "tools.servers.files: pass_env",
                "its own",
            ),
            (
                "[tools.servers.Files]\ncommand = ['x']".to_owned(),
                "tools.servers.Files: not a valid server name",
                "a-z, 0-9, _ and -",
            ),
            (
                "[tools.servers.memory]\ncommand = ['x']".to_owned(),
                "tools.servers.memory: the name memory",
                "another name",
            ),
            (rule("tol = 'x'"), "unknown key tools.rules[1].tol", "did you mean tools.rules[1].tool?"),
            (rule("tool = 'x'"), "tools.rules[1]: missing field", ""),
            (rule("tool = 'x'\nthen = 'canary'"), "tools.rules[1].then: this is not known", ""),
            (
                rule("tool = 'x'\nthen = 'allow'\nexpires_seconds = 5"),
                "tools.rules[1]: approvers and expires_seconds",
                "remove",
            ),
            (rule("tool = 'x'\nthen = 'deny'\nusers = []"), "tools.rules[1]: users is empty", "everybody"),
            (
                "[tools]\nmax_step = 1".to_owned(),
                "unknown key tools.max_step",
                "did you mean tools.max_steps?",
            ),
            ("[tools]\nmax_steps = 0".to_owned(), "tools.max_steps: ", ""),
        ] {
            let error = refused(&toml);
            assert!(error.starts_with(&format!("c.toml: {key}")) && error.contains(hint), "{toml}\n{error}");
            assert!(error.contains("; hint: ") && !error.contains("canary"), "{error}");
        }
    }
}

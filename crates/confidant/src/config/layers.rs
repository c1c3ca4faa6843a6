//! Sources laid over one another, the later one winning.
//!
//! Every single value is tried on its own before it is laid over the others, so that an error can name the key and
//! the file or variable it stands in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use confidant_display::parted;
use confidant_memory::regular;
use toml::{Table, Value};

use super::sources::{Chosen, Sources};
use super::{Config, ConfigError, Environment, Flags, Loaded, Secrets};

/// Reads all sources.
pub(crate) fn load(flags: &Flags, environment: &Environment) -> Result<Loaded, ConfigError> {
    let mut layers = Layers::default();
    let file = match &flags.config {
        Some(file) => Some(file.clone()),
        None if flags.only_named => None,
        None => in_working_folder(),
    };
    let mut environment = environment.clone();
    if let Some(file) = &file {
        layers.add_file(file)?;
        // Only beside a file of ours: elsewhere it is another program's.
        environment.lay_under(&file.with_file_name(BESIDE))?;
    }
    let environment = &environment;
    for (name, value) in environment.beginning_with(PREFIX) {
        layers.add_variable(name, value)?;
    }
    for (name, section, key) in SEEDS {
        let value = super::secrets::plain(environment, name)?;
        if let Some((name, value)) = value {
            layers.add_text(&name, &[section, key], &value)?;
        }
    }
    for (name, key) in MATRIX {
        // A name alone is somebody else's; with an address it is an account.
        let wanted = key == "homeserver" || layers.has(&["channels", "matrix"]);
        if let Some((name, value)) = super::secrets::plain(environment, name)?.filter(|_| wanted) {
            layers.add_text(&name, &["channels", "matrix", key], &value)?;
        }
    }
    if let Some(folder) = &flags.data_dir {
        let folder = Value::String(folder.to_string_lossy().into_owned());
        layers.put("--data-dir", &["server", "data_dir"], folder);
    }
    if let Some(listen) = flags.listen {
        layers.put("--listen", &["server", "listen"], Value::String(listen.to_string()));
    }
    let mut sources = layers.sources(environment);
    let config = layers.into_config()?;
    let secrets = Secrets::find(environment, &config)?;
    sources.secrets = super::secrets::given(environment, &config);
    let login = environment.value("USER").or_else(|| environment.value("LOGNAME")).map(str::to_owned);
    let home = environment.value("HOME").map(PathBuf::from);
    let data_home =
        environment.value("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let data_home = data_home.or_else(|| Some(home.as_ref()?.join(".local/share")));
    Ok(Loaded { config, secrets, file, login, home, data_home, sources })
}

/// The settings in the folder that we were started in. One that may not be looked at is meant, too: reading it says why it
/// cannot be read.
pub(crate) fn in_working_folder() -> Option<PathBuf> {
    Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.try_exists().unwrap_or(true))
}

/// Reads the text of a settings file and nothing else; `source` is what errors call it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_file(source: &str, text: &str) -> Result<Config, ConfigError> {
    let mut layers = Layers::default();
    layers.add_toml(source, text)?;
    layers.into_config()
}

#[derive(Debug, Default)]
struct Layers {
    table: Table,
    /// Who laid each value there, by its path.
    of: BTreeMap<String, String>,
}

impl Layers {
    /// What was chosen and by whom; of variables it is said which file they stand in, if they do.
    fn sources(&self, environment: &Environment) -> Sources {
        let named = |(path, source): (&String, &String)| (path.clone(), environment.described(source));
        Sources {
            chosen: Chosen(self.table.clone()),
            of: self.of.iter().map(named).collect(),
            secrets: Vec::new(),
        }
    }

    fn into_config(self) -> Result<Config, ConfigError> {
        read(self.table).map_err(|(_, message)| ConfigError {
            source_name: "configuration".to_owned(),
            what: without_value(&message),
            hint: EXAMPLE_HINT.to_owned(),
        })
    }

    fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let source = path.display().to_string();
        let text = regular::read_linked(path).map_err(|error| ConfigError {
            source_name: source.clone(),
            what: format!("the file cannot be read ({})", regular::why(&error)),
            hint: "check --config, the file's owner and its permissions".to_owned(),
        })?;
        self.add_toml(&source, &text)
    }

    fn add_toml(&mut self, source: &str, text: &str) -> Result<(), ConfigError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            ConfigError {
                source_name: format!("{source}, line {}", before.matches('\n').count() + 1),
                what: format!("this is not TOML: {}", error.message().lines().next().unwrap_or_default()),
                hint: EXAMPLE_HINT.to_owned(),
            }
        })?;
        for (section, value) in table {
            let Value::Table(keys) = value else {
                try_on(source, Table::from_iter([(section.clone(), value)]), &section)?;
                continue;
            };
            // An empty section may be unknown, too.
            try_on(source, Table::from_iter([(section.clone(), Value::Table(Table::new()))]), &section)?;
            for (key, value) in keys {
                try_value(source, &[&section, &key], &value)?;
                self.put(source, &[&section, &key], value);
            }
        }
        Ok(())
    }

    /// Takes a `CONFIDANT_…` variable, or says why it is none.
    fn add_variable(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let rest = name[PREFIX.len()..].to_lowercase();
        let path: Vec<&str> = rest.split("__").collect();
        if path.len() > 1 {
            return self.add_text(name, &path, value);
        }
        // Platforms put names of their own beside ours (a Kubernetes service called `confidant` brings
        // CONFIDANT_PORT and CONFIDANT_SERVICE_HOST), so what does not look like a setting is not taken for one.
        match meant(&rest) {
            None => Ok(()),
            Some((section, key)) => Err(ConfigError {
                source_name: name.to_owned(),
                what: "unknown key".to_owned(),
                hint: format!(
                    "write {}, with two underscores between section and key",
                    variable(&[&section, &key])
                ),
            }),
        }
    }

    /// Takes a value that is text, as a string if the key wants one and as TOML if it does not.
    fn add_text(&mut self, source: &str, path: &[&str], text: &str) -> Result<(), ConfigError> {
        let name = if source.starts_with(PREFIX) { variable(path) } else { path.join(".") };
        let string = Value::String(text.to_owned());
        let value = match try_on(source, nested(path, string.clone()), &name) {
            Ok(()) => string,
            Err(as_string) => {
                let value =
                    format!("it = {}", text.trim()).parse::<Table>().ok().and_then(|mut t| t.remove("it"));
                let Some(value) = value.filter(|value| !value.is_str()) else { return Err(as_string) };
                try_on(source, nested(path, value.clone()), &name)?;
                value
            }
        };
        self.put(source, path, value);
        Ok(())
    }

    /// Whether there is something at this path.
    fn has(&self, path: &[&str]) -> bool {
        let (first, rest) = path.split_first().expect("a path has at least a section");
        rest.iter().try_fold(self.table.get(*first), |at, key| Some(at?.get(key))).flatten().is_some()
    }

    /// Lays a value over what is there; the path has a section and at least one key.
    fn put(&mut self, source: &str, path: &[&str], value: Value) {
        let Some((key, tables)) = path.split_last() else { return };
        let place = path.join(".");
        // What stood deeper is gone with what it stood in.
        self.of.retain(|known, _| !known.starts_with(&format!("{place}.")));
        self.of.insert(place, source.to_owned());
        let mut table = &mut self.table;
        for name in tables {
            let found = table.entry(*name).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(found) = found else { return };
            table = found;
        }
        table.insert((*key).to_owned(), value);
    }
}

/// Whether a value would be accepted alone; if not, says why, naming the innermost table or key that is to blame.
fn try_value(source: &str, path: &[&str], value: &Value) -> Result<(), ConfigError> {
    let Err(outer) = try_on(source, nested(path, value.clone()), &path.join(".")) else { return Ok(()) };
    // Only tables are tried alone: a plain value may miss its neighbours, which says nothing about it.
    for (key, value) in value.as_table().into_iter().flatten().filter(|(_, value)| value.is_table()) {
        try_value(source, &[path, &[key]].concat(), value)?;
    }
    Err(outer)
}

/// Whether these settings would be accepted alone; if not, says why, naming `key` in `source`.
fn try_on(source: &str, table: Table, key: &str) -> Result<(), ConfigError> {
    let Err((path, message)) = read(table) else { return Ok(()) };
    // What stands deeper than the key is named, too.
    let key = if path.starts_with(key) { &path } else { key };
    Err(worded(source, &message, key))
}

/// Serde's message about settings that are not accepted.
fn refusal(table: Table) -> Option<String> {
    Some(read(table).err()?.1)
}

/// Reads settings; if they are refused, where and why. The only place that does: every other way to deserialise them would
/// compile all sections once more.
fn read(table: Table) -> Result<Config, (String, String)> {
    serde_path_to_error::deserialize(Value::Table(table))
        .map_err(|error| (error.path().to_string(), error.inner().message().to_owned()))
}

fn worded(source: &str, message: &str, key: &str) -> ConfigError {
    // A variable is a source and a key in one.
    let named = key == source;
    let (what, hint) = match refused_name(message) {
        Some((unknown, known)) => {
            let what = if named { "unknown key".to_owned() } else { format!("unknown key {key}") };
            (what, suggestion(key, unknown, &known))
        }
        None => {
            let message = without_value(message);
            let (what, hint) = parted(&message).unwrap_or((&message, EXAMPLE_HINT));
            (if named { what.to_owned() } else { format!("{key}: {what}") }, hint.to_owned())
        }
    };
    ConfigError { source_name: source.to_owned(), what, hint }
}

/// Takes serde's `unknown field` message apart: the name that was refused and those that are known.
fn refused_name(message: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}

/// Serde's message less the value that it quotes: what stands in the wrong place may be a secret.
fn without_value(message: &str) -> String {
    let quotes = ["invalid type: ", "invalid value: ", "unknown variant "];
    if !quotes.iter().any(|prefix| message.starts_with(prefix)) {
        return message.to_owned();
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return "invalid".to_owned() };
    let kind = found.split(['"', '`']).next().unwrap_or_default().trim_end();
    crate::words::plain(&format!("{kind}, expected {expected}")).into_owned()
}

fn suggestion(key: &str, unknown: &str, known: &[&str]) -> String {
    let nearest = nearest(unknown, known.iter().copied());
    // A variable's name is upper case, a key's is not.
    let shown = |name: &str| {
        let name = if key.starts_with(PREFIX) { name.to_uppercase() } else { name.to_owned() };
        let unknown = if key.starts_with(PREFIX) { unknown.to_uppercase() } else { unknown.to_owned() };
        match key.rfind(&unknown) {
            Some(at) => format!("{}{name}{}", &key[..at], &key[at + unknown.len()..]),
            None => name,
        }
    };
    match nearest {
        Some(name) => format!("did you mean {}? {EXAMPLE_HINT}", shown(name)),
        None => format!("known here are {}; {EXAMPLE_HINT}", known.join(", ")),
    }
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
    scored.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// The setting that somebody meant who wrote `CONFIDANT_` and this, with too few underscores.
fn meant(rest: &str) -> Option<(String, String)> {
    for section in known_sections() {
        let keys = known_keys(&section);
        if let Some(key) = rest.strip_prefix(&format!("{section}_")) {
            let nearest = nearest(key, keys.iter().map(String::as_str)).map(str::to_owned);
            return Some((section, nearest.unwrap_or_else(|| key.to_owned())));
        }
        if keys.iter().any(|key| key == rest) {
            return Some((section, rest.to_owned()));
        }
    }
    None
}

/// The names of all sections.
pub(super) fn known_sections() -> Vec<String> {
    known(Table::from_iter([(NO_NAME.to_owned(), Value::Boolean(true))]))
}

/// The names of a section's keys.
pub(super) fn known_keys(section: &str) -> Vec<String> {
    known(nested(&[section, NO_NAME], Value::Boolean(true)))
}

/// Asks serde, by offering a name that cannot be one.
pub(super) fn known(with_no_name: Table) -> Vec<String> {
    let message = refusal(with_no_name).unwrap_or_default();
    refused_name(&message).map_or_else(Vec::new, |(_, known)| known.into_iter().map(str::to_owned).collect())
}

/// Settings with one value in them.
fn nested(path: &[&str], value: Value) -> Table {
    let (section, keys) = path.split_first().expect("a path has at least a section");
    let inner = if keys.is_empty() { value } else { Value::Table(nested(keys, value)) };
    Table::from_iter([((*section).to_owned(), inner)])
}

fn variable(path: &[&str]) -> String {
    format!("{PREFIX}{}", path.join("__").to_uppercase())
}

const DEFAULT_FILE: &str = "confidant.toml";
/// Beside it: variables that are not in the environment.
const BESIDE: &str = ".env";
const PREFIX: &str = "CONFIDANT_";
const NO_NAME: &str = "\u{0}";
const EXAMPLE_HINT: &str = "`confidant config` prints every key with its default";
/// Names of the account on Matrix, the address first.
const MATRIX: [(&str, &str); 2] = [("MATRIX_HOMESERVER", "homeserver"), ("MATRIX_USER", "user")];
/// Names that older systems gave to settings, beside their secrets.
const SEEDS: [(&str, &str, &str); 4] = [
    ("CHECKPOINT_TTL", "checkpoint", "ttl_seconds"),
    ("ROOM_CONTEXT_LIMIT", "room_context", "limit"),
    ("ROOM_CONTEXT_MAX_AGE", "room_context", "max_age_seconds"),
    ("REDIS_URL", "store", "url"),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn with<const N: usize>(file: &str, vars: [(&str, &str); N]) -> Result<Loaded, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, file).unwrap();
        let flags = Flags { config: Some(path.clone()), ..Flags::default() };
        load(&flags, &Environment::from(vars)).map_err(|error| ConfigError {
            source_name: error.source_name.replace(&path.display().to_string(), "c.toml"),
            ..error
        })
    }

    fn refused<const N: usize>(file: &str, vars: [(&str, &str); N]) -> String {
        with(file, vars).unwrap_err().to_string()
    }

    #[test]
    fn later_sources_win() {
        let file = "[checkpoint]\nttl_seconds = 10\n[room_context]\nlimit = 3\n[history]\nmax_messages = 7";
        let vars = [
            ("CONFIDANT_CHECKPOINT__TTL_SECONDS", "20"),
            ("CONFIDANT_ROOM_CONTEXT__LIMIT", "4"),
            ("CHECKPOINT_TTL", "30"),
            ("CONFIDANT_ASPECTS__MATE", "12"),
            ("CONFIDANT_KEYS__COMMAND", r#"["vault", "get"]"#),
        ];
        let config = with(file, vars).unwrap().config;
        assert_eq!(config.checkpoint.ttl, Duration::from_secs(30));
        assert_eq!(config.room_context.limit, 4);
        assert_eq!(config.history.max_messages, 7);
        assert_eq!(config.aspects.mate.as_deref(), Some("12"));
        assert_eq!(config.keys.command, ["vault", "get"]);
    }

    #[test]
    fn a_variable_reaches_what_is_within() {
        let file = "[models.fast]\nprovider = 'openai'\nmodel = 'one'\ncost = 3";
        let vars = [
            ("CONFIDANT_MODELS__FAST__MODEL", "two"),
            ("CONFIDANT_MODELS__SLOW", "{ provider = 'ollama', model = 'three' }"),
            ("OPENAI_API_KEY", "hush"),
        ];
        let loaded = with(file, vars).unwrap();
        let models = loaded.config.models(&loaded.secrets).unwrap();
        let found: Vec<(&str, &str, f32)> =
            models.all().map(|one| (one.name.as_str(), one.model.name(), one.cost)).collect();
        assert_eq!(found[1..], [("fast", "two", 3.0), ("slow", "three", 1.0)]);
        assert_eq!(loaded.secrets.models.keys().collect::<Vec<_>>(), ["fast"], "each has its provider's key");
    }

    #[test]
    fn unknown_keys_are_named_with_their_source_and_the_nearest_known() {
        for (error, source, key, hint) in [
            (
                refused("[server]\nlisten_on = 1", []),
                "c.toml: ",
                "server.listen_on",
                "did you mean server.listen?",
            ),
            (refused("[sever]", []), "c.toml: ", "unknown key sever", "did you mean server?"),
            (
                refused("data_dir = 'x'", []),
                "c.toml: ",
                "unknown key data_dir",
                "known here are server, store",
            ),
            (
                refused("", [("CONFIDANT_SERVER__LISTN", "x")]),
                "CONFIDANT_SERVER__LISTN: ",
                "unknown key",
                "did you mean CONFIDANT_SERVER__LISTEN?",
            ),
            (
                refused("", [("CONFIDANT_SERVER_LISTEN", "x")]),
                "CONFIDANT_SERVER_LISTEN: ",
                "unknown key",
                "write CONFIDANT_SERVER__LISTEN",
            ),
            (
                refused("", [("CONFIDANT_DATA_DIR", "x")]),
                "CONFIDANT_DATA_DIR: ",
                "unknown key",
                "write CONFIDANT_SERVER__DATA_DIR",
            ),
            (
                refused("[models.fast]\nmodl = 'x'", []),
                "c.toml: ",
                "unknown key models.fast.modl",
                "did you mean models.fast.model?",
            ),
            (
                refused("[processing.safety]\nilegal = { at = 1, then = [] }", []),
                "c.toml: ",
                "unknown key processing.safety.ilegal",
                "did you mean processing.safety.illegal?",
            ),
            (
                refused("", [("CONFIDANT_MODELS__FAST__MODL", "x")]),
                "CONFIDANT_MODELS__FAST__MODL: ",
                "unknown key",
                "did you mean CONFIDANT_MODELS__FAST__MODEL?",
            ),
        ] {
            assert!(error.starts_with(source) && error.contains(key) && error.contains(hint), "{error}");
        }
    }

    #[test]
    fn values_of_the_wrong_kind_are_named_with_their_source() {
        for (error, source, key) in [
            (refused("[history]\nmax_messages = 'many'", []), "c.toml: ", "history.max_messages"),
            (refused("[server]\nlisten = 'here'", []), "c.toml: ", "server.listen"),
            (refused("[checkpoint]\nttl_seconds = 0", []), "c.toml: ", "checkpoint.ttl_seconds"),
            (refused("\n[server\n", []), "c.toml, line 2: ", "not TOML"),
            (refused("[models]\ndefault = {}", []), "c.toml: ", "models.default: the default model"),
            (refused("[models]\nfast = 1", []), "c.toml: ", "models.fast: "),
            (
                refused("[models.fast]\ncost = -1", []),
                "c.toml: ",
                "models.fast.cost: this is not a valid cost",
            ),
            (refused("[processing]\nforms = 'x'", []), "c.toml: ", "processing.forms"),
            (
                refused("[processing]\nreprocess_at = 11", []),
                "c.toml: ",
                "processing.reprocess_at: this is not a valid score",
            ),
            (
                refused("[processing.safety]\nillegal = { at = 11, then = [] }", []),
                "c.toml: ",
                "processing.safety.illegal",
            ),
            (
                refused("[processing.safety]\nillegal = { then = [] }", []),
                "c.toml: ",
                "processing.safety.illegal: missing field `at`",
            ),
            (refused("", [("CHECKPOINT_TTL", "a day")]), "CHECKPOINT_TTL: ", "checkpoint.ttl_seconds"),
            (refused("", [("REDIS_URL", "redis://h:port")]), "REDIS_URL: ", "not a Redis address"),
        ] {
            assert!(error.starts_with(source) && error.contains(key) && error.contains("hint: "), "{error}");
        }
    }

    #[test]
    fn a_value_is_not_quoted() {
        for file in [
            "[history]\nmax_messages = 'canary, expected canary'",
            "[server]\nlisten = 'canary'",
            "[store]\ndurability = 'canary'",
            "[log]\nlevel = 'canary'",
            "[model]\nmax_tokens = 'canary'",
            "[store]\nurl = 'canary'",
            "server = 'canary'",
            "[models.fast]\nprovider = 'canary'",
            "[processing]\nforms = 'canary'",
            "[processing.safety]\nillegal = { at = 1, then = ['canary'] }",
            "[processing.safety]\nillegal = 'canary'",
        ] {
            let error = refused(file, []);
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn names_of_the_platform_are_left_alone() {
        let vars = [("CONFIDANT_PORT", "tcp://10.0.0.1"), ("CONFIDANT_SERVICE_HOST", "10.0.0.1")];
        assert_eq!(with("", vars).unwrap().config, Config::default());
    }

    #[test]
    fn a_missing_file_is_an_error_when_it_was_asked_for() {
        let flags = Flags { config: Some("/nonexistent/c.toml".into()), ..Flags::default() };
        let error = load(&flags, &Environment::default()).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/c.toml: the file cannot be read"), "{error}");
    }
}

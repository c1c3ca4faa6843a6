//! The environment, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::ConfigError;

/// The variables of this process, as they were at the start. Values may be secrets and print as such.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, SecretString>,
    /// Of those, the ones that a file has and the process has not.
    in_file: BTreeSet<String>,
    file: Option<PathBuf>,
}

impl Environment {
    /// Takes the variables of this process. Those that are not Unicode cannot be ours.
    pub(crate) fn of_this_process() -> Self {
        let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?.into()))
        };
        Self { variables: std::env::vars_os().filter_map(unicode).collect(), ..Self::default() }
    }

    /// Takes what a `.env` file has and this process has not; no file is none. One that others can read may not hold
    /// secrets of ours.
    pub(crate) fn lay_under(&mut self, path: &Path) -> Result<(), ConfigError> {
        let refused =
            |what: String, hint: String| ConfigError { source_name: path.display().to_string(), what, hint };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let hint = "check its owner, permissions and that it is text".to_owned();
                return Err(refused(format!("the file cannot be read ({})", error.kind()), hint));
            }
        };
        let mode = path.metadata().map_or(0, |meta| meta.permissions().mode() & 0o077);
        for (at, line) in (1..).zip(text.lines()) {
            let hint = "write NAME=value, with quotes round a value that has spaces at its ends or a #";
            let parsed = variable(line)
                .map_err(|()| refused(format!("line {at} is not a variable"), hint.to_owned()))?;
            let Some((name, value)) = parsed else { continue };
            if mode != 0 && super::secrets::is_secret(&name) {
                let what = format!("other users can read this file, and it holds {name}");
                return Err(refused(what, format!("chmod 600 {}", path.display())));
            }
            if !self.variables.contains_key(&name) {
                self.in_file.insert(name.clone());
                self.variables.insert(name, value.into());
            }
        }
        self.file = Some(path.to_owned());
        Ok(())
    }

    /// What to call the source of a value: a variable says which file it stands in, if it does.
    pub(crate) fn described(&self, source: &str) -> String {
        match &self.file {
            Some(file) if self.in_file.contains(source) => format!("{source} in {}", file.display()),
            _ => source.to_owned(),
        }
    }

    /// The value of a variable; one that is empty counts as unset.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(SecretString::expose_secret).filter(|value| !value.trim().is_empty())
    }

    /// Whether colours are welcome: <https://no-color.org>.
    pub(crate) fn welcomes_colour(&self) -> bool {
        self.variables.get("NO_COLOR").is_none_or(|value| value.expose_secret().is_empty())
            && self.value("TERM") != Some("dumb")
    }

    /// All variables whose names begin like this.
    pub(crate) fn beginning_with(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self.variables.iter().map(|(name, value)| (name.as_str(), value.expose_secret()));
        named.filter(move |(name, _)| name.starts_with(prefix))
    }
}

/// The variable on a line of a `.env` file: none if the line is empty or a comment, and an error if it is anything else.
fn variable(line: &str) -> Result<Option<(String, String)>, ()> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, value) = line.split_once('=').ok_or(())?;
    let name = name.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(fits) {
        return Err(());
    }
    let value = value.trim();
    let value = match value.chars().next() {
        Some('\'') => {
            let (inside, rest) = value[1..].split_once('\'').ok_or(())?;
            is_comment(rest).then(|| inside.to_owned()).ok_or(())?
        }
        Some('"') => in_double_quotes(&value[1..]).ok_or(())?,
        _ => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
    };
    Ok(Some((name.to_owned(), value)))
}

fn is_comment(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with('#')
}

/// What stands before the closing quote, with its escapes.
fn in_double_quotes(text: &str) -> Option<String> {
    let (mut value, mut chars) = (String::new(), text.chars());
    loop {
        match chars.next()? {
            '"' => return is_comment(chars.as_str()).then_some(value),
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(vars: [(&str, &str); N]) -> Self {
        let vars = vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned().into()));
        Self { variables: vars.collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(text: &str, mode: u32) -> Result<Environment, ConfigError> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join(".env");
        std::fs::write(&path, text).expect("it can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        let mut environment = Environment::from([("TAKEN", "real"), ("EMPTY", "")]);
        environment.lay_under(&path).map(|()| environment)
    }

    #[test]
    fn a_file_beside_the_settings_gives_what_the_process_has_not() {
        let text = "# comment\n\nexport A=one\nB = two words # not this\nC='#3 \"x\"' # this neither\nD=\"a\\nb\\\"c\"\nE=\n\
                    TAKEN=file\nEMPTY=file\n";
        let environment = beside(text, 0o644).expect("it is well formed");
        let expected = [
            ("A", Some("one")),
            ("B", Some("two words")),
            ("C", Some("#3 \"x\"")),
            ("D", Some("a\nb\"c")),
            ("E", None),
            ("TAKEN", Some("real")),
            ("EMPTY", None),
        ];
        for (name, value) in expected {
            assert_eq!(environment.value(name), value, "{name}");
        }
        assert!(environment.described("A").ends_with(".env"));
        assert_eq!(environment.described("TAKEN"), "TAKEN");
        assert!(Environment::default().lay_under(Path::new("/nowhere/.env")).is_ok());
    }

    #[test]
    fn a_file_that_is_not_one_or_that_others_read_is_refused() {
        for text in ["hush", "1A=hush", "A B=hush", "A='hush", "A=\"hush", "A='x' hush"] {
            let refused = beside(text, 0o600).expect_err("it is not well formed").to_string();
            assert!(refused.contains("line 1") && !refused.contains("hush"), "{refused}");
        }
        let secret = "CHECKPOINT_ENCRYPTION_KEY=hush";
        let refused = beside(secret, 0o644).expect_err("others can read it").to_string();
        assert!(refused.contains("chmod 600") && !refused.contains("hush"), "{refused}");
        assert!(beside(secret, 0o600).is_ok());
        assert!(beside("OPENAI_API_KEY=hush", 0o640).is_err());
    }
}

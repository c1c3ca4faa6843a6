//! What names of things look like.

use super::lists;
use super::words::is_opaque;

/// E0308, TS2345, ECONNREFUSED, ERR_FOO, SIGSEGV, CVE-2024-1234.
pub(super) fn is_error(token: &str) -> bool {
    let code = |lead: &str, least: usize, most: usize| {
        token.strip_prefix(lead).is_some_and(|rest| {
            (least..=most).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let loud = |lead: &str, least: usize| {
        token.strip_prefix(lead).is_some_and(|rest| {
            rest.len() >= least && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    };
    code("E", 3, 5)
        || code("TS", 4, 5)
        || code("ORA-", 4, 5)
        || loud("ECONN", 3)
        || loud("ERR_", 3)
        || loud("SIG", 3)
        || [
            "ENOENT",
            "EACCES",
            "EPERM",
            "EPIPE",
            "ETIMEDOUT",
            "EADDRINUSE",
            "ENOSPC",
            "ENOTFOUND",
            "EEXIST",
            "EAGAIN",
            "EINVAL",
            "EMFILE",
            "ENOMEM",
            "EBUSY",
            "EHOSTUNREACH",
        ]
        .contains(&token)
        || (token.starts_with("CVE-") && token.len() <= 17)
}

/// Numbers with dots between, at most three: four are an address.
pub(super) fn is_version(token: &str) -> bool {
    let numbers = token.strip_prefix('v').unwrap_or(token);
    let (numbers, rest) = numbers.find(['-', '+']).map_or((numbers, ""), |at| numbers.split_at(at));
    let parts: Vec<&str> = numbers.split('.').collect();
    let dotted = (2..=3).contains(&parts.len())
        && parts
            .iter()
            .all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()));
    let whole = token.starts_with('v')
        && parts.len() == 1
        && numbers.len() <= 2
        && !numbers.is_empty()
        && numbers.bytes().all(|byte| byte.is_ascii_digit());
    (dotted || whole) && rest.len() <= 12
}

/// ABC-123.
pub(super) fn is_ticket(token: &str) -> bool {
    token.split_once('-').is_some_and(|(lead, number)| {
        (2..=8).contains(&lead.len())
            && lead.bytes().all(|byte| byte.is_ascii_uppercase())
            && (1..=5).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A path or a file's name; of a path through someone's home, what is behind it.
pub(super) fn path(token: &str) -> Option<&str> {
    let token = token.strip_prefix("a/").or_else(|| token.strip_prefix("b/")).unwrap_or(token);
    // main.rs:12:3
    let token = token.find(':').filter(|at| !token[*at..].starts_with("::")).map_or(token, |at| &token[..at]);
    if token.contains("::")
        || !token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'@'))
    {
        return None;
    }
    let parts: Vec<&str> = token.split('/').collect();
    let file = parts.last().copied().unwrap_or_default();
    let named = file.rsplit_once('.').is_some_and(|(stem, ending)| {
        EXTENSIONS.contains(&ending)
            && (!stem.is_empty() || parts.len() > 1)
            && stem.bytes().all(|byte| byte != b'.' || parts.len() > 1 || stem.len() < 24)
    });
    if parts.len() == 1 {
        return (named && file.bytes().any(|byte| byte.is_ascii_alphabetic())).then_some(token);
    }
    let real = parts
        .iter()
        .filter(|part| !part.is_empty() && !matches!(**part, "." | ".."))
        .all(|part| part.bytes().any(|byte| byte.is_ascii_alphabetic()) && !is_opaque(part));
    let known = parts.iter().find(|part| !part.is_empty()).is_some_and(|first| ROOTS.contains(first));
    let rooted = token.starts_with('/') || token.starts_with("./") || token.starts_with("../");
    let many = parts.iter().filter(|part| part.len() > 1).count();
    let good = real
        && (named
            || (known && many > 1)
            || (rooted && many > 1)
            || is_branch_name(token)
            || (token.starts_with('@') && parts.len() == 2));
    let behind = match parts.as_slice() {
        ["", "home" | "Users", _, rest @ ..] => Some(rest.join("/").len()),
        _ => None,
    };
    let kept = behind.map_or(token, |length| &token[token.len() - length..]);
    (good && !kept.is_empty()).then_some(kept)
}

pub(super) fn is_branch_name(token: &str) -> bool {
    let leads = ["feature/", "feat/", "fix/", "bugfix/", "hotfix/", "release/", "chore/", "refactor/"];
    leads.iter().any(|lead| token.len() > lead.len() + 2 && token.starts_with(lead))
        && !token.rsplit('.').next().is_some_and(|ending| EXTENSIONS.contains(&ending))
}

pub(super) fn is_branch(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '/' | '-' | '_' | '.')
}

/// `auth-service`: small letters, dashes, and a part that services and packages are called after.
pub(super) fn is_service(token: &str) -> bool {
    let parts: Vec<&str> = token.split('-').collect();
    let small = parts.iter().all(|part| {
        part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    });
    (2..=5).contains(&parts.len())
        && small
        && parts.last().is_some_and(|last| lists::SERVICE_PARTS.has(last) || lists::PRODUCTS.has(last))
        && !parts.iter().any(|part| {
            [
                "in", "of", "to", "the", "and", "by", "up", "on", "off", "out", "per", "non", "pre", "re",
                "multi", "cross",
            ]
            .contains(part)
        })
}

/// `a::b`, `foo()`, `snake_case`, `camelCase`, `PascalCase`.
pub(super) fn is_symbol(token: &str) -> bool {
    let name = token.strip_suffix("()").unwrap_or(token);
    let called = name.len() < token.len();
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.'))
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !fits || name.len() < 3 {
        return false;
    }
    let bytes = name.as_bytes();
    let humps =
        bytes.windows(2).filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()).count();
    let snake = name.trim_matches('_').contains('_');
    called || name.contains("::") || (snake && !name.contains('.')) || (humps > 0 && !name.contains('.'))
}

/// Two to six capitals, maybe with digits or a plural's s.
pub(super) fn is_acronym(token: &str) -> bool {
    let name = token.strip_suffix('s').unwrap_or(token);
    let capitals = name.bytes().filter(u8::is_ascii_uppercase).count();
    let fits = (2..=6).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let sized = token.len() >= 4
        && token
            .split_once('-')
            .is_some_and(|(lead, rest)| is_upper(lead) && rest.bytes().all(|byte| byte.is_ascii_digit()));
    (fits && capitals >= 2 && !lists::NOT_ACRONYMS.has(&name.to_ascii_lowercase()))
        || (sized && token.len() <= 8)
}

pub(super) fn is_upper(token: &str) -> bool {
    token.len() > 1 && token.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Products whose names are words: only their capitals tell.
pub(super) const AMBIGUOUS: &[&str] = &[
    "swift",
    "ruby",
    "rust",
    "spring",
    "express",
    "rails",
    "matrix",
    "slack",
    "lambda",
    "spark",
    "vault",
    "consul",
    "helm",
    "cursor",
    "safari",
    "chrome",
    "windows",
    "alpine",
    "prettier",
    "jest",
    "poetry",
    "conda",
    "celery",
    "cypress",
    "sentry",
    "discord",
    "stripe",
    "flask",
    "react",
    "next",
    "python",
    "claude",
    "gemini",
    "llama",
    "mistral",
    "loki",
    "envoy",
    "bun",
    "ruff",
    "yarn",
    "rollup",
    "babel",
    "cargo",
    "bazel",
    "prisma",
    "hibernate",
    "selenium",
    "puppeteer",
    "solr",
    "snowflake",
    "jupyter",
];
const EXTENSIONS: &[&str] = &[
    "rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "kt", "c", "h", "cpp", "hpp", "cc", "cs", "rb",
    "php", "swift", "scala", "sh", "bash", "toml", "yaml", "yml", "json", "jsonl", "xml", "html", "css",
    "scss", "md", "txt", "sql", "lock", "cfg", "ini", "conf", "env", "log", "csv", "proto", "tf", "vue",
    "svelte", "ex", "exs", "lua", "zig", "gradle", "ipynb", "db", "sqlite", "png", "svg", "pdf", "mjs",
    "cjs", "service",
];
const ROOTS: &[&str] = &[
    "src", "crates", "lib", "tests", "test", "docs", "app", "cmd", "pkg", "internal", "scripts", "packages",
    "etc", "var", "usr", "opt", "bin", "web",
];

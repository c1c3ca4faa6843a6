//! Passwords behind words of other languages, and behind flags that say nothing.

use std::ops::Range;

use super::generic::is_word;
use super::value::{is_code, is_stand_in, secretness};
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;
use crate::opaque::Make;

const fn password(
    id: &'static str,
    trigger: Trigger,
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Noncritical, Family::Secret);
    Rule { id, label: "PASSWORD", tier, family, trigger, pattern, check, matches, misses }
}

pub(super) static RULES: &[Rule] = &[
    password(
        "password_abroad",
        Trigger::Keyword(WORDS),
        concat!(
            r#"(?:(?i:mot de passe|palavra[ -]passe)|[A-Za-z\x80-\xff-]{4,40})["'`*]{0,3}\s{0,3}"#,
            r#"(?:=>|:=|[:=])\s{0,3}["'`]?([^\s"'`<>,;]{4,128})"#
        ),
        abroad,
        &[
            "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}: Wq7tR2zp9",
            "\u{41f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}: 'Wq7tR2zp9'",
            "\u{5bc6}\u{7801}\u{ff1a}Wq7tR2zp9",
            "\u{5bc6}\u{78bc}: Wq7tR2zp9",
            "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}: Wq7tR2zp9",
            "contrase\u{f1}a: Wq7tR2zp9",
            "mot de passe : Wq7tR2zp9",
            "Kennwort: Wq7tR2zp9",
            "senha=Wq7tR2zp9",
            "has\u{142}o: Wq7tR2zp9",
            "wachtwoord: Wq7tR2zp9",
            "l\u{f6}senord: Wq7tR2zp9",
            "\u{15f}ifre: Wq7tR2zp9",
            "\u{be44}\u{bc00}\u{bc88}\u{d638}: Wq7tR2zp9",
        ],
        &[
            "Kennwort: erforderlich",
            "senha: sua-senha-aqui",
            "mot de passe: <votre mot de passe>",
            "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}: \u{43d}\u{435}\u{442}",
            "wachtwoord = process.env.PW",
        ],
    ),
    password(
        "command_password",
        Trigger::Keyword(&[
            "mysql",
            "mariadb",
            "sshpass",
            "docker login",
            "mongo",
            "redis-cli",
            "sqlcmd",
            "ldapsearch",
            "ldapmodify",
            "ldapadd",
        ]),
        concat!(
            r#"(?:mysql[a-z]{0,8}|mariadb(?:-[a-z]{3,8})?)\b[^\n;|&]{0,300}?\s-p["']?([^\s"'$<{]{4,64})"#,
            r#"|sshpass\s{1,3}-p\s?["']?([^\s"'$<{]{3,64})"#,
            r#"|(?:docker login|mongo[a-z]{0,8})\b[^\n;|&]{0,300}?\s-p[ =]["']?([^\s"'$<{-][^\s"'$<{]{3,64})"#,
            r#"|redis-cli\b[^\n;|&]{0,300}?\s-a\s["']?([^\s"'$<{-][^\s"'$<{]{3,64})"#,
            r#"|sqlcmd\b[^\n;|&]{0,300}?\s-P\s?["']?([^\s"'$<{-][^\s"'$<{]{3,64})"#,
            r#"|ldap[a-z]{3,6}\b[^\n;|&]{0,300}?\s-w\s?["']?([^\s"'$<{-][^\s"'$<{]{3,64})"#
        ),
        command,
        &[
            "mysql -u root -pWq7tR2zp9 shop",
            "mysqldump -uroot -p'Wq7tR2zp9'",
            "sshpass -p Wq7tR2zp9 ssh host",
            "docker login -u jane -p Wq7tR2zp9 registry.example.org",
            "redis-cli -h cache -a Wq7tR2zp9 ping",
            "sqlcmd -S db -U sa -P 'Wq7tR2zp9'",
            "ldapsearch -x -D cn=admin -w Wq7tR2zp9 -b dc=example",
        ],
        &[
            "mysql -u root -p shop",
            "docker run mysql -p3306:3306",
            "sshpass -p $PASS ssh host",
            "mysql -ppassword",
            "docker login -u jane -p $TOKEN",
            "redis-cli -a $PASS",
        ],
    ),
    password(
        "told_password",
        Trigger::Anywhere(&["identified by", "basicauth(", "basic_auth(", "auth=("]),
        concat!(
            r#"(?i)(?:identified by (?:password )?|(?:basic_?auth|auth=)\(\s{0,2}["'][^"'\n]{1,80}["']\s{0,2},\s{0,2}(?:Some\()?)"#,
            r#"["']([^"'`\s]{4,128})["']"#
        ),
        command,
        &[
            "CREATE USER jane IDENTIFIED BY 'Wq7tR2zp9'",
            "requests.get(url, auth=HTTPBasicAuth('jane', 'Wq7tR2zp9'))",
            "requests.get(url, auth=('jane', 'Wq7tR2zp9'))",
            "req.SetBasicAuth(\"jane\", \"Wq7tR2zp9\")",
        ],
        &["IDENTIFIED BY '<password>'", "auth=('user', 'password')"],
    ),
    password(
        "go_dsn_password",
        Trigger::Anywhere(&["@tcp("]),
        "",
        go_dsn,
        &["dsn := \"app:Wq7tR2zp9@tcp(db:3306)/shop\""],
        &["user:password@tcp(localhost:3306)/db", "@tcp(x)"],
    ),
];

fn abroad(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let make = Make::of(value);
    let bits = secretness(value);
    let good = (make.digits > 0 && make.letters() > 0 && bits > 4.6) || bits > 6.0;
    (good && !is_plain(value)).then(|| found.secret.clone())
}

fn command(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    (Make::of(value).letters() > 0 && !is_plain(value)).then(|| found.secret.clone())
}

/// `user:password` before the place of a server.
fn go_dsn(found: &Found<'_>) -> Option<Range<usize>> {
    let before = found.before(128);
    let word =
        before.iter().rev().take_while(|byte| !byte.is_ascii_whitespace() && !b"\"'`".contains(byte)).count();
    let word = &before[before.len() - word..];
    let colon = word.iter().position(|byte| *byte == b':')?;
    let password = &word[colon + 1..];
    let good = colon > 0 && password.len() >= 4 && !is_plain(password);
    good.then(|| found.whole.start - password.len()..found.whole.start)
}

fn is_plain(value: &[u8]) -> bool {
    is_stand_in(value) || is_code(value) || is_word(value)
}

/// The words for a password; of letters that are not ASCII in each case that they come in.
const WORDS: &[&str] = &[
    "пароль",
    "Пароль",
    "ПАРОЛЬ",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "パスワ-ド",
    "비밀번호",
    "contraseña",
    "CONTRASEÑA",
    "contrasena",
    "mot de passe",
    "motdepasse",
    "palavra-passe",
    "palavra passe",
    "kennwort",
    "senha",
    "hasło",
    "HASŁO",
    "wachtwoord",
    "lösenord",
    "LÖSENORD",
    "passord",
    "adgangskode",
    "salasana",
    "heslo",
    "jelszó",
    "şifre",
    "Şifre",
    "ŞİFRE",
];

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
        Trigger::Keyword(&["mysql", "mariadb", "sshpass"]),
        concat!(
            r#"(?:mysql[a-z]{0,8}|mariadb(?:-[a-z]{3,8})?)\b[^\n;|&]{0,300}?\s-p["']?([^\s"'$<{]{4,64})"#,
            r#"|sshpass\s{1,3}-p\s?["']?([^\s"'$<{]{3,64})"#
        ),
        command,
        &[
            "mysql -u root -pWq7tR2zp9 shop",
            "mysqldump -uroot -p'Wq7tR2zp9'",
            "sshpass -p Wq7tR2zp9 ssh host",
        ],
        &[
            "mysql -u root -p shop",
            "docker run mysql -p3306:3306",
            "sshpass -p $PASS ssh host",
            "mysql -ppassword",
        ],
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

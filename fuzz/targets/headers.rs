//! Headers of requests to client-sealed chats: nothing foreign passes, and a session is shown in one way only.

#![no_main]

use confidant_chats_http::fuzzing::asked;
use libfuzzer_sys::fuzz_target;

const ORIGINS: [&str; 2] = ["https://chat.example", "http://localhost:8080"];

fuzz_target!(|input: &[u8]| {
    // Headers that can be sent, in plain ASCII.
    let is_name =
        |name: &[u8]| !name.is_empty() && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == b'-');
    let is_value = |value: &[u8]| value.iter().all(|c| (b' '..=b'~').contains(c));
    let lines: Vec<(&[u8], &[u8])> = input
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            line.iter().position(|byte| *byte == b':').map(|at| (&line[..at], &line[at + 1..]))
        })
        .filter(|(name, value)| is_name(name) && is_value(value))
        .collect();
    let all = |name: &str| -> Vec<&[u8]> {
        lines.iter().filter(|line| line.0.eq_ignore_ascii_case(name.as_bytes())).map(|line| line.1).collect()
    };
    let Ok(asked) = asked(&ORIGINS, &lines) else { return };
    let at = ORIGINS.iter().position(|origin| *origin == asked.origin).expect("one of ours");
    let hosts = [["chat.example", "chat.example:443"], ["localhost:8080", "localhost:8080"]][at];
    let is_ours = |host: &&[u8]| hosts.iter().any(|ours| host.eq_ignore_ascii_case(ours.as_bytes()));
    assert!(all("host").iter().any(is_ours), "another host passed");
    let sites = all("sec-fetch-site");
    assert!(sites.iter().all(|site| *site == b"same-origin"), "a foreign site passed");
    let cookie = ["__Host-confidant=", "confidant-8080="][at].as_bytes();
    let has_cookie = all("cookie").iter().any(|line| line.windows(cookie.len()).any(|part| part == cookie));
    let origins = all("origin");
    if asked.is_page {
        assert!(
            origins.iter().any(|origin| *origin == asked.origin.as_bytes()),
            "a page of another origin passed"
        );
        assert!(!asked.has_session || has_cookie && !sites.is_empty() && all("authorization").is_empty());
    } else {
        assert!(!asked.has_session || !all("authorization").is_empty());
    }
    assert!(!asked.has_session || !all("confidant-session").is_empty());
});

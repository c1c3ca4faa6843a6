//! What is wrong with a server's certificate, in our words: the TLS library's own may say what is in it.

const WORDS: [(&str, &str); 8] = [
    ("UnknownIssuer", "nobody who is trusted has signed the server's certificate, see store.ca_file"),
    ("not valid for name", "the server's certificate is for another name"),
    ("NotValidForName", "the server's certificate is for another name"),
    ("expired", "the server's certificate has expired"),
    ("Expired", "the server's certificate has expired"),
    ("certificate", "the server's certificate is not acceptable"),
    ("InvalidContentType", "the server does not speak TLS"),
    ("corrupt message", "the server does not speak TLS"),
];

/// Our words for what the TLS library says; nothing if it does not say anything of TLS.
pub(super) fn shown(text: &str) -> Option<&'static str> {
    WORDS.iter().find(|(word, _)| text.contains(word)).map(|(_, shown)| *shown)
}

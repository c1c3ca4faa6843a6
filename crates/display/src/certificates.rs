//! What is wrong with a server's certificate, in our words: the TLS library's own may say what is in it.

const WORDS: [(&str, &str); 8] = [
    ("UnknownIssuer", "the server's certificate is not signed by a trusted authority, see store.ca_file"),
    ("not valid for name", "the server's certificate is for another host name"),
    ("NotValidForName", "the server's certificate is for another host name"),
    ("expired", "the server's certificate has expired"),
    ("Expired", "the server's certificate has expired"),
    ("certificate", "the server's certificate is not valid"),
    ("InvalidContentType", "the server does not speak TLS"),
    ("corrupt message", "the server does not speak TLS"),
];

/// Our words for an error of the TLS library; nothing if the text is not about TLS.
#[must_use]
pub fn certificate_problem(text: &str) -> Option<&'static str> {
    WORDS.iter().find(|(word, _)| text.contains(word)).map(|(_, shown)| *shown)
}

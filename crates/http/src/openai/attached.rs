//! Images and files that a client sends with a message.
//!
//! They go to the model with the newest message and are not kept. What is kept is a line in that message that says what there was: its
//! kind, name and size. What is easy to get wrong: neither the bytes nor an address may be in that line, or in an error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use confidant_engine::is_invisible;
use confidant_engine::model::{Attachment, AttachmentSource};

/// Something that came with a message, and the line that stands for it later.
pub(in crate::openai) struct Attached {
    pub(in crate::openai) attachment: Attachment,
    pub(in crate::openai) line: String,
}

/// Why something cannot be taken: what it is, and what to do.
pub(in crate::openai) type Refusal = (&'static str, &'static str);

/// An image in a data URL or at an address.
pub(in crate::openai) fn image(url: &str) -> Result<Attached, Refusal> {
    let attached = if begins(url, "data:") { data(url, None)? } else { elsewhere("image", "image/*", url)? };
    if attached.attachment.is_image() {
        return Ok(attached);
    }
    Err((
        "is an image of another kind",
        "send a data URL of type image/png, image/jpeg, image/gif or image/webp",
    ))
}

/// A file in a data URL, or in base64 with a name that says what it is.
pub(in crate::openai) fn file(data_or_url: &str, name: Option<&str>) -> Result<Attached, Refusal> {
    if begins(data_or_url, "data:") {
        return data(data_or_url, name);
    }
    let ending = name.and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending.to_ascii_lowercase());
    let known = ending.and_then(|ending| KNOWN.iter().find(|(known, _)| *known == ending));
    match known {
        Some((_, media_type)) => decoded(media_type, data_or_url, name),
        None => {
            Err(("is a file of an unknown type", "send a data URL, such as data:application/pdf;base64,…"))
        }
    }
}

/// A file at an address.
pub(in crate::openai) fn file_at(url: &str) -> Result<Attached, Refusal> {
    elsewhere("file", "application/pdf", url)
}

/// What endings of names say.
static KNOWN: [(&str, &str); 9] = [
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("json", "application/json"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
];

fn data(url: &str, name: Option<&str>) -> Result<Attached, Refusal> {
    let hint = "write it like data:image/png;base64,…";
    let Some((head, data)) = url[SCHEME..].split_once(',') else {
        return Err(("has a data URL without data", hint));
    };
    let mut parts = head.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    if !parts.next_back().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64")) {
        return Err(("has a data URL that is not in base64", hint));
    }
    decoded(&media_type, data, name)
}

const SCHEME: usize = "data:".len();

fn decoded(media_type: &str, data: &str, name: Option<&str>) -> Result<Attached, Refusal> {
    if !is_media_type(media_type) {
        let hint = "send images, application/… or text/…; audio and video are not supported";
        return Err(("has a media type that is not supported here", hint));
    }
    let size = match STANDARD.decode(data) {
        Ok(bytes) if !bytes.is_empty() => bytes.len(),
        _ => {
            return Err((
                "has data that is not base64",
                "encode it as base64, with padding and without line breaks",
            ));
        }
    };
    let name = name.map(plain).filter(|name| !name.is_empty());
    let kind = if media_type.starts_with("image/") { "image" } else { "file" };
    let named = name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
    let line = format!("[{kind}: {named}{media_type}, {}]", told(size));
    let source = AttachmentSource::Data(data.to_owned());
    Ok(Attached { attachment: Attachment { media_type: media_type.to_owned(), name, source }, line })
}

fn elsewhere(kind: &str, media_type: &str, url: &str) -> Result<Attached, Refusal> {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    if !begins(url, "https://") || !is_plain || url.len() > LONGEST_ADDRESS {
        return Err(("is neither a data URL nor an https address", "send it as a data URL"));
    }
    let (media_type, source) = (media_type.to_owned(), AttachmentSource::Address(url.to_owned()));
    let line = format!("[{kind}: at an address]");
    Ok(Attached { attachment: Attachment { media_type, name: None, source }, line })
}

/// In bytes; signed addresses are long.
const LONGEST_ADDRESS: usize = 8 << 10;

fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
}

fn is_media_type(text: &str) -> bool {
    let is_word = |word: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$&^_.+-".contains(c);
        (1..=80).contains(&word.len()) && word.chars().all(allowed)
    };
    let taken = ["image", "application", "text"];
    text.split_once('/').is_some_and(|(kind, rest)| taken.contains(&kind) && is_word(rest))
}

/// A name without what could look like something else in a line.
fn plain(name: &str) -> String {
    let is_fit = |c: &char| !c.is_control() && !is_invisible(*c) && !"[]/\\".contains(*c);
    name.chars().filter(is_fit).take(LONGEST_NAME).collect::<String>().trim().to_owned()
}

const LONGEST_NAME: usize = 80;

/// A size in a few characters.
fn told(size: usize) -> String {
    match size {
        0..1024 => format!("{size} bytes"),
        1024..0x10_0000 => format!("{} KiB", size >> 10),
        _ => format!("{} MiB", size >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(attached: Result<Attached, Refusal>) -> Result<(String, String), &'static str> {
        attached.map(|it| (it.attachment.media_type, it.line)).map_err(|(what, _)| what)
    }

    #[test]
    fn a_line_says_what_there_was_and_nothing_of_what_is_in_it() {
        let image = shape(image("data:Image/PNG;base64,aGVsbG8=")).unwrap();
        assert_eq!(image, ("image/png".to_owned(), "[image: image/png, 5 bytes]".to_owned()));
        let name = "a]\n[b/\u{202e}c.pdf";
        let named = shape(file("data:application/pdf;name=x;base64,aGVsbG8=", Some(name))).unwrap();
        assert_eq!(named.1, "[file: abc.pdf, application/pdf, 5 bytes]");
        assert_eq!(shape(file("aGVsbG8=", Some("a.TXT"))).unwrap().0, "text/plain");
        let at = shape(super::image("https://example.org/secret?token=7f3a")).unwrap();
        assert_eq!(at, ("image/*".to_owned(), "[image: at an address]".to_owned()));
        assert_eq!(shape(file_at("https://example.org/a.pdf")).unwrap().1, "[file: at an address]");
        assert_eq!([1023, 2048, 3 << 20].map(told), ["1023 bytes", "2 KiB", "3 MiB"]);
    }

    #[test]
    fn what_is_no_image_or_file_is_refused() {
        for url in [
            "",
            "canary",
            "http://example.org/a.png",
            "https://example.org/a b",
            "file:///etc/passwd",
            "data:",
            "data:image/png",
            "data:image/png,hello",
            "data:image/png;base64,",
            "data:image/png;base64,not base64",
            "data:image/;base64,aGVsbG8=",
            "data:;base64,aGVsbG8=",
            "data:video/mp4;base64,aGVsbG8=",
            "data:application/pdf;base64,aGVsbG8=",
            "daté:image/png;base64,aGVsbG8=",
        ] {
            assert!(image(url).is_err(), "{url}");
        }
        for (data, name) in [("aGVsbG8=", None), ("aGVsbG8=", Some("a.exe")), ("?", Some("a.pdf"))] {
            assert!(file(data, name).is_err(), "{data}");
        }
        assert!(file_at("http://127.0.0.1/a.pdf").is_err());
    }
}

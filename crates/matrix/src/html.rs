//! Markdown to the HTML that Matrix clients show. Tags in the text are text: an answer cannot bring markup of its own,
//! and pictures are links, since clients show only those that are on a Matrix server.

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

/// The HTML of a text; none if that would say no more than the text itself.
pub(crate) fn of(markdown: &str) -> Option<String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events: Vec<Event<'_>> = Parser::new_ext(markdown, options).map(tamed).collect();
    let is_plain = events.iter().all(|event| {
        matches!(
            event,
            Event::Text(_) | Event::HardBreak | Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph)
        )
    });
    let paragraphs = events.iter().filter(|event| matches!(event, Event::Start(Tag::Paragraph))).count();
    if is_plain && paragraphs <= 1 && !markdown.contains(['\\', '&']) {
        return None;
    }
    let mut all = events.as_slice();
    // One paragraph alone is not wrapped, as the specification asks.
    if let [Event::Start(Tag::Paragraph), inner @ .., Event::End(TagEnd::Paragraph)] = all
        && paragraphs == 1
        && !inner.iter().any(|event| matches!(event, Event::End(TagEnd::Paragraph)))
    {
        all = inner;
    }
    let mut out = String::new();
    html::push_html(&mut out, all.iter().cloned());
    Some(out.trim_end().to_owned())
}

fn tamed(event: Event<'_>) -> Event<'_> {
    match event {
        Event::SoftBreak => Event::HardBreak,
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { dest_url, title, id, .. } | Tag::Link { dest_url, title, id, .. }) => {
            let dest_url = if is_harmless(&dest_url) { dest_url } else { CowStr::Borrowed("#") };
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id })
        }
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        other => other,
    }
}

/// Schemes that the specification lets links have.
fn is_harmless(url: &str) -> bool {
    ["https:", "http:", "ftp:", "mailto:", "magnet:"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markdown_becomes_html_and_tags_stay_text() {
        for (markdown, expected) in [
            ("plain words", None),
            ("two\nlines", None),
            ("**bold** word", Some("<strong>bold</strong> word")),
            ("a < b & c", Some("a &lt; b &amp; c")),
            ("x <b>y</b>", None),
            ("*x* <img src=y>", Some("<em>x</em> &lt;img src=y&gt;")),
            ("[a](javascript:x)", Some("<a href=\"#\">a</a>")),
            ("![a](https://x/y.png)", Some("<a href=\"https://x/y.png\">a</a>")),
            ("- a\n- b", Some("<ul>\n<li>a</li>\n<li>b</li>\n</ul>")),
            ("```rust\nfn a() {}\n```", Some("<pre><code class=\"language-rust\">fn a() {}\n</code></pre>")),
            ("one\n\ntwo", Some("<p>one</p>\n<p>two</p>")),
            ("*a*\nb", Some("<em>a</em><br />\nb")),
        ] {
            assert_eq!(of(markdown).as_deref(), expected, "{markdown}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_written_is_markup(text in "[<>a-z/\"'= \n*`!\\[\\]()&;#-]{0,80}") {
            let html = of(&text).unwrap_or_default();
            for tag in ["<script", "<img", "<iframe", "<style", "<svg"] {
                prop_assert!(!html.contains(tag));
            }
        }
    }
}

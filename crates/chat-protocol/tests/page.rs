//! docs/PROTOCOL.md is what the types say, and its samples are messages.

use confidant_chat_protocol::describe::{page, read_body};
use confidant_chat_protocol::{
    Body as _, ClientEvent, ClientFrame, ROUTES, ServerEvent, ServerFrame, Signed,
};

const PAGE: &str = include_str!("../../../docs/PROTOCOL.md");

#[test]
fn the_page_is_made_from_the_types() {
    let made = page();
    let differs = made.lines().zip(PAGE.lines()).find(|(made, kept)| made != kept);
    assert!(
        made == PAGE,
        "docs/PROTOCOL.md is not what the types say, first at {differs:?}; \
         hint: cargo run -p confidant-chat-protocol --example protocol > docs/PROTOCOL.md"
    );
}

#[test]
fn every_sample_of_the_page_is_read() {
    let (mut events, mut bodies) = (Vec::new(), 0);
    for section in PAGE.split("\n### ").skip(1) {
        let title = section.lines().next().unwrap().trim_matches('`');
        for (at, sample) in section.split("```json\n").skip(1).enumerate() {
            let json = sample.split("```").next().unwrap().as_bytes();
            if let Some(path) = title.strip_prefix("POST ") {
                read_body(path, at == 1, json).unwrap().unwrap();
                bodies += 1;
            } else if title == "Signed" {
                Signed::read(json).unwrap();
            } else if ClientEvent::NAMES.contains(&title) {
                events.push(ClientFrame::read(json).unwrap().event.name());
            } else {
                events.push(ServerFrame::read(json).unwrap().event.name());
            }
            assert!(title == "Signed" || title.starts_with("POST") || events.last() == Some(&title));
        }
    }
    assert_eq!(events, [ClientEvent::NAMES, ServerEvent::NAMES].concat());
    assert_eq!(bodies, 2 * ROUTES.len());
}

#[test]
fn every_link_of_the_page_leads_somewhere() {
    let anchors: Vec<String> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("### ").or_else(|| line.strip_prefix("## ")))
        .map(|title| title.to_lowercase().replace(' ', "-").replace(['`', ',', '/'], ""))
        .collect();
    for link in PAGE.split("](#").skip(1) {
        let anchor = link.split(')').next().unwrap();
        assert!(anchors.iter().any(|known| known == anchor), "{anchor}");
    }
}

#[test]
fn the_seeds_of_the_fuzzer_are_frames_of_today() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/chats_frames");
    let mut frames = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        let read = match seed[0] {
            0 => ClientFrame::read(&seed[1..]).map(drop),
            4 => ServerFrame::read(&seed[1..]).map(drop),
            8 => Signed::read(&seed[1..]).map(drop),
            _ => continue,
        };
        frames += 1;
        assert_eq!(read, Ok(()), "{}", path.display());
    }
    assert!(frames > 20);
}

//! Snapshots: what a link opens, and what it must not.

use confidant_chat_format::*;
use confidant_seal::Suite;

use super::build::*;
use super::shape::*;

/// A good snapshot, which every bad one is made of.
pub(crate) struct Made {
    key: confidant_seal::Key,
    id: SnapshotId,
    list: SnapshotList,
    items: Vec<(ItemId, String)>,
}

impl Made {
    /// Two messages, and an embed that the first one shows.
    fn good() -> Self {
        let embed = EmbedId::from_bits(&[3; 16]);
        let question =
            Message { refs: vec![embed.clone()], ..a_message(Role::User, None, "what is this? \u{1f44b}") };
        let model = Some("small".to_owned());
        let answer = Message { model, ..a_message(Role::Assistant, Some(message_id(1)), "a wave") };
        let text = Text { v: 1, body: "a picture".to_owned() };
        let items = vec![
            (ItemId::Message(message_id(1)), words(&question.to_json())),
            (ItemId::Message(message_id(2)), words(&answer.to_json())),
            (ItemId::Embed(embed), words(&text.to_json())),
        ];
        let list = SnapshotList {
            v: 1,
            at: 1_700_000_000_000,
            until: 1_700_600_000_000,
            title: Some("Waves".to_owned()),
            count: 0,
            live: Digest::ZERO,
            leaf: message_id(2),
        };
        Self { key: counting(0xd0), id: SnapshotId::from_bits(&[9; 16]), list, items }
    }

    fn envelope(&self, item: &ItemId, json: &str) -> String {
        let label = match item {
            ItemId::Message(_) => "msg",
            ItemId::Embed(_) => "embed",
            ItemId::Field(_) => "meta",
        };
        sealed(&self.key.derive(label), &self.context(&item.to_string(), "content"), 1, 16, json.as_bytes())
    }

    fn context(&self, object: &str, field: &str) -> Fields {
        ["snapshot", "", self.id.as_str(), object, field].map(str::to_owned)
    }

    fn envelopes(&self) -> Vec<(String, String)> {
        self.items.iter().map(|(item, json)| (item.to_string(), self.envelope(item, json))).collect()
    }

    /// The list with the number and digest of these envelopes.
    fn listed(&self, envelopes: &[(String, String)]) -> SnapshotList {
        let list: List = envelopes
            .iter()
            .map(|(item, sealed)| (ItemId::parse(item).expect("an item"), Digest::of(&unhex(sealed))))
            .collect();
        let count = u32::try_from(list.len()).expect("a few");
        SnapshotList { count, live: live(&list), ..self.list.clone() }
    }

    fn seal_list(&self, list: &SnapshotList, rev: u32) -> String {
        sealed(&self.key.derive("meta"), &self.context("list", ""), rev, 16, &list.to_json())
    }
}

pub(crate) fn snapshots() -> Vec<SnapshotCase> {
    let made = Made::good();
    let envelopes = made.envelopes();
    let list = made.listed(&envelopes);
    let link = SnapshotLink {
        origin: Origin::parse("https://chat.example").expect("an origin"),
        id: made.id.clone(),
        key: SnapshotKey::from_key(made.key.clone()),
    };
    let (chat_key, chat) = (counting(0x60), chat(1));
    let kept = ["snapshot", account().as_str(), chat.as_str(), made.id.as_str(), "key"].map(str::to_owned);
    let items = made.items.iter().zip(&envelopes).map(|((item, json), (_, sealed))| SnapshotItem {
        item: item.to_string(),
        json: json.clone(),
        sealed: sealed.clone(),
    });
    vec![SnapshotCase {
        key: key_hex(&made.key),
        id: made.id.to_string(),
        origin: link.origin.as_str().to_owned(),
        link: link.dangerously_to_text().to_string(),
        now: 1_700_000_000_000,
        salt: hex(&[16; 24]),
        list_json: words(&list.to_json()),
        list: made.seal_list(&list, 1),
        items: items.collect(),
        chat_key: key_hex(&chat_key),
        kept: sealed(&chat_key.derive("meta"), &kept, 1, 17, made.key.dangerously_expose_bytes()),
        kept_context: kept,
        kept_salt: hex(&[17; 24]),
    }]
}

/// Texts that are no link.
pub(crate) fn refused_links() -> Vec<String> {
    let good = snapshots().remove(0).link;
    let cut = good[..good.len() - 1].to_owned();
    vec![
        String::new(),
        format!("{cut}9"),
        format!("{good}="),
        format!("{good}/"),
        good.replace("snap_", "chat_"),
        good.replace("/#/", "/"),
        good.replace("https", "ftp"),
        good.replace("chat.example", "Chat.example"),
        cut,
    ]
}

pub(crate) fn bad_snapshots() -> Vec<BadSnapshot> {
    let good = Made::good();
    let envelopes = good.envelopes();
    let list = good.seal_list(&good.listed(&envelopes), 1);
    let base = BadSnapshot {
        name: String::new(),
        key: key_hex(&good.key),
        id: good.id.to_string(),
        now: 1_700_000_000_000,
        list,
        items: envelopes.clone(),
        error: String::new(),
    };
    let case = |name: &str, error: &str, bad: BadSnapshot| BadSnapshot {
        name: name.to_owned(),
        error: error.to_owned(),
        ..bad
    };
    let with_list = |list: String| BadSnapshot { list, ..base.clone() };
    let with_items = |items: Vec<(String, String)>| BadSnapshot { items, ..base.clone() };
    let mut swapped = envelopes.clone();
    (swapped[0].1, swapped[1].1) = (envelopes[1].1.clone(), envelopes[0].1.clone());
    let mut relabelled = envelopes.clone();
    relabelled[1].0 = message_id(8).to_string();
    let twice = [&envelopes[..], &envelopes[..1]].concat();
    let suite_2 = sealed_in(
        Suite::ChaCha20Poly1305,
        &good.key.derive("meta"),
        &good.context("list", ""),
        1,
        16,
        &good.listed(&envelopes).to_json(),
    );
    let mut cases = vec![
        case("another key", "record-refused", BadSnapshot { key: key_hex(&counting(0xd1)), ..base.clone() }),
        case(
            "another id",
            "record-refused",
            BadSnapshot { id: SnapshotId::from_bits(&[8; 16]).to_string(), ..base.clone() },
        ),
        case("suite 2", "record-refused", with_list(suite_2)),
        case("no list", "record-refused", with_list(String::new())),
        case(
            "a list of revision 2",
            "record-refused",
            with_list(good.seal_list(&good.listed(&envelopes), 2)),
        ),
        case("a message in place of the list", "record-refused", with_list(envelopes[0].1.clone())),
        case("over", "rolled-back", BadSnapshot { now: 1_700_600_000_000, ..base.clone() }),
        case("a message left out", "list-refused", with_items(envelopes[1..].to_vec())),
        case("the last one left out", "list-refused", with_items(envelopes[..2].to_vec())),
        case("nothing", "list-refused", with_items(vec![])),
        case("a message twice", "list-refused", with_items(twice)),
        case("two messages exchanged", "list-refused", with_items(swapped)),
        case("a message under another id", "list-refused", with_items(relabelled)),
        case(
            "another count",
            "list-refused",
            with_list(good.seal_list(&SnapshotList { count: 4, ..good.listed(&envelopes) }, 1)),
        ),
    ];
    cases.extend(badly_made().into_iter().map(|(name, error, bad)| {
        let items = bad.envelopes();
        let list = bad.seal_list(&bad.listed(&items), 1);
        case(name, error, BadSnapshot { list, items, ..base.clone() })
    }));
    // Sealed with the right key where it does not belong, and listed all the same.
    let message = &good.items[0];
    for (name, label, object, rev) in [
        ("a message under another sub-key", "meta", message_id(1), 1),
        ("a message of another place", "msg", message_id(2), 1),
        ("a message of revision 2", "msg", message_id(1), 2),
    ] {
        let mut items = envelopes.clone();
        let context = good.context(object.as_str(), "content");
        items[0].1 = sealed(&good.key.derive(label), &context, rev, 16, message.1.as_bytes());
        let list = good.seal_list(&good.listed(&items), 1);
        cases.push(case(name, "record-refused", BadSnapshot { list, items, ..base.clone() }));
    }
    cases
}

/// Snapshots that somebody with the key has made, and no writer makes.
fn badly_made() -> Vec<(&'static str, &'static str, Made)> {
    let edited = |at: usize, from: &str, to: &str| {
        let mut made = Made::good();
        let json = made.items[at].1.replacen(from, to, 1);
        assert_ne!(json, made.items[at].1);
        made.items[at].1 = json;
        made
    };
    let (v, proof) = (r#""v":1"#, serde_json::to_string(&Digest::ZERO).expect("plain data"));
    let with = |more: &str| edited(1, v, &format!("{v},{more}"));
    let other_leaf = Made { list: SnapshotList { leaf: message_id(8), ..Made::good().list }, ..Made::good() };
    let first_leaf = Made { list: SnapshotList { leaf: message_id(1), ..Made::good().list }, ..Made::good() };
    let mut field = Made::good();
    let title = words(&Text { v: 1, body: "a title".to_owned() }.to_json());
    field.items.push((ItemId::Field(FieldName::parse("title").expect("a name")), title));
    let mut unshown = Made::good();
    let text = words(&Text { v: 1, body: "another".to_owned() }.to_json());
    unshown.items.push((ItemId::Embed(EmbedId::from_bits(&[4; 16])), text));
    let mut gone = Made::good();
    gone.items.pop();
    vec![
        ("a proof", "record-refused", with(&format!(r#""proof":{proof}"#))),
        ("a note of what was given", "record-refused", with(r#""shared":[{"what":"search","bytes":1}]"#)),
        ("a tool's words", "record-refused", edited(1, "assistant", "tool")),
        ("a summary", "record-refused", edited(1, "assistant", "summary")),
        ("an unknown field", "record-refused", with(r#""w":1"#)),
        ("a last message that is not there", "parent-missing", other_leaf),
        (
            "a parent that is not there",
            "parent-missing",
            edited(1, message_id(1).as_str(), message_id(8).as_str()),
        ),
        ("messages in a ring", "parent-missing", edited(0, "null", &format!("\"{}\"", message_id(2)))),
        ("another branch", "list-refused", first_leaf),
        ("a field", "list-refused", field),
        ("an embed that nothing shows", "list-refused", unshown),
        ("an embed that is not there", "list-refused", gone),
    ]
}

fn words(json: &[u8]) -> String {
    String::from_utf8(json.to_vec()).expect("JSON is text")
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

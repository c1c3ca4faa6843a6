//! Recorded-protocol tests of the Bolt graph: no Memgraph or Neo4j runs here. A server on the loopback speaks the wire
//! protocol (Bolt 4.0: handshake, chunks, PackStream), checks what it is asked and plays back what a graph server would
//! answer. They show that the driver and we agree on the wire and that values only ever travel as parameters; they do
//! not show that a server understands the queries.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::concept::Concept;
use crate::graph::{Graph as _, GraphError, Look};
use crate::guard::Guard;

/// What was asked: query and parameters.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;
/// What is played back for a query that has this text in it: names of columns, and rows.
type Tape = BTreeMap<&'static str, (Vec<&'static str>, Vec<Vec<Value>>)>;

async fn server(tape: Tape) -> (BoltGraph, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("bolt://{}", listener.local_addr().unwrap());
    let asked: Asked = Arc::default();
    let heard = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(play(stream, tape.clone(), Arc::clone(&heard)));
        }
    });
    let settings = BoltSettings { url, user: "neo4j".into(), password: "hush".into(), database: None };
    (BoltGraph::connect(&settings).unwrap(), asked)
}

async fn play(mut stream: TcpStream, tape: Tape, asked: Asked) {
    let mut hello = [0; 20];
    stream.read_exact(&mut hello).await.unwrap();
    assert_eq!(hello[..4], [0x60, 0x60, 0xB0, 0x17], "the magic preamble");
    assert!(hello[4..].chunks(4).any(|version| version == [0, 0, 0, 4]), "Bolt 4.0 is offered");
    stream.write_all(&[0, 0, 0, 4]).await.unwrap();
    let mut rows = Vec::new();
    while let Some((tag, fields)) = message(&mut stream).await {
        match tag {
            HELLO => {
                assert_eq!(fields[0]["credentials"], json!("hush"));
                reply(&mut stream, SUCCESS, &json!({ "server": "recorded/1.0", "connection_id": "c" })).await;
            }
            RUN => {
                let text = fields[0].as_str().unwrap().to_owned();
                asked.lock().unwrap().push((text.clone(), fields[1].clone()));
                let Some((_, (columns, found))) = tape.iter().find(|(part, _)| text.contains(*part)) else {
                    reply(&mut stream, FAILURE, &json!({ "code": "Neo.ClientError", "message": "no" })).await;
                    continue;
                };
                rows.clone_from(found);
                reply(&mut stream, SUCCESS, &json!({ "fields": columns, "qid": 0 })).await;
            }
            PULL | DISCARD => {
                for row in rows.drain(..) {
                    reply(&mut stream, RECORD, &Value::Array(row)).await;
                }
                reply(&mut stream, SUCCESS, &json!({ "has_more": false, "type": "r", "db": "x" })).await;
            }
            GOODBYE => return,
            _ => reply(&mut stream, SUCCESS, &json!({})).await,
        }
    }
}

const HELLO: u8 = 0x01;
const GOODBYE: u8 = 0x02;
const RUN: u8 = 0x10;
const DISCARD: u8 = 0x2F;
const PULL: u8 = 0x3F;
const SUCCESS: u8 = 0x70;
const RECORD: u8 = 0x71;
const FAILURE: u8 = 0x7F;

/// One message: chunks up to an empty one, then its tag and fields.
async fn message(stream: &mut TcpStream) -> Option<(u8, Vec<Value>)> {
    let mut bytes = Vec::new();
    loop {
        let length = usize::from(stream.read_u16().await.ok()?);
        if length == 0 && !bytes.is_empty() {
            break;
        }
        let start = bytes.len();
        bytes.resize(start + length, 0);
        stream.read_exact(&mut bytes[start..]).await.ok()?;
    }
    let mut rest = &bytes[2..];
    let fields = (0..bytes[0] & 0x0F).map(|_| unpack(&mut rest)).collect();
    Some((bytes[1], fields))
}

async fn reply(stream: &mut TcpStream, tag: u8, field: &Value) {
    let mut bytes = vec![0xB1, tag];
    pack(field, &mut bytes);
    let mut chunk = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    chunk.extend(bytes);
    chunk.extend([0, 0]);
    stream.write_all(&chunk).await.unwrap();
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (head, tail) = rest.split_at(length);
    *rest = tail;
    head
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte))
}

fn unpack(rest: &mut &[u8]) -> Value {
    let mark = take(rest, 1)[0];
    let text =
        |rest: &mut &[u8], length: usize| json!(String::from_utf8(take(rest, length).to_vec()).unwrap());
    let list = |rest: &mut &[u8], length: usize| Value::Array((0..length).map(|_| unpack(rest)).collect());
    let map = |rest: &mut &[u8], length: usize| {
        Value::Object(
            (0..length).map(|_| (unpack(rest).as_str().unwrap().to_owned(), unpack(rest))).collect(),
        )
    };
    match mark {
        0xC0 => Value::Null,
        0xC2 | 0xC3 => json!(mark == 0xC3),
        0x00..=0x7F => json!(mark),
        0xF0..=0xFF => json!(mark.cast_signed()),
        0xC8 => json!(take(rest, 1)[0].cast_signed()),
        0xC9 => json!(i16::from_be_bytes(take(rest, 2).try_into().unwrap())),
        0xCA => json!(i32::from_be_bytes(take(rest, 4).try_into().unwrap())),
        0xCB => json!(i64::from_be_bytes(take(rest, 8).try_into().unwrap())),
        0x80..=0x8F => text(rest, usize::from(mark & 0x0F)),
        0x90..=0x9F => list(rest, usize::from(mark & 0x0F)),
        0xA0..=0xAF => map(rest, usize::from(mark & 0x0F)),
        0xD0..=0xD2 => {
            let length = number(take(rest, 1 << (mark - 0xD0)));
            text(rest, length)
        }
        0xD4..=0xD6 => {
            let length = number(take(rest, 1 << (mark - 0xD4)));
            list(rest, length)
        }
        0xD8..=0xDA => {
            let length = number(take(rest, 1 << (mark - 0xD8)));
            map(rest, length)
        }
        other => panic!("a mark that no test sends: {other:#x}"),
    }
}

fn pack(value: &Value, out: &mut Vec<u8>) {
    let head = |out: &mut Vec<u8>, mark: u8, length: usize| {
        out.push(mark);
        out.extend(u16::try_from(length).unwrap().to_be_bytes());
    };
    match value {
        Value::Null => out.push(0xC0),
        Value::Bool(set) => out.push(if *set { 0xC3 } else { 0xC2 }),
        Value::Number(number) => {
            out.push(0xCB);
            out.extend(number.as_i64().unwrap().to_be_bytes());
        }
        Value::String(text) => {
            head(out, 0xD1, text.len());
            out.extend(text.as_bytes());
        }
        Value::Array(items) => {
            head(out, 0xD5, items.len());
            items.iter().for_each(|item| pack(item, out));
        }
        Value::Object(members) => {
            head(out, 0xD9, members.len());
            for (key, value) in members {
                pack(&json!(key), out);
                pack(value, out);
            }
        }
    }
}

const COLUMNS: [&str; 8] =
    ["id", "pref_label", "domain", "kind", "jurisdiction", "definition", "alt_labels", "source_urls"];

fn vat() -> Vec<Value> {
    json!(["TAX:IE:VAT", "Value-Added Tax (VAT)", "TAX", "VAT", "IE", "general indirect tax.", ["VAT"], null])
        .as_array()
        .unwrap()
        .clone()
}

fn with_place(place: i64, row: Vec<Value>) -> Vec<Value> {
    std::iter::once(json!(place)).chain(row).collect()
}

#[tokio::test]
async fn recorded_protocol_nodes_come_in_the_order_asked_for_with_gaps() {
    let columns = std::iter::once("place").chain(COLUMNS).collect();
    let rows = vec![with_place(0, vat()), with_place(2, vat())];
    let (graph, asked) = server(BTreeMap::from([("UNWIND range", (columns, rows))])).await;
    let ids = ["TAX:IE:VAT", "' OR 1=1 //", "TAX:IE:VAT"].map(str::to_owned);
    let found = graph.nodes(&ids, "en").await.unwrap();
    let labels: Vec<_> =
        found.iter().map(|node| node.as_ref().map(|node| node.pref_label.as_str())).collect();
    assert_eq!(labels, [Some("Value-Added Tax (VAT)"), None, Some("Value-Added Tax (VAT)")]);
    assert_eq!(found[0].as_ref().unwrap().alt_labels, ["VAT"]);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 1, "one query for all of them");
    assert!(!asked[0].0.contains("OR 1=1"), "values are parameters");
    assert_eq!(asked[0].1, json!({ "ids": ids }));
}

#[tokio::test]
async fn recorded_protocol_looks_are_parameters() {
    let columns: Vec<&str> = COLUMNS.to_vec();
    let (graph, asked) = server(BTreeMap::from([("MATCH (c:Concept", (columns, vec![vat()]))])).await;
    let hostile = "x' RETURN 1 //";
    let looks = [
        Look::Parts { domain: "TAX", jurisdiction: "IE", kind: hostile },
        Look::Label { label: hostile, jurisdiction: Some("IE") },
        Look::Words(hostile),
    ];
    for look in looks {
        let found = graph.find(look, "en", 3).await.unwrap();
        assert_eq!((found[0].id.as_str(), found[0].jurisdiction.as_deref()), ("TAX:IE:VAT", Some("IE")));
    }
    let asked = asked.lock().unwrap();
    assert!(asked.iter().all(|(text, values)| !text.contains("RETURN 1") && values["limit"] == json!(3)));
    assert_eq!(asked[2].1["words"], json!(["x", "return", "1"]));
}

#[tokio::test]
async fn recorded_protocol_an_approval_writes_the_shapes() {
    let (graph, asked) = server(BTreeMap::from([("MERGE (c:Concept", (vec![], vec![]))])).await;
    let mut concept = Concept::new("tax", "IE", "VAT", "Value-Added Tax (VAT)");
    concept.alt_labels = vec!["VAT".to_owned()];
    let id = graph.approve(Guard::new().clear(concept).unwrap()).await.unwrap();
    assert_eq!(id, "TAX:IE:VAT");
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].1["label_ids"], json!(["TAX:IE:VAT:LABEL:VAT"]));
    assert_eq!(asked[0].1["pref_label"], json!("Value-Added Tax (VAT)"));
}

#[tokio::test]
async fn recorded_protocol_refusals_and_silence_are_errors_without_content() {
    let (graph, _) = server(BTreeMap::new()).await;
    let error = graph.nodes(&["HUSH:IE:HUSH".to_owned()], "en").await.unwrap_err();
    assert!(matches!(error, GraphError::Unavailable(_)) && !error.to_string().contains("HUSH"), "{error}");
    let away = BoltSettings { url: "bolt://127.0.0.1:9".into(), ..BoltSettings::default() };
    let error = BoltGraph::connect(&away).unwrap().count().await.unwrap_err();
    assert!(error.to_string().contains("; hint: "), "{error}");
    assert!(BoltGraph::connect(&BoltSettings { url: "no address".into(), ..away }).is_err());
}

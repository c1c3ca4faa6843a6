//! `confidant redact`: a filter, with no data and no key.

use std::io::{BufRead as _, Write as _};
use std::process::Stdio;

use crate::home::{Home, Ran};

fn redact(home: &Home, arguments: &[&str], input: &str) -> Ran {
    let mut command = home.command(&[&["redact"], arguments].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn text_goes_through_and_the_report_beside_it() {
    let home = Home::new();
    let ran = redact(&home, &[], "write to jane@example.org\n").done();
    assert_eq!(ran.out, "write to <REDACTED:EMAIL>\n");
    assert_eq!(ran.err, "     1  email\n");
    let ran = redact(&home, &["--numbered"], "a@x.org b@x.org a@x.org").done();
    assert_eq!(ran.out, "<REDACTED:EMAIL:1> <REDACTED:EMAIL:2> <REDACTED:EMAIL:1>");
    assert!(!home.path("confidant-data").exists());
}

#[test]
fn names_of_people_go_unless_they_are_wanted() {
    let home = Home::new();
    let text = "Yesterday I met Margaret Thompson in the office.\n";
    let ran = redact(&home, &[], text).done();
    assert_eq!(ran.out, "Yesterday I met <REDACTED:NAME> in the office.\n");
    assert_eq!(redact(&home, &["--no-names"], text).done().out, text);
    let line = serde_json::json!({ "note": text }).to_string();
    assert!(!redact(&home, &["--jsonl"], &line).done().out.contains("Margaret"));
}

#[test]
fn what_is_critical_blocks_and_says_so() {
    let home = Home::new();
    let ran = redact(&home, &[], "Authorization: Basic amFuZTpodW50ZXIy\n");
    assert_eq!((ran.code, ran.out.as_str()), (2, "Authorization: Basic <REDACTED:AUTHORIZATION>\n"));
    assert!(ran.err.contains("error: blocked") && ran.err.contains("hint: "), "{}", ran.err);
    assert!(!ran.err.contains("amFuZTpodW50ZXIy"));
    let json = redact(&home, &["--json"], "Authorization: Basic amFuZTpodW50ZXIy").done().json();
    assert_eq!((&json["blocked"], &json["report"][0]["count"]), (&true.into(), &1.into()));
}

#[test]
fn each_line_of_json_has_its_answer() {
    let home = Home::new();
    let input = "\"mail jane@example.org\"\n{\"password\": \"hunter2!x\"}\n";
    let ran = redact(&home, &["--jsonl"], input).done();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"blocked":false,"text":"mail <REDACTED:EMAIL>","findings":[{"rule":"email","tier":"noncritical","start":5,"end":21}]}"#,
            r#"{"blocked":false,"value":{"password":"<REDACTED:PASSWORD>"},"findings":[{"rule":"password","tier":"noncritical","start":0,"end":9,"path":"/password"}]}"#,
        ]
    );
}

#[test]
fn a_line_is_answered_before_the_next_one_is_given() {
    let home = Home::new();
    let mut command = home.command(&["redact", "--jsonl"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    for (given, said) in [("a@x.org", "<REDACTED:EMAIL>"), ("well", "well")] {
        writeln!(input, "\"{given}\"").unwrap();
        let answer: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["text"], said);
    }
    drop(input);
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_line_that_is_no_json_does_not_end_the_run() {
    let home = Home::new();
    let input = "\"ok \\ud83d lone\"\n\nhunter2!x nonsense\n\"open\n\"a@x.org\"\n";
    let ran = redact(&home, &["--jsonl"], input);
    let lines: Vec<serde_json::Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.code, lines.len()), (2, 4), "{}", ran.out);
    assert_eq!(lines[0]["text"], "ok \u{fffd} lone");
    assert_eq!(lines[1], serde_json::json!({ "error": "line 3 is not JSON: it has an error at column 1" }));
    assert_eq!(lines[2], serde_json::json!({ "error": "line 4 is not JSON: it ends too early" }));
    assert_eq!(lines[3]["text"], "<REDACTED:EMAIL>");
    assert!(ran.err.contains("2 lines are not JSON") && !ran.err.contains("hunter2"), "{}", ran.err);
}

#[test]
fn the_lists_of_words_are_heeded() {
    let home = Home::new();
    std::fs::write(home.path("always.txt"), "Project Zebra\n").unwrap();
    std::fs::write(home.path("never.txt"), "info@example.org\n").unwrap();
    let arguments = ["--always", "always.txt", "--never", "never.txt"];
    let ran = redact(&home, &arguments, "project zebra: info@example.org").done();
    assert_eq!(ran.out, "<REDACTED:TERM>: info@example.org");
}

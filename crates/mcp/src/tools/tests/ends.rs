//! How connections end, and what is left of the programs behind them.

use std::path::Path;
use std::time::Duration;

use confidant_engine::tools::{ToolError, Toolbox as _};
use serde_json::{Value, json};

use super::rig::{Over, Rig, is_ready};
use crate::tools::server::{Reach, State};
use crate::tools::trouble::Trouble;

fn is_away(trouble: Trouble) -> impl Fn(&State) -> bool {
    move |state| matches!(state, State::Away(found) if *found == trouble)
}

/// The process ids of a server's program and of one that it started.
async fn family(rig: &Rig) -> [u64; 2] {
    let ids: Value = serde_json::from_str(&rig.says("family", json!({})).await).unwrap();
    [ids["own"].as_u64().unwrap(), ids["child"].as_u64().unwrap()]
}

/// Waits until no such process is there. One that is dead and not yet waited for counts as gone.
async fn gone(ids: [u64; 2]) {
    let is_there = |id: &u64| {
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        state.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
    };
    assert!(Path::new("/proc/self/stat").exists());
    let all_gone = async {
        while ids.iter().any(is_there) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), all_gone).await.is_ok(), "{ids:?}");
}

#[tokio::test]
async fn one_that_dies_mid_call_is_started_again() {
    let rig = Rig::stdio(&[]).ready().await;
    assert_eq!(rig.call("die", json!({})).await, Err(ToolError::Lost));
    rig.until(|state| !is_ready(state)).await;
    rig.until(is_ready).await;
    rig.works().await;
}

#[tokio::test]
async fn one_that_hangs_altogether_is_replaced_and_others_do_not_notice() {
    let (rig, other) = (Rig::stdio(&[]).ready().await, Rig::stdio(&[]).ready().await);
    let ids = family(&rig).await;
    assert!(tokio::time::timeout(Duration::from_millis(200), rig.call("deaf", json!({}))).await.is_err());
    rig.until(is_away(Trouble::Silent)).await;
    other.works().await;
    gone(ids).await;
    rig.until(is_ready).await;
    rig.works().await;
}

#[tokio::test]
async fn one_that_floods_or_never_ends_a_message_is_cut_off() {
    for over in [Over::Stdio, Over::Events] {
        for (tool, trouble) in [("flood", Trouble::TooMany), ("endless", Trouble::TooLong)] {
            let rig = Rig::over(over).ready().await;
            // Whatever the transport is busy with when it happens.
            for _ in 0..if tool == "flood" { 10 } else { 1 } {
                assert_eq!(rig.call(tool, json!({})).await, Err(ToolError::Lost), "{over:?} {tool}");
                rig.until(is_away(trouble)).await;
                rig.until(is_ready).await;
                rig.works().await;
            }
        }
    }
}

#[tokio::test]
async fn stopping_leaves_no_process() {
    let polite = Rig::stdio(&[]).ready().await;
    let ids = family(&polite).await;
    polite.toolbox.stop().await;
    // Without a keeper, nobody ends what a program leaves behind that ended by itself.
    let child = rustix::process::Pid::from_raw(i32::try_from(ids[1]).unwrap()).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    gone(ids).await;
    assert_eq!(polite.toolbox.tools().await, []);
    assert_eq!(polite.call("echo", json!({})).await, Err(ToolError::Unreachable));

    let stubborn = Rig::stdio(&["--stays"]).ready().await;
    let ids = family(&stubborn).await;
    stubborn.toolbox.stop().await;
    gone(ids).await;

    let dropped = Rig::stdio(&["--stays"]).ready().await;
    let ids = family(&dropped).await;
    drop(dropped);
    gone(ids).await;
}

#[tokio::test]
async fn a_server_that_cannot_be_had_is_away_with_the_reason() {
    let nowhere = |reach| Rig::reaching(reach, None);
    let process = |program: &str| Reach::Process { command: vec![program.to_owned()], variables: [].into() };
    let http = |url: &str| Reach::Http { url: url.parse().unwrap(), token: None };
    for (rig, trouble) in [
        (nowhere(process("/nonexistent/program")), Trouble::NotStarted(std::io::ErrorKind::NotFound)),
        (nowhere(process("/bin/false")), Trouble::Ended),
        (Rig::stdio(&["--die"]), Trouble::Ended),
        (nowhere(http("http://127.0.0.1:9/mcp")), Trouble::NoConnection),
    ] {
        rig.until(is_away(trouble)).await;
        assert_eq!(rig.toolbox.tools().await, []);
        assert_eq!(rig.call("echo", json!({})).await, Err(ToolError::Unreachable));
        rig.toolbox.stop().await;
    }
}

#[tokio::test]
async fn a_wrong_token_is_named_and_an_address_that_dies_is_noticed_by_the_next_call() {
    let mut rig = Rig::over(Over::Json).ready().await;
    rig.until(is_ready).await;
    let wrong = rig.with_token(Some("other"));
    wrong.until(is_away(Trouble::Unauthorized)).await;
    wrong.toolbox.stop().await;

    rig.works().await;
    rig.end_http();
    // A connection that was kept open may break only when the call is under way.
    let called = rig.call("echo", json!({"text": ""})).await;
    assert!(matches!(called, Err(ToolError::Unreachable | ToolError::Lost)), "{called:?}");
    rig.until(is_away(Trouble::NoConnection)).await;
    assert_eq!(rig.call("echo", json!({"text": ""})).await, Err(ToolError::Unreachable));
}

#[tokio::test]
async fn one_that_never_answers_takes_nobodys_time() {
    let rig = Rig::stdio(&["--silent"]);
    assert_eq!(rig.toolbox.tools().await, []);
    assert_eq!(rig.call("echo", json!({})).await, Err(ToolError::Unreachable));
    rig.toolbox.stop().await;
}

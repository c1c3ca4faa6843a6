//! The benchmark still runs, every part of it but the one that needs a release binary.

use std::path::Path;
use std::process::Command;

#[test]
fn every_part_runs() {
    let done =
        Command::new(env!("CARGO_BIN_EXE_confidant-bench")).arg("--quick").output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it prints JSON");
    for part in ["ours", "bare", "cold_open"] {
        assert!(report.get(part).is_some_and(|part| !part.is_null()), "{part} is missing");
    }
}

/// Chats are measured on the program itself, which is built beside this one when the whole workspace is tested.
#[test]
fn chats_are_measured_on_the_program() {
    let bench = Path::new(env!("CARGO_BIN_EXE_chats-bench"));
    let program = bench.with_file_name("confidant");
    if !program.exists() {
        #[expect(clippy::disallowed_methods, reason = "a test, told by its environment what must be there")]
        let required = std::env::var_os("REQUIRE_ALL_STORES");
        assert!(required.is_none_or(|value| value != "1"), "the program is not built");
        #[expect(clippy::print_stderr, reason = "a skip is never silent")]
        {
            eprintln!("skipped: the program is not built; hint: cargo build -p confidant");
        }
        return;
    }
    let done =
        Command::new(bench).arg("--quick").arg("--confidant-bin").arg(program).output().expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("it prints JSON");
    assert_eq!(report["sync"]["sqlite"]["chats"], 3);
    // Each message, title and head, and what the account has.
    assert!(
        report["sync"]["sqlite"]["envelopes"].as_u64().is_some_and(|count| count >= 3 * 6 + 17),
        "{report}"
    );
    assert_eq!(report["sockets"]["count"], 60);
    // Every word of every stream was heard, and all of a chat was sent again.
    assert_eq!(report["streams"]["delay"]["count"], 8 * 10, "{report}");
    assert!(report["streams"]["bytes_a_word"].as_f64().is_some_and(|bytes| bytes > 5.0), "{report}");
    assert_eq!(report["cold"]["messages"], 6);
    for part in ["alone", "beside_requests", "beside_logins", "beside_registrations"] {
        assert!(report["logins"][part]["write"]["count"].as_u64().is_some_and(|count| count > 0), "{part}");
    }
}

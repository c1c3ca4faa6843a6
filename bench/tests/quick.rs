//! The benchmark still runs, every part of it but the one that needs a release binary.

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

//! Growing, merging, crashing, sharing.

use std::io::{BufRead as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use super::super::*;
use super::support::*;

fn everything(index: &Index, truth: &Truth) -> Vec<u64> {
    let mut all = ids(&index.search(&Query { limit: 10_000, ..query("") }, truth).unwrap());
    all.sort_unstable();
    all
}

#[test]
fn few_are_left_to_wait_and_many_are_taken_in() {
    let rig = Rig::new();
    let truth = Truth::of((1..=255).map(generated));
    assert_eq!(rig.index.catch_up(&truth, false).unwrap(), 0);
    assert!(!rig.path().exists(), "nothing was written");
    truth.add(generated(256));
    assert_eq!(rig.index.catch_up(&truth, false).unwrap(), 256);
    assert_eq!(rig.index.catch_up(&truth, true).unwrap(), 0);
    truth.add(generated(1000));
    assert_eq!(rig.index.catch_up(&truth, true).unwrap(), 1);
}

#[test]
fn segments_stay_few_and_hold_everything() {
    let rig = Rig::new();
    let truth = Truth::default();
    for step in 0..40_u64 {
        (step * 50 + 1..=step * 50 + 50).for_each(|id| truth.add(generated(id)));
        rig.index.catch_up(&truth, true).unwrap();
        assert!(rig.segments().len() <= 7, "{}", rig.segments().len());
        assert_eq!(rig.keys.names().unwrap().len(), rig.segments().len() + 1, "no key without a file");
    }
    assert_eq!(everything(&rig.again(), &truth), (1..=2000).collect::<Vec<u64>>());
}

#[test]
fn a_card_is_found_as_soon_as_it_is_there() {
    let rig = Rig::new();
    let truth = Truth::default();
    for id in 1..=20 {
        truth.add(titled(id, &format!("marker{id}")));
        assert_eq!(
            ids(&rig.index.search(&query(&format!("marker{id}")), &truth).unwrap()).first(),
            Some(&id)
        );
        if id % 7 == 0 {
            rig.index.catch_up(&truth, true).unwrap();
        }
    }
}

#[test]
fn more_than_fits_into_memory_is_taken_in_by_a_search() {
    let rig = Rig::new();
    let truth = Truth::of((1..=5000).map(|id| titled(id, &format!("card number{id}"))));
    assert_eq!(ids(&rig.index.search(&query("number4999"), &truth).unwrap()), [4999]);
    assert!(!rig.segments().is_empty());
}

#[test]
fn a_folder_that_cannot_be_written_is_searched_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"").unwrap();
    let index = Index::open(&folder.path().join("file").join("index"), Keys::new()).unwrap();
    let truth = Truth::of((1..=5000).map(|id| titled(id, &format!("card number{id}"))));
    assert_eq!(ids(&index.search(&query("number4999"), &truth).unwrap()), [4999]);
}

/// Every call for a key fails once, as a full disk or a killed process would have it; what was there stays usable.
#[test]
fn trouble_at_any_point_leaves_a_usable_index() {
    let mut failed = 0;
    for calls in 0..30 {
        let rig = Rig::new();
        let truth = Truth::of((1..=60).map(generated));
        rig.index.catch_up(&truth, true).unwrap();
        (61..=120).for_each(|id| truth.add(generated(id)));
        rig.keys.left.store(calls, Ordering::SeqCst);
        let caught_up = rig.again().catch_up(&truth, true);
        truth.delete(10);
        let forgot = rig.again().forget(&[10]);
        failed += i32::from(caught_up.is_err() || forgot.is_err());
        rig.keys.left.store(-1, Ordering::SeqCst);
        let expected: Vec<u64> = (1..=120).filter(|&id| id != 10).collect();
        assert_eq!(everything(&rig.again(), &truth), expected, "{calls}");
        rig.index.catch_up(&truth, true).unwrap();
        rig.index.forget(&[10]).unwrap();
        assert_eq!(everything(&rig.index, &truth), expected, "{calls}");
        assert_eq!(
            rig.keys.names().unwrap().len(),
            rig.segments().len() + 1,
            "nothing is left over: {calls}"
        );
    }
    assert!(failed > 5, "the failures happened: {failed}");
}

#[test]
fn only_one_writes_and_all_can_read() {
    let rig = Rig::new();
    let truth = Truth::of((1..=2000).map(generated));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (rig, truth) = (&rig, &truth);
            scope.spawn(move || {
                let index = rig.again();
                for round in 0..8_u64 {
                    if worker == 0 {
                        let id = 2001 + round * 300;
                        (id..id + 300).for_each(|id| truth.add(generated(id)));
                    }
                    index.catch_up(truth, false).unwrap();
                    if worker == 1 {
                        truth.delete(round + 1);
                        index.forget(&[round + 1]).unwrap();
                    }
                    let hits = index.search(&Query { limit: 5, ..query("w1 w2") }, truth).unwrap();
                    assert_eq!(hits.len(), 5);
                }
            });
        }
    });
    rig.index.catch_up(&truth, true).unwrap();
    assert_eq!(everything(&rig.again(), &truth), (9..=4400).collect::<Vec<u64>>());
}

/// Killed at any moment, a writer leaves an index that answers and can be written on.
#[test]
fn a_killed_writer_leaves_a_usable_index() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::create_dir(&keys).unwrap();
    let truth = Truth::of((1..=CHILD_CARDS).map(generated));
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "index::tests::living::the_child_that_is_killed", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{}", folder.path().display()).unwrap();
        // The child says when it has done some steps; which one it is at when the signal comes is anyone's guess.
        let mut lines = std::io::BufReader::new(child.stdout.as_mut().unwrap()).lines();
        for line in
            (0..=round % 6).map(|_| lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("step"))))
        {
            assert!(line.is_some(), "the child works");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let index = Index::open(&folder.path().join("index"), Arc::new(DiskKeys(keys.clone()))).unwrap();
        assert_eq!(everything(&index, &truth).len(), usize::try_from(CHILD_CARDS).unwrap(), "round {round}");
        assert_eq!(index.search(&query("w1 w2 w3"), &truth).unwrap().len(), 10);
    }
    let index = Index::open(&folder.path().join("index"), Arc::new(DiskKeys(keys.clone()))).unwrap();
    truth.add(generated(CHILD_CARDS + 1));
    index.catch_up(&truth, true).unwrap();
    let files = segments(&folder.path().join("index")).len();
    assert_eq!(DiskKeys(keys).names().unwrap().len(), files + 1, "what the killed ones left is gone");
}

const CHILD_CARDS: u64 = 900;

#[test]
#[ignore = "run by a_killed_writer_leaves_a_usable_index, and killed by it"]
#[expect(clippy::print_stdout, reason = "tells the parent how far it is")]
fn the_child_that_is_killed() {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    let folder = PathBuf::from(line.trim());
    if !folder.is_absolute() {
        return;
    }
    let keys = Arc::new(DiskKeys(folder.join("keys")));
    loop {
        let index = Index::open(&folder.join("index"), keys.clone()).unwrap();
        for cards in [300, 500, 700, CHILD_CARDS] {
            let part = Truth::of((1..=cards).map(generated));
            index.catch_up(&part, true).unwrap();
            println!("step");
        }
        let held = index.hold(Busy::Wait).unwrap();
        index.start_again().unwrap();
        drop(held);
        println!("step");
    }
}

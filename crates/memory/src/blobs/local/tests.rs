use std::collections::BTreeSet;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::conformance::{self, sealed, unnoted};
use super::*;

fn fresh() -> (TempDir, Local) {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::open(folder.path().join("blobs")).unwrap();
    (folder, local)
}

/// Every file below, relative to it.
fn files(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_path_buf());
            }
        }
    }
    found
}

macro_rules! laws {
    ($($law:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $law() {
            let (_folder, local) = fresh();
            conformance::$law(&local).await;
        }
    )*};
}

laws!(
    what_is_put_is_got,
    putting_twice_is_putting_once,
    what_is_missing_is_not_found,
    what_is_removed_is_gone,
    puts_at_once_are_one,
);

#[tokio::test]
async fn a_blob_is_the_only_file_and_private() {
    let (folder, local) = fresh();
    let (pointer, bytes) = sealed("one");
    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let hex = pointer.hex();
    let name = PathBuf::from(format!("blobs/{}/{}/{hex}", &hex[..2], &hex[2..4]));
    assert_eq!(files(folder.path()), BTreeSet::from([name.clone()]));

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let mut path = folder.path().join(name);
        assert_eq!(mode(&path), 0o600);
        while path.pop() && path != folder.path() {
            assert_eq!(mode(&path), 0o700);
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_leaves_nothing() {
    let (folder, mut local) = fresh();
    local.write = |file, bytes| {
        file.write_all(&bytes[..bytes.len() / 2])?;
        Err(ErrorKind::StorageFull.into())
    };
    let (pointer, bytes) = sealed("full");
    let error = local.put(&pointer, &bytes, None, &unnoted).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot keep an artifact: the disk is full; hint: free some space, then try again; nothing was left half written"
    );
    assert_eq!(files(folder.path()), BTreeSet::new());

    local.write = write_all;
    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    assert_eq!(local.get(&pointer, &Locator::default()).await.unwrap(), bytes);
}

#[tokio::test]
async fn leftovers_of_a_crash_are_swept_but_not_what_a_writer_holds() {
    let (folder, local) = fresh();
    local.check().await.unwrap();
    let incoming = folder.path().join("blobs/incoming");
    fs::write(incoming.join("dead"), b"half").unwrap();
    let held = private_file(&incoming.join("held")).unwrap();
    held.lock().unwrap();

    let again = Local::open(folder.path().join("blobs")).unwrap();
    assert_eq!(files(&incoming), BTreeSet::from([PathBuf::from("held")]));

    drop(held);
    let (pointer, bytes) = sealed("after");
    again.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    assert_eq!(files(&incoming), BTreeSet::new());
}

#[tokio::test]
async fn a_damaged_blob_is_handed_out_as_it_is_and_mended_by_a_put() {
    let (_folder, local) = fresh();
    let (pointer, bytes) = sealed("damaged");
    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    for damage in [&b""[..], &b"short"[..], &vec![0; bytes.len()], &vec![0; bytes.len() + 1]] {
        fs::write(local.path(&pointer), damage).unwrap();
        let got = local.get(&pointer, &Locator::default()).await.unwrap();
        assert!(!pointer.names(&got), "the reader notices");
        local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
        assert_eq!(local.get(&pointer, &Locator::default()).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn what_is_too_big_is_neither_written_nor_read() {
    let (_folder, mut local) = fresh();
    let (pointer, bytes) = sealed("big");
    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    local.limit = bytes.len() as u64 - 1;
    let error = local.get(&pointer, &Locator::default()).await.unwrap_err();
    assert!(matches!(error, Error::Tampered { .. }), "{error:?}");
    let error = local.put(&pointer, &bytes, None, &unnoted).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_is_not_followed() {
    let (folder, local) = fresh();
    let (pointer, bytes) = sealed("link");
    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, b"private").unwrap();
    fs::remove_file(local.path(&pointer)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, local.path(&pointer)).unwrap();
    let error = local.get(&pointer, &Locator::default()).await.unwrap_err();
    assert!(matches!(error, Error::Tampered { .. }), "{error:?}");

    local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"private", "the link is replaced, not written through");
    assert_eq!(local.get(&pointer, &Locator::default()).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    for root in [file.clone(), file.join("below")] {
        let error = Local::open(root).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(!error.to_string().contains("file/below"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_and_sweepers_at_once_lose_nothing() {
    let (folder, local) = fresh();
    let local = Arc::new(local);
    let mut tasks = Vec::new();
    for task in 0..8 {
        let local = Arc::clone(&local);
        tasks.push(tokio::spawn(async move {
            for at in 0..10 {
                // Half of the names are shared between the tasks.
                let (pointer, bytes) = sealed(&format!("{} {at}", task % 4));
                local.put(&pointer, &bytes, None, &unnoted).await.unwrap();
                assert_eq!(local.get(&pointer, &Locator::default()).await.unwrap(), bytes);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(files(folder.path()).len(), 40);
}

//! What every back end promises, as plain functions over `&dyn Blobs`.

use std::sync::Mutex;

use super::{Blobs, Locator, Pointer, Removed};
use crate::Error;

/// Sealed bytes are noise; these are different for every name.
pub(super) fn sealed(name: &str) -> (Pointer, Vec<u8>) {
    let bytes: Vec<u8> = name.bytes().cycle().zip(0..2_000_u32).map(|(byte, at)| byte ^ at as u8).collect();
    (Pointer::of(&bytes), bytes)
}

pub(super) fn unnoted(_: &Locator) {}

pub(super) async fn what_is_put_is_got(blobs: &dyn Blobs) {
    let (pointer, bytes) = sealed("what is put is got");
    let notes = Mutex::new(Vec::new());
    let locator =
        blobs.put(&pointer, &bytes, None, &|note| notes.lock().unwrap().push(note.clone())).await.unwrap();
    let last = notes.lock().unwrap().last().cloned().unwrap_or_default();
    assert_eq!(last, locator, "the last note is where it is; none is for the pointer alone");
    assert_eq!(blobs.get(&pointer, &locator).await.unwrap(), bytes);
    assert!(blobs.has(&pointer, &locator).await.unwrap());
}

pub(super) async fn putting_twice_is_putting_once(blobs: &dyn Blobs) {
    let (pointer, bytes) = sealed("twice");
    let first = blobs.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let second = blobs.put(&pointer, &bytes, Some(&first), &unnoted).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(blobs.get(&pointer, &second).await.unwrap(), bytes);
}

pub(super) async fn what_is_missing_is_not_found(blobs: &dyn Blobs) {
    let (pointer, _) = sealed("never put");
    let error = blobs.get(&pointer, &Locator::default()).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    assert!(!blobs.has(&pointer, &Locator::default()).await.unwrap());
}

pub(super) async fn what_is_removed_is_gone(blobs: &dyn Blobs) {
    let (pointer, bytes) = sealed("removed");
    let (other, others) = sealed("stays");
    let locator = blobs.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let stays = blobs.put(&other, &others, None, &unnoted).await.unwrap();
    assert_eq!(blobs.remove(&pointer, &locator).await.unwrap(), Removed::Gone);
    let error = blobs.get(&pointer, &locator).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
    assert!(!blobs.has(&pointer, &locator).await.unwrap());
    assert_eq!(blobs.remove(&pointer, &locator).await.unwrap(), Removed::Gone, "removing twice is fine");
    assert_eq!(blobs.get(&other, &stays).await.unwrap(), others);
    blobs.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    assert_eq!(blobs.get(&pointer, &locator).await.unwrap(), bytes, "it can come back");
}

pub(super) async fn puts_at_once_are_one(blobs: &dyn Blobs) {
    let (pointer, bytes) = sealed("at once");
    let put = || blobs.put(&pointer, &bytes, None, &unnoted);
    let done = tokio::join!(put(), put(), put(), put(), put(), put(), put(), put());
    for result in [done.0, done.1, done.2, done.3, done.4, done.5, done.6, done.7] {
        result.unwrap();
    }
    assert_eq!(blobs.get(&pointer, &Locator::default()).await.unwrap(), bytes);
}

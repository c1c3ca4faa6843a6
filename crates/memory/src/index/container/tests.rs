use super::*;

const HEADER: usize = PageSeal::HEADER;
const SEALED: usize = PageSeal::SEALED;

fn parts() -> Parts {
    let part = |len: usize, seed: u8| {
        OwnedBytes::new((0..len).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect::<Vec<u8>>())
    };
    vec![
        ("a".to_owned(), part(3 * PAGE + 5, 1)),
        ("empty".to_owned(), part(0, 2)),
        ("b".to_owned(), part(40 * PAGE, 3)),
        ("c".to_owned(), part(7, 4)),
    ]
}

fn open(folder: &Path, name: &str, key: &Key) -> io::Result<Container> {
    Container::open(folder, name, key, &Arc::new(Pages::new(8 * PAGE)))
}

#[test]
fn parts_come_back_in_any_piece() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::random();
    let len = write(folder.path(), "x", &key, &parts()).unwrap();
    assert_eq!(std::fs::metadata(folder.path().join("x")).unwrap().len(), len);
    let container = open(folder.path(), "x", &key).unwrap();
    for (name, bytes) in parts() {
        let range = container.part(&name).unwrap();
        assert_eq!(container.read(range.clone()).unwrap().as_slice(), bytes.as_slice(), "{name}");
        for (from, to) in [(0, 1), (PAGE - 1, PAGE + 1), (PAGE, 2 * PAGE), (1, 2 * PAGE + 3)] {
            if to <= bytes.len() {
                let read = container.read(range.start + from as u64..range.start + to as u64).unwrap();
                assert_eq!(read.as_slice(), &bytes.as_slice()[from..to], "{name} {from} {to}");
            }
        }
    }
    assert!(container.part("d").is_none());
    assert!(container.read(0..len * 2).is_err());
}

/// Made from the description in `docs/FORMAT.md`, by another program.
#[test]
fn the_bytes_of_a_file_are_the_described_ones() {
    let folder = tempfile::tempdir().unwrap();
    let key = Key::from_bytes(std::array::from_fn(|i| i as u8));
    let len = write(folder.path(), "x", &key, &parts()).unwrap();
    let bytes = std::fs::read(folder.path().join("x")).unwrap();
    let hash = hex::encode(ring::digest::digest(&ring::digest::SHA256, &bytes));
    assert_eq!(len, 721_616);
    assert_eq!(hash, "86996f5804d33c500a27927632589bb25c656958abad5d8359f3bbe8e2e3d70c");
}

#[test]
fn every_change_has_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let (key, other) = (Key::random(), Key::random());
    write(folder.path(), "x", &key, &parts()).unwrap();
    write(folder.path(), "y", &other, &parts()).unwrap();
    let good = std::fs::read(folder.path().join("x")).unwrap();
    let page = HEADER..HEADER + SEALED;
    let next = page.end..page.end + SEALED;
    let mut cases: Vec<Vec<u8>> =
        vec![Vec::new(), good[..HEADER - 1].to_vec(), good[..good.len() - SEALED].to_vec()];
    for at in [0, 8, 15, HEADER, HEADER + PAGE, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        cases.push(bytes);
    }
    let mut swapped = good.clone();
    swapped[page.clone()].copy_from_slice(&good[next.clone()]);
    swapped[next].copy_from_slice(&good[page]);
    cases.push(swapped);
    cases.push(std::fs::read(folder.path().join("y")).unwrap());
    let read = |key: &Key| -> io::Result<()> {
        let container = open(folder.path(), "x", key)?;
        for (name, _) in parts() {
            container.read(container.part(&name).ok_or(Damaged)?)?;
        }
        Ok(())
    };
    read(&key).unwrap();
    for (i, bytes) in cases.into_iter().enumerate() {
        std::fs::write(folder.path().join("x"), bytes).unwrap();
        let error = read(&key).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{i}");
        assert!(error.get_ref().is_some_and(|inner| inner.is::<Damaged>()), "{i}");
    }
    std::fs::write(folder.path().join("x"), &good).unwrap();
    assert_eq!(read(&other).unwrap_err().kind(), io::ErrorKind::InvalidData);
    // The same bytes under another name are another file.
    std::fs::write(folder.path().join("z"), &good).unwrap();
    assert!(open(folder.path(), "z", &key).is_err());
}

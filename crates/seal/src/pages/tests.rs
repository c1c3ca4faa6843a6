use super::*;

const PAGE: usize = PageSeal::PAGE;

fn key() -> Key {
    Key::from_bytes(std::array::from_fn(|i| i as u8))
}

fn plain() -> Vec<u8> {
    (0..20_000_usize).map(|i| (i as u8).wrapping_mul(31)).collect()
}

fn seal() -> PageSeal {
    PageSeal::new(&key(), "x", plain().len() as u64).unwrap()
}

/// The whole file, as a writer makes it.
fn file() -> Vec<u8> {
    let seal = seal();
    let mut file = seal.header().to_vec();
    for (number, page) in (0..).zip(plain().chunks(PAGE)) {
        let mut page = page.to_vec();
        seal.seal(number, &mut page);
        file.extend_from_slice(&page);
    }
    file
}

/// The page with this number as it stands in the file.
fn page(number: u64) -> Vec<u8> {
    let start = usize::try_from(PageSeal::offset(number)).unwrap();
    file()[start..start + PageSeal::SEALED].to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Made from the description in `docs/FORMAT.md`, by another program.
#[test]
fn the_file_of_the_specification() {
    let file = file();
    assert_eq!((file.len(), file.len() as u64), (32_816, seal().file_len()));
    assert_eq!(hex(&file[..32]), "63666469647800010000000000004e201a240ab3383fe25ac0f4e1b42cca1e45");
    assert_eq!(hex(&page(0)[PAGE..]), "378b3b985e07d7bab4defdee6541c2b9");
    assert_eq!(hex(&page(1)[PAGE..]), "ecee6ec6ca14c569d0ddda8b950019b1");
    let hash = ring::digest::digest(&ring::digest::SHA256, &file);
    assert_eq!(hex(hash.as_ref()), "4cbb7a50dee2423148787cfe061fef79eb840b459b926c4ce2c61056a5e68c75");
}

#[test]
fn pages_open_to_what_was_sealed_with_zeros_behind_it() {
    let header = file()[..PageSeal::HEADER].try_into().unwrap();
    let seal = PageSeal::of_header(&key(), "x", &header).unwrap();
    assert_eq!((seal.plain_len(), seal.pages(), seal.header()), (20_000, 2, header));
    let mut opened = Vec::new();
    for number in 0..seal.pages() {
        let mut page = page(number);
        seal.open(number, &mut page).unwrap();
        opened.extend_from_slice(&page[..PAGE]);
    }
    let zeros = opened.split_off(plain().len());
    assert_eq!(opened, plain());
    assert!(zeros.iter().all(|byte| *byte == 0));
}

#[test]
fn a_page_opens_only_at_its_place() {
    let opens = |seal: &PageSeal, number, page: &[u8]| seal.open(number, &mut page.to_vec()).is_ok();
    let of = |key: &Key, name, len| PageSeal::new(key, name, len).unwrap();
    let (first, len) = (page(0), plain().len() as u64);
    assert!(opens(&seal(), 0, &first));
    for number in [1, 2, u64::MAX] {
        assert!(!opens(&seal(), number, &first), "{number}");
    }
    assert!(!opens(&of(&key(), "y", len), 0, &first));
    assert!(!opens(&of(&Key::random(), "x", len), 0, &first));
    // Shorter or longer, by a byte or by a page.
    for len in [len - 1, len + 1, len - PAGE as u64, len + PAGE as u64] {
        assert!(!opens(&of(&key(), "x", len), 0, &first), "{len}");
    }
    for at in [0, PAGE - 1, PAGE, PageSeal::SEALED - 1] {
        let mut changed = first.clone();
        changed[at] ^= 1;
        assert!(!opens(&seal(), 0, &changed), "{at}");
    }
    for short in [0, 1, 15, 16, PAGE] {
        assert!(!opens(&seal(), 0, &first[..short]), "{short}");
    }
}

#[test]
fn headers_of_something_else_are_refused() {
    let good = seal().header();
    for at in 0..MAGIC.len() {
        let mut header = good;
        header[at] ^= 1;
        assert!(PageSeal::of_header(&key(), "x", &header).is_err(), "{at}");
    }
    let with_len = |len: u64| {
        let mut header = good;
        header[MAGIC.len()..].copy_from_slice(&len.to_be_bytes());
        PageSeal::of_header(&key(), "x", &header).map(|seal| (seal.pages(), seal.file_len()))
    };
    assert_eq!(with_len(0), Ok((0, 16)));
    assert_eq!(with_len(1 << 40), Ok((1 << 26, 16 + (16_400 << 26))));
    assert!(with_len((1 << 40) + 1).is_err() && with_len(u64::MAX).is_err());
    assert!(PageSeal::new(&key(), "x", (1 << 40) + 1).is_none());
}

use std::fs;
use std::path::Path;

use confidant_seal::{Scope, TenantId};

use super::*;
use crate::aspects::{AppsNote, Fixed, Profile, situation};
use crate::audience::Audience;

/// A folder of instructions that ends with the test.
struct Place {
    folder: tempfile::TempDir,
    instructions: Instructions,
}

impl Place {
    fn with<const N: usize>(files: [(&str, &str); N]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let instructions = Instructions::open(folder.path().to_owned());
        Self { folder, instructions }
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
        self.instructions.refresh();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn text(&self, slot: Slot, situation: Situation<'_>) -> String {
        self.over(slot, None, situation).await
    }

    async fn over(&self, slot: Slot, aspects: Option<&str>, situation: Situation<'_>) -> String {
        let otherwise = aspects.map(|text| Arc::new(Fixed::new(slot, text)) as Arc<dyn Aspect>);
        let aspect = self.instructions.aspect(slot, otherwise);
        assert_eq!(aspect.slot(), slot);
        aspect.text(situation).await.unwrap().unwrap_or_default()
    }

    fn faults(&self) -> Vec<String> {
        self.instructions.faults().iter().map(Fault::to_string).collect()
    }
}

fn mate(head: &str, text: &str) -> String {
    format!("---\nslot: mate\n{head}\n---\n{text}\n")
}

#[tokio::test]
async fn a_file_stands_when_every_condition_holds() {
    let scope = Scope::parse(TenantId::new("acme").unwrap(), "discord_conv:111").unwrap();
    let prepared = situation::prepared("legal", "no", 0.0);
    let profile = Profile { jurisdictions: vec!["gb".into(), " ie".into()], ..Profile::default() };
    let here = Situation {
        scope: Some(&scope),
        audience: Audience::Room,
        prepared: Some(&prepared),
        profile: &profile,
        focus: Some("web.research"),
        ..situation::plain()
    };
    for (conditions, stands) in [
        ("", true),
        ("tenant: acme", true),
        ("tenant: [other, acme]", true),
        ("tenant: other", false),
        ("channel: discord", true),
        ("channel: matrix", false),
        ("audience: room", true),
        ("audience: private", false),
        ("category: legal", true),
        ("category: [software, general]", false),
        ("focus: web.research", true),
        ("focus: web.search", false),
        // Neither Norwegian nor Norway is a truth value.
        ("language: no", true),
        ("language: [de, 'no']", true),
        ("language: de", false),
        ("jurisdiction: IE", true),
        ("jurisdiction: [no, ie]", true),
        ("jurisdiction: NO", false),
        (
            "tenant: acme\nchannel: discord\naudience: room\ncategory: legal\nlanguage: no\njurisdiction: GB",
            true,
        ),
        ("tenant: acme\nchannel: discord\naudience: private\ncategory: legal", false),
    ] {
        let file = format!("---\nslot: agent\n{conditions}\n---\nwords");
        let place = Place::with([("a.md", file.as_str())]);
        assert_eq!(place.faults(), [""; 0], "{conditions}");
        assert_eq!(place.text(Slot::Agent, here).await == "words", stands, "{conditions}");
        if !conditions.is_empty() {
            let nowhere = Situation { audience: Audience::Private, ..situation::plain() };
            let found = place.text(Slot::Agent, nowhere).await;
            assert_eq!(found == "words", conditions == "audience: private" || conditions.contains("general"));
        }
    }
}

#[tokio::test]
async fn files_of_a_slot_stand_in_their_order() {
    let place = Place::with([
        ("a.md", "---\nslot: additional\norder: 2\n---\nthird"),
        ("b.md", "---\nslot: additional\n---\nfirst"),
        ("c.md", "---\r\nslot: additional\r\n---\r\nsecond\r\n"),
        ("d.md", "\u{feff}---\nslot: additional\norder: -1\n---\n\nzeroth\n\n---\n\nstill\n"),
        ("e.md", "---\nslot: agent\n---\nelsewhere"),
    ]);
    assert_eq!(
        place.text(Slot::Additional, situation::plain()).await,
        "zeroth\n\n---\n\nstill\n\nfirst\n\nsecond\n\nthird"
    );
}

#[tokio::test]
async fn one_mate_answers() {
    let place = Place::with([
        ("everyone.md", &mate("name: Robin", "robin")),
        ("late.md", &mate("category: [software]\norder: 1", "late")),
        ("ada.md", &mate("category: [software, databases]\nname: Ada\ndescription: Code.", "ada")),
        ("theirs.md", &mate("category: software\ntenant: other\norder: -1", "theirs")),
    ]);
    for (category, text, name) in [
        ("software", "ada", "Ada"),
        ("databases", "ada", "Ada"),
        ("general", "robin", "Robin"),
        ("x", "robin", "Robin"),
    ] {
        let prepared = situation::prepared(category, "en", 0.0);
        let turn = Situation { prepared: Some(&prepared), ..situation::plain() };
        assert_eq!(place.over(Slot::Mate, Some("settings"), turn).await, text, "{category}");
        assert_eq!(place.instructions.mate(turn).unwrap().name, name);
    }
    assert_eq!(place.text(Slot::Mate, situation::plain()).await, "robin", "unprepared turns are general");
    fs::remove_file(place.path("everyone.md")).unwrap();
    place.instructions.refresh();
    assert_eq!(place.over(Slot::Mate, Some("settings"), situation::plain()).await, "settings");
    assert_eq!(place.instructions.mate(situation::plain()), None);
}

#[tokio::test]
async fn the_text_of_the_settings_makes_room_for_what_was_chosen_and_for_what_always_stands() {
    let place = Place::with([
        ("focus.md", "---\nslot: focus\nfocus: web.research\n---\nresearch"),
        ("room.md", "---\nslot: ethics\naudience: room\n---\nothers read along"),
        ("agent.md", "---\nslot: agent\n---\nown agent"),
        ("private.md", "---\nslot: agent\naudience: private\n---\nalone"),
    ]);
    let room = Situation { audience: Audience::Room, ..situation::plain() };
    let on = Situation { focus: Some("web.research"), ..situation::plain() };
    let unknown = Situation { focus: Some("no.such"), ..situation::plain() };
    for (slot, turn, expected) in [
        (Slot::Focus, on, "research"),
        (Slot::Focus, room, "settings"),
        (Slot::Focus, unknown, "settings"),
        (Slot::Ethics, room, "settings\n\nothers read along"),
        (Slot::Ethics, on, "settings"),
        (Slot::Agent, room, "own agent"),
        (Slot::Agent, on, "own agent\n\nalone"),
        (Slot::Disclaimer, on, "settings"),
    ] {
        assert_eq!(place.over(slot, Some("settings"), turn).await, expected, "{slot:?}");
    }
}

#[tokio::test]
async fn apps_are_only_spoken_of_when_there_are_some() {
    let place = Place::with([("apps.md", "---\nslot: apps\naudience: private\n---\nAsk before you write.")]);
    let aspect = place.instructions.aspect(Slot::Apps, Some(Arc::new(AppsNote)));
    assert_eq!(aspect.text(situation::plain()).await, Ok(None));
    let text = aspect.text(Situation { tools: 1, ..situation::plain() }).await.unwrap().unwrap();
    assert!(text.starts_with("Use a tool only") && text.ends_with("\n\nAsk before you write."), "{text}");
}

#[test]
fn the_catalogue_has_what_this_turn_may_be_offered() {
    let place = Place::with([
        ("ada.md", &mate("category: [software, general]\nname: Ada\ndescription: Code.", "ada")),
        ("de.md", &mate("category: steuern\nlanguage: de\nname: Eva", "eva")),
        ("theirs.md", &mate("category: secret_plans\ntenant: other", "x")),
        ("law.md", "---\nslot: disclaimer\ncategory: legal\n---\nNo advice."),
        ("plan.md", "---\nslot: focus\nfocus: code.plan_project\n---\nplan"),
        ("web.md", "---\nslot: focus\nfocus: web.research\nname: Web\ndescription: Cites.\n---\nresearch"),
        ("web2.md", "---\nslot: focus\nfocus: web.research\nlanguage: de\n---\nauf Deutsch"),
        ("hidden.md", "---\nslot: focus\nfocus: plot.coup\ntenant: other\n---\nplot"),
        ("always.md", "---\nslot: focus\n---\nalways"),
    ]);
    let mode = |id: &str, name: &str, description: Option<&str>| FocusMode {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.map(str::to_owned),
    };
    let one = |name: &str, description: Option<&str>, categories: &[&str]| Mate {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        categories: categories.iter().map(|one| (*one).to_owned()).collect(),
    };
    let expected = Catalogue {
        categories: ["general", "software", "steuern", "legal"].map(str::to_owned).to_vec(),
        focus_modes: vec![
            mode("code.plan_project", "plan", None),
            mode("web.research", "Web", Some("Cites.")),
        ],
        mates: vec![one("Ada", Some("Code."), &["software", "general"]), one("Eva", None, &["steuern"])],
    };
    assert_eq!(place.instructions.catalogue(situation::plain()), expected);
    let empty = Instructions::default().catalogue(situation::plain());
    assert_eq!(
        (empty.categories, empty.focus_modes, empty.mates),
        (vec!["general".to_owned()], vec![], vec![])
    );
}

#[test]
fn a_file_with_a_fault_is_named_and_not_quoted() {
    let long = format!("---\nslot: agent\ntenant: [{}]\n---\nwords", vec!["canary"; 33].join(", "));
    for (content, expected) in [
        ("canary", "the front matter is missing"),
        ("---\nslot: agent\ncanary", "the front matter is missing"),
        ("---\n---\ncanary", "slot is missing or unknown"),
        ("---\nslot: canary\n---\nx", "slot is missing or unknown"),
        ("---\nslot: conversation_context\n---\nx", "slot is missing or unknown"),
        ("---\nslot: [agent]\n---\nx", "slot is missing or unknown"),
        (
            "---\nslot: agent\nfocuss: canary\n---\nx",
            "unknown key focuss; hint: known keys are slot, category",
        ),
        ("---\nslot: agent\nslot: canary\n---\nx", "line 3: duplicate key"),
        ("---\nslot: agent\ncategory: [canary\n---\nx", "line "),
        ("---\nslot: agent\n<<: {order: 1}\n---\nx", "line 3: the front matter is not plain YAML"),
        ("---\nslot: &a agent\nname: *a\n---\nx", "the front matter is not plain YAML"),
        ("---\n- canary\n---\nx", "the front matter is not plain YAML"),
        (
            "---\nslot: agent\ncategory: Canary Words\n---\nx",
            "category is not valid; hint: write lower-case letters",
        ),
        ("---\nslot: agent\ncategory: []\n---\nx", "category is not valid"),
        ("---\nslot: agent\ntenant: 12\n---\nx", "tenant is not valid"),
        ("---\nslot: agent\ntenant:\n---\nx", "tenant is not valid"),
        ("---\nslot: agent\ntenant: {canary: 1}\n---\nx", "tenant is not valid"),
        ("---\nslot: agent\nfocus: .canary\n---\nx", "focus is not valid"),
        ("---\nslot: agent\njurisdiction: Canary, the town\n---\nx", "jurisdiction is not valid"),
        ("---\nslot: agent\nlanguage: canary\n---\nx", "language is not valid"),
        ("---\nslot: agent\naudience: canary\n---\nx", "audience is unknown"),
        ("---\nslot: agent\norder: canary\n---\nx", "order is not a whole number"),
        ("---\nslot: agent\norder: 1.5\n---\nx", "order is not a whole number"),
        ("---\nslot: agent\norder: 99999999999999999999999\n---\nx", "order is not a whole number"),
        ("---\nslot: mate\nname: 7\n---\nx", "name is not valid; hint: write one line"),
        ("---\nslot: agent\n---\n\n \n", "there is no text"),
        (long.as_str(), "tenant is not valid"),
    ] {
        let place = Place::with([("a.md", content), ("fine.md", "---\nslot: agent\n---\nfine")]);
        let faults = place.faults();
        assert_eq!(faults.len(), 1, "{content}: {faults:?}");
        let fault = &faults[0];
        assert!(
            fault.starts_with("a.md: ") && fault.contains(expected) && fault.contains("; hint: "),
            "{fault}"
        );
        assert!(!fault.to_lowercase().contains("canary"), "{fault}");
        assert_eq!(place.instructions.count(), 1, "the other file stands");
    }
}

#[tokio::test]
async fn changes_are_noticed_and_a_broken_file_stands_as_it_was() {
    let place = Place::with([("a.md", "---\nslot: agent\n---\nold")]);
    let text = || place.text(Slot::Agent, situation::plain());
    assert_eq!(text().await, "old");
    place.write("a.md", "---\nslot: agent\n---\nnew");
    assert_eq!(text().await, "new");
    // The same length, at once: only reading it again can tell.
    place.write("a.md", "---\nslot: agent\n---\nneu");
    place.instructions.refresh();
    assert_eq!(text().await, "neu");
    place.write("a.md", "---\nslot: agnet\n---\nbroken");
    assert_eq!(text().await, "neu");
    assert_eq!(place.faults().len(), 1);
    place.write("a.md", b"---\nslot: agent\n---\n\xff");
    assert_eq!(text().await, "neu");
    assert!(place.faults()[0].contains("not UTF-8"), "{:?}", place.faults());
    place.write("b.md", "---\nslot: agent\n---\nmore");
    assert_eq!(text().await, "neu\n\nmore");
    place.write("a.md", "---\nslot: agent\n---\nmended");
    assert_eq!((text().await.as_str(), place.faults().len()), ("mended\n\nmore", 0));
    fs::remove_file(place.path("a.md")).unwrap();
    place.instructions.refresh();
    assert_eq!(text().await, "more");
}

#[tokio::test(start_paused = true)]
async fn a_watched_folder_is_looked_at_without_a_turn() {
    let place = Place::with([]);
    fs::remove_dir(place.folder.path()).unwrap();
    place.instructions.watch();
    let mut seen = place.instructions.shared.now.subscribe();
    fs::create_dir(place.folder.path()).unwrap();
    fs::write(place.path("a.md"), "---\nslot: agent\n---\nfirst").unwrap();
    seen.changed().await.unwrap();
    assert_eq!(place.text(Slot::Agent, situation::plain()).await, "first");
    fs::write(place.path("b.md"), "---\nslot: agent\n---\nsecond").unwrap();
    while place.instructions.count() < 2 {
        seen.changed().await.unwrap();
    }
    assert_eq!(place.text(Slot::Agent, situation::plain()).await, "first\n\nsecond");
}

#[tokio::test]
async fn size_and_number_are_bounded() {
    let most = format!("---\nslot: agent\n---\n{}", "x".repeat(32 * 1024 - 20));
    let place = Place::with([("a.md", &most), ("b.md", &format!("{most}x"))]);
    assert_eq!(place.instructions.count(), 1);
    assert!(place.faults()[0].starts_with("b.md: it is larger than 32 KiB"), "{:?}", place.faults());
    for number in 0..256 {
        fs::write(place.path(&format!("c{number}.md")), "---\nslot: agent\n---\nx").unwrap();
    }
    place.instructions.refresh();
    assert_eq!(place.instructions.count(), 255);
    assert!(
        place.faults()[0].starts_with("the folder: there are more than 256 files"),
        "{:?}",
        place.faults()
    );
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_folder_is_read() {
    use std::os::unix::fs::symlink;

    let good = "---\nslot: agent\n---\nsecret";
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("out.md"), good).unwrap();
    let place = Place::with([("README.md", "About these."), (".draft.md", "x"), ("notes.txt", "x")]);
    symlink(outside.path().join("out.md"), place.path("link.md")).unwrap();
    symlink(outside.path(), place.path("away")).unwrap();
    symlink("away/out.md", place.path("through.md")).unwrap();
    symlink("nowhere.md", place.path("dangling.md")).unwrap();
    fs::create_dir(place.path("folder.md")).unwrap();
    // As Kubernetes mounts a ConfigMap: a link to a link within the folder.
    fs::create_dir(place.path("..2026")).unwrap();
    fs::write(place.path("..2026/inside.md"), good).unwrap();
    symlink("..2026", place.path("..data")).unwrap();
    symlink("..data/inside.md", place.path("inside.md")).unwrap();
    place.instructions.refresh();
    let faults = place.faults();
    let told = [
        "dangling.md: it cannot be read",
        "folder.md: it is not a file",
        "link.md: it links to a file outside",
        "through.md: it links to a file outside",
    ];
    assert_eq!(faults.len(), told.len(), "{faults:?}");
    assert!(faults.iter().zip(told).all(|(fault, told)| fault.starts_with(told)), "{faults:?}");
    assert_eq!(place.instructions.count(), 1);
    assert!(!format!("{:?}", place.instructions).contains("secret"));
}

#[test]
fn the_examples_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/instructions");
    let instructions = Instructions::open(folder);
    assert_eq!(instructions.faults(), []);
    let catalogue = instructions.catalogue(situation::plain());
    assert_eq!(catalogue.categories, ["general", "software", "databases", "legal"]);
    let modes: Vec<&str> = catalogue.focus_modes.iter().map(|mode| mode.id.as_str()).collect();
    assert_eq!(modes, ["code.plan_project", "web.research"]);
    let prepared = situation::prepared("software", "de", 0.0);
    let turn = Situation { prepared: Some(&prepared), ..situation::plain() };
    assert_eq!(instructions.mate(turn).map(|mate| mate.name).as_deref(), Some("Ada"));
}

proptest::proptest! {
    /// Whatever a file holds, it is an instruction or a fault.
    #[test]
    fn any_text_is_an_instruction_or_a_fault(head in "[a-z\\[\\]{}:&*!|>\"'#\\n -]{0,80}", text in ".{0,40}") {
        let content = format!("---\nslot: agent\n{head}\n---\n{text}");
        for content in [&content, &head, &text] {
            if let Err(what) = Instruction::parse("a.md", content) {
                proptest::prop_assert!(what.contains("; hint: "));
            }
        }
    }
}

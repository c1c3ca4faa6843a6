//! Instruction files and several models, as an operator meets them.

use std::fs;

use crate::home::{CONTENT, Home};

#[test]
fn the_doctor_names_files_with_faults_without_quoting_them() {
    let home = Home::with_alice().set("CONFIDANT_SERVER__LISTEN", "127.0.0.1:0");
    assert!(!home.run(&["doctor"]).done().out.contains("instructions"));
    let folder = home.data("instructions");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("ada.md"), "---\nslot: mate\ncategory: software\n---\nYour name is Ada.").unwrap();
    fs::write(folder.join("bad.md"), format!("---\nslot: mate\ncategry: {CONTENT}\n---\n{CONTENT}")).unwrap();
    let doctor = home.run(&["doctor"]).done();
    assert!(doctor.out.contains("ok    instructions: 1 file in "), "{}", doctor.out);
    let told = "warn  instructions: bad.md: unknown key categry\n      hint: known keys are slot, category";
    assert!(doctor.out.contains(told), "{}", doctor.out);
    let said = home.alice("hello").done();
    for text in [&doctor.out, &doctor.err, &said.err] {
        assert!(!text.contains(CONTENT), "{text}");
    }
}

#[test]
fn every_model_is_looked_at_and_a_wrong_name_stops_the_start() {
    let home = Home::with_alice().set("CONFIDANT_SERVER__LISTEN", "127.0.0.1:0").set(
        "CONFIDANT_MODELS__FAST",
        "{ provider = 'openai', model = 'm', base_url = 'http://127.0.0.1:9/v1' }",
    );
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 2);
    for told in ["ok    model: default: ", "fail  model: fast: the model cannot be reached"] {
        assert!(doctor.out.contains(told), "{}", doctor.out);
    }
    let home = home.set("CONFIDANT_PROCESSING__MODEL", "slow");
    home.alice("hello").failed("processing.model is not one of the models", "name one of default, fast");
    let home = home.set("CONFIDANT_PROCESSING__MODEL", "fast");
    home.alice("hello").done();
}

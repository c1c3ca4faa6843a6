use super::find;

fn names(text: &str) -> Vec<&str> {
    find(text).into_iter().map(|range| &text[range]).collect()
}

#[test]
fn finds_the_people() {
    let table: [(&str, &[&str]); 34] = [
        ("My name is Margaret Hollis and I live in Denver.", &["Margaret Hollis"]),
        ("my name is margaret hollis", &["margaret hollis"]),
        ("Hi, I'm Priya!", &["Priya"]),
        ("Dear Mr. Okonkwo, your order has shipped.", &["Mr. Okonkwo"]),
        ("Dr. Alvarez will see you on Tuesday", &["Dr. Alvarez"]),
        ("Best regards,\nThomas Whitfield\nAcme Corp", &["Thomas Whitfield"]),
        ("Cheers,\nSophie", &["Sophie"]),
        ("alice: hi\nbob: hello there", &["alice", "bob"]),
        ("\"It is done,\" said Eleanor.", &["Eleanor"]),
        (
            "The paper was written by Jürgen Schmidhuber and Sepp Hochreiter.",
            &["Jürgen Schmidhuber", "Sepp Hochreiter"],
        ),
        ("Ludwig van Beethoven was born in Bonn.", &["Ludwig van Beethoven"]),
        ("I met Jean-Pierre Dubois in Paris.", &["Jean-Pierre Dubois"]),
        ("Ask J. R. Hartley about it.", &["J. R. Hartley"]),
        ("Sinéad O'Connor sang in Dublin.", &["Sinéad O'Connor"]),
        ("Author: Daniel Kowalski <dk@example.com>", &["Daniel Kowalski"]),
        ("Signed-off-by: Karen Mitchell <karen@example.org>", &["Karen Mitchell"]),
        ("Please ask Rebecca whether the build is green.", &["Rebecca"]),
        ("I talked to Miguel yesterday about Kubernetes", &["Miguel"]),
        ("thanks Jennifer!", &["Jennifer"]),
        ("Rebecca's laptop is broken", &["Rebecca"]),
        ("{\"name\": \"Laura Bennett\", \"city\": \"Boston\"}", &["Laura Bennett"]),
        ("President Emmanuel Macron visited Berlin in March.", &["Emmanuel Macron"]),
        (
            "Attendees: Anna Schmidt, David Chen and Maria Rossi",
            &["Anna Schmidt", "David Chen", "Maria Rossi"],
        ),
        ("Reviewed by Michael Brown", &["Michael Brown"]),
        ("my brother Kevin works at Google", &["Kevin"]),
        ("thank you @JaneDoe for the help", &["JaneDoe"]),
        ("ping @michaelsmith please", &["michaelsmith"]),
        ("RT @ _ michaelsmith: lol", &["michaelsmith"]),
        ("Laura Bennett on stage #laurabennett", &["Laura Bennett", "laurabennett"]),
        ("I like what u/wanderer77 wrote", &["wanderer77"]),
        ("so good #LauraBennett", &["LauraBennett"]),
        ("PATIENT: ROBERT JOHNSON", &["ROBERT JOHNSON"]),
        ("Barack Obama spoke first. Then Obama left.", &["Barack Obama", "Obama"]),
        ("Call Patricia at 555-0100", &["Patricia"]),
    ];
    let wrong: Vec<_> = table
        .iter()
        .filter(|(text, want)| names(text) != *want)
        .map(|(text, want)| (text, names(text), want))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn leaves_the_rest_alone() {
    let table = [
        "",
        "   \n\n\t",
        "The build failed on Monday, so we deploy in April or May.",
        "We use Python, Postgres and Docker with Kubernetes on Linux.",
        "I live in London and fly to San Francisco on Friday.",
        "Microsoft and Google announced a partnership in Seattle.",
        "let mut parser = HashMap::with_capacity(TokenKind::Word as usize);",
        "fn find_names(text: &str) -> Vec<Range<usize>> { todo!() }",
        "2026-11-15T05:35:13Z ERROR worker.pool: connection refused by host db-01",
        "User: where is the file?\nAssistant: It is in the folder.",
        "npm install react && docker run -it ubuntu:latest",
        "const marshal = await import('./mason.js');",
        "Will the tests pass? May I push to main?",
        "Visit 12 Washington Street, Boston.",
        "https://example.com/users/profile?id=42",
        "Thanks for the review!",
        "Hello everyone, the release is ready.",
        "TODO: fix the race in Scheduler",
        "# @return [Api::Account] if sid was passed.",
        "use @Override and @media, then `npm i @types/node` #release",
        "The University of Cambridge and Harvard University",
        "SELECT name FROM users WHERE mark = 1;",
        "مرحبا بالعالم 😀👩‍👩‍👧 ＡＢＣ",
        "deadbeef 0xFF 127.0.0.1 v1.2.3-rc.1",
    ];
    let wrong: Vec<_> =
        table.iter().filter(|text| !names(text).is_empty()).map(|text| (text, names(text))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn holds_its_promise_on_hostile_text() {
    let rtl = "\u{202e}שלום ג'ון סמית\u{202c}\n".repeat(200);
    let cases = [
        "a".repeat(1 << 20),
        "A'".repeat(1 << 13),
        "@".repeat(1 << 11),
        "@Jane".repeat(1 << 11),
        "Mr. ".repeat(1 << 11),
        "Dr.Mr.Ms.".repeat(1 << 10),
        "John ".repeat(1 << 11),
        "e\u{301}".repeat(1 << 11),
        "😀👩‍👩‍👧".repeat(1 << 10),
        "\0\u{1}\u{fffd}\u{feff}\r\n".repeat(1 << 10),
        "İıſK\u{212a}ẞ".repeat(1 << 10),
        rtl,
    ];
    for text in &cases {
        let found = find(text);
        let mut end = 0;
        for range in &found {
            assert!(end <= range.start && range.start < range.end && range.end <= text.len());
            assert!(text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
            end = range.end;
        }
        assert_eq!(found, find(text));
    }
}

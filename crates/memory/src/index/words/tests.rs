use super::*;

fn terms(text: &str) -> Vec<String> {
    query_terms(text).into_iter().map(|(term, _)| term).collect()
}

#[test]
fn every_kind_of_text_has_its_terms() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\"", &[]),
        ("* AND ( ) -- ++ ''", &[]),
        ("it's", &[]),
        ("don't panic", &["panic"]),
        ("We decided to migrate the databases.", &["decid", "migrat", "databas"]),
        ("C++ and C#, c", &["c++", "c#", "c"]),
        ("auth-service", &["auth-service", "auth", "servic"]),
        ("user@x.com", &["user@x.com", "user", "com"]),
        ("v2.3.1", &["v2.3.1", "v2"]),
        ("snake_case_name", &["snake_case_name", "snake", "case", "name"]),
        (
            "getUserName HTTPServer2",
            &["get", "user", "name", "getusername", "http", "server2", "httpserver2"],
        ),
        ("src/index/mod.rs:42", &["src/index/mod.rs:42", "src", "index", "mod", "rs", "42"]),
        ("title:x", &["title:x", "titl"]),
        ("Ålesund Crème brûlée Straße Łódź", &["alesund", "creme", "brule", "strass", "lodz"]),
        ("Москва", &["москва"]),
        ("データベース", &["デー", "ータ", "タベ", "ベー", "ース"]),
        ("数据库migration", &["数据", "据库", "migrat"]),
        ("中", &["中"]),
        ("ＦＵＬＬ width", &["full", "width"]),
        ("a\0b\u{7}tab\u{200b}zero", &["b", "tab", "zero"]),
    ];
    for (text, expected) in cases {
        assert_eq!(terms(text), *expected, "{text}");
    }
}

#[test]
fn documents_also_have_single_characters_of_dense_scripts() {
    let mut found = Vec::new();
    document_terms("数据库", &mut |term| found.push(term.to_owned()));
    assert_eq!(found, ["数", "数据", "据", "据库", "库"]);
}

#[test]
fn composed_and_decomposed_text_is_the_same_text() {
    for text in ["café Zürich ñandú", "が ぱ データ", "한국어 검색"] {
        let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
        assert_eq!(terms(&composed), terms(&decomposed), "{text}");
    }
}

#[test]
fn a_long_query_is_bounded() {
    let text: String = (0..40_000).map(|i| format!("w{i} ")).collect();
    assert_eq!(query_terms(&text).len(), QUERY_TERMS);
    let word = "x".repeat(100_000);
    assert_eq!(terms(&word), ["x".repeat(TERM_BYTES)]);
}

#[test]
fn tags_are_exact() {
    assert_eq!(tag_term("Team A"), "Team A");
    assert_ne!(tag_term("a\nb"), tag_term("a\u{1}b"));
    assert_ne!(tag_term(&"x".repeat(300)), tag_term(&"x".repeat(301)));
    assert!(!tag_term("a\nb").contains('\n'));
}

proptest::proptest! {
    #[test]
    fn any_text_has_terms_that_are_lines(text in "\\PC{0,200}|[\\x00-\\x7f]{0,200}") {
        let mut found = 0;
        document_terms(&text, &mut |term| {
            found += 1;
            assert!(!term.is_empty() && !term.contains('\n') && term.len() <= TERM_BYTES, "{term:?}");
        });
        assert!(found <= 4 * text.len());
        assert!(query_terms(&text).len() <= QUERY_TERMS);
    }
}

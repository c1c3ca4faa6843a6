//! Names of people: recall and precision by source.

use super::{Case, redactor, speed};

/// Names by source: a labelled place is found if it is touched; a find is right if it touches one. Every case of a
/// source counts, since every person in it is labelled.
pub(crate) fn score(cases: &[Case], show: Option<&str>) {
    let redactor = redactor(true);
    for (source, goal) in [("presidio-research", "85 / 80"), ("crossner", "80 / 85"), ("wnut17", "65 / 60")] {
        let (mut recalled, mut all, mut right, mut found) = (0, 0, 0, 0);
        for case in cases.iter().filter(|case| case.source == source) {
            let people = &case.people;
            let redacted = redactor.redact_text(&case.text);
            let names: Vec<_> =
                redacted.findings.iter().filter(|finding| finding.rule == "person_name").collect();
            all += people.len();
            let touches =
                |start: usize, end: usize| names.iter().any(|name| name.start < end && start < name.end);
            recalled += people.iter().filter(|(start, end)| touches(*start, *end)).count();
            found += names.len();
            right += names
                .iter()
                .filter(|name| people.iter().any(|(start, end)| name.start < *end && *start < name.end))
                .count();
            if show == Some(source) {
                let letters: Vec<char> = case.text.chars().collect();
                let word = |start: usize, end: usize| letters[start..end].iter().collect::<String>();
                let missed: Vec<_> =
                    people.iter().filter(|(s, e)| !touches(*s, *e)).map(|(s, e)| word(*s, *e)).collect();
                let wrong: Vec<_> = names
                    .iter()
                    .filter(|name| !people.iter().any(|(start, end)| name.start < *end && *start < name.end))
                    .map(|name| word(name.start, name.end))
                    .collect();
                if !missed.is_empty() || !wrong.is_empty() {
                    println!("missed {missed:?} wrong {wrong:?} {:?}", case.text);
                }
            }
        }
        let rate = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        println!(
            "names, {source:<24} recall {:.1}% precision {:.1}%  goal {goal}",
            rate(recalled, all),
            rate(right, found)
        );
    }
    let clean: Vec<_> = cases.iter().filter(|case| case.tier == "clean" && case.scope == "core").collect();
    let named = |case: &&&Case| {
        redactor.redact_text(&case.text).findings.iter().any(|finding| finding.rule == "person_name")
    };
    let touched = clean.iter().filter(named).count();
    println!("names, clean texts touched       {:.2}%  goal 3", 100.0 * touched as f64 / clean.len() as f64);
    speed(&redactor, cases, "with names", 1.0);
}

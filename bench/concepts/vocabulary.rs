//! A vocabulary that is generated: the same for the same size, with labels in several languages and words that many
//! labels share, as in real ones.

use std::io::{self, Write};

/// Language tags, and how words end in each.
pub(crate) const LANGUAGES: [(&str, &str); 4] = [("en", ""), ("de", "ung"), ("fr", "age"), ("ga", "acht")];

/// A small generator of numbers, so that runs can be compared.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap_or(0)
    }
}

pub(crate) struct Vocabulary {
    size: usize,
}

impl Vocabulary {
    pub(crate) fn new(size: usize) -> Self {
        Self { size }
    }

    /// The id that a concept gets from its parts.
    pub(crate) fn id(&self, n: usize) -> String {
        format!("{}:{}:K{n}", DOMAINS[n % DOMAINS.len()], LANDS[n % LANDS.len()])
    }

    /// A concept's preferred label in a language.
    pub(crate) fn label(&self, n: usize, language: usize) -> String {
        let mut random = Random::new(n as u64 + 1);
        let ending = LANGUAGES[language].1;
        let word = |random: &mut Random, list: &[&str]| list[random.below(list.len())].to_owned();
        let (first, second) = (word(&mut random, &COMMON), word(&mut random, &RARE));
        format!("{first}{ending} {second}{ending} {n}")
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .")?;
        writeln!(out, "@prefix c: <urn:confidant:ns:> .\n@prefix x: <https://example.org/bench/> .")?;
        for n in 0..self.size {
            write!(out, "x:c{n} a skos:Concept ; c:domain \"{}\" ; ", DOMAINS[n % DOMAINS.len()])?;
            write!(out, "c:jurisdiction \"{}\" ; c:kind \"K{n}\"", LANDS[n % LANDS.len()])?;
            for (at, (language, ending)) in LANGUAGES.iter().enumerate() {
                let label = self.label(n, at);
                write!(out, " ;\n  skos:prefLabel \"{label}\"@{language}")?;
                write!(out, " ; skos:altLabel \"short{ending} {n}\"@{language}")?;
            }
            write!(
                out,
                " ;\n  skos:definition \"What {} means, in one general sentence.\"@en",
                self.label(n, 0)
            )?;
            if n > 0 {
                write!(out, " ; skos:broader x:c{}", n / 8)?;
            }
            writeln!(out, " .")?;
        }
        Ok(())
    }
}

const DOMAINS: [&str; 5] = ["TAX", "SOCIAL", "LABOUR", "TRADE", "HEALTH"];
const LANDS: [&str; 7] = ["IE", "DE", "FR", "NO", "EU", "UK", "PL"];
/// Words that thousands of labels have.
const COMMON: [&str; 12] = [
    "tax",
    "benefit",
    "relief",
    "rate",
    "duty",
    "levy",
    "credit",
    "allowance",
    "scheme",
    "penalty",
    "threshold",
    "condition",
];
const RARE: [&str; 40] = [
    "vehicle",
    "income",
    "property",
    "vessel",
    "estate",
    "pension",
    "carer",
    "disability",
    "import",
    "export",
    "carbon",
    "sugar",
    "tobacco",
    "spirit",
    "betting",
    "dividend",
    "interest",
    "royalty",
    "farm",
    "forest",
    "housing",
    "rental",
    "parent",
    "maternity",
    "illness",
    "injury",
    "widow",
    "orphan",
    "student",
    "apprentice",
    "seafarer",
    "artist",
    "inventor",
    "research",
    "solar",
    "wind",
    "water",
    "waste",
    "plastic",
    "packaging",
];

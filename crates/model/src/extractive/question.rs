//! What a message asks for, if it asks for anything.
//!
//! Owns the knowledge of question words, pronouns and the kinds of things people ask about. What is easy to get
//! wrong: `me` in "tell me what we chose" does not make a question personal, while `my` in any place does.

use super::lists::{
    AMOUNT_WORDS, CHOICE_CUES, CLAUSE_WORDS, EMPTY_SIGNS, ENGLISH_MARKS, ENGLISH_SELF, FILLERS, GREETINGS,
    HOME_CUES, LIKING_CUES, List, NAME_CUES, NAME_KINDS, NAMING, NONE, OTHER_SELF, POSSESSIVES,
    QUESTION_WORDS, REASON_WORDS, SERVING, STOP_WORDS, SUMMARY_WORDS, THANKS, TIME_WORDS, TOGETHER,
};
use super::text::{Word, sentences, stem, words};

/// What a message wants.
#[derive(Debug, PartialEq)]
pub(super) enum Intent {
    /// It holds no words.
    Nothing,
    /// It says hello.
    Greeting,
    /// It says thanks.
    Thanks,
    /// It tells something.
    Telling,
    /// It asks who or what the agent is.
    AboutAgent,
    /// It asks something that quotes may answer.
    Asking(Question),
}

/// A question, taken apart.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    /// Whose words may answer it.
    pub(super) about: About,
    /// The kind of thing it asks for.
    pub(super) subject: Subject,
    /// What a good answer holds besides.
    pub(super) expects: Expects,
    /// Stems of the words that carry its meaning, without those of the subject.
    pub(super) terms: Vec<String>,
}

/// Whose words may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Only the asker's own.
    Asker,
    /// Anybody's.
    Everyone,
}

/// Kinds of things that people ask about in many wordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// What somebody is called.
    Name,
    /// What somebody likes.
    Liking,
    /// Where somebody lives.
    Home,
    /// What was decided.
    Choice,
    /// What was said lately.
    Summary,
    /// Anything else.
    Other,
}

/// What the question word lets us expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expects {
    Time,
    Amount,
    Reason,
    Name,
    Anything,
}

/// Reads a message as its sender meant it.
pub(super) fn intent(message: &str) -> Intent {
    let parts = sentences(message);
    let all = words(message);
    if all.is_empty() {
        return Intent::Nothing;
    }
    if all.len() <= 5 && all.iter().all(|word| GREETINGS.has(&word.plain)) {
        return Intent::Greeting;
    }
    if all.len() <= 6 && all.first().is_some_and(|word| THANKS.has(&word.plain)) {
        return Intent::Thanks;
    }
    // Of several sentences the last that asks is the one that wants an answer.
    let asking =
        parts.iter().rev().map(|part| (part, words(part))).find(|(part, words)| is_question(part, words));
    let Some((_, mut asked)) = asking else {
        return Intent::Telling;
    };
    asked.truncate(MOST_ASKED_WORDS);
    if is_about_agent(&asked) { Intent::AboutAgent } else { Intent::Asking(question(&asked)) }
}

/// Whether a sentence of these words asks.
pub(super) fn is_question(sentence: &str, all: &[Word<'_>]) -> bool {
    let end = sentence.trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '!', ' ']);
    if end.ends_with(['?', '？', '؟']) {
        return true;
    }
    let said: Vec<&str> = opening(all).iter().take(3).map(|word| word.plain.as_str()).collect();
    match said.as_slice() {
        ["remember" | "note", ..] | ["don't" | "dont", "forget", ..] | ["do", "not", ..] => false,
        ["tell" | "show" | "remind", "me" | "us", ..] => true,
        ["list" | "summarize" | "summarise" | "recap" | "recall", ..] => true,
        // "what I like is tea", "when we met it rained": a clause, not a question.
        [first, "i" | "you" | "he" | "she" | "they" | "it" | "we" | "the" | "a", ..]
            if CLAUSE_WORDS.has(first) =>
        {
            false
        }
        [first, _, ..] => QUESTION_WORDS.has(first),
        _ => false,
    }
}

/// Whether a word means the speaker, in the languages we know.
pub(super) fn is_first_person(word: &str) -> bool {
    ENGLISH_SELF.has(word) || OTHER_SELF.has(word) || is_sign_for_self(word)
}

/// In pairs of signs: 我, but not 我们.
fn is_sign_for_self(word: &str) -> bool {
    word.contains(['我', '私', '僕', '俺']) && !word.contains(['们', '們', '達'])
}

/// The words after mentions, greetings and fillers.
fn opening<'a, 'b>(all: &'b [Word<'a>]) -> &'b [Word<'a>] {
    let skipped = all.iter().take_while(|word| {
        let plain = word.plain.as_str();
        GREETINGS.has(plain) || FILLERS.has(plain)
    });
    let count = skipped.count();
    &all[count.min(all.len())..]
}

fn question(asked: &[Word<'_>]) -> Question {
    let plains: Vec<&str> = asked.iter().map(|word| word.plain.as_str()).collect();
    let subject = subject(asked, &plains);
    let about = if subject == Subject::Name { About::Asker } else { about(&plains) };
    let cues = subject.cues();
    let terms = asked.iter().filter(|word| {
        let plain = word.plain.as_str();
        !STOP_WORDS.has(plain)
            && !plain.contains(EMPTY_SIGNS)
            && !is_first_person(plain)
            && !cues.iter().any(|cue| stem(cue) == word.stem)
    });
    let terms: Vec<&Word<'_>> = terms.collect();
    // What is called something carries the meaning; that it is called does not, unless nothing else was said.
    let naming = |word: &Word<'_>| subject == Subject::Other && NAMING.has(&word.plain);
    let is_naming = terms.iter().any(|word| naming(word)) && !terms.iter().all(|word| naming(word));
    let terms = terms.iter().filter(|word| !(is_naming && naming(word)));
    let mut terms: Vec<String> = terms.map(|word| word.stem.clone()).collect();
    terms.sort_unstable();
    terms.dedup();
    let expects = if is_naming { Expects::Name } else { expects(&plains) };
    Question { about, subject, expects, terms }
}

fn about(plains: &[&str]) -> About {
    let english = plains.iter().any(|word| ENGLISH_MARKS.has(word));
    if plains.iter().any(|word| TOGETHER.has(word) || word.contains(['们', '們'])) {
        return About::Everyone;
    }
    let personal = plains.iter().enumerate().any(|(at, word)| {
        let before = at.checked_sub(1).map_or("", |before| plains[before]);
        let served = *word == "me" && SERVING.has(before);
        let own = ENGLISH_SELF.has(word) || is_sign_for_self(word) || (!english && OTHER_SELF.has(word));
        own && !served
    });
    if personal { About::Asker } else { About::Everyone }
}

fn subject(asked: &[Word<'_>], plains: &[&str]) -> Subject {
    let has = |list: List| asked.iter().any(|word| list.iter().any(|cue| stem(cue) == word.stem));
    let pair = |first: &str, second: &str| plains.windows(2).any(|two| two == [first, second]);
    let who = pair("am", "i") && plains.contains(&"who") || pair("bin", "ich") && plains.contains(&"wer");
    if who || names_itself(plains) {
        Subject::Name
    } else if has(CHOICE_CUES) && !has(LIKING_CUES) {
        Subject::Choice
    } else if has(HOME_CUES) || pair("am", "i") && pair("i", "from") {
        Subject::Home
    } else if has(LIKING_CUES) {
        Subject::Liking
    } else if has(SUMMARY_WORDS) || pair("catch", "me") {
        Subject::Summary
    } else {
        Subject::Other
    }
}

/// "my name", "am I called", "heiße ich", "je m'appelle"; not "my dog's name" and not "the name of my dog".
fn names_itself(plains: &[&str]) -> bool {
    let owner = |at: usize| at.checked_sub(1).map(|before| plains[before]);
    plains.iter().enumerate().any(|(at, word)| match *word {
        "name" | "nickname" | "navn" | "navnet" | "nom" | "nombre" => {
            owner(at).is_some_and(|before| POSSESSIVES.has(before) || NAME_KINDS.has(before))
                || plains.get(at + 1).is_some_and(|after| *after == "mitt")
        }
        "called" | "named" => plains.contains(&"i"),
        "名字" | "我叫" | "名前" | "зовут" | "chiamo" | "heiße" | "heisse" | "heter" | "hedder" | "llamo"
        | "m'appelle" | "appelle" => plains.iter().any(|word| is_first_person(word)),
        _ => false,
    })
}

fn expects(plains: &[&str]) -> Expects {
    let has = |list: List| plains.iter().any(|word| list.has(word));
    let amount = plains
        .windows(2)
        .any(|two| two[0] == "how" && matches!(two[1], "many" | "much" | "long" | "old" | "big"));
    if has(TIME_WORDS) {
        Expects::Time
    } else if amount || has(AMOUNT_WORDS) {
        Expects::Amount
    } else if has(REASON_WORDS) {
        Expects::Reason
    } else {
        Expects::Anything
    }
}

fn is_about_agent(asked: &[Word<'_>]) -> bool {
    let plains: Vec<&str> = asked.iter().map(|word| word.plain.as_str()).collect();
    let pair = |first: &str, second: &str| plains.windows(2).any(|two| two == [first, second]);
    pair("your", "name")
        || (pair("are", "you") && matches!(plains.first(), Some(&"who" | &"what")))
        || pair("who're", "you")
}

impl Subject {
    /// Words that show, in a question or in an answer, that this is what it is about.
    pub(super) fn cues(self) -> List {
        match self {
            Self::Name => NAME_CUES,
            Self::Liking => LIKING_CUES,
            Self::Home => HOME_CUES,
            Self::Choice => CHOICE_CUES,
            Self::Summary | Self::Other => NONE,
        }
    }
}

/// Nobody asks in more words; the rest of a longer sentence is not what it asks.
const MOST_ASKED_WORDS: usize = 400;

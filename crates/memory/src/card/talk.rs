//! How people who talk to each other say what they decide, and what they will do, in the languages that the rules know.
//!
//! In an agent's session "I'll look at it" and "let's see" are how it works, and are left alone there.

use super::clauses::{Cue, Found, Take};
use super::words::{content, is_spaceless, words};

const fn whole(phrase: &'static str) -> Cue {
    Cue { phrase, take: Take::Whole }
}

const fn behind(phrase: &'static str, skip: usize) -> Cue {
    Cue { phrase, take: Take::Skip(skip) }
}

/// Whether nothing is said that could be done: "let's see", "I'll be fine", "we'll think about it".
pub(super) fn is_loose(found: &Found<'_>) -> bool {
    let next = words(found.after).first().map(|word| word.to_lowercase()).unwrap_or_default();
    let signs = found.from.chars().filter(|letter| is_spaceless(*letter)).count();
    let says = content(found.after).len() + content(found.before).len();
    LOOSE.contains(&next.as_str())
        || found.after.to_lowercase().contains("in touch")
        || (says == 0 && signs < 4)
}

/// How people settle something.
pub(super) const DECISIONS: &[Cue] = &[
    behind("let's", 1),
    behind("lets", 1),
    whole("we're going to"),
    whole("we are going to"),
    whole("we'll meet"),
    whole("we're meeting"),
    whole("we are meeting"),
    whole("i've decided"),
    whole("made up my mind"),
    whole("made up our minds"),
    whole("it's settled"),
    whole("we booked"),
    whole("we've booked"),
    whole("lass uns"),
    whole("lasst uns"),
    whole("wir treffen uns"),
    whole("wir machen"),
    whole("wir fahren"),
    whole("abgemacht"),
    whole("ausgemacht"),
    whole("beschloss"),
    whole("entschied"),
    whole("on se retrouve"),
    whole("on se voit"),
    whole("retrouvons-nous"),
    whole("on va"),
    whole("allons"),
    whole("convenu"),
    whole("nous allons"),
    whole("quedamos"),
    whole("nos vemos el"),
    whole("nos vemos a"),
    whole("vamos a"),
    whole("hemos quedado"),
    whole("decidí"),
    whole("acordamos"),
    whole("combinamos"),
    whole("ficou combinado"),
    whole("vamos nos encontrar"),
    whole("vamos"),
    whole("decidi"),
    whole("la oss"),
    whole("vi møtes"),
    whole("vi skal"),
    whole("vi bestemte"),
    whole("har bestemt"),
    whole("avtalt"),
    whole("låt oss"),
    whole("vi träffas"),
    whole("vi ska"),
    whole("har bestämt"),
    whole("överens om"),
    whole("lad os"),
    whole("vi mødes"),
    whole("besluttede"),
    whole("aftalt"),
    whole("ho deciso"),
    whole("abbiamo deciso"),
    whole("ci vediamo"),
    whole("incontriamoci"),
    whole("facciamo"),
    whole("andiamo"),
    whole("laten we"),
    whole("besloten"),
    whole("afgesproken"),
    whole("we gaan"),
    whole("давай"),
    whole("давайте"),
    whole("договорились"),
    whole("решил"),
    whole("решила"),
    whole("встретимся"),
    whole("约好"),
    whole("说好"),
    whole("我们去"),
    whole("一言为定"),
    whole("就这么定"),
    whole("会いましょう"),
    whole("行きましょう"),
    whole("にしましょう"),
    whole("にしよう"),
    whole("約束"),
];

/// How people say that they will do something, or ask another to.
pub(super) const PROMISES: &[Cue] = &[
    whole("i'll"),
    whole("i will"),
    whole("i'm going to"),
    whole("i am going to"),
    whole("i have to"),
    whole("i need to"),
    whole("i must"),
    whole("we'll"),
    whole("we will"),
    whole("we have to"),
    whole("we need to"),
    whole("we must"),
    whole("i promise to"),
    whole("remind me to"),
    behind("remember to", 2),
    behind("don't forget to", 3),
    whole("don't forget the"),
    whole("ich werde"),
    whole("ich bringe"),
    whole("ich kümmere mich"),
    whole("ich muss"),
    whole("ich kaufe"),
    whole("ich rufe"),
    whole("wir müssen"),
    whole("vergiss nicht"),
    whole("denk daran"),
    whole("je vais"),
    whole("je dois"),
    whole("je m'occupe"),
    whole("j'apporte"),
    whole("il faut"),
    whole("on doit"),
    whole("n'oublie pas"),
    whole("voy a"),
    whole("tengo que"),
    whole("tenemos que"),
    whole("me encargo"),
    whole("yo llevo"),
    whole("hay que"),
    whole("no olvides"),
    whole("no te olvides"),
    whole("eu vou"),
    whole("vou"),
    whole("tenho que"),
    whole("temos que"),
    whole("eu levo"),
    whole("não esqueça"),
    whole("não se esqueça"),
    whole("lembre-se de"),
    whole("jeg skal"),
    whole("jeg tar med"),
    whole("jeg må"),
    whole("vi må"),
    whole("husk å"),
    whole("jag ska"),
    whole("jag tar med"),
    whole("jag måste"),
    whole("vi måste"),
    whole("glöm inte"),
    whole("kom ihåg att"),
    whole("jeg tager"),
    whole("jeg bliver nødt til"),
    whole("husk at"),
    whole("devo"),
    whole("dobbiamo"),
    whole("porto io"),
    whole("ci penso io"),
    whole("mi occupo"),
    whole("non dimenticare"),
    whole("ricordati di"),
    whole("ik zal"),
    whole("ik ga"),
    whole("ik moet"),
    whole("ik neem"),
    whole("we moeten"),
    whole("vergeet niet"),
    whole("я принесу"),
    whole("я куплю"),
    whole("я позвоню"),
    whole("я буду"),
    whole("мне нужно"),
    whole("мне надо"),
    whole("нам надо"),
    whole("не забудь"),
    whole("我会"),
    whole("我来"),
    whole("我要"),
    whole("我得"),
    whole("记得"),
    whole("别忘了"),
    whole("持っていく"),
    whole("持っていきます"),
    whole("買ってくる"),
    whole("しておきます"),
    whole("忘れないで"),
    whole("なければ"),
];

/// Words with which the same phrases tell of what was.
pub(super) const PAST: &[&str] = &[
    "yesterday",
    "last week",
    "gestern",
    "hier soir",
    "ayer",
    "ontem",
    "i går",
    "ieri",
    "gisteren",
    "вчера",
    "昨天",
];

/// What follows when nothing is promised.
const LOOSE: &[&str] = &[
    "be",
    "see",
    "never",
    "always",
    "say",
    "admit",
    "think",
    "miss",
    "love",
    "hope",
    "let",
    "tell",
    "face",
    "try",
    "just",
    "probably",
    "know",
    "catch",
    "look",
    "check",
    "not",
    "still",
    "forever",
    "sehen",
    "schauen",
    "mal",
    "voir",
    "ver",
    "se",
    "zien",
    "kijken",
    "vedere",
    "посмотрим",
];

#[cfg(test)]
mod tests {
    use super::super::decisions::decisions;
    use super::super::lines::statements;
    use super::super::source::Source;
    use super::super::todos::todos;

    fn decided(text: &str) -> Vec<String> {
        decisions(&statements(text, Source::Talk), 5)
    }

    fn promised(text: &str) -> Vec<String> {
        todos(&[], &statements(text, Source::Talk), 7)
    }

    #[test]
    fn people_decide_in_every_language() {
        let cases: &[(&str, &[&str])] = &[
            ("Let's meet on Tuesday!", &["Meet on Tuesday"]),
            ("Hey Mel, let's meet at the harbour on Tuesday.", &["Meet at the harbour on Tuesday"]),
            ("We decided to adopt a puppy.", &["Adopt a puppy"]),
            ("Let's meet on Tuesday. Actually, let's meet on Friday instead.", &["Meet on Friday instead"]),
            ("Let's see. Let's be honest. Let's keep in touch.", &[]),
            ("Should we go? Shall we meet on Tuesday?", &[]),
            ("We never decided to move.", &[]),
            ("Lass uns am Dienstag am Hafen treffen.", &["Lass uns am Dienstag am Hafen treffen"]),
            ("On se retrouve mardi devant la gare.", &["On se retrouve mardi devant la gare"]),
            ("Quedamos el martes en la plaza.", &["Quedamos el martes en la plaza"]),
            ("Decidimos adotar um cachorro.", &["Decidimos adotar um cachorro"]),
            ("Vi bestemte oss for hytta i Telemark.", &["Vi bestemte oss for hytta i Telemark"]),
            ("Vi träffas på tisdag vid stationen.", &["Vi träffas på tisdag vid stationen"]),
            ("Abbiamo deciso di adottare un cane.", &["Abbiamo deciso di adottare un cane"]),
            ("We hebben besloten een hond te nemen.", &["We hebben besloten een hond te nemen"]),
            ("Мы решили взять собаку.", &["Мы решили взять собаку"]),
            ("我们决定领养一只小狗。", &["我们决定领养一只小狗"]),
            ("犬を飼うことにしました。", &["犬を飼うことにしました"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&decided(text), expected, "{text}");
        }
    }

    #[test]
    fn people_promise_in_every_language() {
        let cases: &[(&str, &[&str])] = &[
            ("I'll bring the cake.", &["I'll bring the cake"]),
            ("Oh, I’ll call the vet tomorrow.", &["I’ll call the vet tomorrow"]),
            ("Don't forget to buy candles!", &["Buy candles"]),
            ("I'll be fine. I'll see you there. I'll think about it. I'll miss you.", &[]),
            ("If I have to choose, I stay.", &[]),
            ("I have to say that I love it.", &[]),
            ("Ich bringe den Kuchen mit.", &["Ich bringe den Kuchen mit"]),
            ("Je vais appeler le vétérinaire.", &["Je vais appeler le vétérinaire"]),
            ("Tengo que comprar las velas.", &["Tengo que comprar las velas"]),
            ("Eu vou levar o bolo.", &["Eu vou levar o bolo"]),
            ("Jeg tar med kaken.", &["Jeg tar med kaken"]),
            ("Jag ska ringa veterinären.", &["Jag ska ringa veterinären"]),
            ("Devo comprare le candele.", &["Devo comprare le candele"]),
            ("Ik zal de taart meenemen.", &["Ik zal de taart meenemen"]),
            ("Я куплю свечи.", &["Я куплю свечи"]),
            ("我会带蛋糕来。", &["我会带蛋糕来"]),
            ("ケーキを持っていきます。", &["ケーキを持っていきます"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&promised(text), expected, "{text}");
        }
    }

    /// The same words of an agent are how it works.
    #[test]
    fn agents_promise_nothing_by_saying_what_they_do_next() {
        let said = statements("I'll read the file. Let's look at the parser. We'll run it.", Source::Answer);
        assert!(decisions(&said, 5).is_empty() && todos(&[], &said, 7).is_empty());
    }
}

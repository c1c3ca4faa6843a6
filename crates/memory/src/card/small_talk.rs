//! What people say to be polite, in the languages that the rules know. It tells nobody what a session was about.

use std::sync::LazyLock;

use super::clauses::length_at;
use super::words::{content, is_spaceless, one_line, without_placeholders, words};

/// Whether a sentence only greets, thanks, agrees, asks back or takes leave.
pub(super) fn is_small_talk(text: &str) -> bool {
    let plain = without_placeholders(text);
    let mut rest = spoken(&plain);
    let mut found = false;
    while let Some(length) = longest(rest, &PHRASES) {
        found = true;
        rest = spoken(&rest[length..]);
    }
    // Who is greeted, or one word of courtesy more.
    found && content(rest).len() <= MOST_BESIDE
}

/// Whether a question only gives the word back.
pub(super) fn is_asked_back(text: &str) -> bool {
    let plain = without_placeholders(text);
    let rest = spoken(&plain);
    content(rest).len() < LEAST_ASKED || longest(rest, &BACK).is_some()
}

/// A sentence without the "Hey Mel," or "Oh wow," that it begins with, if it goes on behind a comma.
pub(super) fn unopened(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..MOST_OPENERS {
        let Some(length) = longest(rest, &OPENERS) else { break };
        let after = &rest[length..];
        let Some((at, mark)) = after.char_indices().find(|(_, letter)| is_pause(*letter)) else { break };
        let next = &after[at + mark.len_utf8()..];
        let apart = !mark.is_ascii() || next.starts_with(char::is_whitespace);
        if !apart || words(&after[..at]).len() > LONGEST_NAME || !goes_on(next) {
            break;
        }
        rest = next.trim_start_matches(|letter: char| letter.is_whitespace() || is_pause(letter));
    }
    rest
}

/// Enough words for a sentence of its own.
fn goes_on(text: &str) -> bool {
    words(text).len() > 2 || text.chars().filter(|letter| is_spaceless(*letter)).count() > 5
}

fn is_pause(letter: char) -> bool {
    matches!(letter, ',' | '!' | '.' | '…' | '–' | '—' | '，' | '！' | '、' | '。')
}

/// From the first letter, digit or sign on.
fn spoken(text: &str) -> &str {
    text.trim_start_matches(|letter: char| !letter.is_alphanumeric())
}

/// How long the longest of these lower-case phrases is at the start of a text.
pub(super) fn longest(text: &str, phrases: &[&str]) -> Option<usize> {
    phrases.iter().filter_map(|phrase| length_at(text, phrase)).max()
}

/// A whole message that is nothing but that.
pub(super) fn is_only_small_talk(text: &str) -> bool {
    let line = one_line(text);
    let mut parts = line.split_inclusive(['.', '!', '?', '。', '！', '？']).peekable();
    parts.peek().is_some() && parts.all(|part| spoken(part).is_empty() || is_small_talk(part))
}

/// Words beside the phrase that still tell nothing.
const MOST_BESIDE: usize = 1;
/// A question with fewer words of its own asks nothing.
const LEAST_ASKED: usize = 2;
const MOST_OPENERS: usize = 3;
/// Words of who is greeted.
const LONGEST_NAME: usize = 2;

/// Lower-case phrases, between commas.
pub(super) type Phrases = LazyLock<Vec<&'static str>>;

macro_rules! phrases {
    ($list:literal) => {
        LazyLock::new(|| $list.split(", ").collect())
    };
}

/// How people begin before they say something.
static OPENERS: Phrases = phrases!(
    "hey, hi, hello, hiya, oh, ah, aw, aww, wow, well, yeah, yes, yep, yup, no, nope, ok, okay, so, sure, haha, \
    hahaha, lol, thanks, thank you, great, cool, awesome, nice, good morning, good evening, good afternoon, dear, \
    hallo, hej, hei, moin, guten morgen, guten tag, ach, ja, nein, na ja, super, danke, liebe, lieber, salut, \
    bonjour, bonsoir, coucou, oui, non, merci, ah oui, hola, buenas, buenos días, buenas tardes, sí, vale, bueno, \
    gracias, olá, oi, bom dia, boa tarde, sim, não, obrigado, obrigada, god morgen, god kveld, heisann, takk, tack, \
    tak, nei, nej, jo, ciao, buongiorno, buonasera, sì, grazie, dai, hoi, goedemorgen, goedemiddag, dank je, bedankt, \
    nee, привет, здравствуй, здравствуйте, доброе утро, добрый день, да, нет, спасибо, ну, ого, 你好, 您好, 嗨, 哈哈, 好的, 好, \
    谢谢, 早上好, こんにちは, おはよう, こんばんは, やあ, ありがとう, うん, はい, ええ"
);

/// How people begin who are moved, or see each other again.
pub(super) static MOVED: Phrases = phrases!(
    "hey, hi, oh, aww, aw, wow, haha, lol, omg, congrats, congratulations, that's so, so cool, hallo, moin, oh nein, \
    glückwunsch, herzlichen glückwunsch, salut, coucou, félicitations, bravo, hola, enhorabuena, felicidades, qué bien, \
    oi, parabéns, que bom, hei, gratulerer, hej, grattis, tillykke, ciao, complimenti, che bello, hoi, leuk, \
    gefeliciteerd, привет, поздравляю, ого, 你好, 恭喜, 太好了, こんにちは, おめでとう"
);

/// What only gives the word back, beside questions without a word of their own.
static BACK: Phrases = phrases!(
    "what about you, how about you, and you, what do you mean, what do you think, how are you, how have you been, \
    how is it going, how's it going, how was your, how's your, what's up, what's new, really, are you sure, \
    anything else, is there anything else, would you like, do you want me, shall i, should i, any plans, und du, \
    und dir, wie geht, wie war, was gibt's neues, was meinst du, wirklich, et toi, et vous, ça va, comment ça va, \
    comment vas, quoi de neuf, vraiment, y tú, y tu, cómo estás, cómo te va, qué tal, de verdad, e você, e tu, \
    como vai, como você está, tudo bem, sério, og du, hva med deg, hvordan går det, hvordan har du, virkelig, och du, \
    hur mår du, hur är det, hur går det, verkligen, hvad med dig, e te, come stai, come va, tutto bene, davvero, \
    en jij, hoe gaat het, hoe is het, echt waar, а ты, а вы, как дела, как ты, что нового, правда, 你呢, 您呢, 怎么样, 真的吗, \
    あなたは, 元気, 本当"
);

/// How people ask for something.
pub(super) static POLITE: Phrases = phrases!(
    "hello, hi, hey, please, can you, could you, would you, can we, could we, i want you to, i'd like you to, \
    i would like you to, i need you to, help me, bitte, kannst du, könntest du, können sie, könnten sie, hilf mir, \
    s'il te plaît, s'il vous plaît, peux-tu, pouvez-vous, pourrais-tu, pourriez-vous, aide-moi à, por favor, puedes, \
    podrías, ayúdame a, você pode, poderia, kan du, kunne du, kan ni, skulle du kunna, snälla, \
    vær så snill å, per favore, puoi, potresti, aiutami a, kun je, kunt u, zou je, alsjeblieft, пожалуйста, можешь, \
    можете, помоги мне, 请帮我, 请你, 请, 帮我, 能不能, 麻烦你"
);

/// How a text begins that announces another, or goes on from one.
pub(super) static HALF_STARTS: Phrases = phrases!(
    "here is, here's, here are, here you go, the following, see below, see attached, as follows, and, but, or, \
    because, so that, hier ist, hier sind, siehe unten, und, aber, oder, weil, voici, et, mais, ou, parce que, \
    aquí está, aquí tienes, y, pero, porque, aqui está, mas, her er, og, men, eller, fordi, här är, och, för att, \
    ecco, perché, hier is, maar, omdat, вот, и, но, или, потому что, 这是, 以下是, 而且, 但是, 因为, これは, 以下, でも, そして"
);

/// Words after which a sentence goes on.
pub(super) static HALF_ENDS: Phrases = phrases!(
    "and, or, but, because, the, a, of, to, with, for, from, und, oder, aber, et, ou, mais, de, avec, pour, y, pero, \
    los, para, mas, og, eller, men, och, med, en, maar, het, met, voor, и, или, но, с, для"
);

/// What is said to be polite; a sentence may hold several of them.
static PHRASES: Phrases = phrases!(
    "hey, hi, hello, hiya, hi there, hello there, hey there, good morning, good afternoon, good evening, good night, \
    goodnight, good to see you, good to see you again, great to see you, nice to see you, so good to see you, \
    it's good to see you, it's great to see you, good to hear from you, great to hear from you, \
    nice to hear from you, nice to meet you, long time no see, long time no talk, how are you, how are you doing, \
    how have you been, how's it going, how is it going, how's life, how's everything, what's up, what's new, \
    hope you're doing well, hope you are doing well, i hope you're well, hope all is well, hope you, thanks, \
    thanks a lot, thanks so much, thank you, thank you so much, thank you very much, many thanks, you're welcome, \
    no problem, no worries, my pleasure, anytime, of course, sure, sure thing, sounds good, sounds great, \
    sounds like a plan, that sounds, that's great, that's awesome, that's amazing, that's wonderful, that's so, \
    that's really, that is great, that's good, that's cool, that's nice, so cool, so true, so proud of you, \
    i'm so proud of you, i'm happy for you, so happy for you, i'm so happy for you, glad to hear, i'm glad to hear, \
    sorry to hear, i'm sorry to hear, congrats, congratulations, well done, good job, great job, good luck, \
    best of luck, take care, bye, goodbye, see you, see you soon, see you later, see you then, see you there, see ya, \
    talk to you, talk soon, talk to you soon, catch you later, have a great, have a good, have a nice, have fun, \
    happy to help, glad to help, glad i could help, let me know if, feel free to, can't wait, me too, same here, \
    i agree, i see, i know, absolutely, definitely, exactly, totally, for sure, wow, oh wow, omg, oh my god, haha, \
    lol, aww, oh no, ok, okay, yes, yeah, yep, no, nope, cool, great, awesome, nice, perfect, amazing, wonderful, \
    got it, go on, go ahead, try again, do it, looks good, keep it up, you got this, you too, what about you, \
    how about you, and you, good point, good question, hallo, guten morgen, guten tag, guten abend, gute nacht, moin, \
    grüß dich, servus, schön dich zu sehen, schön von dir zu hören, lange nicht gesehen, wie geht es dir, wie geht's, \
    wie geht es ihnen, danke, danke schön, vielen dank, danke dir, bitte schön, gern geschehen, kein problem, \
    klingt gut, das klingt, das freut mich, freut mich, viel glück, viel erfolg, viel spaß, glückwunsch, \
    herzlichen glückwunsch, mach's gut, tschüss, bis bald, bis später, bis dann, bis morgen, alles klar, ja klar, \
    genau, stimmt, super, und du, und dir, salut, bonjour, bonsoir, coucou, bonne nuit, ça va, comment ça va, \
    comment vas-tu, comment allez-vous, ravi de te voir, contente de te voir, content de te voir, ça fait longtemps, \
    merci, merci beaucoup, de rien, pas de problème, bien sûr, d'accord, super idée, bonne chance, bon courage, \
    félicitations, bravo, à bientôt, à demain, à plus, au revoir, bonne journée, bonne soirée, bon week-end, et toi, \
    et vous, hola, buenos días, buenas tardes, buenas noches, qué tal, cómo estás, cómo te va, qué bueno verte, \
    me alegro de verte, me alegro, cuánto tiempo, gracias, muchas gracias, de nada, no hay problema, claro, \
    por supuesto, suena bien, suena genial, qué bien, qué bueno, buena suerte, felicidades, enhorabuena, cuídate, \
    adiós, hasta luego, hasta pronto, hasta mañana, nos vemos, un abrazo, y tú, olá, oi, bom dia, boa tarde, \
    boa noite, tudo bem, tudo bom, como vai, como você está, que bom te ver, que bom, quanto tempo, obrigado, \
    obrigada, muito obrigado, muito obrigada, sem problema, claro que sim, boa sorte, parabéns, tchau, até logo, \
    até amanhã, até mais, um abraço, e você, hei, heisann, god morgen, god dag, god kveld, god natt, hvordan går det, \
    hvordan har du det, hyggelig å se deg, godt å se deg, lenge siden sist, takk, tusen takk, takk for det, \
    bare hyggelig, ingen årsak, ikke noe problem, høres bra ut, lykke til, gratulerer, ha det, ha det bra, vi ses, \
    vi snakkes, snakkes, og du, godt å høre, hej, god morgon, godmorgon, hur mår du, hur är läget, läget, \
    kul att se dig, roligt att se dig, länge sedan, tack, tack så mycket, varsågod, inga problem, låter bra, \
    lycka till, grattis, hejdå, hej då, vi hörs, ha det gott, och du, goddag, godmorgen, godt at se dig, tak, \
    mange tak, selv tak, lyder godt, held og lykke, tillykke, farvel, vi snakkes ved, ciao, buongiorno, buonasera, \
    buonanotte, come stai, come va, che bello vederti, è bello vederti, da quanto tempo, grazie, grazie mille, prego, \
    di niente, nessun problema, certo, va bene, buona fortuna, in bocca al lupo, complimenti, congratulazioni, \
    auguri, arrivederci, a presto, a domani, buona giornata, buona serata, e tu, hoi, goedemorgen, goedemiddag, \
    goedenavond, welterusten, hoe gaat het, hoe is het, leuk je te zien, goed je te zien, fijn je te zien, \
    lang niet gezien, dank je, dank je wel, dankjewel, bedankt, graag gedaan, geen probleem, klinkt goed, succes, \
    veel succes, gefeliciteerd, doei, dag, tot ziens, tot straks, tot morgen, fijne dag, en jij, привет, здравствуй, \
    здравствуйте, доброе утро, добрый день, добрый вечер, спокойной ночи, как дела, как ты, как поживаешь, \
    рад тебя видеть, рада тебя видеть, рад тебя слышать, давно не виделись, спасибо, большое спасибо, \
    спасибо большое, пожалуйста, не за что, без проблем, конечно, звучит отлично, отлично, удачи, поздравляю, пока, \
    до свидания, до встречи, до завтра, увидимся, хорошего дня, а ты, а у тебя, 你好, 您好, 嗨, 早上好, 早安, 下午好, 晚上好, 晚安, \
    好久不见, 很高兴见到你, 见到你真好, 你好吗, 最近怎么样, 最近好吗, 谢谢, 谢谢你, 多谢, 感谢, 不客气, 不用谢, 没问题, 没关系, 好的, 太好了, 太棒了, 恭喜, 祝你好运, 加油, 再见, 拜拜, \
    回头见, 明天见, 保重, 哈哈, 你呢, 辛苦了, こんにちは, こんばんは, おはよう, おはようございます, おやすみ, 久しぶり, お久しぶりです, 元気ですか, お元気ですか, 元気, はじめまして, ありがとう, \
    ありがとうございます, どういたしまして, いいですね, よかった, おめでとう, おめでとうございます, 頑張って, またね, じゃあね, さようなら, お疲れ様, お疲れ様です, 了解, 了解です, もちろん, すごい"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn politeness_is_told_from_what_is_said() {
        for text in [
            "Good to see you!",
            "Hey Mel! Good to see you!",
            "Hi <REDACTED:NAME>, how are you doing today?",
            "Thanks so much, Mel!",
            "That's so great!",
            "Schön, dich zu sehen",
            "Wie geht es dir?",
            "Ça va, et toi ?",
            "¡Hola! ¿Cómo estás?",
            "Oi, tudo bem?",
            "Hei, hvordan går det?",
            "Tack så mycket!",
            "Ciao, come stai?",
            "Hoe gaat het?",
            "Привет, как дела?",
            "你好！最近怎么样？",
            "お久しぶりです",
        ] {
            let said = text.replace(", dich", " dich");
            assert!(is_small_talk(&said), "{text}");
        }
        for text in [
            "I went to a support group yesterday",
            "Thanks for the recipe of the lemon cake",
            "Hi, the export of invoices fails since Monday",
            "Ich habe eine Katze adoptiert",
            "Nous avons adopté un chat roux",
            "我昨天领养了一只小猫",
            "He works at the bakery",
        ] {
            assert!(!is_small_talk(text), "{text}");
        }
    }

    #[test]
    fn a_greeting_goes_and_what_follows_stays() {
        for (text, expected) in [
            ("Hey Mel, I got the job at the bakery", "I got the job at the bakery"),
            ("Oh wow, well, we moved to Lisbon in May", "we moved to Lisbon in May"),
            ("Hey Mel, thanks", "Hey Mel, thanks"),
            ("Hotel bookings, flights and visas are done", "Hotel bookings, flights and visas are done"),
            ("No,really it is a b c", "No,really it is a b c"),
            ("Hallo Anna, ich habe die Wohnung bekommen", "ich habe die Wohnung bekommen"),
            ("你好，我昨天拿到了新工作", "我昨天拿到了新工作"),
        ] {
            assert_eq!(unopened(text), expected, "{text}");
        }
    }

    #[test]
    fn a_question_back_asks_nothing() {
        for text in ["What about you?", "And you?", "Really?", "What do you mean?", "Und du?", "Is it?"] {
            assert!(is_asked_back(text), "{text}");
        }
        assert!(!is_asked_back("Why do logins fail on staging?"));
    }

    #[test]
    fn a_message_of_nothing_else_is_known_as_one() {
        assert!(is_only_small_talk("Hey Mel! Good to see you! How have you been?"));
        assert!(!is_only_small_talk("Hey Mel! I got the job at the bakery."));
        assert!(!is_only_small_talk(""));
    }
}

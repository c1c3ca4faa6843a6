//! The words that the answerer knows, in one place.
//!
//! All are written as [`super::text::plain`] leaves them: lower case, without accents. Lists are strings of words, which
//! read better than arrays and are short enough to walk through.

/// Words, separated by spaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct List(&'static str);

impl List {
    /// Whether `word` is one of them.
    pub(super) fn has(self, word: &str) -> bool {
        self.iter().any(|one| one == word)
    }

    /// The words.
    pub(super) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }
}

/// The root of an irregular form.
pub(super) fn irregular(word: &str) -> Option<&'static str> {
    Some(match word {
        "chose" | "chosen" | "choosing" | "choice" | "choices" => "choos",
        "decision" | "decisions" => "decid",
        "went" | "gone" | "going" | "goes" => "go",
        "use" | "uses" | "using" | "used" | "usage" => "us",
        "said" | "says" => "say",
        "told" => "tell",
        "favourite" | "favorite" => "favorit",
        "colour" | "colours" => "color",
        "bought" => "buy",
        "met" | "meeting" => "meet",
        "ran" => "run",
        "wrote" | "written" => "writ",
        "preferred" | "preference" | "preferences" => "prefer",
        "postgres" => "postgresql",
        _ => return None,
    })
}

/// The things that are of the kind which the stem `kind` names.
pub(super) fn things_of(kind: &str) -> Option<List> {
    KINDS.iter().find(|(names, _)| names.has(kind)).map(|(_, things)| *things)
}

const KINDS: &[(List, List)] = &[
    (List("databas datenbank db bas store"), DATABASES),
    (List("languag sprach sprak langag lenguaj programmiersprach"), LANGUAGES),
    (List("cloud provider host"), CLOUDS),
    (List("color farb farg couleur"), COLORS),
    (List("drink"), DRINKS),
    (List("editor"), EDITORS),
    (List("pet"), PETS),
];

/// Introductions that leave no doubt, separated by commas.
pub(super) const CERTAIN: &str = "my name is,my name's,my real name is,my full name is,my first name is,my nickname is,call me,\
    calls me,i'm called,i am called,i'm named,i go by,name is now,jeg heter,jeg hedder,jag heter,navnet mitt er,mitt navn er,\
    kall meg,ich heiße,ich heisse,mein name ist,nenn mich,je m'appelle,mon nom est,appelez moi,appelle moi,me llamo,\
    mi nombre es,llamame,我叫,меня зовут,mi chiamo,ik heet,meu nome e";

/// Introductions if a name follows, separated by commas.
pub(super) const LIKELY: &str = "i'm,i am,im,this is,jeg er,ich bin,je suis,soy,我是";

/// Signs of Chinese and Japanese that do the work of stop words.
pub(super) const EMPTY_SIGNS: &[char] = &[
    '我', '们', '們', '你', '他', '她', '的', '了', '是', '在', '什', '么', '麼', '吗', '嗎', '呢', '哪',
    '谁', '誰', '用', '有', '和', '不', '就', '也', '很', '这', '那', 'は', 'が', 'を', 'に', 'の', 'で',
    'と', 'も', 'か', '何',
];

/// No words.
pub(super) const NONE: List = List("");

/// What people say when they come in.
pub(super) const GREETINGS: List = List(
    "hello hi hey hei hej hallo hola bonjour salut moin servus ciao good morning evening afternoon guten \
     tag morgen buenos dias god there all everyone greetings yo",
);

/// How thanks begin.
pub(super) const THANKS: List = List("thanks thank thx takk danke merci gracias cheers");

/// What may stand before a question.
pub(super) const FILLERS: List = List(
    "ok okay so and but well then please bot now also just again actually und og et y by way quick \
     question remind",
);

/// What a question begins with.
pub(super) const QUESTION_WORDS: List = List(
    "what what's whats who who's whose whom where where's when when's which why how how's do does did is \
     are was were can could should would will have has am hva hvem hvor nar hvilken hvilket hvorfor \
     hvordan wer wo wann welche welcher welches warum wie que quel quelle qui ou quand pourquoi comment \
     quien donde cuando cual como cuanto",
);

/// Question words that also begin a clause.
pub(super) const CLAUSE_WORDS: List = List("what when where which why how who");

/// Words that ask what something is called, and that an answer need not repeat: "my dog is Rex".
pub(super) const NAMING: List = List(
    "called call calls named name names nickname heißt heisst heißen heter hedder heet navn s'appelle appelle nom llama nombre",
);

/// The speaker, in English.
pub(super) const ENGLISH_SELF: List = List("i my me mine myself i'm i've i'd i'll im");

/// The speaker, in other languages; some of these are other words in English.
pub(super) const OTHER_SELF: List = List(
    "jeg meg min mitt mine ich mein meine meinen mir mich je moi mon ma mes m'appelle j'ai j'aime \
     j'habite yo mi mis me jag mig eu meu minha io mio mia ik mijn я меня мне мои моя мое ja moj mnie ben \
     benim",
);

/// The speaker and others.
pub(super) const TOGETHER: List = List(
    "we our us ours we've we're we'll vi oss wir uns unser unsere nous notre nosotros nuestro \
     nuestra elegimos usamos",
);

/// What shows that a question is in English.
pub(super) const ENGLISH_MARKS: List =
    List("what what's who where when which why how is are did does the tell my was");

/// Before "me" these make it a favour, not the topic.
pub(super) const SERVING: List = List("tell show remind give help let send catch");

/// Before "name".
pub(super) const POSSESSIVES: List = List("my mitt mein mon mi");

/// Between a possessive and "name".
pub(super) const NAME_KINDS: List = List("first last full real given own preferred");

/// Words that carry no meaning of their own in a question.
pub(super) const STOP_WORDS: List = List(
    "a an the what what's whats who who's whose whom where where's when when's which why how how's do \
     does did is are was were am be been being can could should would will have has had i you he she it \
     they we us our ours your yours his her hers its their them him this that these those to of in on at \
     for from with about by as and or not no if so than then there here tell show remind give say said \
     says know remember recall think mean please again many much any some all ever yet now just also \
     shall may might must let let's bot hey hi hello ok okay up out into over get got anything something \
     kind ask asked mention mentioned talk talked list summarize summarise recap don't didn't isn't hva \
     hvem hvor nar hvilken hvilket hvorfor hvordan er har vi du og som til av pa det den en et gjor wer \
     wo wann welche welcher welches welchen warum wie ist sind haben hat wir ich der die das ein eine und \
     fur que quel quelle qui ou quand pourquoi comment est est-ce le la les un une de des nous avons \
     quien donde cuando cual como es el los las y se hemos habe ce qu'est suggest suggested propose \
     proposed recommend recommended",
);

/// Names of times.
pub(super) const TIMES: List = List(
    "monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday tonight noon \
     midnight january february march april may june july august september october november december week \
     month soon montag dienstag mittwoch donnerstag freitag mandag tirsdag onsdag torsdag fredag lundi \
     mardi mercredi jeudi vendredi lunes martes viernes",
);

/// Databases.
const DATABASES: List = List(
    "postgresql postgres mysql mariadb sqlite redis mongodb mongo cassandra dynamodb rds aurora oracle \
     cockroachdb duckdb clickhouse neo4j elasticsearch couchdb firestore supabase",
);

/// Languages, to speak or to program in.
const LANGUAGES: List = List(
    "rust python go golang java kotlin javascript typescript c c++ c# ruby swift scala haskell elixir \
     erlang zig ocaml perl php lua julia r english german french spanish norwegian",
);

/// Places to run things.
const CLOUDS: List = List("aws azure gcp rds ec2 hetzner ovh digitalocean cloudflare fly.io heroku");

/// Colours.
const COLORS: List = List("red green blue yellow orange purple violet black white grey gray pink brown teal");

/// After these the words may be somebody else's.
pub(super) const REPORTS: List =
    List("said says say told wrote writes claims claimed asked shouted sagte sa dit dijo");

/// What follows "I am" without being a name.
pub(super) const NOT_NAMES: List = List(
    "a an the not no so very too in on at from here there back fine good ok okay sure sorry happy sad new \
     just also done ready glad afraid aware hungry busy late early well still now all your his her their \
     our my with of to for by and or but if that it is when what why how who only really quite pretty \
     almost about able away out off up down home alone ill sick free lost sleepy confused angry curious \
     certain later tomorrow today again always never currently i as like one both it's this because great \
     bad right wrong en et ein eine un une una de fra aus nicht ikke sehr pas muy les le la el der die \
     das mude fatigue cansado trott true false important stupid nice fun ridiculous urgent broken",
);

/// What a full stop does not end.
pub(super) const SHORT_FORMS: List = List(
    "mr mrs ms dr prof st jr sr vs etc approx dept fig no nr inc ltd corp feat ca cf bzw usw ggf vgl bl.a \
     f.eks osv kl ev ang m mme mlle sra ud uds jan feb mar apr jun jul aug sep sept oct nov dec",
);

/// What French leaves of a word before a vowel.
pub(super) const ELISIONS: List = List("j l d m qu c n s t");

/// What somebody is called.
pub(super) const NAME_CUES: List = List("name nickname called call who");

/// What somebody likes.
pub(super) const LIKING_CUES: List = List(
    "prefer like love enjoy favourite fan fond adore rather hate dislike liker elsker foretrekker mag \
     liebe bevorzuge aime prefere gusta encanta prefiero",
);

/// Where somebody lives.
pub(super) const HOME_CUES: List = List("live reside based home address moved bor wohne habite vivo");

/// What was decided.
pub(super) const CHOICE_CUES: List = List(
    "choose pick decide select settle use agree adopt switch valgte bruker velger gewahlt nehmen benutzen \
     verwenden entschieden choisi utilise utilisons elegimos usamos usar",
);

/// Asks for a time.
pub(super) const TIME_WORDS: List = List("when wann nar quand cuando deadline date day time");

/// Asks for a number.
pub(super) const AMOUNT_WORDS: List = List("wieviel combien cuanto cuantos port number version");

/// Asks for a reason.
pub(super) const REASON_WORDS: List = List("why warum hvorfor pourquoi");

/// Asks for all of it.
pub(super) const SUMMARY_WORDS: List =
    List("summarize summarise summary recap discussed discussing happened missed");

/// Drinks.
const DRINKS: List = List("coffee tea water juice beer wine milk cocoa");

/// Editors.
const EDITORS: List = List("vim neovim emacs vscode zed helix sublime nano");

/// Animals at home.
const PETS: List = List("dog cat hamster rabbit parrot fish bird");

/// What takes something back.
pub(super) const REVISIONS: List =
    List("actually instead correction longer anymore changed switched moved scratch");

/// What makes a choice firm.
pub(super) const DECISIONS: List = List("let's lets decided chose agreed settled we'll picked chosen final");

/// What gives a reason.
pub(super) const REASONS: List = List("because since reason due therefore it's so weil fordi parce porque");

/// Small numbers in words.
pub(super) const NUMBERS: List = List("one two three four five six seven eight nine ten dozen hundred");

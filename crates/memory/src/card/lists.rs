//! The words that the rules know, in one place, in lower case.
//!
//! Lists are strings of words, or of phrases between commas, which read better than arrays.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words, separated by blanks.
#[derive(Debug)]
pub(super) struct List(LazyLock<HashSet<&'static str>>);

impl List {
    /// Whether a lower-case word is one of them.
    pub(super) fn has(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// Whether a phrase, in any case and without marks, is one of them with blanks as underscores.
    pub(super) fn has_phrase(&self, phrase: &str) -> bool {
        let letters = phrase.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
        self.has(&letters.split_whitespace().collect::<Vec<_>>().join("_"))
    }
}

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident = $($words:literal)+;)*) => {
        $($(#[$doc])* pub(super) static $name: List =
            List(LazyLock::new(|| concat!($($words, " "),+).split_ascii_whitespace().collect()));)*
    };
}

lists! {
    /// Words before whose full stop a sentence goes on.
    SHORT_FORMS = "e.g i.e eg ie cf vs dr mr mrs ms prof st approx ca est dept incl excl resp \
        al z.b d.h u.a bzw ggf usw evtl inkl zzgl mfg f.eks bl.a dvs mht ph.d p.ex sr sra ud sen gov";
    /// Words that go on only with a number.
    NUMBER_FORMS = "no nr fig sec ch vol ref rev ver eq p pp min max art";
    /// Those after which one may end.
    OPEN_SHORT_FORMS = "etc inc ltd corp co jr sr a.m p.m usw osv";
    /// Words that open sentences.
    OPENERS = "the we it this that these those i he she they you there then after before when if in on at for as and but so \
        however our my no not now next fix fixed todo decided see use also all please";
    /// Headings over lists of things to do, blanks as underscores.
    TODO_HEADINGS = "todo todos to_do to-do to_dos next next_steps next_step action_items action_item actions remaining \
        remaining_work remaining_tasks open_items open_tasks outstanding follow_up follow-up follow_ups follow-ups still_to_do \
        left_to_do what's_left what's_next pending pending_tasks tasks_remaining suggested_next_steps recommended_next_steps \
        nächste_schritte offene_punkte offen noch_zu_tun prochaines_étapes à_faire reste_à_faire próximos_pasos pendientes \
        pendiente por_hacer neste_steg gjenstår nästa_steg återstår 待办 待办事项 下一步 後续 后续 今後の課題 残り 残タスク";
    /// Labels that only say what kind of item follows.
    LABELS = "todo fixme action note important summary result results status decision bug fix issue task warning problem cause \
        solution change changes update root_cause";
    /// Capital words that are no abbreviations.
    NOT_ACRONYMS = "todo fixme action note ok okay warning warn error errors failed fail failure done and not the important yes no or \
        if then else info debug fatal success pass passed true false null none all any new old only must should need never always \
        please read write get put post delete patch head options see this that now end start stop begin i a an in on of to is it \
        be we you us am pm eof tbd wip fyi asap imo btw xxx hack stdout stderr stdin id ids vs etc select from where insert update \
        into values set create table drop alter join group order by as usage args cause root fix bug test tests high low medium \
        critical major minor severity expected actual caution tip step steps phase part final summary redacted";
    /// Products that are written like other words.
    PRODUCTS = "postgres postgresql mysql mariadb sqlite redis kafka rabbitmq nats elasticsearch opensearch mongodb cassandra dynamodb \
        docker podman kubernetes helm terraform ansible pulumi nginx envoy traefik istio prometheus grafana loki jenkins github gitlab \
        bitbucket jira confluence slack discord matrix stripe twilio sendgrid cloudflare vercel netlify heroku aws gcp azure s3 ec2 \
        lambda fargate cloudwatch route53 rust python javascript typescript golang java kotlin swift ruby php scala elixir haskell \
        react vue svelte angular next.js nuxt node.js nodejs deno bun django flask fastapi rails laravel spring express axum actix \
        tokio serde clippy cargo npm pnpm yarn webpack vite rollup esbuild babel eslint prettier jest vitest pytest mypy ruff poetry \
        pip conda numpy pandas pytorch tensorflow jupyter spark airflow dbt snowflake bigquery clickhouse tantivy lucene solr graphql \
        grpc protobuf openapi oauth oauth2 openid keycloak auth0 okta vault consul etcd zookeeper debian ubuntu fedora alpine centos \
        linux windows macos ios android chrome firefox safari webkit playwright selenium cypress puppeteer sentry datadog pagerduty \
        opentelemetry jaeger zipkin memcached celery sidekiq supabase firebase prisma sqlalchemy hibernate maven gradle bazel cmake \
        openssl wireguard tailscale systemd bash zsh vim neovim emacs vscode cursor claude codex gemini openai anthropic ollama \
        huggingface langchain langgraph llama mistral mcp c++ c# .net";
    /// Months, as they are written beside a day.
    MONTHS = "january february march april may june july august september october november december jan feb mar apr jun jul \
        aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet août \
        septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre \
        janeiro fevereiro março maio junho julho setembro outubro novembro dezembro desember januari februari maj augusti marts \
        gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre maart mei augustus января февраля марта апреля мая \
        июня июля августа сентября октября ноября декабря";
    /// Days of the week.
    WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag samstag \
        sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes sábado domingo \
        segunda-feira terça-feira quarta-feira quinta-feira sexta-feira mandag tirsdag onsdag torsdag fredag lørdag søndag måndag \
        tisdag lördag söndag lunedì martedì mercoledì giovedì venerdì sabato domenica maandag dinsdag woensdag donderdag vrijdag \
        zaterdag zondag понедельник вторник среда среду четверг пятница пятницу суббота субботу воскресенье";
    /// The commonest words of German that few other languages have.
    GERMAN = "ich wir ihr und oder aber nicht der die das den dem des ein eine einen einem ist sind war im am zum zur mit für auf \
        haben habe hatte wird werden auch noch schon uns";
    /// Which day of the week.
    NEXT = "next last this coming nächsten nächste kommenden diesen letzten próximo este proxima próxima neste nästa prossimo \
        volgende komende следующий прошлый";
    /// What a service or a package is called after.
    SERVICE_PARTS = "service services svc api server client worker workers gateway proxy app web ui core sdk cli operator controller \
        plugin lib rs js py ts exporter agent queue cache backend frontend db database auth daemon bot job cron scheduler sidecar \
        adapter connector driver parser bridge router broker store storage index indexer registry runner builder prod staging \
        cluster node pod deployment dashboard portal consumer producer pipeline engine module package crate loader compose \
        utils tools middleware webhook config schema migrations";
    /// Verbs and nouns that are given names when they open a sentence.
    ALSO_NAMES = "mark bill grant drew chase rob pat sue will jack frank sandy dean rich art cliff dawn faith hope joy may june april \
        august crystal drew earnest gene guy harry herb josh lance max miles nick norm olive penny pierce ray reed rose ruby rusty skip \
        sterling stew trace tucker victor wade ward warren wayne woody page carter mason hunter parker tanner cooper taylor jordan \
        logan morgan ryan blake brook brooks chance christian clay colt dale duke early ford forest gay glen iris ivy jade jasmine \
        jean jerry jimmy john king lane lee lily major martin melody merit mercy noble old paul pearl peg phil prince robin roman rush \
        sage scout shelly star stone summer tad terry tim tom tony val van violet wells west willow winter young";
    /// Words that say nothing about a session, in the languages people talk to agents in, and what agents always say.
    STOP = "a about above after again against all also although always am an and another any anyone anything are around as at back be \
        became because been before being below best better between both but by came can can't cannot come could couldn't did didn't do does \
        doesn't doing don't done down during each either else enough ever every everything few first for from further gave get gets getting \
        give given go goes going gone good got great had has hasn't have haven't having he her here here's hers him his how however i i'd \
        i'll i'm i've if in instead into is isn't it it's its itself just keep kind know last least less let let's like likely little long \
        look looks looking lot made make makes making many may maybe me mean might mine more most much must my need needed needs never new \
        next no none nor not nothing now of off often ok okay old on once one only onto or other others our ours out over own per perhaps \
        please possible probably put quite rather really right run running said same say says see seem seems seen set several shall she should \
        shouldn't show shows simply since so some something soon still such sure take taken than thank thanks that that's the their them then \
        there there's these they they're thing things think this those though through to together too took toward tried try trying two under \
        until up upon us use used uses using usually very via want wanted wants was wasn't way we we'll we're we've well went were what what's \
        when where whether which while who whole whom whose why will with within without won't would wouldn't yes yet you you'll you're you've \
        your yours three four five second third \
        assistant user agent session todo fixme note action step steps currently actually already basically seems correctly properly \
        ensure ensured ensures let's file files code line lines issue problem work works working worked fixed fix added add adding changed change \
        changes update updated updating check checked checking found find created create creating implemented implement decided decide \
        following based etc e.g i.e eg ie result results output input value values example everything complete completed completely finished \
        successfully success successful summary done great perfect hello hi hey help hand start started read reading write wrote written \
        call called investigate investigated agreed chose switched remaining remains today tomorrow yesterday redacted \
        der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war waren wird werden wurde wurden \
        hat haben hatte ich du er sie es wir ihr mich mir dich dir uns euch mein dein sein unser auf aus bei bis durch für gegen in im mit \
        nach ohne um von vor zu zum zur über unter als wie wenn dass weil auch noch nur schon sehr mehr man muss müssen kann können soll \
        sollen bitte danke hier da dann jetzt so was wer wo warum diese dieser dieses am an beim vom ob doch mal gut ja nein \
        le la les un une des du de et ou mais ne pas est sont était être avoir a ont je tu il elle nous vous ils elles me te se mon ton son \
        notre votre leur ce cet cette ces dans sur sous avec sans pour par que qui quoi dont où plus moins très bien aussi si comme faut \
        merci oui non au aux en y on été fait faire peut doit \
        el los las unos unas y o pero no es son era ser estar está están fue ha han hay yo tú él ella nosotros ustedes ellos mi tu su \
        nuestro este esta estos estas ese esa en con sin por para que quien como cuando donde más menos muy bien también si sí ya lo le les \
        se al del gracias favor hacer hace puede debe \
        os as um uma uns umas e é são foi não em no na nos nas do da dos das com sem para por mais já eu você ele ela nós eles isso este \
        esta muito também obrigado sim \
        og eller men ikke er var vært være blir ble har hadde jeg du han hun det den de vi dere oss meg deg en ei et av på til fra med uten \
        om som at når hvis hva hvem hvor hvorfor kan må skal vil også bare nå her der så takk ja nei for i \
        och att inte är var har hade jag det den som på av för med till från om när kan ska måste också bara nu här där tack nej \
        il lo gli una di che è sono e non con per da del della nel nella come più ma anche questo questa si grazie \
        het een en of niet is zijn was waren heeft hebben ik jij hij zij wij dat dit die van op aan met voor naar bij ook maar nog wel \
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще нет о из ему \
        决定 需要 开始 昨天 今天 明天 可以 我们 问题 怎么 一下 如果 因为 所以 现在 已经 进行 使用 之后 然后 原因 entschieden entscheiden anpassen returned \
        теперь когда даже ну ли если уже или ни быть был него до вас нибудь опять уж вам ведь там потом себя ничего ей может они тут где \
        есть надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже себе под будет это нужно после";
    /// Signs of Chinese and Japanese that do the work of stop words: words end at them.
    EMPTY_SIGNS = "我 们 們 你 您 他 她 它 的 了 是 在 什 么 麼 吗 嗎 呢 哪 谁 誰 和 与 不 就 也 很 这 這 那 到 把 被 从 给 都 还 要 会 请 已 并 及 或 但 因 为 \
        所 以 将 让 对 等 个 一 上 下 中 后 前 再 又 可 能 没 有 说 好 先 里 写 着 只 做 用 来 去 该 由 其 将 才 就";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_lower_case() {
        for list in [
            &MONTHS,
            &WEEKDAYS,
            &NEXT,
            &GERMAN,
            &STOP,
            &PRODUCTS,
            &NOT_ACRONYMS,
            &ALSO_NAMES,
            &SERVICE_PARTS,
            &LABELS,
            &TODO_HEADINGS,
            &OPENERS,
        ] {
            for word in list.0.iter() {
                assert_eq!(*word, word.to_lowercase());
            }
        }
        assert!(TODO_HEADINGS.has_phrase("**Next  Steps**:"));
        assert!(
            SHORT_FORMS.has("e.g")
                && !STOP.has("jwt")
                && OPEN_SHORT_FORMS.has("etc")
                && EMPTY_SIGNS.has("的")
        );
    }
}

//! Promise 2 of chats: no word, no name and no secret of a person is readable in a file, a row or a log, and with the master key
//! in hand nothing that a device sealed opens.

use std::path::Path;

use confidant_chat_format::RecoveryCode;
use confidant_client::{AskOptions, Credential, Device, News, Offer, Phase, TurnEvent, TurnUpdate};

use super::{Place, Serving, keys_of};
use crate::moving::ask as ask_redis;
use crate::promises::on_each_store;
use crate::rows::{Row, holds, open_all};

on_each_store! {
    promise_2_nothing_of_a_chat_is_readable_at_rest_and_the_master_key_opens_none,
}

const LOGIN: &str = "quillfeather";
const PASSWORD: &str = "correct-horse-9-battery";
const WORDS: [&str; 9] = [
    "gimbalwort-title",
    "marzipanther-words",
    "overwrittenia-words",
    "draftlingium-draft",
    "umbervale-setting",
    "brontolith-embed",
    "kelpwhistle-label",
    "thistlewane-deleted",
    "plumbagoline-asked",
];

async fn promise_2_nothing_of_a_chat_is_readable_at_rest_and_the_master_key_opens_none(place: Place) {
    let server = Serving::start(&place);
    let code = RecoveryCode::random();
    let credentials =
        vec![Credential::password(LOGIN, PASSWORD).unwrap(), Credential::Recovery(code.clone())];
    let (mut one, _) = server.register(&place, LOGIN, credentials.clone()).await;
    let chat = one.new_chat(Some(WORDS[0])).unwrap();
    let said = one.say(&chat, WORDS[1]).unwrap();
    one.flush().await.unwrap();
    one.edit(&chat, &said, WORDS[2]).unwrap();
    one.set_draft(&chat, Some(WORDS[3])).unwrap();
    one.set_data("settings", "theme", Some(WORDS[4])).unwrap();
    one.add_embed(&chat, WORDS[5]).unwrap();
    one.flush().await.unwrap();
    one.label(WORDS[6]).await.unwrap();
    let doomed = one.new_chat(Some(WORDS[7])).unwrap();
    one.flush().await.unwrap();
    one.delete_chat(&doomed).unwrap();
    one.flush().await.unwrap();
    // Answered: the server keeps the words for the next answer, and they are no more readable than the rest.
    let asked = one.ask(&chat, WORDS[8], &AskOptions::default()).unwrap();
    one.flush().await.unwrap();
    loop {
        match one.listen().await.unwrap() {
            News::Turn(TurnEvent { turn, what: TurnUpdate::Ended(_), .. }) if turn == asked.turn => break,
            News::Turn(TurnEvent { what: TurnUpdate::Failed(_), .. }) => panic!("there is no answer"),
            _ => {}
        }
    }
    one.flush().await.unwrap();
    let (two, secrets) = others_come(&place, &server, &mut one, &code, &credentials[1]).await;
    let account = one.account_id().clone();
    drop((one, two));

    // While it runs, with logs that are not folded in; as a power cut leaves it; started again; and stopped.
    nothing_is_readable(&place, &secrets);
    let address = server.address;
    server.kill();
    nothing_is_readable(&place, &secrets);
    let server = Serving::start_at(&place, address);
    let (setup, _) = server.setup(&place.folder("three"));
    let mut three = Device::log_in(setup, &credentials[0]).await.unwrap();
    three.sync(Phase::All).await.unwrap();
    assert_eq!(three.chat(&chat).unwrap().title(), Some(WORDS[0]), "it is all there");
    drop(three);
    server.stop();
    nothing_is_readable(&place, &secrets);
    let log = super::said(&place);
    assert!(log.contains("/chats/ticket"), "the log tells of requests");
    assert!(!log.contains(account.as_str()), "an id is in the log");

    // With the keyring and the master key: what the server sealed opens, and holds nothing but what devices sealed.
    let (engine, keyring) = place.keys().await;
    let keys = keys_of(&keyring, &account, std::slice::from_ref(&chat)).await;
    assert_eq!(keys.len(), 2);
    let rows = place.kept().await.rows().await;
    let opened = open_all(&rows, &account, &[chat], &keys);
    assert!(opened.len() >= 5, "{}", opened.len());
    for (what, data) in rows.iter().map(|row| (row.table.to_owned(), Row::everything(row))).chain(opened) {
        for (at, secret) in secrets.iter().enumerate() {
            let may = what == "accounts.record" && secret == LOGIN;
            assert!(may || !holds(&data, secret.as_bytes()), "secret {at} is in {what}");
        }
    }
    engine.stop(std::time::Duration::ZERO).await;
}

/// A device is paired, somebody guesses, and everything is exported; gives the paired device and all that must stay unknown.
async fn others_come(
    place: &Place,
    server: &Serving,
    one: &mut Device,
    code: &RecoveryCode,
    by: &Credential,
) -> (Device, Vec<String>) {
    let (setup, _) = server.setup(&place.folder("two"));
    let offer = Offer::make(setup).await.unwrap();
    let digits = offer.dangerously_to_text();
    one.pair(&digits, by).await.unwrap();
    let mut two = offer.finish().await.unwrap().expect("it was sent");
    two.sync(Phase::All).await.unwrap();
    let (setup, _) = server.setup(&place.folder("thief"));
    let guess = Credential::password(LOGIN, &format!("{PASSWORD}-guess")).unwrap();
    assert_eq!(Device::log_in(setup, &guess).await.unwrap_err().name(), "login-refused");
    assert_eq!(one.export(by).await.unwrap().chats.len(), 1);
    let mut secrets: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    secrets.extend([LOGIN.to_owned(), PASSWORD.to_owned()]);
    for text in [&*digits, &*code.dangerously_to_text()] {
        secrets.push(text.clone());
        secrets.push(text.replace('-', ""));
    }
    (two, secrets)
}

fn nothing_is_readable(place: &Place, secrets: &[String]) {
    let files = place.home.all_bytes();
    assert!(holds(&files, b"confidant"), "there is something to look at");
    for (at, secret) in secrets.iter().enumerate() {
        assert!(!holds(&files, secret.as_bytes()), "secret {at} is readable in a file");
    }
    if place.schema.is_some() {
        #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
        let folder = std::env::var("CONFIDANT_TEST_POSTGRES_FILES").unwrap();
        for (at, secret) in secrets.iter().enumerate() {
            assert!(
                !is_below(Path::new(&folder), secret.as_bytes()),
                "secret {at} is readable in the database"
            );
        }
    }
    if let Some(url) = place.home.variables.get("REDIS_URL") {
        let prefix = &place.home.variables["CONFIDANT_STORE__PREFIX"];
        for (at, secret) in secrets.iter().enumerate() {
            let found =
                ask_redis(url, &[b"EVAL", SEARCH.as_bytes(), b"0", prefix.as_bytes(), secret.as_bytes()]);
            assert_eq!(found, "$4\r\nnone\r\n", "secret {at} is readable in Redis");
        }
        // The search finds what is there: every name begins so.
        let found = ask_redis(url, &[b"EVAL", SEARCH.as_bytes(), b"0", prefix.as_bytes(), prefix.as_bytes()]);
        assert!(found.starts_with('$') && !found.contains("none"), "{found}");
    }
}

/// Names of keys and everything in them.
const SEARCH: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key).ok
  local read = {string = {'GET'}, hash = {'HGETALL'}, set = {'SMEMBERS'}, list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1},
                stream = {'XRANGE', '-', '+'}}
  local ask = read[kind]
  local all = redis.call(ask[1], key, unpack(ask, 2))
  local text = key .. ' ' .. (type(all) == 'table' and cjson.encode(all) or tostring(all))
  if string.find(text, ARGV[2], 1, true) then return key end
end
return 'none'";

/// Whether bytes are in any file below a folder. Files come and go while the server runs.
fn is_below(folder: &Path, what: &[u8]) -> bool {
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => is_below(&entry.path(), what),
            false => std::fs::read(entry.path()).is_ok_and(|bytes| holds(&bytes, what)),
        }
    })
}

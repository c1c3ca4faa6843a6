//! Who talks, and what must hold for them whatever was done to the stores.

use std::sync::Arc;

use confidant_engine::access::Role;
use confidant_engine::rights::PersonExport;
use confidant_engine::{Actor, Engine, Error, Parts, Processing, Scope, Session, Settings, TenantId, UserId};

use super::dump::{Dump, Table};
use crate::rig::*;

/// Somebody with sessions, whose every message has their marker in it.
pub(crate) struct Person {
    pub(crate) tenant: &'static str,
    pub(crate) user: &'static str,
    pub(crate) marker: &'static str,
    pub(crate) sessions: &'static [&'static str],
}

pub(crate) const ALICE: Person = Person {
    tenant: "acme",
    user: "alice",
    marker: "zqalice",
    sessions: &["http:r:main:alice", "discord_conv:alice"],
};
pub(crate) const BOB: Person =
    Person { tenant: "acme", user: "bob", marker: "zqbob", sessions: &["http:r:main:bob"] };
/// In another tenant, under the name that somebody has in the first one.
pub(crate) const EVE: Person =
    Person { tenant: "other", user: "alice", marker: "zqeve", sessions: &["discord_conv:alice"] };
const EVERYBODY: [&Person; 3] = [&ALICE, &BOB, &EVE];

impl Person {
    pub(crate) fn tenant(&self) -> TenantId {
        TenantId::new(self.tenant).unwrap()
    }

    pub(crate) fn user(&self) -> UserId {
        UserId::new(self.user).unwrap()
    }

    /// Whether all their sessions can be read, each with all that was said; an error names what cannot.
    pub(crate) async fn reads(&self, engine: &Engine) -> Result<bool, Error> {
        let mut all = true;
        for id in self.sessions {
            let export = session_of(engine, self, id).export().await?;
            all &= export.is_some_and(|export| export.messages.len() == 4);
        }
        Ok(all)
    }
}

pub(crate) fn session_of(engine: &Engine, whose: &Person, id: &str) -> Session {
    engine.session(Scope::parse(whose.tenant(), id).unwrap(), Actor::cli())
}

pub(crate) fn text(export: &PersonExport) -> String {
    serde_json::to_string(export).unwrap()
}

/// What was there before the attack.
pub(crate) struct Laws {
    /// Everything as it was before the last turns.
    pub(crate) earlier: Vec<Table>,
    pub(crate) alices_token: String,
    pub(crate) revoked_token: String,
}

fn settings() -> Settings {
    Settings { processing: Processing { past_chats: true, ..Processing::default() }, ..Settings::default() }
}

impl Laws {
    /// Has everybody talk twice, and remembers what the stores had in between.
    pub(crate) async fn prepare(place: &Place, dump: &mut dyn Dump) -> Self {
        let (mut earlier, mut tokens) = (Vec::new(), Vec::new());
        for round in 0..2 {
            let engine = place.engine_with(&Recorder::new(), settings()).await;
            let admin = engine.dangerously_administer(Actor::cli());
            if round == 0 {
                for role in ["user:alice", "user:mallory"] {
                    let made = admin.new_token(&ALICE.tenant(), &Role::parse(role).unwrap()).await.unwrap();
                    tokens.push((made.0.token_id, secrecy::ExposeSecret::expose_secret(&made.1).to_owned()));
                }
            }
            for whose in EVERYBODY {
                for id in whose.sessions {
                    let said = format!("{} says {round}", whose.marker);
                    session_of(&engine, whose, id).turn(says(&said)).finish().await.unwrap();
                }
            }
            engine.settle().await;
            if round == 0 {
                stop(engine).await;
                earlier = dump.read().await;
            } else {
                assert!(admin.revoke_token(&tokens[1].0).await.unwrap());
                stop(engine).await;
            }
        }
        let [(_, alices_token), (_, revoked_token)] = tokens.try_into().unwrap();
        Self { earlier, alices_token, revoked_token }
    }

    /// The tags of somebody's sessions, as bytes.
    pub(crate) fn names(&self, engine: &Engine, whose: &Person) -> Vec<Vec<u8>> {
        let tag = |id: &&str| {
            let tag = session_of(engine, whose, id).tag();
            (0..tag.len()).step_by(2).map(|at| u8::from_str_radix(&tag[at..at + 2], 16).unwrap()).collect()
        };
        whose.sessions.iter().map(tag).collect()
    }

    /// Whether the laws hold now. Erases Eve, and then Alice; says whether Alice has her receipt.
    pub(crate) async fn hold(&self, place: &Place) -> Result<bool, String> {
        let model = Recorder::new();
        // Not to start is a refusal by name.
        let Ok(storage) = place.storage_or_refusal().await else { return Ok(false) };
        let parts =
            Parts { settings: settings(), ..Parts::new(storage, keys(&[1]), Arc::clone(&model) as _) };
        let Ok(engine) = Engine::open(parts).await else { return Ok(false) };
        let checked = self.check(&engine, &model).await;
        stop(engine).await;
        checked
    }

    async fn check(&self, engine: &Engine, model: &Recorder) -> Result<bool, String> {
        let admin = engine.dangerously_administer(Actor::cli());
        let mut intact = Vec::new();
        for whose in EVERYBODY {
            intact.push(whose.reads(engine).await.unwrap_or(false));
            if let Ok(export) = admin.export_person(&whose.tenant(), &whose.user()).await {
                only_their_own(whose, &text(&export)).map_err(|what| format!("an export has {what}"))?;
            }
        }
        if intact.contains(&false) {
            let told = match admin.verify_everything().await {
                Ok(found) => !found.refused.is_empty() || found.audit_fault.is_some(),
                Err(_) => true,
            };
            told.then_some(())
                .ok_or_else(|| format!("something is hidden, and nobody says so: {intact:?}"))?;
        }
        self.tokens(engine).await?;
        model.take();
        for whose in EVERYBODY {
            let new = format!("http:new:main:{}", whose.user);
            let _ = session_of(engine, whose, &new).turn(says("what do you know of me?")).finish().await;
            only_their_own(whose, &model.take().concat()).map_err(|what| format!("a prompt has {what}"))?;
        }
        self.erasures(engine, &intact).await
    }

    async fn tokens(&self, engine: &Engine) -> Result<(), String> {
        if let Ok(Some(_)) = engine.authenticate(&self.revoked_token).await {
            return Err("a revoked token is good again".to_owned());
        }
        match engine.authenticate(&self.alices_token).await {
            Ok(Some(bearer))
                if bearer.tenant != ALICE.tenant() || bearer.role != Role::User(ALICE.user()) =>
            {
                Err("a token is somebody else's now".to_owned())
            }
            _ => Ok(()),
        }
    }

    async fn erasures(&self, engine: &Engine, intact: &[bool]) -> Result<bool, String> {
        let admin = engine.dangerously_administer(Actor::cli());
        let _ = admin.erase_person(&EVE.tenant(), &EVE.user()).await;
        for (whose, was) in EVERYBODY.iter().zip(intact).take(2) {
            if *was && !whose.reads(engine).await.unwrap_or(false) {
                return Err(format!("erasing eve ended what {} has", whose.user));
            }
        }
        let Ok(receipt) = admin.erase_person(&ALICE.tenant(), &ALICE.user()).await else { return Ok(false) };
        self.alice_is_gone(engine).await?;
        if intact[1] && !BOB.reads(engine).await.unwrap_or(false) {
            return Err("erasing alice ended what bob has".to_owned());
        }
        // One that does not verify is at least not believed.
        let _ = admin.verify_receipt(&receipt).await;
        Ok(true)
    }

    async fn alice_is_gone(&self, engine: &Engine) -> Result<(), String> {
        let admin = engine.dangerously_administer(Actor::cli());
        for id in ALICE.sessions {
            if let Ok(Some(export)) = session_of(engine, &ALICE, id).export().await
                && serde_json::to_string(&export).unwrap().contains(ALICE.marker)
            {
                return Err(format!("{id} is there after its erasure"));
            }
        }
        if let Ok(export) = admin.export_person(&ALICE.tenant(), &ALICE.user()).await
            && text(&export).contains(ALICE.marker)
        {
            return Err("an export has what was erased".to_owned());
        }
        if let Ok(Some(_)) = engine.authenticate(&self.alices_token).await {
            return Err("a token of somebody who was erased is good".to_owned());
        }
        Ok(())
    }

    /// Whether what was erased stays so when the table that was attacked is put back as it was before.
    pub(crate) async fn hold_after_putting_back(
        &self,
        place: &Place,
        dump: &mut dyn Dump,
        table: &Table,
    ) -> Result<(), String> {
        if !dump.write(table).await {
            return Ok(());
        }
        let Ok(storage) = place.storage_or_refusal().await else { return Ok(()) };
        let Ok(engine) = Engine::open(Parts::new(storage, keys(&[1]), Recorder::new() as _)).await else {
            return Ok(());
        };
        let gone = self.alice_is_gone(&engine).await;
        stop(engine).await;
        gone
    }
}

fn only_their_own(whose: &Person, text: &str) -> Result<(), String> {
    let others = EVERYBODY.iter().filter(|one| one.marker != whose.marker);
    match others.into_iter().find(|other| text.contains(other.marker)) {
        Some(other) => Err(format!("{} of {}", other.marker, whose.marker)),
        None => Ok(()),
    }
}

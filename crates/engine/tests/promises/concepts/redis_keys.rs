//! What concepts leave in a Redis: keys of ours alone, nothing readable in them, all of them with an end, and none when all
//! is forgotten; and what a process that ended between two writes can leave there.

use super::outage::ask;
use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_forgotten_concepts_leave_no_key_behind() {
    leaves_no_key_behind("CONFIDANT_TEST_REDIS").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_forgotten_concepts_leave_no_key_behind_in_a_cluster() {
    leaves_no_key_behind("CONFIDANT_TEST_REDIS_CLUSTER").await;
}

async fn leaves_no_key_behind(variable: &str) {
    let Some(place) = Place::redis_at(variable) else { return };
    let url = server(variable).unwrap();
    let prefix = place.as_redis().unwrap().prefix.clone();
    let found = async || {
        let mut found: Vec<String> = ask(&url, &["KEYS", &format!("{prefix}*")]).await;
        let ours = |key: &String| {
            let name = key.strip_prefix(&format!("{prefix}confidant:")).unwrap_or_default();
            let kind = name.split(':').next().unwrap_or_default();
            ["context", "contexts", "captured", "used"].contains(&kind)
        };
        found.retain(ours);
        found
    };
    let rig = rig(&place).await;
    let mut sessions = Vec::new();
    for user in ["alice", "bob"] {
        sessions.push(rig.joined("MARKtenant", "MARKconversation", user).await);
    }
    for session in &sessions {
        let named = json!({ "concepts": [concept("MARKkind", "MARKlabel", "MARKdefinition")] });
        rig.says(session, &session.id(), Audience::Room, named).await;
        session.choose_concept("TAX:IE:MARKKIND", ConceptChoice::Pin).await.unwrap();
    }
    let keys = found().await;
    // The conversation, its tenant's list, the shard that it is in, and a list for each session.
    assert_eq!(keys.len(), 5, "{keys:?}");
    for key in &keys {
        let dump: Vec<u8> = match key.contains("confidant:context:") {
            true => ask::<Vec<Vec<u8>>>(&url, &["HGETALL", key]).await.concat(),
            false => ask::<Vec<Vec<u8>>>(&url, &["ZRANGE", key, "0", "-1"]).await.concat(),
        };
        assert!(!dump.is_empty() && !contains(&dump, "MARK") && !key.contains("MARK"), "{key}");
    }
    for key in &keys {
        let left: i64 = ask(&url, &["PTTL", key]).await;
        assert!(left > 179 * 86_400_000 && left <= 181 * 86_400_000, "{key} lives for {left} ms");
    }
    sessions[0].forget_concepts().await.unwrap();
    assert_eq!(found().await.len(), 4);
    sessions[1].erase().await.unwrap();
    assert_eq!(found().await, Vec::<String>::new());
}

/// In a Cluster what finds a context is written apart from it. If it is missing, erasing a person does not go by it, and a
/// sweep puts it right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_a_context_that_nothing_finds_is_erased_and_found_again() {
    let variable = "CONFIDANT_TEST_REDIS_CLUSTER";
    let Some(place) = Place::redis_at(variable) else { return };
    let url = server(variable).unwrap();
    let prefix = place.as_redis().unwrap().prefix.clone();
    let keys = async |kind: &str| -> Vec<String> {
        ask(&url, &["KEYS", &format!("{prefix}confidant:{kind}:*")]).await
    };
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let (alice, bob) = (rig.session("acme", "c1", "alice"), rig.session("acme", "c2", "bob"));
    for session in [&alice, &bob] {
        rig.says(session, "one", Audience::Room, taxes()).await;
    }
    for kind in ["contexts", "captured", "used"] {
        for key in keys(kind).await {
            ask::<()>(&url, &["DEL", &key]).await;
        }
    }
    assert_eq!(admin.candidates(&tenant).await.unwrap(), [], "nothing finds them");
    let receipt = admin.erase_person(&tenant, &UserId::new("alice").unwrap()).await.unwrap();
    assert_eq!((receipt.derived.get("captures"), receipt.keys.len()), (Some(&1), 2));
    assert_eq!(keys("context").await.len(), 1, "hers is gone all the same");
    rig.engine.sweep().await.unwrap();
    assert_eq!(admin.candidates(&tenant).await.unwrap().len(), 2);
    let found = [keys("contexts").await.len(), keys("captured").await.len(), keys("used").await.len()];
    assert_eq!(found, [1, 1, 1]);
    bob.erase().await.unwrap();
    for kind in ["context", "contexts", "captured", "used"] {
        assert_eq!(keys(kind).await, Vec::<String>::new());
    }
}

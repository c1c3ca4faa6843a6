//! What concepts leave in a Redis: keys of ours alone, nothing readable in them, and none when all is forgotten.

use super::outage::ask;
use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgotten_concepts_leave_no_key_behind() {
    leaves_no_key_behind("CONFIDANT_TEST_REDIS").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgotten_concepts_leave_no_key_behind_in_a_cluster() {
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
    let sessions: Vec<Session> = ["alice", "bob"]
        .into_iter()
        .map(|user| rig.session("MARKtenant", "MARKconversation", user))
        .collect();
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
    sessions[0].forget_concepts().await.unwrap();
    assert_eq!(found().await.len(), 4);
    sessions[1].erase().await.unwrap();
    assert_eq!(found().await, Vec::<String>::new());
}

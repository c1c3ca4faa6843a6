//! What an operator's check finds.

use super::*;

#[tokio::test]
async fn a_check_finds_what_does_not_open_and_what_is_old() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let _ben = world.register("ben").await;
    let sound = Checked { accounts: 2, refused: Vec::new() };
    assert_eq!(world.service.check().await, Ok(sound.clone()));
    let refused = async || {
        let found = world.service.check().await.unwrap();
        assert_eq!(found.accounts + found.refused.len() as u64, 2);
        found.refused.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>()
    };
    // An older record is put back: the one that is kept is not the newest that was seen.
    world.vault.raise(&ana.device.id, 2).await.unwrap();
    assert_eq!(refused().await, ["rolled-back"]);
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_err());
    assert_eq!(world.service.accept_restore().await, Ok(1));
    assert_eq!(world.service.accept_restore().await, Ok(0));
    assert_eq!(world.service.check().await, Ok(sound));
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_ok());
    // A ring that somebody changed.
    world.home.sql("UPDATE rings SET sealed = subs WHERE container LIKE 'chat_%'").await;
    assert_eq!(refused().await, ["key-refused"]);
    // A key that is gone.
    world.vault.destroy_chats(&ana.device.id, &[chat]).await.unwrap();
    assert_eq!(refused().await, ["key-gone"]);
    let check = world.service.check().await.unwrap();
    assert!(!format!("{check:?}").contains(ana.device.id.as_str()), "by a tag");
}

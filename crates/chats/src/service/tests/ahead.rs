//! What is read ahead for a device that has logged in: there in time, gone afterwards, and never believed.

use confidant_seal::Sealed;

use super::*;

/// The same world with these hooks.
pub(super) fn hooked(world: &mut World, hooks: Hooks) {
    let inner = &world.service.inner;
    let parts = Parts {
        store: Arc::clone(&inner.store),
        vault: Arc::clone(&inner.vault),
        clock: Arc::clone(&inner.clock),
        settings: inner.settings.clone(),
    };
    world.service = Service::with_hooks(parts, hooks);
}

async fn cached() -> (World, Arc<MemoryCache>) {
    let mut world = World::new().await;
    let cache = Arc::new(MemoryCache::new(Duration::from_secs(60)));
    hooked(&mut world, Hooks { cache: Some(Arc::<MemoryCache>::clone(&cache)), ..Hooks::default() });
    (world, cache)
}

async fn kept(world: &World, cache: &MemoryCache, person: &Person, chat: &ChatId) -> usize {
    cache.get(&person.device.id, chat, world.service.inner.now()).await.len()
}

#[tokio::test]
async fn chats_are_read_ahead_until_the_device_has_them() {
    let (world, cache) = cached().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chats = [ana.create(&mut socket, 3).await, ana.create(&mut socket, 2).await];
    assert_eq!(kept(&world, &cache, &ana, &chats[0]).await, 0, "for nobody, nothing is kept");
    let mut second = world.second(&ana).await;
    for chat in &chats {
        while kept(&world, &cache, &ana, chat).await == 0 {
            tokio::task::yield_now().await;
        }
    }
    // What is read ahead may be old by the time it is asked for.
    ana.write(&mut socket, &chats[0], &Edit { puts: messages_of(1), floor: true, ..Edit::default() }).await;
    let mut two = world.connect(&second).await;
    second.sync(&mut two).await;
    for chat in &chats {
        assert_eq!(second.device.chats[chat].items, ana.device.chats[chat].items);
        assert_eq!(kept(&world, &cache, &ana, chat).await, 0, "the device has it");
    }
}

#[tokio::test]
async fn what_somebody_wrote_into_the_cache_is_not_sent() {
    let (world, cache) = cached().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 3).await;
    let now = world.service.inner.now();
    cache.begin(&ana.device.id, &DeviceId::random(), now).await;
    let items = ana.device.chats[&chat].items.keys().cloned();
    let forged = items.map(|item| (item, Sealed::from_bytes(vec![7; 90]))).collect();
    cache.put(&ana.device.id, &chat, forged, now).await;
    assert_eq!(kept(&world, &cache, &ana, &chat).await, 3);
    let mut second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    second.sync(&mut two).await;
    assert_eq!(second.device.chats[&chat].items, ana.device.chats[&chat].items);
}

#[tokio::test]
async fn a_cache_ends_with_its_time_its_chat_and_its_account() {
    let (world, cache) = cached().await;
    let (ana, chat) = (world.register("ana").await, ChatId::random());
    let fill = async || {
        let now = world.service.inner.now();
        cache.begin(&ana.device.id, &ana.here, now).await;
        let envelope = (messages_of(1)[0].clone(), Sealed::from_bytes(vec![7; 90]));
        cache.put(&ana.device.id, &chat, vec![envelope], now).await;
        assert_eq!(kept(&world, &cache, &ana, &chat).await, 1);
    };
    fill().await;
    world.pass(Duration::from_secs(61));
    assert_eq!(kept(&world, &cache, &ana, &chat).await, 0, "its time is over");
    fill().await;
    cache.forget(&ana.device.id, Some(&chat)).await;
    assert_eq!(kept(&world, &cache, &ana, &chat).await, 0, "the chat is deleted");
    fill().await;
    // Two devices load at once: what one has finished is still there for the other.
    let other = DeviceId::random();
    cache.begin(&ana.device.id, &other, world.service.inner.now()).await;
    cache.end(&ana.device.id, &ana.here).await;
    assert_eq!(kept(&world, &cache, &ana, &chat).await, 1);
    cache.end(&ana.device.id, &other).await;
    assert_eq!(kept(&world, &cache, &ana, &chat).await, 0);
    fill().await;
    world.service.remove(&ana.device.id).await.unwrap();
    assert_eq!(kept(&world, &cache, &ana, &chat).await, 0, "the account is erased");
}

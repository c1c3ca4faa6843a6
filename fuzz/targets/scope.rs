//! Session ids and canonical bytes are undone exactly, and two scopes share neither.

#![no_main]

use confidant_seal::{ChannelName, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(scope) = Scope::from_canonical(input) {
        assert_eq!(scope.canonical(), input);
        undone(&scope);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(scope) = Scope::parse_any(tenant(), text) {
        assert_eq!(scope.session_id(), text);
        undone(&scope);
    }
    // Two scopes, their parts separated by line breaks, which no part may hold.
    let mut lines = text.split('\n');
    let (Some(one), Some(other)) = (scope(&mut lines), scope(&mut lines)) else { return };
    undone(&one);
    undone(&other);
    assert_eq!(one == other, one.session_id() == other.session_id());
    assert_eq!(one == other, one.canonical() == other.canonical());
});

fn undone(scope: &Scope) {
    assert_eq!(Scope::parse_any(scope.tenant().clone(), &scope.session_id()).as_ref(), Ok(scope));
    assert_eq!(Scope::from_canonical(&scope.canonical()).as_ref(), Ok(scope));
}

/// Channel, place, thread and user; without a place, keyed by person.
fn scope<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<Scope> {
    let [channel, place, thread, user] = [(); 4].map(|()| lines.next());
    let build = || -> Result<Scope, ScopeError> {
        let channel = ChannelName::new(channel.unwrap_or_default())?;
        let user = UserId::new(user.unwrap_or_default())?;
        if place == Some("") {
            return Ok(Scope::person(tenant(), channel, user));
        }
        let (place, thread) =
            (PlaceId::new(place.unwrap_or_default())?, ThreadId::new(thread.unwrap_or_default())?);
        Ok(Scope::place(tenant(), channel, place, thread, user))
    };
    build().ok()
}

fn tenant() -> TenantId {
    TenantId::new("acme").expect("a valid id")
}

//! What comes over the bus, read without one.

use confidant_seal::{Scope, TenantId};

use super::Speech;
use super::wire::{Asked, read_request, read_response, response as write_response};

pub(crate) fn request(json: &[u8]) -> Result<(Option<String>, String), String> {
    let tenant = TenantId::new("default").map_err(|error| error.to_string())?;
    // Sealed messages are ours, but a bug of ours must not be read as a right, either.
    let _ = read_request(json, Speech::Sealed, &tenant);
    let read = read_request(json, Speech::Plain, &tenant).map_err(|refused| refused.why.to_string())?;
    match read.asked {
        Asked::Turn(errand) => {
            let scope = errand.scope.filter(|scope| *scope.tenant() == tenant);
            Ok((scope.as_ref().map(Scope::session_id), errand.request.query))
        }
        Asked::Cancel { .. } | Asked::CallOff | Asked::Give { .. } | Asked::End { .. } | Asked::Look => {
            Err("a plain request asked for more than a turn".to_owned())
        }
    }
}

pub(crate) fn response(json: &[u8]) -> Option<(String, Option<Vec<u8>>)> {
    let read = read_response(json)?;
    let again = write_response(&read.request_id, read.attempt.as_deref(), &read.heard);
    Some((read.request_id, again.map(|json| json.to_vec())))
}

//! Every body of a request and an answer over HTTP, for tests.

use super::{Dice, Made};
use crate::http::ROUTES;
use crate::malformed::Malformed;

/// For tests: the request and the answer of every route.
pub fn bodies(dice: &mut Dice<'_>) -> Vec<(&'static str, Made, Made)> {
    let made = ROUTES
        .iter()
        .map(|route| (route.path, (route.types.request.make)(dice), (route.types.answer.make)(dice)));
    made.collect()
}

/// For tests: reads the request (or the answer) of a route.
pub fn read_body(path: &str, answer: bool, json: &[u8]) -> Option<Result<(), Malformed>> {
    let route = ROUTES.iter().find(|route| route.path == path)?;
    Some((if answer { route.types.answer.read } else { route.types.request.read })(json))
}

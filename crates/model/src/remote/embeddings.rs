//! Embeddings, as every provider that makes them gives them: in `OpenAI`'s form.
//!
//! What comes back is only known to be bytes. It counts if there is one vector for each input, all equally long and of
//! finite numbers; anything else would put one text's vector in another's place.

use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Progress, Provider, connection_failure, refusal};
use crate::{Embedded, Embedding, EmbeddingInput, ModelError};

/// Where a provider makes embeddings; nowhere for one that makes none.
pub(super) fn address(provider: Provider, base: &Url) -> Option<Url> {
    let path = match provider {
        Provider::OpenAi => "embeddings",
        Provider::Gemini => "openai/embeddings",
        Provider::Ollama => "v1/embeddings",
        Provider::Anthropic => return None,
    };
    let mut url = base.join(path).ok()?;
    url.set_query(base.query());
    Some(url)
}

/// Asks for embeddings; waits no longer than `limit` for all of them.
pub(super) async fn ask(
    http: &reqwest::Client,
    url: Url,
    key: Option<&SecretString>,
    limit: Duration,
    (model, embedding): (&str, &Embedding),
) -> Result<Embedded, ModelError> {
    let body = serde_json::to_vec(&body(model, embedding)).map_err(|_| ModelError::Malformed)?;
    let mut request =
        http.post(url).timeout(limit).header(reqwest::header::CONTENT_TYPE, "application/json").body(body);
    if let Some(key) = key {
        request = request.bearer_auth(key.expose_secret());
    }
    let mut reply = request.send().await.map_err(|error| connection_failure(&error, Progress::Nothing))?;
    if !reply.status().is_success() {
        return Err(refusal(reply.status()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = reply.chunk().await.map_err(|error| broken(&error))? {
        if bytes.len() + piece.len() > LONGEST_REPLY {
            return Err(ModelError::Malformed);
        }
        bytes.extend_from_slice(&piece);
    }
    read(&bytes, embedding.input.count())
}

/// Half a reply is not the beginning of an answer here.
fn broken(error: &reqwest::Error) -> ModelError {
    if error.is_timeout() { ModelError::TimedOut } else { ModelError::CutOff }
}

/// Numbers are asked for: not every server knows the packed form that `OpenAI`'s clients want, which is made of them.
fn body(model: &str, embedding: &Embedding) -> Value {
    let input = match &embedding.input {
        EmbeddingInput::Texts(texts) => json!(texts),
        EmbeddingInput::Tokens(texts) => json!(texts),
    };
    let mut body = json!({ "model": model, "input": input, "encoding_format": "float" });
    if let Some(dimensions) = embedding.dimensions {
        body["dimensions"] = json!(dimensions);
    }
    body
}

#[derive(Deserialize)]
struct Reply {
    data: Vec<Item>,
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Counted {
    prompt_tokens: u32,
}

/// The embeddings in a reply that was asked for `count` of them.
pub(super) fn read(bytes: &[u8], count: usize) -> Result<Embedded, ModelError> {
    let Reply { data, usage } = serde_json::from_slice(bytes).map_err(|_| ModelError::Malformed)?;
    let mut vectors = vec![Vec::new(); count];
    for Item { index, embedding } in data {
        match vectors.get_mut(index) {
            Some(vector) if vector.is_empty() => *vector = embedding,
            _ => return Err(ModelError::Malformed),
        }
    }
    let length = vectors.first().map_or(0, Vec::len);
    let is_whole =
        |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|number| number.is_finite());
    if length == 0 || !vectors.iter().all(is_whole) {
        return Err(ModelError::Malformed);
    }
    Ok(Embedded { vectors, tokens: usage.map(|usage| usage.prompt_tokens) })
}

/// More than the most inputs with the longest vectors that are common take.
const LONGEST_REPLY: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn item(index: usize, numbers: &[f32]) -> Value {
        json!({ "object": "embedding", "index": index, "embedding": numbers })
    }

    fn reply(data: &[Value]) -> Vec<u8> {
        serde_json::to_vec(&json!({ "data": data, "usage": { "prompt_tokens": 7, "total_tokens": 7 } }))
            .unwrap()
    }

    #[test]
    fn vectors_stand_where_their_inputs_stood() {
        let embedded = read(&reply(&[item(1, &[3.0, 4.0]), item(0, &[1.0, 2.5])]), 2).unwrap();
        assert_eq!((embedded.vectors, embedded.tokens), (vec![vec![1.0, 2.5], vec![3.0, 4.0]], Some(7)));
    }

    #[test]
    fn a_reply_that_does_not_fit_the_request_is_refused() {
        let one = item(0, &[1.0, 2.0]);
        let cases = [
            reply(&[]),
            reply(std::slice::from_ref(&one)),
            reply(&[one.clone(), one.clone()]),
            reply(&[one.clone(), item(2, &[1.0, 2.0])]),
            reply(&[one.clone(), item(1, &[1.0])]),
            reply(&[item(0, &[]), item(1, &[])]),
            reply(&[one.clone(), json!({ "index": 1, "embedding": [1.0, "x"] })]),
            reply(&[one, json!({ "index": 1, "embedding": [1.0, 1e300] })]),
            br#"{"data":"x"}"#.to_vec(),
            b"SECRET".to_vec(),
        ];
        for case in cases {
            assert_eq!(
                read(&case, 2).err(),
                Some(ModelError::Malformed),
                "{}",
                String::from_utf8_lossy(&case)
            );
        }
    }

    /// Whatever the bytes are, what is taken from them has one whole vector for each input.
    #[test]
    fn damaged_replies_are_refused_or_whole() {
        let whole = reply(&[item(0, &[1.0, -2.5, 3e-8]), item(1, &[4.0, 5.0, 6.0])]);
        let alphabet = b"0123456789.eE+-[]{},:\"nulltrue\\\x00\xff ";
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..=next(3) {
                let at = next(bytes.len());
                match next(3) {
                    0 => bytes[at] = alphabet[next(alphabet.len())],
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, alphabet[next(alphabet.len())]),
                }
            }
            if let Ok(embedded) = read(&bytes, 2) {
                let lengths: Vec<usize> = embedded.vectors.iter().map(Vec::len).collect();
                assert!(lengths.len() == 2 && lengths[0] == lengths[1] && lengths[0] > 0);
                assert!(embedded.vectors.iter().flatten().all(|number| number.is_finite()));
            }
        }
    }
}

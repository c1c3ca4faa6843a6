//! The whole surface, without a socket.

mod access;
mod approvals;
mod console;
mod described;
mod input;
mod openai;
mod openai_responses;
mod openai_tools;
mod routes;
mod surface;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use confidant_engine::access::Role;
use confidant_engine::model::{Answer, Attachment, Deltas, Extractive, Model, ModelError, Prompt, Usage};
use confidant_engine::{Actor, Engine, Parts, Storage, TenantId};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{HttpSettings, router};
use crate::testing::keys;

const SETTINGS: HttpSettings = HttpSettings {
    max_body_bytes: 64 * 1024,
    request_timeout: Duration::from_secs(30),
    requests_per_minute: 0,
    places: super::PlaceLimits { most: 100, per_peer: 0, first_head: Duration::from_secs(10) },
};

/// A server with tokens of every kind. Tenant `acme` unless said otherwise.
struct Server {
    engine: Engine,
    router: Router,
    admin: String,
    agent: String,
    /// Of `user:alice`.
    alice: String,
    /// An administrator of another tenant.
    elsewhere: String,
}

impl Server {
    async fn builtin() -> Self {
        Self::with(Arc::new(Extractive), SETTINGS).await
    }

    async fn with(model: Arc<dyn Model>, settings: HttpSettings) -> Self {
        Self::on(Engine::open(Parts::new(Storage::memory(), keys(), model)).await.unwrap(), settings).await
    }

    async fn on(engine: Engine, settings: HttpSettings) -> Self {
        let router = router(engine.clone(), settings);
        let token = async |tenant: &str, role: &str| token(&engine, tenant, role).await;
        let (admin, agent) = (token("acme", "admin").await, token("acme", "agent").await);
        let (alice, elsewhere) = (token("acme", "user:alice").await, token("other", "admin").await);
        Self { engine, router, admin, agent, alice, elsewhere }
    }

    /// A request as the administrator.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        self.ask_as(&self.admin, method, path, body).await
    }

    async fn ask_as(&self, token: &str, method: Method, path: &str, body: Option<Value>) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        self.send(match body {
            Some(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()))
            }
            None => request.body(Body::empty()),
        })
        .await
    }

    /// A POST as the administrator, with headers.
    async fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Reply {
        let mut request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.admin));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_string()))).await
    }

    async fn send(&self, request: axum::http::Result<Request<Body>>) -> Reply {
        let response = self.router.clone().oneshot(request.unwrap()).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Reply { status, headers, text: String::from_utf8(body.to_vec()).unwrap() }
    }
}

#[derive(Debug)]
struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// Status and code of an error in our form, which must have a message and a hint.
    fn error(&self) -> (u16, String) {
        let error = &self.json()["error"];
        for part in ["message", "hint"] {
            assert!(error[part].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        }
        (self.status.as_u16(), error["code"].as_str().unwrap().to_owned())
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Server-sent events as name and data.
    fn events(&self) -> Vec<(String, String)> {
        assert_eq!(
            (self.status.as_u16(), self.header("content-type")),
            (200, "text/event-stream"),
            "{self:?}"
        );
        let event = |block: &str| {
            let field = |name: &str| {
                block.lines().filter_map(|l| l.strip_prefix(name)).collect::<Vec<_>>().join("\n")
            };
            (field("event: "), field("data: "))
        };
        self.text
            .split("\n\n")
            .filter(|block| !block.is_empty() && !block.starts_with(':'))
            .map(event)
            .collect()
    }
}

fn turns(session: &str) -> String {
    format!("/api/v1/session/{}/turns", encoded(session))
}

fn encoded(segment: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    segment.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

async fn token(engine: &Engine, tenant: &str, role: &str) -> String {
    let administrator = engine.dangerously_administer(Actor::cli());
    let (tenant, role) = (TenantId::new(tenant).unwrap(), Role::parse(role).unwrap());
    administrator.new_token(&tenant, &role).await.unwrap().1.expose_secret().to_owned()
}

/// A model that remembers what it was told and answers in two pieces.
#[derive(Debug, Default)]
struct Recorder {
    prompts: Mutex<Vec<Prompt>>,
}

#[async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let count = {
            let mut prompts = self.prompts.lock().unwrap();
            prompts.push(prompt.clone());
            prompts.len()
        };
        let pieces = [format!("answer {count}: "), "yes\nindeed".to_owned()];
        pieces.iter().for_each(|piece| deltas(piece));
        let usage = Some(Usage { prompt: 5, completion: 3 });
        Ok(Answer { text: pieces.concat(), calls: Vec::new(), model: "recorder".to_owned(), usage })
    }

    fn takes(&self, attachment: &Attachment) -> bool {
        attachment.is_image() && !attachment.is_elsewhere()
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// A model that never answers, or only with an error.
#[derive(Debug)]
struct Mute(Option<ModelError>);

#[async_trait]
impl Model for Mute {
    fn name(&self) -> &str {
        "mute"
    }

    async fn respond(&self, _: &Prompt, _: Deltas<'_>) -> Result<Answer, ModelError> {
        match self.0 {
            Some(error) => Err(error),
            None => std::future::pending().await,
        }
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

fn said(query: &str) -> Option<Value> {
    Some(json!({ "query": query }))
}

//! The page of client-sealed chats, as the program hands it out.
//!
//! ```text
//! web/src ──build.mjs──▶ web/dist ──build.rs──▶ this crate ──▶ GET /  GET /console  GET /app.js …
//!                            └──── or read at each request, for whoever works on it ────┘
//! ```
//!
//! The files have stable names, so a browser asks each time whether they changed (`no-cache`, and a tag made of the bytes). All of
//! them together have one name, the [`release`](Page::release): a page of another release is told to load itself again. A page asks for
//! its parts by its build (`/settings.js?b=…`), and a file of another build is not found: parts of two builds are never together.
//!
//! Easy to get wrong: the headers. The worker's file has to have the policy as much as the page, and an answer without
//! `Cross-Origin-Embedder-Policy` is not loaded by one that has it.

mod relay;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::RawQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_display::debug_without_content;
use ring::digest::{Context, SHA256, digest};

pub use relay::{Reach, Relay};

include!(concat!(env!("OUT_DIR"), "/built.rs"));

/// A file as it was built.
struct Built {
    name: &'static str,
    bytes: &'static [u8],
    brotli: Option<&'static [u8]>,
}

/// The page's files.
#[derive(Clone, Debug)]
pub struct Page {
    files: Arc<BTreeMap<&'static str, File>>,
    folder: Option<Arc<PathBuf>>,
    release: Option<Arc<str>>,
    /// Which build the files ask each other by; none in a page that does not say.
    build: Option<Arc<str>>,
    is_secure: bool,
    /// The server that the page is for, where another program hands it out.
    server: Option<Arc<str>>,
}

#[derive(Clone)]
struct File {
    bytes: Bytes,
    brotli: Option<&'static [u8]>,
    tag: HeaderValue,
}

debug_without_content!(File { bytes: bytes.len() });

impl Page {
    /// The page that this program was built with.
    pub fn built() -> Self {
        Self::of(BUILT)
    }

    fn of(built: &'static [Built]) -> Self {
        let mut all = Context::new(&SHA256);
        let mut files = BTreeMap::new();
        for file in built {
            let hash = digest(&SHA256, file.bytes);
            // The page itself has the name of the release in it. The administrator's page is another one.
            if file.name != INDEX && !is_console(file.name) {
                all.update(file.name.as_bytes());
                all.update(&[0]);
                all.update(hash.as_ref());
            }
            let bytes = Bytes::from_static(file.bytes);
            files.insert(file.name, File { bytes, brotli: file.brotli, tag: tag(hash.as_ref()) });
        }
        let release = files.contains_key(INDEX).then(|| hex::encode(&all.finish().as_ref()[..16]).into());
        let build = files.get(INDEX).and_then(|file| build_of(&file.bytes)).map(Into::into);
        Self { files: Arc::new(files), folder: None, release, build, is_secure: false, server: None }
    }

    /// Reads the files from a folder instead, at each request.
    #[must_use]
    pub fn in_folder(mut self, folder: PathBuf) -> Self {
        (self.folder, self.release) = (Some(Arc::new(folder)), None);
        self
    }

    /// Names the server that the page is for, where it is handed out by somebody else.
    #[must_use]
    fn for_server(mut self, server: &str) -> Self {
        let mut files = (*self.files).clone();
        if let Some(index) = files.get_mut(INDEX) {
            let bytes = naming(&index.bytes, server);
            *index = File { tag: tag(digest(&SHA256, &bytes).as_ref()), bytes, brotli: None };
        }
        (self.files, self.server) = (Arc::new(files), Some(server.into()));
        self
    }

    /// Tells browsers to come by TLS only: for a server that people reach by `https`.
    #[must_use]
    pub fn secure(mut self) -> Self {
        self.is_secure = true;
        self
    }

    /// What all files together are called: a browser that has others has an old page. `None` where the program was built without one.
    pub fn release(&self) -> Option<&str> {
        self.release.as_deref()
    }

    /// A route for each file, `/` and `/console`. It has no fallback, so it can be merged with others.
    pub fn router(self) -> Router {
        if self.folder.is_some() {
            let (index, console) = (self.clone(), self.clone());
            return Router::new()
                .route("/", get(async move |headers: HeaderMap| index.of_folder(INDEX, None, &headers).await))
                .route(
                    "/console",
                    get(async move |headers: HeaderMap| console.of_folder(CONSOLE, None, &headers).await),
                )
                .route(
                    "/{file}",
                    get(
                        async move |path: axum::extract::Path<String>,
                                    RawQuery(query): RawQuery,
                                    headers: HeaderMap| {
                            self.of_folder(&path, query.as_deref(), &headers).await
                        },
                    ),
                );
        }
        if !self.files.contains_key(INDEX) {
            let console = self.clone();
            return Router::new()
                .route("/", get(async move || self.missing()))
                .route("/console", get(async move || console.missing()));
        }
        self.routes(|_| true)
    }

    /// The administrator's page alone, for a server without chats.
    pub fn console_router(self) -> Router {
        if self.folder.is_some() {
            return CONSOLE_FILES.into_iter().fold(Router::new(), |router, name| {
                let page = self.clone();
                let file = async move |headers: HeaderMap| page.of_folder(name, None, &headers).await;
                router.route(&path_of(name), get(file))
            });
        }
        if !self.files.contains_key(CONSOLE) {
            return Router::new().route("/console", get(async move || self.missing()));
        }
        self.routes(|name| CONSOLE_FILES.contains(&name))
    }

    fn routes(self, wanted: fn(&str) -> bool) -> Router {
        let mut router = Router::new();
        for name in self.files.keys().copied().filter(|name| wanted(name)) {
            let page = self.clone();
            router = router.route(
                &path_of(name),
                get(async move |RawQuery(query): RawQuery, headers: HeaderMap| {
                    match is_of(query.as_deref(), page.build.as_deref()) {
                        true => page.file(name, &headers),
                        false => page.not_found(),
                    }
                }),
            );
        }
        router
    }

    fn file(&self, name: &str, asked: &HeaderMap) -> Response {
        let Some(file) = self.files.get(name) else { return self.missing() };
        let known = asked.get_all(header::IF_NONE_MATCH).iter().any(|tags| names(tags, &file.tag));
        let packed = file.brotli.filter(|_| takes_brotli(asked));
        let body = match known {
            true => Body::empty(),
            false => packed.map_or_else(|| Body::from(file.bytes.clone()), Body::from),
        };
        let mut response = self.with_headers(body, kind_of(name));
        let headers = response.headers_mut();
        headers.insert(header::ETAG, file.tag.clone());
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else if packed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
        }
        response
    }

    /// For whoever works on the page.
    async fn of_folder(&self, name: &str, query: Option<&str>, asked: &HeaderMap) -> Response {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        let bytes = match &self.folder {
            Some(folder) if plain && !name.starts_with('.') => {
                let index = tokio::fs::read(folder.join(INDEX)).await.unwrap_or_default();
                match is_of(query, build_of(&index)) {
                    true => tokio::fs::read(folder.join(name)).await.ok(),
                    false => None,
                }
            }
            _ => None,
        };
        let Some(bytes) = bytes else { return self.not_found() };
        let bytes = match &self.server {
            Some(server) if name == INDEX => naming(&bytes, server),
            _ => bytes.into(),
        };
        let tag = tag(digest(&SHA256, &bytes).as_ref());
        let known = asked.get_all(header::IF_NONE_MATCH).iter().any(|tags| names(tags, &tag));
        let body = if known { Body::empty() } else { Body::from(bytes) };
        let mut response = self.with_headers(body, kind_of(name));
        response.headers_mut().insert(header::ETAG, tag);
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        response
    }

    /// There is no such file, or not of that build.
    fn not_found(&self) -> Response {
        let mut response = self.missing();
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }

    fn missing(&self) -> Response {
        self.with_headers(Body::from(MISSING), "text/html; charset=utf-8")
    }

    fn with_headers(&self, body: Body, kind: &'static str) -> Response {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        for (name, value) in HEADERS {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if self.is_secure {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
        }
        response
    }
}

const INDEX: &str = "index.html";
const CONSOLE: &str = "console.html";
/// What the administrator's page is made of: its own, and the colours of the chats.
const CONSOLE_FILES: [&str; 4] = [CONSOLE, "console.js", "console.css", "app.css"];

/// What every file has. Nothing runs but our own files, nothing is loaded from elsewhere, and no text becomes markup.
const HEADERS: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; \
         connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types app",
    ),
    ("cache-control", "no-cache"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width\"><title>Confidant</title><link rel=\"icon\" href=\"data:,\">\
<h1>Confidant is running</h1>\
<p>The page for chats was not built into this program. To have it: install Node.js 20 or newer with npm, then <code>scripts/run</code>, \
or <code>npm ci --ignore-scripts</code> and <code>node build.mjs</code> in <code>web/</code> before building.</p>\
<p>Everything else works: <code>confidant chat --server URL</code> has the same chats in a terminal.</p></html>";

/// The page with the server's origin in it, which has no letter that means something in HTML.
fn naming(index: &[u8], server: &str) -> Bytes {
    let text = String::from_utf8_lossy(index);
    text.replacen(SERVER, &format!("name=\"server\" content=\"{server}\""), 1).into_bytes().into()
}

/// Where the page says which server it is for; empty for the one that it comes from.
const SERVER: &str = "name=\"server\" content=\"\"";

/// Whether a file is the administrator's page's own.
fn is_console(name: &str) -> bool {
    name.starts_with("console.")
}

/// Where a file is found.
fn path_of(name: &str) -> String {
    match name {
        INDEX => "/".to_owned(),
        CONSOLE => "/console".to_owned(),
        name => format!("/{name}"),
    }
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// Which build a page says that it is.
fn build_of(index: &[u8]) -> Option<&str> {
    let (_, rest) = std::str::from_utf8(index).ok()?.split_once("name=\"build\" content=\"")?;
    let (build, _) = rest.split_once('"')?;
    (!build.is_empty()).then_some(build)
}

/// Whether a file is asked for by this build, or by none.
fn is_of(query: Option<&str>, build: Option<&str>) -> bool {
    let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("b=")));
    asked.is_none_or(|asked| Some(asked) == build)
}

fn takes_brotli(asked: &HeaderMap) -> bool {
    let encodings = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    encodings.flat_map(|value| value.split(',')).any(|encoding| {
        let (name, weight) = encoding.split_once(';').unwrap_or((encoding, ""));
        name.trim().eq_ignore_ascii_case("br")
            && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

/// Whether a list of tags has this one. Weak ones count: a proxy that compresses makes them.
fn names(tags: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(tags), Ok(tag)) = (tags.to_str(), tag.to_str()) else { return false };
    tags.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn tag(hash: &[u8]) -> HeaderValue {
    let text = format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash.get(..18).unwrap_or(hash)));
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests;

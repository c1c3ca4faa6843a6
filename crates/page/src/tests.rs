use axum::http::Request;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;

static FILES: [Built; 3] = [
    Built { name: "app.js", bytes: b"let words = 1;", brotli: Some(b"packed") },
    Built { name: "client.worker.js", bytes: b"work", brotli: None },
    Built { name: "index.html", bytes: b"<!doctype html>", brotli: None },
];

async fn ask(page: &Page, path: &str, headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let response = page.clone().router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn every_file_has_its_kind_and_the_policy() {
    let page = Page::of(&FILES);
    let kinds =
        [("/", "text/html"), ("/app.js", "text/javascript"), ("/client.worker.js", "text/javascript")];
    for (path, kind) in kinds {
        let (status, headers, _) = ask(&page, path, &[]).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(headers[header::CONTENT_TYPE].to_str().unwrap().starts_with(kind), "{path}");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{policy}");
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert_eq!(headers["cross-origin-embedder-policy"], "require-corp");
        assert!(!headers.contains_key(header::STRICT_TRANSPORT_SECURITY));
    }
    let (_, headers, _) = ask(&page.clone().secure(), "/", &[]).await;
    assert_eq!(headers[header::STRICT_TRANSPORT_SECURITY], "max-age=31536000");
    assert_eq!(ask(&page, "/other.js", &[]).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_administrators_page_has_an_address_and_can_be_alone() {
    static BOTH: [Built; 5] = [
        Built { name: "app.css", bytes: b"colours", brotli: None },
        Built { name: "app.js", bytes: b"chats", brotli: None },
        Built { name: "console.html", bytes: b"<!doctype html>console", brotli: None },
        Built { name: "console.js", bytes: b"looks", brotli: None },
        Built { name: "index.html", bytes: b"<!doctype html>", brotli: None },
    ];
    let page = Page::of(&BOTH);
    let (status, headers, body) = ask(&page, "/console", &[]).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "<!doctype html>console"));
    assert!(headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("trusted-types app"));
    assert!(headers[header::CONTENT_TYPE].to_str().unwrap().starts_with("text/html"));
    let alone = async |page: Page, path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        page.console_router().oneshot(request).await.unwrap().status()
    };
    for (path, status) in
        [("/console", 200), ("/console.js", 200), ("/app.css", 200), ("/", 404), ("/app.js", 404)]
    {
        assert_eq!(alone(page.clone(), path).await, status, "{path}");
    }
    assert_eq!(alone(Page::of(&[]), "/console").await, 200, "it says what is missing");
    assert_eq!(ask(&Page::of(&[]), "/console", &[]).await.0, StatusCode::OK);
}

#[tokio::test]
async fn what_a_browser_has_is_not_sent_again() {
    let page = Page::of(&FILES);
    let (_, headers, body) = ask(&page, "/app.js", &[]).await;
    assert_eq!(body, "let words = 1;");
    let tag = headers[header::ETAG].to_str().unwrap().to_owned();
    for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let (status, headers, body) = ask(&page, "/app.js", &[(header::IF_NONE_MATCH, &known)]).await;
        assert_eq!((status, body.as_str()), (StatusCode::NOT_MODIFIED, ""), "{known}");
        assert_eq!(headers[header::ETAG], tag.as_str());
    }
    let (status, _, body) = ask(&page, "/app.js", &[(header::IF_NONE_MATCH, "\"other\"")]).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "let words = 1;"));
}

#[tokio::test]
async fn it_is_packed_for_whoever_takes_it() {
    let page = Page::of(&FILES);
    for (takes, packed) in [("gzip, br", true), ("br;q=0.5", true), ("br;q=0", false), ("gzip", false)] {
        let (_, headers, body) = ask(&page, "/app.js", &[(header::ACCEPT_ENCODING, takes)]).await;
        assert_eq!(body == "packed", packed, "{takes}");
        assert_eq!(headers.contains_key(header::CONTENT_ENCODING), packed, "{takes}");
        assert_eq!(headers[header::VARY], "Accept-Encoding");
    }
    let (_, headers, body) = ask(&page, "/client.worker.js", &[(header::ACCEPT_ENCODING, "br")]).await;
    assert_eq!(body, "work");
    assert!(!headers.contains_key(header::CONTENT_ENCODING));
}

#[tokio::test]
async fn without_a_page_it_says_what_is_missing() {
    let page = Page::of(&[]);
    assert_eq!(page.release(), None);
    let (status, headers, body) = ask(&page, "/", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("scripts/run") && body.contains("confidant chat"), "{body}");
    assert!(headers.contains_key(header::CONTENT_SECURITY_POLICY));
}

#[test]
fn the_release_is_of_all_files_but_the_one_that_names_it() {
    static OTHER_INDEX: [Built; 2] = [
        Built { name: "app.js", bytes: b"1", brotli: None },
        Built { name: "index.html", bytes: b"one", brotli: None },
    ];
    static SAME: [Built; 2] = [
        Built { name: "app.js", bytes: b"1", brotli: Some(b"x") },
        Built { name: "index.html", bytes: b"two", brotli: None },
    ];
    static CHANGED: [Built; 2] = [
        Built { name: "app.js", bytes: b"2", brotli: None },
        Built { name: "index.html", bytes: b"one", brotli: None },
    ];
    let release = |files| Page::of(files).release().unwrap().to_owned();
    assert_eq!(release(&OTHER_INDEX), release(&SAME));
    assert_ne!(release(&OTHER_INDEX), release(&CHANGED));
    assert_eq!(release(&SAME).len(), 32);
}

#[tokio::test]
async fn a_folder_is_read_at_each_request_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "first").unwrap();
    std::fs::write(folder.path().join(".hidden"), "hidden").unwrap();
    let page = Page::of(&FILES).in_folder(folder.path().to_owned());
    assert_eq!(page.release(), None);
    assert_eq!(ask(&page, "/", &[]).await.2, "first");
    std::fs::write(folder.path().join("index.html"), "second").unwrap();
    assert_eq!(ask(&page, "/", &[]).await.2, "second");
    for path in ["/.hidden", "/..%2Fsecret", "/app.js"] {
        assert_eq!(ask(&page, path, &[]).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_part_of_another_build_is_not_found() {
    static FILES: [Built; 2] = [
        Built { name: "app.js", bytes: b"1", brotli: None },
        Built { name: "index.html", bytes: b"<meta name=\"build\" content=\"abc\">", brotli: None },
    ];
    let folder = tempfile::tempdir().unwrap();
    for file in &FILES {
        std::fs::write(folder.path().join(file.name), file.bytes).unwrap();
    }
    let found = StatusCode::OK;
    for page in [Page::of(&FILES), Page::of(&FILES).in_folder(folder.path().to_owned())] {
        for (path, status) in [
            ("/app.js", found),
            ("/app.js?b=abc", found),
            ("/app.js?x=1&b=abc", found),
            ("/app.js?b=abd", StatusCode::NOT_FOUND),
            ("/app.js?b=", StatusCode::NOT_FOUND),
            ("/app.js?bb=abd", found),
            ("/", found),
        ] {
            let (got, headers, _) = ask(&page, path, &[]).await;
            assert_eq!(got, status, "{path}");
            assert_eq!(headers[header::CACHE_CONTROL], "no-cache", "{path}");
            assert!(headers.contains_key(header::CONTENT_SECURITY_POLICY), "{path}");
        }
    }
    std::fs::write(folder.path().join("index.html"), "<meta name=\"build\" content=\"abd\">").unwrap();
    let page = Page::of(&FILES).in_folder(folder.path().to_owned());
    assert_eq!(
        ask(&page, "/app.js?b=abc", &[]).await.0,
        StatusCode::NOT_FOUND,
        "the folder has another build by now"
    );
}

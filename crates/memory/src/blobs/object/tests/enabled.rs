//! Failures against stubs, and the promises of a back end against a real S3 server if there is one.

use base64::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::blobs::conformance::{self, sealed, unnoted};
use crate::blobs::stub::{Reply, Stub};
use crate::blobs::{Locator, Removed};

fn settings(endpoint: &str) -> ObjectSettings {
    let limits = Limits {
        request: Duration::from_secs(20),
        total: Duration::from_secs(60),
        retries: 2,
        pause: Duration::from_millis(1),
    };
    ObjectSettings {
        endpoint: Some(endpoint.into()),
        limits,
        ..ObjectSettings::new("s3://bucket/some/prefix", key())
    }
}

/// What each call says, which must be the same for all.
async fn all_fail(blobs: &dyn Blobs) -> String {
    let (pointer, bytes) = sealed("fails");
    let here = Locator::default();
    let mut said = vec![
        blobs.put(&pointer, &bytes, None, &unnoted).await.unwrap_err(),
        blobs.get(&pointer, &here).await.unwrap_err(),
        blobs.remove(&pointer, &here).await.unwrap_err(),
        blobs.check().await.unwrap_err(),
    ];
    for error in &said {
        let text = error.to_string();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(text.contains("; hint: ") && !text.contains("CANARY") && !text.contains("http://"), "{text}");
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0).to_string()
}

#[tokio::test]
async fn a_server_that_is_down_is_said() {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let said = all_fail(&*open(&settings(&url)).unwrap()).await;
    assert!(said.starts_with("the object store cannot be reached; "), "{said}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    for (request, total) in [(50, 60_000), (60_000, 50)] {
        let mut settings = settings(&url);
        settings.limits.request = Duration::from_millis(request);
        settings.limits.total = Duration::from_millis(total);
        let said = all_fail(&*open(&settings).unwrap()).await;
        assert!(said.starts_with("the object store did not answer in time; "), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 64]).await;
        }
    });
    let said = all_fail(&*open(&settings(&url)).unwrap()).await;
    assert!(said.starts_with("the object store broke the connection; "), "{said}");
    task.abort();
}

#[tokio::test]
async fn a_server_without_tls_where_tls_is_asked_for_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let said = all_fail(&*open(&settings(&url)).unwrap()).await;
    assert!(
        said.starts_with("the object store does not speak TLS, or no version that this program supports; "),
        "{said}"
    );
    task.abort();
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_said() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let blobs = open(&settings(&url)).unwrap();
    let der = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(der(TEST_KEY));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![der(TEST_CERTIFICATE).into()], key.into())
        .unwrap();
    let config = Arc::new(config);
    // Ends with the process: it waits for the next connection until then.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            while tls.is_handshaking() && tls.complete_io(&mut stream).is_ok() {}
        }
    });
    let said = all_fail(&*blobs).await;
    assert!(
        said.starts_with("the object store has a certificate that this system does not trust; "),
        "{said}"
    );
}

#[test]
fn plain_http_must_be_allowed_except_to_this_machine() {
    let mut settings = settings("http://storage.example:9000");
    let error = open(&settings).unwrap_err();
    assert!(error.to_string().contains("is not encrypted"), "{error}");
    settings.transport = Transport::PlainHttpAllowed;
    open(&settings).unwrap();
}

#[tokio::test]
async fn what_the_server_says_is_understood_and_never_quoted() {
    for (status, code, begins) in [
        (403, "InvalidAccessKeyId", "the object store does not accept the credentials; "),
        (403, "SignatureDoesNotMatch", "the object store does not accept the credentials; "),
        (401, "", "the object store does not accept the credentials; "),
        (403, "AccessDenied", "the credentials do not have permission for this in the object store; "),
        (403, "RequestTimeTooSkewed", "the object store rejects this machine's time; "),
        (404, "NoSuchBucket", "the object store has no such bucket or container; "),
        (507, "", "the object store is full, or over its quota; "),
        (403, "QuotaExceeded", "the object store is full, or over its quota; "),
        (
            301,
            "PermanentRedirect",
            "the object store says that the bucket is at another region or endpoint; ",
        ),
        (307, "", "the object store says that the bucket is at another region or endpoint; "),
        (503, "SlowDown", "the object store has an error or is overloaded; "),
        (500, "", "the object store has an error or is overloaded; "),
        (418, "CANARY", "the object store refused the request (HTTP status 418); "),
    ] {
        let body = format!("<Error><Code>{code}</Code><Message>CANARY in a body</Message></Error>");
        let stub = Stub::start(move |_| Reply::new(status, body.clone())).await;
        let said = all_fail(&*open(&settings(&stub.url)).unwrap()).await;
        assert!(said.starts_with(begins), "{status} {code}: {said}");
        let requests = stub.seen();
        let tries = if status >= 500 && status != 507 { 3 } else { 1 };
        assert_eq!(requests.len(), 4 * tries, "{status} {code}: only what may pass is tried again");
        assert!(requests.iter().all(|request| !request.head.contains("SECRETCANARY")));
    }
}

#[tokio::test]
async fn a_fault_that_passes_is_not_seen() {
    let stub = Stub::start({
        let count = std::sync::atomic::AtomicUsize::new(0);
        move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::new(503, ""),
            1 => Reply::new(409, "<Error><Code>ConditionalRequestConflict</Code></Error>"),
            _ => Reply::new(200, ""),
        }
    })
    .await;
    let (pointer, bytes) = sealed("passes");
    let blobs = open(&settings(&stub.url)).unwrap();
    blobs.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    let requests = stub.seen();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert_eq!((request.method.as_str(), &request.body), ("PUT", &bytes));
        assert_eq!(request.path, format!("/bucket/some/prefix/{}", pointer.hex()));
        assert!(request.head.to_ascii_lowercase().contains("if-none-match: *"), "{}", request.head);
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_ours_is_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 200 OK\r\nlast-modified: Sat, 01 Aug 2026 00:00:00 GMT\r\netag: \"x\"\r\n\
                        content-length: 99999999999\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
        }
    });
    let (pointer, _) = sealed("huge");
    let error = open(&settings(&url)).unwrap().get(&pointer, &Locator::default()).await.unwrap_err();
    assert!(matches!(error, Error::Tampered { .. }), "{error:?}");
    task.abort();
}

#[tokio::test]
async fn azure_and_google_speak_to_their_endpoint() {
    let account = || "account".to_owned();
    for (url, credentials, path, create) in [
        (
            "az://container/p",
            Credentials::AzureKey { account: account(), access_key: "Q0FOQVJZ".into() },
            "/container/p/",
            "if-none-match: *",
        ),
        (
            "az://container/p",
            Credentials::AzureSas { account: account(), signature: "sv=2024-01-01&sig=CANARY".into() },
            "/container/p/",
            "if-none-match: *",
        ),
        (
            "gs://bucket/p",
            Credentials::GoogleToken { token: "CANARY".into() },
            "/bucket/p%2F",
            "x-goog-if-generation-match: 0",
        ),
        ("gs://bucket/p", Credentials::Anonymous, "/bucket/p%2F", "x-goog-if-generation-match: 0"),
    ] {
        let stub = Stub::start(|_| Reply::new(403, "<Error><Code>AuthenticationFailed</Code></Error>")).await;
        let settings = ObjectSettings { url: url.into(), credentials, ..settings(&stub.url) };
        let said = all_fail(&*open(&settings).unwrap()).await;
        assert!(said.starts_with("the object store does not accept the credentials; "), "{said}");
        let put = &stub.seen()[0];
        assert!(
            put.path.starts_with(path) || put.path.starts_with(&format!("/account{path}")),
            "{}",
            put.path
        );
        assert!(put.head.to_ascii_lowercase().contains(create), "{}", put.head);
    }
}

#[test]
fn settings_that_cannot_be_used_are_not_quoted() {
    for (url, credentials) in [
        ("az://container", Credentials::AzureKey { account: "a".into(), access_key: "CANARY?!".into() }),
        ("az://container", Credentials::AzureSas { account: "a".into(), signature: "%%CANARY".into() }),
        ("gs://bucket", Credentials::GoogleServiceAccount { key_json: "{\"CANARY\"".into() }),
        ("az://container", Credentials::Anonymous),
    ] {
        if let Err(error) = open(&ObjectSettings::new(url, credentials)) {
            assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
            assert!(!error.to_string().contains("CANARY"), "{error}");
        }
    }
}

/// The address of a real S3 server, or none; a server that is required and not there is a failure.
#[expect(clippy::disallowed_methods, reason = "tests are told by the environment which servers there are")]
#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    let required = std::env::var_os("REQUIRE_ALL_STORES").is_some_and(|value| value == "1");
    assert!(url.is_some() || !required, "{variable} is not set; tests/s3_server.py sets it");
    if url.is_none() {
        eprintln!("not run: {variable} is not set; tests/s3_server.py sets it");
    }
    url
}

/// A fresh bucket. The test server asks nobody who they are.
async fn bucket(endpoint: &str) -> Arc<dyn Blobs> {
    let name = format!("test-{}", crate::blobs::random_hex().unwrap());
    let host = endpoint.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request =
        format!("PUT /{name} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    assert!(reply.contains(" 200 "), "{reply}");
    open(&ObjectSettings { url: format!("s3://{name}/memory"), ..settings(endpoint) }).unwrap()
}

macro_rules! laws_on_s3 {
    ($($law:ident),* $(,)?) => {mod s3 {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $law() {
            let Some(endpoint) = super::server("CONFIDANT_TEST_S3") else { return };
            let blobs = super::bucket(&endpoint).await;
            blobs.check().await.unwrap();
            super::conformance::$law(&*blobs).await;
        }
    )*}};
}

laws_on_s3!(
    what_is_put_is_got,
    putting_twice_is_putting_once,
    what_is_missing_is_not_found,
    what_is_removed_is_gone,
    puts_at_once_are_one,
);

#[tokio::test]
async fn on_s3_a_missing_bucket_is_said() {
    let Some(endpoint) = server("CONFIDANT_TEST_S3") else { return };
    let said = all_fail(&*open(&settings(&endpoint)).unwrap()).await;
    assert!(said.starts_with("the object store has no such bucket or container; "), "{said}");
}

#[tokio::test]
async fn on_s3_a_damaged_object_is_mended_by_a_put() {
    let Some(endpoint) = server("CONFIDANT_TEST_S3") else { return };
    let blobs = bucket(&endpoint).await;
    let (pointer, bytes) = sealed("mended");
    // Whoever has the bucket can write anything under the name.
    blobs.put(&pointer, b"something else", None, &unnoted).await.unwrap();
    assert!(!pointer.names(&blobs.get(&pointer, &Locator::default()).await.unwrap()));
    blobs.put(&pointer, &bytes, None, &unnoted).await.unwrap();
    assert_eq!(blobs.get(&pointer, &Locator::default()).await.unwrap(), bytes);
    assert_eq!(blobs.remove(&pointer, &Locator::default()).await.unwrap(), Removed::Gone);
}

#[tokio::test]
async fn on_s3_wrong_credentials_are_said() {
    let Some(endpoint) = server("CONFIDANT_TEST_S3_STRICT") else { return };
    let said = all_fail(&*open(&settings(&endpoint)).unwrap()).await;
    assert!(said.starts_with("the object store does not accept the credentials; "), "{said}");
}

/// For 127.0.0.1, signed by itself, good until 2120, and of no use to anybody.
const TEST_CERTIFICATE: &str = "MIIBIjCByKADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBHRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEw\
    MDAwMDBaMA8xDTALBgNVBAMMBHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT21CGVeb5Kulib61tXU98jKWUYXghn\
    41gVpAoVoFTPu+jtzV89+TXl2fHscCOxEVIBXWF0ICVE13h4227mt7O5oxMwETAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49\
    BAMCA0kAMEYCIQC7YZ1IfLg8M728O4edfimOpLeTw0xvW05VMhbTNzlC7wIhAMLaHxdOrjUr/Z0PWZVL0jRGTRfpV+NWa9et\
    63kdpIEO";
const TEST_KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgPR9kxdjU9jLgURNz8JgzlkYKcQ8DfdzdNZ9WFmk0lAuhRANC\
    AAT21CGVeb5Kulib61tXU98jKWUYXghn41gVpAoVoFTPu+jtzV89+TXl2fHscCOxEVIBXWF0ICVE13h4227mt7O5";

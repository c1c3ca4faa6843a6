use super::*;

fn key() -> Credentials {
    Credentials::S3 {
        access_key_id: "AKIDCANARY".into(),
        secret_access_key: "SECRETCANARY".into(),
        session_token: Some("TOKENCANARY".into()),
    }
}

#[test]
fn urls_are_read() {
    let place =
        |cloud, bucket: &str, prefix: &str| Place { cloud, bucket: bucket.into(), prefix: prefix.into() };
    for (url, expected) in [
        ("s3://bucket", place(Cloud::S3, "bucket", "")),
        ("s3://bucket/", place(Cloud::S3, "bucket", "")),
        ("s3://my.bucket-1/a/b_c/", place(Cloud::S3, "my.bucket-1", "a/b_c")),
        ("az://container/x", place(Cloud::Azure, "container", "x")),
        ("gs://bucket/memory", place(Cloud::Google, "bucket", "memory")),
    ] {
        assert_eq!(Place::parse(url).unwrap(), expected);
    }
    for url in [
        "",
        "bucket",
        "s3://",
        "s3:///x",
        "s4://bucket",
        "https://bucket",
        "s3://b",
        "s3://user:pass@bucket/x",
        "s3://bucket/a/../b",
        "s3://bucket/a//b",
        "s3://bucket/a b",
        "s3://bucket/a?x=1",
        "s3://bu cket",
        "s3://...",
    ] {
        let error = Place::parse(url).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{url}: {error:?}");
        assert!(!error.to_string().contains("pass"), "{error}");
    }
}

#[test]
fn credentials_must_be_for_the_store_and_are_not_printed() {
    let error = open(&ObjectSettings::new("gs://bucket", key())).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    let printed = format!("{:?}", ObjectSettings::new("s3://bucket", key()));
    assert!(!printed.contains("SECRETCANARY") && !printed.contains("TOKENCANARY"), "{printed}");
}

#[cfg(not(feature = "cloud"))]
mod disabled {
    use super::*;

    #[test]
    fn a_program_without_object_stores_says_so() {
        let error = open(&ObjectSettings::new("s3://bucket", key())).unwrap_err();
        assert!(error.to_string().contains("feature `cloud`"), "{error}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests are told by the environment what must run")]
    fn where_all_stores_are_required_they_must_be_built_in() {
        let required = std::env::var_os("REQUIRE_ALL_STORES").is_some_and(|value| value == "1");
        assert!(!required, "run the tests with the feature `cloud`");
    }
}

#[cfg(feature = "cloud")]
mod enabled;

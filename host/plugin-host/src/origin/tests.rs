use super::*;

fn source(text: &str) -> String {
    PluginOrigin::of(text, None).source
}

#[test]
fn versions_of_one_source_have_one_origin() {
    for group in [
        &[
            "git+https://github.com/owner/repo.git",
            "git+https://github.com/Owner/Repo",
            "git+https://me@github.com/owner/repo/",
            "git+https://github.com/owner/repo.git@v1.2",
            "git+git@github.com:owner/repo.git@main",
            "git+ssh://git@github.com/owner/repo",
        ][..],
        &["git+https://host.example/a/b.git@v1#sub", "git+https://HOST.example/a/b.git/#sub/"],
        &["git+git@host.example:a/b", "git+ssh://git@host.example/a/b@v2"],
        &["oci://host.example:5000/a/b:v1", "oci://HOST.example:5000/a/b@sha256:00", "oci://host.example:5000/a/b"],
        &[
            "https://github.com/owner/repo/releases/download/v1/a-1.0.0.tar.gz",
            "https://github.com/Owner/repo/releases/download/v2/a-2.0.0.tar.gz",
            "https://github.com/owner/repo/releases/latest/download/a.wasm",
        ],
        &[
            "https://gitlab.com/group/sub/repo/-/releases/v1/downloads/a.zip",
            "https://gitlab.com/group/sub/repo/-/releases/v2/downloads/a.zip",
        ],
    ] {
        for text in group {
            assert_eq!(source(text), source(group[0]), "{text}");
        }
    }
}

mod attack {
    use super::*;

    #[test]
    fn other_addresses_are_other_origins() {
        let texts = [
            "/home/me/mine",
            "/home/me/mine.wasm",
            "/home/me/git+https://github.com/owner/repo",
            "git+https://github.com/owner/repo",
            "git+http://github.com/owner/repo",
            "git+https://github.com/owner/repo#a",
            "git+https://github.com/owner/repo#b",
            "git+https://github.com/owner/repository",
            "git+https://github.com.evil.example/owner/repo",
            "git+https://github.com@evil.example/owner/repo",
            "git+https://evil.example/github.com/owner/repo",
            "git+https://github.com:8443/owner/repo",
            "git+ssh://a@host.example/repo",
            "git+ssh://b@host.example/repo",
            "git+https://host.example/A/b",
            "git+https://host.example/a/b",
            "git+https://host.example/a/b.git",
            "git+https://host.example/a/b.git.git",
            "git+https://ann@host.example/a/b",
            "git+https://bob@host.example/a/b",
            "git+https://github.com/owner/repo/../../evil/repo",
            "git+https://github.com/owner/repo/%2e%2e/%2E./evil/repo",
            "git+file:///srv/repo",
            "git+file:///srv/repo.git",
            "oci://host.example/a/b:1",
            "oci://host.example/a/c:1",
            "oci://host.example:5000/a/b:1",
            "https://github.com/owner/repo/releases/download/v1/a.zip",
            "https://github.com/evil/repo/releases/download/v1/a.zip",
            "https://github.com/owner/other/releases/download/v1/a.zip",
            "http://github.com/owner/repo/releases/download/v1/a.zip",
            "https://evil.example/owner/repo/releases/download/v1/a.zip",
            "https://evil.example/owner/repo/releases/download/v2/a.zip",
            "https://github.com/owner/repo/raw/releases/download/v1/a.zip",
            "https://gitlab.com/-/releases/a.zip",
            "https://github.com/owner/repo/releases/download/../../../../evil/repo/releases/download/v1/a.zip",
            "https://github.com/owner/repo/releases/download/%2e%2e/.%2E/../../evil/repo/releases/download/v1/a.zip",
            "https://github.com/owner/repo/releases/download/v1/..\\..\\a.zip",
            "https://gitlab.com/group/repo/-/releases/../../../evil/-/releases/a.zip",
        ];
        for (at, one) in texts.iter().enumerate() {
            for other in &texts[at + 1..] {
                assert_ne!(source(one), source(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn an_author_may_begin_to_sign_but_a_key_does_not_change_silently() {
        let of = |key| PluginOrigin::of("oci://h.example/a:1", key);
        assert!(of(None).is_continued_by(&of(Some("RWA"))));
        assert!(of(Some("RWA")).is_continued_by(&of(Some("RWA"))));
        assert!(!of(Some("RWA")).is_continued_by(&of(Some("RWB"))));
        assert!(!of(Some("RWA")).is_continued_by(&of(None)));
        let elsewhere = PluginOrigin::of("oci://evil.example/a:1", Some("RWA"));
        assert!(!of(Some("RWA")).is_continued_by(&elsewhere), "a key alone is not an origin");
    }
}

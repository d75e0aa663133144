//! Absolute addresses for the links of a page.

/// The address that a link of a page leads to. None for what is not a page, such as scripts and data.
pub(crate) fn absolute(base: &str, link: &str) -> Option<String> {
    let link = link.trim();
    if let Some((scheme, _)) = link.split_once(':')
        && !scheme.is_empty()
        && scheme.chars().all(|sign| sign.is_ascii_alphanumeric() || "+-.".contains(sign))
    {
        let scheme = scheme.to_ascii_lowercase();
        return ["http", "https", "mailto"].contains(&scheme.as_str()).then(|| link.to_owned());
    }
    let (scheme, rest) = base.split_once("://")?;
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if let Some(other) = link.strip_prefix("//") {
        return Some(format!("{scheme}://{other}"));
    }
    // A link within the page needs no address.
    if link.is_empty() || link.starts_with('#') {
        return None;
    }
    let (to, tail) = link.split_at(link.find(['?', '#']).unwrap_or(link.len()));
    let path = match to {
        "" => path.to_owned(),
        to if to.starts_with('/') => resolved("", to),
        to => resolved(&path[..path.rfind('/').map_or(0, |at| at + 1)], to),
    };
    Some(format!("{scheme}://{host}{}{tail}", if path.is_empty() { "/" } else { &path }))
}

/// A path without `.` and `..`.
fn resolved(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let joined = format!("{folder}{path}");
    for part in joined.split('/').skip(usize::from(joined.starts_with('/'))) {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_absolute_and_scripts_are_none() {
        let base = "https://a.example/docs/guide/?v=2#top";
        for (link, address) in [
            ("next", Some("https://a.example/docs/guide/next")),
            ("./next?x=1#y", Some("https://a.example/docs/guide/next?x=1#y")),
            ("../up/", Some("https://a.example/docs/up/")),
            ("../../../..", Some("https://a.example/")),
            ("/root", Some("https://a.example/root")),
            ("?v=3", Some("https://a.example/docs/guide/?v=3")),
            ("//b.example/x", Some("https://b.example/x")),
            ("http://c.example", Some("http://c.example")),
            ("mailto:ada@a.example", Some("mailto:ada@a.example")),
            ("a/b:c", Some("https://a.example/docs/guide/a/b:c")),
            ("#top", None),
            ("", None),
            ("javascript:alert(1)", None),
            ("JavaScript:alert(1)", None),
            ("data:text/html,x", None),
        ] {
            assert_eq!(absolute(base, link).as_deref(), address, "{link}");
        }
        assert_eq!(absolute("https://a.example", "x").as_deref(), Some("https://a.example/x"));
        assert_eq!(absolute("nowhere", "x"), None);
    }
}

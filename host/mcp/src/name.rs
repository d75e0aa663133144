//! The names of a server's tools as the model sees them.

/// The most bytes of a tool's name. Providers allow no more.
const LONGEST: usize = 64;
/// The most bytes of a server's name, so that names of its tools stay readable.
const LONGEST_SERVER: usize = 32;

/// Whether a server can have this name: approvals, files and names of tools contain it.
pub fn is_server_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.len() <= LONGEST_SERVER && name.bytes().all(plain)
}

/// The name under which the model calls a tool of a server: `mcp_SERVER_TOOL`. Characters that providers do not allow become
/// underscores, and a long name ends with a hash of the whole name.
pub fn tool_name(server: &str, tool: &str) -> String {
    /// Hexadecimal digits of the hash.
    const HASH: usize = 8;
    let plain = |part: &str| -> String {
        part.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
    };
    let mut name = format!("mcp_{}_{}", plain(server), plain(tool));
    if name.len() > LONGEST {
        let hash = blake3::hash(format!("{server}\0{tool}").as_bytes()).to_hex();
        name.truncate(LONGEST - HASH - 1);
        name.push('_');
        name.push_str(&hash[..HASH]);
    }
    name
}

/// The name of the login to a server.
pub fn login_name(server: &str) -> String {
    format!("mcp:{server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_what_providers_allow() {
        for (server, tool, expected) in [
            ("fs", "read_file", "mcp_fs_read_file"),
            ("my-server", "get.user/name", "mcp_my_server_get_user_name"),
            ("fs", "größe 1", "mcp_fs_gr__e_1"),
            ("fs", "", "mcp_fs_"),
        ] {
            assert_eq!(tool_name(server, tool), expected);
        }
    }

    #[test]
    fn long_names_stay_different() {
        let (one, other) = ("a".repeat(100), format!("{}b", "a".repeat(99)));
        let names = [tool_name("fs", &one), tool_name("fs", &other)];
        assert!(names.iter().all(|name| name.len() == 64 && name.starts_with("mcp_fs_aaa")), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(tool_name("fs", &"a".repeat(57)).len(), 64);
    }

    #[test]
    fn names_of_servers_are_plain() {
        assert!(["fs", "my-server_2", &"a".repeat(32)].iter().all(|name| is_server_name(name)));
        assert!(!["", "a b", "a/b", "a.b", "ä", "..", &"a".repeat(33)].iter().any(|name| is_server_name(name)));
    }
}

//! The list of a session: the built-in one, and the patterns of the configuration.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::BUILT_IN;
use super::linked::{Linked, Places};
use super::name::{caseless, readable};

/// Why a file is listed that only the configuration lists.
const IMPORTED: &str = "a context file of the project imports it, so agents follow it as instructions";
const CONFIGURED: &str = "your configuration lists it under `approvals.protect`";

/// A longer pattern is none.
const LONGEST: usize = 512;

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Its pattern.
    pub pattern: Cow<'static, str>,
    /// What the file does.
    pub reason: Cow<'static, str>,
}

/// A pattern of the configuration that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a pattern of files: {why}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

/// The list of a session: the built-in one and the patterns of the configuration.
#[derive(Debug, Clone)]
pub struct Listed {
    files: Vec<ListedFile>,
    home: Option<PathBuf>,
    /// Compiled when the first file is looked up: most sessions change none, and compiling takes milliseconds.
    sets: OnceLock<Sets>,
}

#[derive(Debug, Clone)]
struct Sets {
    exact: GlobSet,
    /// Patterns of the folders that lead to a listed file, and of the file itself.
    leading: GlobSet,
    /// The entry of each pattern in `leading`.
    of_leading: Vec<usize>,
    /// Places without wildcards, below every folder.
    anywhere: Places,
    /// The same below the root of the file system.
    fixed: Places,
}

impl Default for Listed {
    fn default() -> Self {
        // The built-in patterns are constants, and a test reads them.
        Self::new(&[], None).unwrap_or_else(|error| unreachable!("{error}"))
    }
}

impl Listed {
    /// The built-in list with further patterns. Without a home folder, patterns that begin with `~/` match nothing.
    ///
    /// # Errors
    ///
    /// When a pattern is not valid.
    pub fn new(further: &[String], home: Option<&Path>) -> Result<Self, PatternError> {
        Self::with_imported(further, &[], home)
    }

    /// The same with the files that context files import: what agents follow as instructions depends on the project.
    ///
    /// # Errors
    ///
    /// When a pattern is not valid.
    pub fn with_imported(further: &[String], imported: &[PathBuf], home: Option<&Path>) -> Result<Self, PatternError> {
        let built_in = BUILT_IN.iter().flat_map(|(reason, patterns)| {
            patterns.iter().map(|pattern| ListedFile { pattern: (*pattern).into(), reason: (*reason).into() })
        });
        let is_usable = |path: &String| path.starts_with('/') && path.len() <= LONGEST && !path.contains('\\');
        let imported: Vec<ListedFile> = imported
            .iter()
            // A path is no pattern.
            .filter_map(|path| path.to_str().map(globset::escape).filter(is_usable))
            .map(|path| ListedFile { pattern: path.into(), reason: IMPORTED.into() })
            .collect();
        let is_constant = further.is_empty() && imported.is_empty();
        let further = further
            .iter()
            .map(|pattern| ListedFile { pattern: pattern.trim().to_owned().into(), reason: CONFIGURED.into() });
        let files: Vec<ListedFile> = built_in.chain(imported).chain(further).collect();
        let listed = Self { files, home: home.map(Path::to_owned), sets: OnceLock::new() };
        if !is_constant {
            let _ = listed.sets.set(listed.compile()?);
        }
        Ok(listed)
    }

    /// The same list with these files in place of those that context files import so far.
    ///
    /// # Errors
    ///
    /// Never for patterns that were valid before.
    pub fn importing(&self, imported: &[PathBuf]) -> Result<Self, PatternError> {
        let further = self.files.iter().filter(|file| file.reason == CONFIGURED).map(|file| file.pattern.to_string());
        Self::with_imported(&further.collect::<Vec<_>>(), imported, self.home.as_deref())
    }

    fn sets(&self) -> &Sets {
        // Only the built-in patterns are compiled here. They are constants, and a test compiles them.
        self.sets.get_or_init(|| self.compile().unwrap_or_else(|error| unreachable!("{error}")))
    }

    fn compile(&self) -> Result<Sets, PatternError> {
        let (mut exact, mut leading, mut of_leading) = (GlobSetBuilder::new(), GlobSetBuilder::new(), Vec::new());
        let (mut anywhere, mut fixed) = (Places::default(), Places::default());
        for (at, file) in self.files.iter().enumerate() {
            let globs = Globs::of(&file.pattern, self.home.as_deref())?;
            exact.add(globs.exact);
            match globs.place {
                Place::Anywhere(parts) => anywhere.add(parts),
                Place::Fixed(parts) => fixed.add(parts),
            }
            for glob in globs.leading {
                leading.add(glob);
                of_leading.push(at);
            }
        }
        let built = |set: GlobSetBuilder| {
            set.build().map_err(|error| PatternError { pattern: String::new(), why: error.kind().to_string() })
        };
        Ok(Sets { exact: built(exact)?, leading: built(leading)?, of_leading, anywhere, fixed })
    }

    /// The patterns, in their order.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.pattern)
    }

    /// The entry of a file at this absolute path. The configuration's entries count before the built-in ones.
    pub fn of_file(&self, path: &Path) -> Option<&ListedFile> {
        self.sets().exact.matches(readable(path)).last().map(|at| &self.files[*at])
    }

    /// The entry of a file at this path or below it, if there were one.
    pub fn of_link(&self, path: &Path) -> Option<&ListedFile> {
        let sets = self.sets();
        sets.leading.matches(readable(path)).last().map(|at| &self.files[sets.of_leading[*at]])
    }

    /// The links at places of the list that lead to the entry at this path, or to something below it.
    pub(super) fn links_to(&self, path: &Path) -> Linked {
        let sets = self.sets();
        Linked::to(path, &sets.anywhere, &sets.fixed)
    }
}

struct Globs {
    exact: globset::Glob,
    leading: Vec<globset::Glob>,
    place: Place,
}

/// The parts of a pattern before its first wildcard.
enum Place {
    Anywhere(Vec<OsString>),
    /// From the root of the file system.
    Fixed(Vec<OsString>),
}

impl Place {
    fn of(pattern: &str, home: Option<&Path>) -> Self {
        let names = |path: &Path| -> Vec<OsString> {
            let name =
                |part: Component<'_>| if let Component::Normal(name) = part { Some(name.to_owned()) } else { None };
            path.components().filter_map(name).collect()
        };
        let literal = |rest: &str| {
            let parts = rest.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
            parts.map(OsString::from).collect::<Vec<_>>()
        };
        match (pattern.strip_prefix("~/"), pattern.strip_prefix('/')) {
            (Some(rest), _) => Self::Fixed(home.map_or_else(Vec::new, |home| [names(home), literal(rest)].concat())),
            (_, Some(rest)) => Self::Fixed(literal(rest)),
            _ => Self::Anywhere(literal(pattern.strip_prefix("./").unwrap_or(pattern))),
        }
    }
}

impl Globs {
    fn of(pattern: &str, home: Option<&Path>) -> Result<Self, PatternError> {
        let bad = |why: &str| PatternError { pattern: pattern.to_owned(), why: why.to_owned() };
        if pattern.is_empty() || pattern.len() > LONGEST {
            return Err(bad("it needs 1 to 512 characters"));
        }
        if pattern.starts_with('!') {
            return Err(bad("a pattern cannot take files off the list; allow them under `approvals.allow`"));
        }
        let whole = match pattern.strip_suffix('/') {
            Some(folder) => format!("{folder}/**"),
            None => pattern.to_owned(),
        };
        let (base, rest) = match (whole.strip_prefix("~/"), whole.strip_prefix('/')) {
            // Without a home folder nothing can lie in it.
            (Some(rest), _) => (home.map_or("/\0".to_owned(), |home| globset::escape(&readable(home))), rest),
            (_, Some(rest)) => (String::new(), rest),
            _ => ("**".to_owned(), whole.as_str()),
        };
        let rest = rest.strip_prefix("./").unwrap_or(rest);
        if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(bad("its parts are names and wildcards, without `.`, `..` and `//`"));
        }
        let glob = |text: &str| {
            let text = format!("{base}/{}", caseless(text));
            GlobBuilder::new(&text)
                .literal_separator(true)
                .case_insensitive(true)
                .build()
                .map_err(|error| bad(&error.kind().to_string()))
        };
        let ends = rest.match_indices('/').map(|(at, _)| at).chain([rest.len()]);
        let leading = ends.map(|end| &rest[..end]).filter(|part| *part != "**").map(glob).collect::<Result<_, _>>()?;
        Ok(Self { exact: glob(rest)?, leading, place: Place::of(&whole, home) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pattern<'a>(listed: &'a Listed, path: &str) -> Option<&'a str> {
        listed.of_file(Path::new(path)).map(|file| &*file.pattern)
    }

    #[test]
    fn listed_files_are_found_below_every_folder_and_in_any_case() {
        let listed = Listed::new(&[], Some(Path::new("/home/Me"))).unwrap();
        for (path, expected) in [
            ("/w/.envrc", ".envrc"),
            ("/w/deep/down/.ENVRC", ".envrc"),
            ("/w/agents.md", "AGENTS.md"),
            ("/w/AGENTS.md.", "AGENTS.md"),
            ("/w/.vscode/tasks.json", ".vscode/**"),
            ("/w/.VSCode/sub/x", ".vscode/**"),
            ("/w/.github/workflows/ci.yml", ".github/workflows/**"),
            ("/home/me/.ssh/authorized_keys", ".ssh/**"),
            ("/home/me/bin/ls", "~/bin/**"),
            ("/etc/cron.d/x", "/etc/**"),
            ("/w/.c\u{200c}argo/config.toml", ".cargo/config.toml"),
            ("/w/venv/lib/python3/site-packages/x.pth", "site-packages/*.pth"),
        ] {
            assert_eq!(pattern(&listed, path), Some(expected), "{path}");
        }
        for path in [
            "/w/src/main.rs",
            "/w/build.rs",
            "/w/Makefile",
            "/w/package.json",
            "/w/.github/CODEOWNERS",
            "/w/.github/ISSUE_TEMPLATE/bug.md",
            "/w/docs/agents.html",
            "/w/etc/x",
            "/w/bin/x",
            "/w/.vscode",
            "/w/x.pth",
            "/usr/src/app/main.js",
        ] {
            assert_eq!(pattern(&listed, path), None, "{path}");
        }
    }

    #[test]
    fn a_link_is_listed_if_files_below_it_would_be() {
        let listed = Listed::default();
        let of = |path: &str| listed.of_link(Path::new(path)).map(|file| &*file.pattern);
        assert_eq!(of("/w/.envrc"), Some(".envrc"));
        assert_eq!(of("/w/.husky"), Some(".husky/**"));
        assert!(of("/w/.github").is_some() && of("/w/.github/workflows").is_some());
        assert_eq!(of("/w/src"), None);
    }

    #[test]
    fn the_configuration_adds_patterns_and_mistakes_are_named() {
        let further = ["deploy/".to_owned(), "*.tf".to_owned(), "/srv/www/**".to_owned()];
        let listed = Listed::new(&further, None).unwrap();
        assert_eq!(pattern(&listed, "/w/a/deploy/run.sh"), Some("deploy/"));
        assert_eq!(pattern(&listed, "/w/main.tf"), Some("*.tf"));
        assert_eq!(pattern(&listed, "/srv/www/index.html"), Some("/srv/www/**"));
        assert_eq!(pattern(&listed, "/w/srv/www/index.html"), None);
        for wrong in ["", "a/../b", "!x", "a//b", "[", "{a"] {
            let error = Listed::new(&[wrong.to_owned()], None).unwrap_err();
            assert_eq!(error.pattern, wrong);
        }
    }

    #[test]
    fn imported_files_are_listed_before_they_exist_and_odd_paths_refuse_nothing() {
        let imported = ["/w/docs/rules.md".to_owned(), format!("/w/{}.md", "a".repeat(600)), "/w/[x]".to_owned()];
        let listed = Listed::with_imported(&[], &imported.map(PathBuf::from), None).unwrap();
        assert_eq!(pattern(&listed, "/w/docs/Rules.md"), Some("/w/docs/rules.md"));
        assert_eq!(pattern(&listed, "/w/docs/other.md"), None);
        assert!(pattern(&listed, "/w/[x]").is_some() && pattern(&listed, "/w/x").is_none());
        // The configuration's own patterns stay when other files are imported.
        let listed = Listed::new(&["*.tf".to_owned()], None).unwrap().importing(&["/w/a{b}*.md".into()]).unwrap();
        let listed = listed.importing(&["/w/[id]!.md".into(), "/w/plain.md".into()]).unwrap();
        for (path, is_listed) in [
            ("/w/[id]!.md", true),
            ("/w/[ID]!.md", true),
            ("/w/i!.md", false),
            ("/w/plain.md", true),
            ("/w/main.tf", true),
            ("/w/a{b}*.md", false),
            ("/w/AGENTS.md", true),
        ] {
            assert_eq!(pattern(&listed, path).is_some(), is_listed, "{path}");
        }
    }

    /// The table in `docs/use/approvals.md`.
    #[test]
    fn the_documentation_has_the_whole_list() {
        let row = |(reason, patterns): &(&str, &[&str])| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
            format!("| {reason} | {} |\n", patterns.join(", "))
        };
        let table: String = BUILT_IN.iter().map(row).collect();
        let page = include_str!("../../../../../docs/use/approvals.md");
        assert!(page.contains(&table), "docs/use/approvals.md needs this table:\n{table}");
    }
}

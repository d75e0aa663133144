//! `hermes sessions search`: searches the text of messages.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use hermes_app::AppError;
use hermes_app::sessions::{
    self, Found, Fragment, Hit, SearchQuery, Searchable, SessionError, SessionStore, Sort, StoreError,
};
use hermes_protocol::{Role, SessionId};
use serde_json::json;

use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch::{self, Setup};
use crate::moments::local;
use crate::text;

/// Number of messages that are indexed without a progress message.
const MANY: u64 = 1_000;

/// The query, and the messages to search.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct SearchArguments {
    /// Words that a message must contain; also "a phrase", prefix*, this OR that, -without
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,

    /// Search only messages of this role; repeat for more roles
    #[arg(long, value_name = "ROLE", value_parser = ["user", "assistant", "tool"])]
    role: Vec<String>,

    /// Search only this session, by its id, the beginning of its id, or its title
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Search only sessions of this folder
    #[arg(long)]
    here: bool,

    /// Show at most N messages
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Order of the results
    #[arg(long, value_name = "ORDER", default_value = "rank", value_parser = ["rank", "newest", "oldest"])]
    sort: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SearchArguments {
    fn query(&self, session: Option<SessionId>) -> Result<SearchQuery, Failure> {
        let roles: Vec<Role> = self.role.iter().filter_map(|role| Role::parse(role)).collect();
        let workspace = self.here.then(std::env::current_dir).transpose().map_err(|error| {
            let fix = "change to a folder that exists";
            Failure::new(Kind::General, "the current folder is not available", error.to_string(), fix)
        })?;
        Ok(SearchQuery {
            roles: (!roles.is_empty()).then_some(roles),
            session,
            workspace,
            limit: self.limit,
            sort: match self.sort.as_str() {
                "newest" => Sort::Newest,
                "oldest" => Sort::Oldest,
                _ => Sort::Rank,
            },
            ..SearchQuery::new(self.query.join(" "))
        })
    }
}

pub(crate) async fn run(arguments: &SearchArguments, console: Console) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    let hits = match (opened(&setup, console).await?, &arguments.session) {
        (Some(store), session) => {
            let session = match session {
                Some(id) => Some(store.resolve_session(id).await?),
                None => None,
            };
            // A script that asks for all words gets messages with all words.
            let Found { hits, is_loose } =
                sessions::search(&*store, arguments.query(session)?, !arguments.json).await?;
            if is_loose {
                console.note("no message contains all of these words; the best messages with some of them");
            }
            hits
        }
        (None, Some(id)) => return Err(StoreError::from(SessionError::UnknownSession(id.clone())).into()),
        (None, None) => Vec::new(),
    };
    if arguments.json {
        print(&text::json(&json!(hits)))?;
    } else {
        if hits.is_empty() {
            console.note("no messages found");
        }
        print(&render(&hits, console))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the store and indexes new messages if the store can be written.
pub(crate) async fn opened(setup: &Setup, console: Console) -> Result<Option<Arc<dyn SessionStore>>, AppError> {
    let messages = |count| text::counted(count, "message");
    let indexing = |missing| {
        if missing >= MANY {
            let messages = messages(missing);
            console.note(&format!("indexing {messages} first; this happens only once and can take minutes"));
        }
    };
    let Some(Searchable { store, uncovered }) = setup.store_to_search(indexing).await? else { return Ok(None) };
    if let Some((missing, error)) = uncovered {
        let messages = messages(missing);
        console.warning(&format!("the search does not cover {messages} that cannot be indexed: {error}"));
    }
    Ok(Some(store))
}

/// Groups hits by session, in the order of each session's first hit.
fn render(hits: &[Hit], console: Console) -> String {
    let mut groups: Vec<Vec<&Hit>> = Vec::new();
    for hit in hits {
        match groups.iter_mut().find(|group| group[0].session == hit.session) {
            Some(group) => group.push(hit),
            None => groups.push(vec![hit]),
        }
    }
    groups.iter().map(|group| render_session(group, console)).collect::<Vec<_>>().join("\n")
}

fn render_session(hits: &[&Hit], console: Console) -> String {
    let Some(first) = hits.first() else { return String::new() };
    let title = first.title.as_deref().map(|title| format!("  {}", text::title(title))).unwrap_or_default();
    let id = first.session.as_str();
    let heading = console.hanging(&format!("{id}{title}"), 4);
    let mut out = heading.replacen(id, &console.paint(Tone::Good, id), 1);
    for hit in hits {
        let who = match hit.role {
            Role::Tool => hit.tool_name.as_deref().unwrap_or("tool"),
            role => role.as_str(),
        };
        let heading = format!("[{}] {} · {}", hit.message, text::line(who), local(hit.created_at));
        out.push_str(&format!("  {}\n", console.paint(Tone::Faint, &heading)));
        out.push_str(&format!("    {}\n", shown(&hit.snippet, console)));
    }
    out
}

/// A snippet on one line, with the matches highlighted.
fn shown(snippet: &[Fragment], console: Console) -> String {
    let mut shown = String::new();
    for fragment in snippet {
        let line = text::line(&fragment.text);
        let blank = |found: Option<char>| found.is_some_and(char::is_whitespace);
        if blank(fragment.text.chars().next()) && !shown.ends_with(' ') {
            shown.push(' ');
        }
        let tone = if fragment.matched { Tone::Warning } else { Tone::Plain };
        shown.push_str(&console.paint(tone, &line));
        if !line.is_empty() && blank(fragment.text.chars().next_back()) {
            shown.push(' ');
        }
    }
    shown.trim().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;
    use hermes_protocol::MessageId;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        search: SearchArguments,
    }

    fn parse(line: &str) -> Result<SearchArguments, clap::Error> {
        Line::try_parse_from(std::iter::once("search").chain(line.split(' '))).map(|line| line.search)
    }

    #[test]
    fn the_words_of_the_line_are_one_query() {
        let query = parse("docker network --role user --role tool --sort newest --limit 3").unwrap();
        let query = query.query(None).unwrap();
        assert_eq!(
            query,
            SearchQuery {
                roles: Some(vec![Role::User, Role::Tool]),
                sort: Sort::Newest,
                limit: 3,
                ..SearchQuery::new("docker network")
            }
        );
        assert_eq!(parse("-- foo -bar").unwrap().query(None).unwrap(), SearchQuery::new("foo -bar"));
        let here = parse("x --here").unwrap().query(None).unwrap();
        assert_eq!(here.workspace, Some(std::env::current_dir().unwrap()));
        for line in ["x --role system", "x --sort best", "--json"] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    fn hit(session: &str, message: u64, snippet: &[(&str, bool)]) -> Hit {
        Hit {
            message: MessageId(message),
            session: SessionId(session.into()),
            title: (session == "a").then(|| "A \u{1b}[31mtitle".into()),
            role: Role::User,
            tool_name: None,
            created_at: 0,
            source: "cli".into(),
            model: "m".into(),
            session_started_at: 0,
            snippet: snippet
                .iter()
                .map(|(text, matched)| Fragment { text: (*text).into(), matched: *matched })
                .collect(),
            before: None,
            after: None,
        }
    }

    #[test]
    fn hits_are_grouped_by_session() {
        let hits = [
            hit("a", 3, &[("…two\nlines of ", false), ("match", true), ("es \u{1b}]0;x\u{7}and", false)]),
            hit("b", 1, &[("match", true), (" ", false), ("again", true)]),
            hit("a", 2, &[("plain", false)]),
        ];
        let time = local(0);
        assert_eq!(
            render(&hits, Console::plain(false)),
            format!(
                "a  A \\u{{1b}}[31mtitle\n  [3] user · {time}\n    …two lines of matches \\u{{1b}}]0;x\\u{{7}}and\n  [2] user · {time}\n    plain\n\n\
                 b\n  [1] user · {time}\n    match again\n"
            )
        );
    }
}

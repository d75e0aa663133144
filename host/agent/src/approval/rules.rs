//! `approvals.allow`, `approvals.ask` and `approvals.deny`: rules that decide without a question, or demand one.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use hermes_protocol::SAMPLING;

use super::line::{Line, Unreadable, Word};
use super::pattern::{self, Pattern};
use super::right::Right;
use crate::owner::HOST;
use crate::toolbox::OwnTools;

/// The lists. `deny` wins over `ask`, and `ask` over `allow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    allow: Vec<Entry>,
    reads: Vec<Entry>,
    ask: Vec<Entry>,
    deny: Vec<Entry>,
}

/// The lists as they are configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct RuleLists<'a> {
    /// `approvals.allow`.
    pub allow: &'a [String],
    /// `approvals.reads`.
    pub reads: &'a [String],
    /// `approvals.ask`.
    pub ask: &'a [String],
    /// `approvals.deny`.
    pub deny: &'a [String],
}

/// An entry that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{list}` has the entry `{entry}`, which is not a rule")]
pub struct RuleError {
    list: &'static str,
    entry: String,
}

/// An entry that is about nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{list}` has the entry `{entry}`, and there is no such tool or program")]
pub struct UnknownRule {
    /// The list that has it, such as `approvals.deny`.
    pub list: &'static str,
    /// The entry.
    pub entry: String,
    /// The most similar entry that would be about something.
    pub nearest: Option<String>,
}

impl UnknownRule {
    /// The error for an entry, with what exists.
    pub fn new(rule: &Rule<'_>, known: impl Iterator<Item = String>) -> Self {
        /// Below this a suggestion confuses more than it helps.
        const SIMILAR: f64 = 0.6;
        let entry = rule.entry.written.as_str();
        let alike = known.map(|known| (strsim::normalized_damerau_levenshtein(entry, &known), known));
        let nearest = alike.filter(|(alike, _)| *alike >= SIMILAR).max_by(|(one, _), (other, _)| one.total_cmp(other));
        Self { list: rule.list, entry: entry.to_owned(), nearest: nearest.map(|(_, known)| known) }
    }
}

/// An entry of one of the lists.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'a> {
    list: &'static str,
    entry: &'a Entry,
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has `{}`", self.list, self.entry.written)
    }
}

impl<'a> Rule<'a> {
    /// The plugin that it is about.
    pub fn plugin(&self) -> &'a str {
        &self.entry.plugin
    }

    /// The tool, `process:PROGRAM`, `variables:PROGRAM`, `unconfined:PROGRAM` or `files:PATTERN`, if it names one.
    pub fn what(&self) -> Option<&'a str> {
        if let About::Exactly(what) = &self.entry.about { Some(what) } else { None }
    }

    /// Whether it limits everything that a plugin does.
    pub(super) fn is_all_but_allowed(&self) -> bool {
        self.entry.about == About::All && ["approvals.ask", "approvals.deny"].contains(&self.list)
    }

    /// The pattern of commands, if it has one.
    pub fn command(&self) -> Option<String> {
        if let About::Commands(pattern) = &self.entry.about { Some(pattern.to_string()) } else { None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    plugin: String,
    about: About,
    written: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum About {
    /// Everything that the plugin does.
    All,
    /// One tool, program or pattern of files.
    Exactly(String),
    /// The commands that it runs.
    Commands(Pattern),
}

/// What the rules say about an action: the only answer that decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// This entry of `deny` may cover it.
    Denied(String),
    /// The user is asked, for this reason, whatever else allows it. Only an answer to the same question counts.
    MustAsk {
        /// The reason.
        why: String,
        /// Whether it is about the commands of a line, so that an answer for the whole program does not count.
        of_command: bool,
    },
    /// An entry of `allow` or `reads` covers all of it.
    Allowed,
    /// The mode, an earlier answer or the user decides.
    Open,
}

impl Verdict {
    /// Why the user is asked, whatever else allows it, and whether that is about the commands.
    pub(super) fn must_ask(&self) -> Option<(&str, bool)> {
        if let Self::MustAsk { why, of_command } = self { Some((why, *of_command)) } else { None }
    }
}

/// The commands of a run of a program.
pub(super) struct Commands<'a> {
    pub(super) line: &'a Result<Line, Unreadable>,
    /// Whether the line is all that decides what they do, so that a rule may allow them.
    pub(super) is_whole: bool,
    /// The patterns that the user approved.
    pub(super) approved: &'a [Pattern],
}

/// The prefix of rights to run without the sandbox. Only an entry with this prefix allows them, because such a program has all
/// rights of the user.
pub(super) const UNCONFINED: &str = "unconfined:";

impl ApprovalRules {
    /// Parses the entries of the configuration.
    pub fn parse(lists: RuleLists<'_>) -> Result<Self, RuleError> {
        let list = |name: &'static str, entries: &[String]| {
            let read = |entry: &String| entry.parse().map_err(|()| RuleError { list: name, entry: entry.clone() });
            entries.iter().map(read).collect::<Result<Vec<Entry>, RuleError>>()
        };
        let permitting = |name: &'static str, entries: &[String]| {
            let entries = list(name, entries)?;
            let too_wide =
                |entry: &&Entry| matches!(&entry.about, About::Commands(pattern) if !pattern.names_a_program());
            match entries.iter().find(too_wide) {
                Some(entry) => Err(RuleError { list: name, entry: entry.written.clone() }),
                None => Ok(entries),
            }
        };
        Ok(Self {
            allow: permitting("approvals.allow", lists.allow)?,
            reads: permitting("approvals.reads", lists.reads)?,
            ask: list("approvals.ask", lists.ask)?,
            deny: list("approvals.deny", lists.deny)?,
        })
    }

    /// Finds the entry of `approvals.deny` that covers an action: a tool's name, `process:PROGRAM`, `variables:PROGRAM`
    /// or `files:PATTERN`.
    pub fn forbids(&self, plugin: &str, what: &str) -> Option<String> {
        first(&self.deny, plugin, what)
    }

    /// All entries.
    pub fn all(&self) -> impl Iterator<Item = Rule<'_>> {
        let named = |list: &'static str, entries: &'_ Vec<Entry>| entries.iter().map(move |_| list).collect::<Vec<_>>();
        let lists = [
            ("approvals.allow", &self.allow),
            ("approvals.reads", &self.reads),
            ("approvals.ask", &self.ask),
            ("approvals.deny", &self.deny),
        ];
        lists.into_iter().flat_map(move |(list, entries)| {
            named(list, entries).into_iter().zip(entries).map(|(list, entry)| Rule { list, entry })
        })
    }

    /// The first entry that names no tool of a plugin whose tools are known: one of `catalogs`, of `hooks`, which
    /// can ask about any tool, or Hermes itself. Such an entry does nothing, which its author does not expect.
    pub fn unknown_tool(
        &self,
        catalogs: &BTreeMap<String, Vec<String>>,
        hooks: impl Iterator<Item = String>,
    ) -> Option<UnknownRule> {
        let mut tools = catalogs.clone();
        tools.insert(HOST.to_owned(), OwnTools::NAMES.map(str::to_owned).to_vec());
        let every: Vec<String> = tools.values().flatten().cloned().collect();
        tools.extend(hooks.map(|hook| (hook, every.clone())));
        let rule = self.all().find(|rule| {
            let (Some(what), Some(known)) = (rule.what(), tools.get(rule.plugin())) else { return false };
            !what.contains(':') && what != SAMPLING && !known.iter().any(|tool| tool == what)
        })?;
        let known = tools.iter().flat_map(|(plugin, tools)| tools.iter().map(move |tool| format!("{plugin}/{tool}")));
        Some(UnknownRule::new(&rule, known))
    }

    /// Decides about a right, for a program together with its commands.
    pub(super) fn verdict(&self, right: &Right, commands: Option<&Commands<'_>>) -> Verdict {
        let judged = commands.map(|commands| self.judge(&right.plugin.name, commands)).unwrap_or_default();
        if let Some(entry) = self.denies(right).or(judged.denied) {
            return Verdict::Denied(entry);
        }
        if let Some(why) = judged.asked {
            return Verdict::MustAsk { why, of_command: true };
        }
        if let Some(entry) = self.asks(right) {
            return Verdict::MustAsk { why: format!("`approvals.ask` has `{entry}`"), of_command: false };
        }
        match judged.is_allowed || self.permits(&self.allow, right) || self.reads(right) {
            true => Verdict::Allowed,
            false => Verdict::Open,
        }
    }

    /// Whether an entry of a list that permits covers a right.
    fn permits(&self, list: &[Entry], right: &Right) -> bool {
        let is_about = |entry: &Entry| match &entry.about {
            About::All => !right.what.starts_with(UNCONFINED),
            About::Exactly(own) => *own == right.what,
            About::Commands(_) => false,
        };
        list.iter().any(|entry| entry.plugin == right.plugin.name && is_about(entry))
    }

    /// Whether the user says that an action changes nothing.
    pub(super) fn reads(&self, right: &Right) -> bool {
        self.permits(&self.reads, right)
    }

    /// The same for the commands of a line.
    pub(super) fn reads_line(&self, plugin: &str, line: &Line) -> bool {
        pattern::cover(commands_of(&self.reads, plugin).map(|(_, pattern)| pattern), line)
    }

    /// Finds the entry that denies a right.
    pub(super) fn denies(&self, right: &Right) -> Option<String> {
        self.forbids(&right.plugin.name, &right.what)
    }

    /// Finds the entry that demands a question.
    pub(super) fn asks(&self, right: &Right) -> Option<String> {
        first(&self.ask, &right.plugin.name, &right.what)
    }

    /// What the patterns of commands say about a line of a plugin.
    fn judge(&self, plugin: &str, commands: &Commands<'_>) -> Judged {
        let of = |entries| commands_of(entries, plugin);
        let limits = of(&self.deny).chain(of(&self.ask)).next();
        let Ok(line) = commands.line else {
            let asked = limits.map(|(entry, _)| format!("`{entry}` may cover it, and the command cannot be read"));
            return Judged { asked, ..Judged::default() };
        };
        let may_mean = |entries| {
            let find = |command: &[Word]| of(entries).find(|(_, pattern)| pattern.may_mean(command));
            let (hit, is_read) = line.first_command(|command| find(command).map(|(entry, _)| entry.to_owned()));
            (hit, !is_read)
        };
        let ((denied, unread), (asked, unread_too)) = (may_mean(&self.deny), may_mean(&self.ask));
        let unread = limits.filter(|_| unread || unread_too).map(|(entry, _)| {
            format!("`{entry}` may cover a command in it: a part of it cannot be read, or sets a variable that may start programs")
        });
        let asked = asked.map(|entry| format!("`approvals.ask` has `{entry}`")).or(unread);
        let allowed = of(&self.allow).chain(of(&self.reads)).map(|(_, pattern)| pattern).chain(commands.approved);
        Judged { denied, asked, is_allowed: commands.is_whole && pattern::cover(allowed, line) }
    }
}

/// What the patterns of commands say about a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Judged {
    /// The entry of `deny` that it may fall under.
    denied: Option<String>,
    /// Why the user is asked, whatever allows it.
    asked: Option<String>,
    /// Whether `allow` and the approved patterns cover all of it.
    is_allowed: bool,
}

fn commands_of<'a>(entries: &'a [Entry], plugin: &'a str) -> impl Iterator<Item = (&'a str, &'a Pattern)> + Clone {
    entries.iter().filter(move |entry| entry.plugin == plugin).filter_map(|entry| match &entry.about {
        About::Commands(pattern) => Some((entry.written.as_str(), pattern)),
        About::All | About::Exactly(_) => None,
    })
}

/// The first entry about an action of a plugin, apart from patterns of commands.
fn first(entries: &[Entry], plugin: &str, what: &str) -> Option<String> {
    let is_about = |entry: &&Entry| {
        entry.plugin == plugin
            && match &entry.about {
                About::All => true,
                About::Exactly(own) => own == what,
                About::Commands(_) => false,
            }
    };
    entries.iter().find(is_about).map(|entry| entry.written.clone())
}

impl FromStr for Entry {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim();
        let plain =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let (plugin, about) = if let Some((plugin, command)) = text.split_once('(') {
            (plugin, About::Commands(command.strip_suffix(')').ok_or(())?.parse()?))
        } else if let Some((plugin, what)) = text.split_once('/') {
            let named =
                ["process:", "variables:", UNCONFINED, "files:"].iter().find_map(|kind| what.strip_prefix(kind));
            let is_valid = named.map_or_else(|| plain(what), |named| !named.is_empty());
            (plugin, About::Exactly(is_valid.then(|| what.to_owned()).ok_or(())?))
        } else {
            (text, About::All)
        };
        if !plain(plugin) {
            return Err(());
        }
        Ok(Self { plugin: plugin.to_owned(), about, written: text.to_owned() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::right;
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> ApprovalRules {
        let list = |entries: &[&str]| entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
        ApprovalRules::parse(RuleLists { allow: &list(allow), deny: &list(deny), ..RuleLists::default() }).unwrap()
    }

    #[test]
    fn an_entry_covers_only_what_it_names() {
        for (entry, covered) in [
            ("runner", [true, true, true, false]),
            ("runner/process:git", [true, false, false, false]),
            ("runner/variables:git", [false; 4]),
            ("runner/process:/usr/bin/git", [false, true, false, false]),
            ("runner/wipe", [false, false, true, false]),
            ("run", [false; 4]),
            ("runner/process:gi", [false; 4]),
            ("Runner/wipe", [false; 4]),
        ] {
            let rules = rules(&[entry], &[]);
            let rights = [
                right("runner", "process:git"),
                right("runner", "process:/usr/bin/git"),
                right("runner", "wipe"),
                right("other", "wipe"),
            ];
            assert_eq!(rights.map(|right| rules.verdict(&right, None) == Verdict::Allowed), covered, "{entry}");
        }
    }

    #[test]
    fn deny_wins_over_a_more_specific_allow() {
        for (allow, deny) in [("runner", "runner/wipe"), ("runner/wipe", "runner"), ("runner/wipe", "runner/wipe")] {
            let rules = rules(&[allow], &[deny]);
            assert_eq!(rules.verdict(&right("runner", "wipe"), None), Verdict::Denied(deny.to_owned()));
        }
        let verdict = rules(&["runner"], &["runner/wipe"]).verdict(&right("runner", "process:git"), None);
        assert_eq!(verdict, Verdict::Allowed);
    }

    #[test]
    fn a_run_without_a_sandbox_is_allowed_by_its_own_word_only() {
        let unconfined = right("runner", "unconfined:git");
        for (entry, expected) in [
            ("runner", Verdict::Open),
            ("runner/process:git", Verdict::Open),
            ("runner(git status*)", Verdict::Open),
            ("runner/unconfined:ls", Verdict::Open),
            ("runner/unconfined:git", Verdict::Allowed),
        ] {
            assert_eq!(rules(&[entry], &[]).verdict(&unconfined, None), expected, "{entry}");
            let reads = [entry.to_owned()];
            let reads = ApprovalRules::parse(RuleLists { reads: &reads, ..RuleLists::default() }).unwrap();
            assert_eq!(reads.verdict(&unconfined, None), expected, "reads: {entry}");
        }
        assert_eq!(rules(&[], &["runner"]).verdict(&unconfined, None), Verdict::Denied("runner".to_owned()));
    }

    #[test]
    fn the_error_of_an_invalid_entry_quotes_the_entry() {
        for entry in [
            "",
            "*",
            "runner/",
            "/wipe",
            "runner/*",
            "process:git",
            "runner/process:",
            "runner/variables:",
            "runner/unconfined:",
            "a b",
            "runner/a/b",
            "runner(",
            "runner()",
            "runner(git status",
            "runner(git status) x",
            "runner/run(git status)",
            "(git status)",
            "runner(git; rm)",
        ] {
            let error = ApprovalRules::parse(RuleLists { deny: &[entry.to_owned()], ..RuleLists::default() })
                .unwrap_err()
                .to_string();
            assert!(error.contains("approvals.deny") && error.contains(&format!("`{entry}`")), "{error}");
        }
    }

    #[test]
    fn a_permission_of_commands_names_their_program() {
        for entry in ["runner(*)", "runner(* status)", "runner(g*t status)"] {
            let error =
                ApprovalRules::parse(RuleLists { allow: &[entry.to_owned()], ..RuleLists::default() }).unwrap_err();
            assert!(error.to_string().contains("approvals.allow"), "{error}");
        }
    }

    #[test]
    fn every_command_of_a_line_needs_a_permission_and_one_prohibition_is_enough() {
        let lists = [
            &["runner(git status*)", "runner(ls*)", "other(rm*)"].map(str::to_owned)[..],
            &["runner(git fetch*)"].map(str::to_owned)[..],
            &["runner(git push*)"].map(str::to_owned)[..],
        ];
        let rules =
            ApprovalRules::parse(RuleLists { allow: lists[0], ask: lists[1], deny: lists[2], reads: &[] }).unwrap();
        let cat: Pattern = "cat*".parse().unwrap();
        for (line, allowed, asked, denied) in [
            ("git status && ls -l", true, false, false),
            ("git status | cat -n", true, false, false),
            ("git status; rm x", false, false, false),
            ("git status; git push", false, false, true),
            ("git status $(git push)", false, false, true),
            ("sudo git -C x push", false, false, true),
            ("$x y", false, true, true),
            ("git fetch && git status", false, true, false),
            ("ls 'x", false, true, false),
            ("rm x", false, false, false),
        ] {
            let commands = Commands { line: &Line::read(line), is_whole: true, approved: std::slice::from_ref(&cat) };
            let judged = rules.judge("runner", &commands);
            let outcome = (judged.is_allowed, judged.asked.is_some(), judged.denied.is_some());
            assert_eq!(outcome, (allowed, asked, denied), "{line}");
        }
        // Without a rule that limits commands, nothing is asked because of one.
        let commands = Commands { line: &Line::read("ls 'x"), is_whole: true, approved: &[] };
        assert_eq!(rules.judge("other", &commands), Judged::default());
    }
}

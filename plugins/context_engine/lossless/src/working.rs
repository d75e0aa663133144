//! The working set: text in use that has left the view, verbatim. It is rebuilt at each publication and comes last among
//! the summaries, so a change invalidates only itself and what follows.
//!
//! Files are shown by credit. A file earns credit when the assistant repeats lines of it that nothing in view shows.

use std::collections::HashSet;

use hermes_plugin::{Message, MessageId};

use crate::action::Action;
use crate::clip::{ends, floor, line};
use crate::fact::Fact;
use crate::files::{File, line_hash};
use crate::mentions::MentionIndex;
use crate::policy;
use crate::read_cache::{CallRecord, ReadCache, WrittenText};

/// Most characters of a line.
const LINE: usize = 600;
/// Number of failures listed.
const FAILURES: usize = 3;
/// Number of calls that are checked against the visible text.
const RANKED: usize = 80;
/// Bytes of written texts that are searched for lines not shown elsewhere.
const LOOKED_AT: usize = 100_000;
/// Number of files whose open items are listed.
const FILES: usize = 4;

/// Space for the working set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpaceLimit {
    pub(crate) bytes: usize,
    /// Fraction of the largest allowed size.
    pub(crate) share: f64,
}

/// The text and the messages that it quotes. `None` if nothing is in use.
pub(crate) fn render(
    read_cache: &ReadCache,
    seen: &AlreadyShown<'_>,
    room: SpaceLimit,
) -> Option<(String, Vec<MessageId>)> {
    let mut made =
        Making { seen: seen.clone(), parts: Vec::new(), sources: Vec::new(), left: room.bytes, share: room.share };
    made.memory(seen.memory);
    let told = made.calls(read_cache);
    made.failures(read_cache, &told);
    made.files(read_cache);
    made.items(read_cache);
    made.texts(read_cache);
    if made.sources.is_empty() {
        return None;
    }
    made.sources.sort_unstable();
    made.sources.dedup();
    let text = format!("In play; all of it stands in the log under the numbers given.\n\n{}", made.parts.join("\n\n"));
    Some((text, made.sources))
}

struct Making<'a> {
    seen: AlreadyShown<'a>,
    parts: Vec<String>,
    sources: Vec<MessageId>,
    left: usize,
    share: f64,
}

impl Making<'_> {
    fn room(&self, tokens: u32) -> usize {
        ((f64::from(tokens) * policy::BYTES * self.share) as usize).min(self.left)
    }

    fn put(&mut self, part: String, sources: impl IntoIterator<Item = MessageId>) {
        self.left = self.left.saturating_sub(part.len() + 2);
        self.parts.push(part);
        self.sources.extend(sources);
    }

    fn memory(&mut self, memory: &str) {
        if !memory.trim().is_empty() {
            let text = ends(memory.trim(), self.room(policy::MEMORY), "the memory itself");
            self.put(format!("Kept for a memory:\n{text}"), None);
        }
    }

    /// Failures that the listed calls do not mention.
    fn failures(&mut self, read_cache: &ReadCache, told: &HashSet<(MessageId, u64)>) {
        let unseen = |fact: &&Fact| !self.seen.ids.contains(&fact.id) && !told.contains(&(fact.id, fact.same));
        let failures = read_cache.failures.iter().rev().filter(unseen).take(FAILURES);
        let mut lines: Vec<(MessageId, String)> =
            failures.map(|fact| (fact.id, format!("#{} {}", fact.id, fact.text))).collect();
        lines.reverse();
        self.list("Failed and not tried again since:", lines, usize::MAX);
    }

    /// Recent and repeated calls, verbatim.
    fn calls(&mut self, read_cache: &ReadCache) -> HashSet<(MessageId, u64)> {
        const TITLE: &str = "Calls made lately, word for word:";
        let mut left = self.room(policy::CALLS).saturating_sub(TITLE.len() + 3);
        let mut lines = Vec::new();
        let mut told = HashSet::new();
        for made in self.seen.missing.iter().filter_map(|at| read_cache.calls.get(*at)) {
            let mut text = format!("#{} {}: {}", made.id, line(&made.name, 64), made.about);
            if let Some(outcome) = &made.failed {
                text = format!("#{} {} (failed): {} → {outcome}", made.id, line(&made.name, 64), made.about);
            }
            if text.len() + 1 > left {
                break;
            }
            left -= text.len() + 1;
            told.insert((made.id, made.same));
            lines.push((made.id, text));
        }
        lines.sort();
        self.list(TITLE, lines, usize::MAX);
        told
    }

    fn files(&mut self, read_cache: &ReadCache) {
        // Reserve half of the space for the assistant's latest texts.
        let mut left = self.room(policy::FILES).min(self.left.saturating_sub(self.room(policy::TEXTS) / 2));
        for (file, credit) in read_cache.files.credited(read_cache.tokens()) {
            let most = ((policy::PER_CREDIT * credit * policy::BYTES * self.share) as usize).min(left);
            let place = file.place.unwrap_or_default().saturating_sub(policy::BEFORE);
            let mut text = self.window(file, place..file.lines.len(), most);
            if most.saturating_sub(text.len()) > 300 {
                let before = self.window(file, 0..place, most - text.len());
                text = format!("{before}{}{text}", if before.is_empty() || text.is_empty() { "" } else { "\n" });
            }
            if !text.is_empty() {
                left = left.saturating_sub(text.len());
                self.put(text, file.sources.iter().copied());
            }
        }
    }

    /// Lines of a file that are not shown elsewhere.
    fn window(&mut self, file: &File, span: std::ops::Range<usize>, most: usize) -> String {
        let sources: Vec<String> = file.sources.iter().rev().take(3).map(|id| format!("#{id}")).collect();
        let mut text = String::new();
        let mut between = SkippedLines::default();
        for at in span {
            let Some(known) = file.lines[at].as_deref().filter(|line| !self.seen.shows(line)) else {
                between.leave_out();
                continue;
            };
            if known.trim().is_empty() {
                between.keep("");
                continue;
            }
            let short = if known.len() > LINE { &known[..floor(known, LINE)] } else { known };
            let cut = if short.len() < known.len() { "…" } else { "" };
            if text.is_empty() {
                text = format!(
                    "{} from line {} on, as last seen ({}):",
                    line(&file.path, 200),
                    at + 1,
                    sources.join(", ")
                );
                between = SkippedLines::default();
            }
            let before = between.take();
            if text.len() + before.len() + short.len() + cut.len() + 1 + GAP.len() > most {
                text.push_str(GAP);
                break;
            }
            text.push_str(&format!("{before}\n{short}{cut}"));
            self.seen.add(known);
        }
        if text.ends_with(&format!("):{GAP}")) {
            return String::new();
        }
        if text.contains('\n') { text } else { String::new() }
    }

    /// Unticked checkboxes.
    fn items(&mut self, read_cache: &ReadCache) {
        let mut items = Vec::new();
        for file in read_cache.files.edited().take(FILES) {
            let Some(source) = file.sources.last() else { continue };
            let mut path = format!("{}:\n", line(&file.path, 200));
            let lines = file.lines.iter().flatten().map(|line| line.trim());
            for text in lines.filter(|line| line.starts_with("- [ ] ") || line.starts_with("* [ ] ")) {
                if !self.seen.shows(text) {
                    self.seen.add(text);
                    items.push((*source, std::mem::take(&mut path) + &line(text, LINE)));
                }
            }
        }
        let most = self.room(policy::ITEMS);
        self.list("Open items of files that were changed last:", items, most);
    }

    /// Texts that the assistant recently wrote into files.
    fn texts(&mut self, read_cache: &ReadCache) {
        let mut left = self.room(policy::TEXTS);
        let mut written: Vec<(MessageId, String)> = Vec::new();
        let mut looked_at = 0;
        for WrittenText { id, path, text, failed } in read_cache.texts.iter().rev() {
            looked_at += text.len();
            if looked_at > LOOKED_AT {
                break;
            }
            let of = format!("(#{id} {}{})", line(path, 200), if *failed { ", failed" } else { "" });
            let mut room = left.saturating_sub(of.len() + 1);
            let mut new = String::new();
            let mut between = SkippedLines::default();
            for known in text.lines() {
                if line_hash(known).is_none() {
                    between.keep(known);
                    continue;
                }
                if self.seen.shows(known) {
                    between.leave_out();
                    continue;
                }
                let short = &known[..floor(known, LINE)];
                let cut = if short.len() < known.len() { "…" } else { "" };
                let next = format!("{}\n{short}{cut}", between.take());
                if next.len() + GAP.len() > room {
                    if !new.is_empty() {
                        new.push_str(GAP);
                    }
                    break;
                }
                room -= next.len();
                self.seen.add(known);
                new.push_str(&next);
            }
            if !new.is_empty() {
                left = left.saturating_sub(of.len() + 1 + new.len());
                written.push((*id, of + &new));
            }
            if left < 120 {
                break;
            }
        }
        written.reverse();
        self.list("Written lately, lines that stand nowhere above:", written, usize::MAX);
    }

    fn list(&mut self, title: &str, lines: Vec<(MessageId, String)>, most: usize) {
        let most = most.min(self.left);
        let mut text = title.to_owned();
        let mut sources = Vec::new();
        for (id, line) in lines {
            if text.len() + line.len() + 3 > most {
                break;
            }
            text.push('\n');
            text.push_str(&line);
            sources.push(id);
        }
        if !sources.is_empty() {
            self.put(text, sources);
        }
    }
}

/// Marks omitted lines.
const GAP: &str = "\n…";

/// Collects the lines between two shown lines.
#[derive(Default)]
struct SkippedLines {
    lines: String,
    gap: bool,
}

impl SkippedLines {
    /// Adds a short line; it is shown if the next line is shown too.
    fn keep(&mut self, line: &str) {
        if !self.gap && line.len() + self.lines.len() < LINE {
            self.lines.push('\n');
            self.lines.push_str(line);
        } else if !line.trim().is_empty() {
            self.gap = true;
        }
    }

    fn leave_out(&mut self) {
        self.gap = true;
    }

    fn take(&mut self) -> String {
        let Self { lines, gap } = std::mem::take(self);
        lines + if gap { GAP } else { "" }
    }
}

/// Text that the new view already shows.
#[derive(Clone)]
pub(crate) struct AlreadyShown<'a> {
    ids: HashSet<MessageId>,
    lines: HashSet<u64>,
    /// Indices of calls that are not shown, most important first.
    missing: Vec<usize>,
    memory: &'a str,
}

impl<'a> AlreadyShown<'a> {
    /// What a new view shows besides the working set: the newest messages, segments, and what memory providers want kept.
    pub(crate) fn of(
        read_cache: &ReadCache,
        tail: &[Message],
        segments: &[String],
        told: &mut MentionIndex,
        memory: &'a str,
    ) -> Self {
        let mut seen = Self { ids: HashSet::new(), lines: HashSet::new(), missing: Vec::new(), memory };
        let mut calls = HashSet::new();
        seen.lines.extend(segments.iter().flat_map(|text| text.lines()).filter_map(line_hash));
        for message in tail {
            seen.ids.insert(message.id);
            seen.lines.extend(message.content.lines().filter_map(line_hash));
            for call in &message.tool_calls {
                match Action::of(&call.arguments) {
                    Action::Write { path, content } => {
                        seen.lines.extend(content.lines().filter_map(line_hash));
                        calls.insert(path);
                    }
                    Action::Edit { path, changes } => {
                        let lines = changes.iter().flat_map(|(old, new)| old.lines().chain(new.lines()));
                        seen.lines.extend(lines.filter_map(line_hash));
                        calls.insert(path);
                    }
                    Action::Read { path: about, .. } | Action::Command(about) | Action::Other(Some(about)) => {
                        calls.insert(about);
                    }
                    Action::Other(None) => {}
                }
            }
        }
        let rank = |made: &CallRecord| made.replies + policy::AGAIN * (made.times - 1).min(3);
        let mut ranked: Vec<usize> = (0..read_cache.calls.len()).collect();
        ranked.sort_by_key(|at| std::cmp::Reverse((rank(&read_cache.calls[*at]), read_cache.calls[*at].id)));
        ranked.truncate(RANKED);
        let mut tells = told.by(segments);
        ranked.retain(|at| {
            let about = &read_cache.calls[*at].about;
            !calls.contains(about) && !tells(about)
        });
        seen.missing = ranked;
        seen
    }

    fn shows(&self, line: &str) -> bool {
        line_hash(line).is_some_and(|hash| self.lines.contains(&hash))
    }

    fn add(&mut self, line: &str) {
        self.lines.extend(line_hash(line));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::current_view::Rows;
    use crate::testing::{Log, assistant, calls, result};

    const ROOM: SpaceLimit = SpaceLimit { bytes: 40_000, share: 1.0 };

    fn shown(read_cache: &ReadCache) -> String {
        render(read_cache, &AlreadyShown::of(read_cache, &[], &[], &mut MentionIndex::default(), ""), ROOM).unwrap().0
    }

    fn read_cache(messages: Vec<Message>) -> ReadCache {
        let log = Log::new(messages);
        let mut rows = Rows::default();
        rows.observe(&log.headers());
        let mut read_cache = ReadCache::default();
        read_cache.catch_up(&rows, &log).unwrap();
        read_cache
    }

    fn plan() -> String {
        (1..=600).map(|n| format!("this is step number {n} of the plan\\n- [ ] do the thing number {n}\\n")).collect()
    }

    /// A plan is written; much later the assistant continues with its hundredth step.
    fn taken_up() -> Vec<Message> {
        let mut talk = vec![
            calls(1, &[("a", "write", &format!(r#"{{"path":"plan.md","content":"{}"}}"#, plan()))]),
            result(2, "a", "write", "done"),
        ];
        talk.extend((3..20).map(|id| assistant(id, &"so much else was said. ".repeat(400))));
        talk.extend((20..23).map(|id| assistant(id, &format!("this is step number {} of the plan", id + 78))));
        talk
    }

    #[test]
    fn a_file_is_shown_from_where_the_assistant_continued_it() {
        let read_cache = read_cache(taken_up());
        let (text, sources) =
            render(&read_cache, &AlreadyShown::of(&read_cache, &[], &[], &mut MentionIndex::default(), ""), ROOM)
                .unwrap();
        let shown = "plan.md from line 184 on, as last seen (#1):\n- [ ] do the thing number 92\n";
        assert!(text.contains(shown) && text.contains("step number 101 of the plan"), "{text}");
        let of_file = text.split("Open items").next().unwrap();
        assert!(!of_file.contains("step number 91 of"), "{text}");
        assert!(
            text.contains("Open items of files that were changed last:\nplan.md:\n- [ ] do the thing number 1\n"),
            "{text}"
        );
        assert_eq!(sources, [1]);
    }

    #[test]
    fn text_shown_elsewhere_is_left_out() {
        let mut talk = taken_up();
        talk.push(calls(30, &[("b", "bash", r#"{"command":"make the ferry"}"#)]));
        talk.push(result(31, "b", "bash", "exit code 2"));
        let tail = [talk[talk.len() - 2].clone(), talk[talk.len() - 1].clone()];
        let read_cache = read_cache(talk);
        let text = shown(&read_cache);
        let told = "word for word:\n#1 write: plan.md\n#30 bash (failed): make the ferry → #31 exit 2";
        assert!(text.contains(told) && !text.contains("Failed and not tried again"), "{text}");
        let segments = ["#1 write plan.md".to_owned()];
        let (text, _) = render(
            &read_cache,
            &AlreadyShown::of(&read_cache, &tail, &segments, &mut MentionIndex::default(), "likes tea"),
            ROOM,
        )
        .unwrap();
        assert!(!text.contains("#30") && !text.contains("#1 write:") && text.contains("likes tea"), "{text}");
    }

    #[test]
    fn a_failure_is_listed_until_the_same_call_succeeds() {
        let call = |id, call: &str, answer: &str| {
            vec![calls(id, &[(call, "bash", r#"{"command":"make"}"#)]), result(id + 1, call, "bash", answer)]
        };
        let failed = read_cache(call(1, "a", "exit code 2"));
        assert!(shown(&failed).contains("(failed)"));
        let fixed = read_cache([call(1, "a", "exit code 2"), call(3, "b", "ok")].concat());
        assert!(!shown(&fixed).contains("ailed"));
    }

    #[test]
    fn overwritten_text_is_gone_and_gaps_are_marked() {
        let edit = r#"{"path":"a.rs","old_string":"let second_line_of_the_file = 2;","new_string":"let other_line_of_the_file_now = 7;"}"#;
        let first = r#"{"path":"a.rs","content":"let first_line_of_the_file = 1;\n\nlet second_line_of_the_file = 2;\n}\nlet third_line_of_the_file = 3;"}"#;
        let old = r#"{"path":"b.rs","content":"let this_is_an_old_text_of_it = 1;"}"#;
        let new = r#"{"path":"b.rs","content":"let this_is_its_new_text_now = 1;"}"#;
        let mut talk = Vec::new();
        for (id, arguments) in [(1, old), (3, first), (5, edit), (7, new)] {
            talk.push(calls(id, &[("a", "write", arguments)]));
            talk.push(result(id + 1, "a", "write", "done"));
        }
        let text = shown(&read_cache(talk));
        assert!(!text.contains("second_line") && !text.contains("old_text"), "{text}");
        assert!(text.contains("(#5 a.rs)\nlet other_line"), "{text}");
        let closed = "(#3 a.rs)\nlet first_line_of_the_file = 1;\n\n…\nlet third_line";
        assert!(text.contains(closed), "{text}");
    }

    #[test]
    fn the_working_set_stays_within_its_space() {
        let read_cache = read_cache(vec![
            calls(1, &[("a", "write", &format!(r#"{{"path":"p","content":"{}"}}"#, plan()))]),
            result(2, "a", "write", "done"),
        ]);
        for bytes in [0, 50, 500, 2_000, 40_000] {
            if let Some((text, _)) = render(
                &read_cache,
                &AlreadyShown::of(&read_cache, &[], &[], &mut MentionIndex::default(), ""),
                SpaceLimit { bytes, share: 100.0 },
            ) {
                assert!(text.len() < bytes + 200, "{bytes}: {}", text.len());
            }
        }
    }

    #[test]
    fn a_new_instance_renders_the_same_working_set() {
        let talk = taken_up();
        let log = Log::new(talk);
        let mut rows = Rows::default();
        let mut read_cache = ReadCache::default();
        for header in log.headers() {
            rows.observe(&[header]);
            read_cache.catch_up(&rows, &log).unwrap();
            read_cache.folded(rows.last().unwrap().id);
        }
        assert_eq!(shown(&read_cache), shown(&super::tests::read_cache(log.messages.clone())));
    }
}

//! The working set: what is in play and has left the view, word for word. It is made anew at each publication and is the last
//! of the summaries, so that its change costs only itself and what follows.

use std::collections::HashSet;

use hermes_guest_secrets::redact;
use hermes_plugin::{Message, MessageId};

use crate::clip::{ends, line};
use crate::deed::Deed;
use crate::desk::Desk;
use crate::files::File;
use crate::policy;

/// Lines shorter than this are not looked for: they stand everywhere.
const TELLING: usize = 12;
/// As many visible lines in a row are left out of a place.
const RUN: usize = 3;
/// Characters of a line.
const LINE: usize = 600;
/// Failures that are told.
const FAILURES: usize = 3;

/// What it may take, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) all: usize,
    /// Bytes of a token.
    pub(crate) bytes: f64,
}

/// The text and the messages that it restates; none when nothing is in play.
pub(crate) fn render(desk: &Desk, tail: &[Message], memory: &str, room: Room) -> Option<(String, Vec<MessageId>)> {
    let seen = Seen::of(tail);
    let mut left = room.all;
    let mut sources = Vec::new();
    let mut parts = Vec::new();
    let of = |tokens: u32, left: usize| ((f64::from(tokens) * room.bytes) as usize).min(left);

    let memory = memory.trim();
    if !memory.is_empty() {
        let text = format!("Kept for a memory:\n{}", ends(memory, of(policy::MEMORY, left), "the memory itself"));
        left = left.saturating_sub(text.len() + 2);
        parts.push(text);
    }

    let failures = desk.failures.iter().rev().filter(|(_, fact)| !seen.ids.contains(&fact.id)).take(FAILURES);
    let mut lines: Vec<(MessageId, String)> =
        failures.map(|(_, fact)| (fact.id, format!("#{} {}", fact.id, fact.text))).collect();
    lines.reverse();
    section(&mut parts, &mut sources, "Failed and not tried again since:", lines, &mut left, usize::MAX);

    let calls = desk.calls.iter().rev().filter(|made| !seen.calls.contains(made.arguments.as_str()));
    let mut some = Vec::new();
    let mut of_calls = of(policy::CALLS, left);
    for made in calls {
        let text = format!("#{} {} {}", made.id, line(&made.name, 64), made.arguments.replace(['\n', '\r'], " "));
        if text.len() + 1 > of_calls {
            break;
        }
        of_calls -= text.len() + 1;
        some.push((made.id, text));
    }
    some.reverse();
    section(&mut parts, &mut sources, "Calls made lately, word for word:", some, &mut left, usize::MAX);

    let mut shown: HashSet<String> = HashSet::new();
    for file in desk.files.edited().take(policy::PLACES) {
        let most = of(policy::PLACE, left);
        let Some((from, lines)) = place(file, &seen, &shown, most) else { continue };
        let about = format!(
            "{} from line {} on, as last seen ({}):",
            line(&file.path, 200),
            from + 1,
            file.sources.iter().rev().take(3).map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")
        );
        shown.extend(lines.iter().map(|line| line.trim().to_owned()));
        let text = format!("{about}\n{}", lines.join("\n"));
        left = left.saturating_sub(text.len() + 2);
        sources.extend(file.sources.iter().copied());
        parts.push(text);
    }

    let mut items: Vec<(MessageId, String)> = Vec::new();
    for file in desk.files.edited().take(policy::PLACES) {
        let Some(source) = file.sources.last() else { continue };
        let open = file.lines.iter().flatten().map(|line| line.trim()).filter(|line| line.starts_with("- [ ] "));
        let open = open.filter(|line| !seen.lines.contains(*line) && !shown.contains(*line));
        items.extend(open.map(|text| (*source, line(text, LINE))));
    }
    let mut known = HashSet::new();
    items.retain(|(_, text)| known.insert(text.clone()));
    let most = of(policy::ITEMS, left);
    section(&mut parts, &mut sources, "Open items of these files:", items, &mut left, most);

    if parts.is_empty() {
        return None;
    }
    sources.sort_unstable();
    sources.dedup();
    let text = format!("In play; all of it stands in the log under the numbers given.\n\n{}", parts.join("\n\n"));
    Some((redact(&text).into_owned(), sources))
}

fn section(
    parts: &mut Vec<String>,
    sources: &mut Vec<MessageId>,
    title: &str,
    lines: Vec<(MessageId, String)>,
    left: &mut usize,
    most: usize,
) {
    let mut text = title.to_owned();
    let mut some = false;
    for (id, line) in lines {
        if text.len() + line.len() + 3 > most.min(*left) {
            break;
        }
        text.push('\n');
        text.push_str(&line);
        sources.push(id);
        some = true;
    }
    if some {
        *left = left.saturating_sub(text.len() + 2);
        parts.push(text);
    }
}

/// The lines of a file from a little before its last change on, without those that the tail shows.
fn place(file: &File, seen: &Seen<'_>, shown: &HashSet<String>, most: usize) -> Option<(usize, Vec<String>)> {
    let (changed, _) = file.edited?;
    let start = changed.saturating_sub(policy::BEFORE);
    let visible = |text: &str| {
        let text = text.trim();
        text.len() < TELLING || seen.lines.contains(text) || shown.contains(text)
    };
    let mut lines = Vec::new();
    let mut used = 0;
    let mut news = false;
    let mut from = None;
    let mut at = start;
    while at < file.lines.len() {
        let gap = file.lines[at..].iter().take_while(|line| line.is_none()).count();
        let run = file.lines[at..].iter().map_while(|line| line.as_deref().filter(|text| visible(text))).count();
        if gap > 0 || run >= RUN || at + run + gap == file.lines.len() {
            if from.is_some() {
                lines.push("…".to_owned());
                used += 4;
            }
            at += gap.max(run).max(1);
            continue;
        }
        let text = file.lines[at].as_deref().unwrap_or_default();
        let text: String = if text.len() > LINE { line(text, LINE) } else { text.to_owned() };
        if used + text.len() + 1 > most {
            break;
        }
        used += text.len() + 1;
        news |= !visible(&text);
        from.get_or_insert(at);
        lines.push(text);
        at += 1;
    }
    while lines.last().is_some_and(|line| line == "…") {
        lines.pop();
    }
    Some((from?, lines)).filter(|_| news)
}

/// What the tail shows.
struct Seen<'a> {
    ids: HashSet<MessageId>,
    lines: HashSet<String>,
    calls: HashSet<&'a str>,
}

impl<'a> Seen<'a> {
    fn of(tail: &'a [Message]) -> Self {
        let mut seen = Self { ids: HashSet::new(), lines: HashSet::new(), calls: HashSet::new() };
        let mut add = |text: &str| seen.lines.extend(text.lines().map(|line| line.trim().to_owned()));
        for message in tail {
            add(&message.content);
            for call in &message.tool_calls {
                match Deed::of(&call.arguments) {
                    Deed::Write { content, .. } => add(&content),
                    Deed::Edit { changes, .. } => changes.iter().for_each(|(old, new)| {
                        add(old);
                        add(new);
                    }),
                    _ => {}
                }
            }
        }
        seen.ids = tail.iter().map(|message| message.id).collect();
        seen.calls = tail.iter().flat_map(|message| &message.tool_calls).map(|call| call.arguments.as_str()).collect();
        seen
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ground::Rows;
    use crate::testing::{Log, calls, result};

    const ROOM: Room = Room { all: 40_000, bytes: 2.9 };

    fn desk(messages: Vec<Message>) -> Desk {
        let log = Log::new(messages);
        let mut rows = Rows::default();
        rows.observe(&log.headers());
        let mut desk = Desk::default();
        desk.catch_up(&rows, &log).unwrap();
        desk
    }

    fn plan() -> String {
        (1..=200).map(|n| format!("step number {n} of the plan\\n- [ ] do the thing {n}\\n")).collect()
    }

    fn edit(n: u32) -> String {
        format!(r#"{{"path":"plan.md","oldText":"- [ ] do the thing {n}\n","newText":"- [x] do the thing {n}\n"}}"#)
    }

    #[test]
    fn it_goes_on_from_where_a_file_was_edited_last() {
        let desk = desk(vec![
            calls(1, &[("a", "write", &format!(r#"{{"path":"plan.md","content":"{}"}}"#, plan()))]),
            result(2, "a", "write", "done"),
            calls(3, &[("b", "edit", &edit(100))]),
            result(4, "b", "edit", "done"),
        ]);
        let (text, sources) = render(&desk, &[], "", ROOM).unwrap();
        assert!(text.contains("plan.md from line 170 on, as last seen (#3, #1):"), "{text}");
        assert!(text.contains("- [x] do the thing 100") && text.contains("step number 101 of the plan"), "{text}");
        assert!(!text.contains("step number 80 of"), "{text}");
        assert!(text.contains("Open items of these files:\n- [ ] do the thing 1\n"), "{text}");
        assert_eq!(sources, [1, 3]);
    }

    #[test]
    fn what_the_tail_shows_is_left_out() {
        let log = vec![
            calls(1, &[("a", "write", &format!(r#"{{"path":"plan.md","content":"{}"}}"#, plan()))]),
            result(2, "a", "write", "done"),
            calls(3, &[("b", "bash", r#"{"command":"make"}"#)]),
            result(4, "b", "bash", "exit code 2"),
        ];
        let tail = [log[2].clone(), log[3].clone()];
        let desk = desk(log);
        let (text, _) = render(&desk, &[], "", ROOM).unwrap();
        assert!(text.contains("Failed and not tried again since:\n#3 bash") && text.contains("Calls made lately"));
        let (text, _) = render(&desk, &tail, "", ROOM).unwrap();
        assert!(!text.contains("#3") && text.contains("step number 1 of the plan"), "{text}");
    }

    #[test]
    fn a_failure_is_told_until_the_same_call_succeeds() {
        let call = |id, call: &str, answer: &str| {
            vec![calls(id, &[(call, "bash", r#"{"command":"make"}"#)]), result(id + 1, call, "bash", answer)]
        };
        let failed = desk(call(1, "a", "exit code 2"));
        assert!(render(&failed, &[], "", ROOM).unwrap().0.contains("Failed and"));
        let fixed = desk([call(1, "a", "exit code 2"), call(3, "b", "ok")].concat());
        assert!(!render(&fixed, &[], "", ROOM).unwrap().0.contains("Failed and"));
    }

    #[test]
    fn it_keeps_to_its_room_and_holds_no_secret() {
        let secret = plan() + "token ghp_0123456789abcdefghij0123456789";
        let desk = desk(vec![
            calls(1, &[("a", "write", &format!(r#"{{"path":"p","content":"{secret}"}}"#))]),
            result(2, "a", "write", "done"),
        ]);
        for all in [0, 50, 500, 2_000, 40_000] {
            if let Some((text, _)) = render(&desk, &[], "", Room { all, bytes: 100.0 }) {
                assert!(text.len() < all + 200 && !text.contains("ghp_"), "{all}: {}", text.len());
            }
        }
    }
}

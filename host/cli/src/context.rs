//! `hermes context` and `/context`: what fills the context window, and the compactions so far.

use std::collections::HashMap;
use std::process::ExitCode;

use hermes_app::context::{Change, Context, Made, STRIKES, Step, Stretch, Sum};
use hermes_protocol::{CompressionPreview, MessageRange};
use serde_json::{Value, json};

use crate::cache;
use crate::console::{Console, Tone, print};
use crate::failure::{Failure, Kind};
use crate::launch;
use crate::moments::local;
use crate::table::{Align, Table};
use crate::text::{self, counted, grouped, line, shortened};

/// Columns of the bar, if the terminal has as many.
const WIDTH: usize = 64;
/// Most lines of a list. The middle of a longer list is shown only with `--json`.
const MOST_LINES: usize = 60;

pub(crate) async fn run(
    id: Option<&str>,
    summary: Option<usize>,
    json: bool,
    console: Console,
) -> Result<ExitCode, Failure> {
    let setup = launch::read()?;
    let here = std::env::current_dir().ok();
    let context = setup.context(id, here.as_deref()).await?.ok_or_else(cache::no_session)?;
    if let Some(number) = summary {
        print(&summaries(&context, (number > 0).then_some(number), console)?)?;
    } else if json {
        print(&text::json(&as_json(&context)))?;
    } else {
        print(&shown(&context, console))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A kind of content in the window: its sign in the bar, its name, and its tokens as the provider counts.
struct Part {
    sign: char,
    name: &'static str,
    tokens: u32,
    about: String,
}

/// The content of the window by kind, in the order of a request, and then the free space.
fn parts(context: &Context) -> Vec<Part> {
    let sums = &context.picture.sums;
    let original = |sum: &Sum| {
        let messages = counted(sum.messages as u64, "message");
        format!("{messages} with originally {} tokens", grouped(sum.said.into()))
    };
    let shown_messages = counted(sums.verbatim.messages as u64, "message");
    let of = |tokens| context.ruler.counted(tokens);
    let mut parts = vec![
        Part { sign: '▓', name: "tools", tokens: of(sums.tools), about: String::new() },
        Part { sign: '▒', name: "system prompt", tokens: of(sums.system_prompt), about: String::new() },
        Part {
            sign: '░',
            name: "summaries",
            tokens: of(sums.summarised.tokens),
            about: format!("of {}", original(&sums.summarised)),
        },
        Part {
            sign: '▄',
            name: "shortened messages",
            tokens: of(sums.shortened.tokens),
            about: original(&sums.shortened),
        },
        Part { sign: '█', name: "full messages", tokens: of(sums.verbatim.tokens), about: shown_messages },
    ];
    let used = parts.iter().map(|part| part.tokens).fold(0, u32::saturating_add);
    let free = context.model.context_length.saturating_sub(context.reserve).saturating_sub(used);
    parts.push(Part { sign: '·', name: "free", tokens: free, about: String::new() });
    parts.push(Part { sign: '-', name: "reserved for reply", tokens: context.reserve, about: String::new() });
    parts
}

/// The columns of each part in the bar. Every part with tokens has at least one, at the expense of the largest.
fn columns(parts: &[Part], width: usize) -> Vec<usize> {
    let whole: u64 = parts.iter().map(|part| u64::from(part.tokens)).sum();
    let share = |part: &Part| {
        let columns = u64::from(part.tokens) * width as u64 / whole.max(1);
        usize::try_from(columns).unwrap_or(width).max(usize::from(part.tokens > 0))
    };
    let mut columns: Vec<usize> = parts.iter().map(share).collect();
    loop {
        let all: usize = columns.iter().sum();
        let Some(largest) = (0..columns.len()).max_by_key(|at| columns[*at]).filter(|_| all > 0) else {
            return columns;
        };
        match all.cmp(&width) {
            std::cmp::Ordering::Equal => return columns,
            std::cmp::Ordering::Less => columns[largest] += width - all,
            // There are fewer parts than columns, so the largest part has more than one.
            std::cmp::Ordering::Greater => columns[largest] -= 1,
        }
    }
}

/// The window, the engine, the limits and the views.
pub(crate) fn shown(context: &Context, console: Console) -> String {
    let mut out = String::new();
    let title = context.title.as_deref().map(|title| format!("  {}", text::title(title))).unwrap_or_default();
    out.push_str(&console.hanging(&format!("session {}{title}", context.session), 4));
    out.push_str(&window(context, console));
    out.push('\n');
    out.push_str(&list(&rows(context), console));
    out.push('\n');
    out.push_str(&engine(context, console));
    out.push_str(&views(&context.views, console));
    out
}

fn window(context: &Context, console: Console) -> String {
    let window = context.model.context_length;
    let counted = context.counted();
    let percent = |tokens: u32| f64::from(tokens) * 100.0 / f64::from(window.max(1));
    let ruler = if context.ruler.is_calibrated() { "based on the provider's counts" } else { "estimate" };
    let source = context.live.as_ref().map(|live| format!(" · the window is {}", live.window_source));
    let mut out = format!(
        "{} · about {} of {} tokens ({:.0} %), {ruler}{}\n\n",
        line(&context.model.name),
        grouped(counted.into()),
        grouped(window.into()),
        // As the status says it.
        percent(counted).floor(),
        source.unwrap_or_default()
    );
    let parts = parts(context);
    // The last column stays free: some terminals wrap as soon as it is used.
    let width = console.columns().map_or(WIDTH, |columns| WIDTH.min(columns.saturating_sub(1).max(1)));
    for (part, columns) in parts.iter().zip(columns(&parts, width)) {
        out.push_str(&console.paint(tone(part.sign), &part.sign.to_string().repeat(columns)));
    }
    out.push('\n');
    for part in parts.iter().filter(|part| part.tokens > 0) {
        let sign = console.paint(tone(part.sign), &part.sign.to_string());
        let row = format!(
            "{:<18} {:>9}  {:>5.1} %  {}",
            part.name,
            grouped(part.tokens.into()),
            percent(part.tokens),
            part.about
        );
        out.push_str(&format!("{sign} {}\n", row.trim_end()));
    }
    out
}

fn tone(sign: char) -> Tone {
    match sign {
        '█' => Tone::Good,
        '░' | '▄' => Tone::Warning,
        '·' | '-' => Tone::Faint,
        _ => Tone::Plain,
    }
}

/// The messages, the form in which they are sent, and its tokens.
struct Row {
    messages: String,
    what: String,
    tokens: String,
}

fn rows(context: &Context) -> Vec<Row> {
    // As the provider counts, like the bar above.
    let mut summaries = 0;
    let numbered = |stretch: &Stretch| {
        let mut row = row(stretch, stretch_tokens(stretch, context));
        if let Stretch::Summarised { .. } = stretch {
            // The number by which the user asks for its text.
            summaries += 1;
            row.what.push_str(&format!(" (number {summaries})"));
        }
        row
    };
    context.picture.stretches.iter().map(numbered).collect()
}

/// The tokens of a stretch, after those of the original messages if they differ.
fn stretch_tokens(stretch: &Stretch, context: &Context) -> String {
    let grouped = |tokens: u32| grouped(context.ruler.counted(tokens).into());
    let tokens = grouped(stretch.tokens());
    match stretch {
        Stretch::Shortened { said, .. } | Stretch::Summarised { said, .. } => {
            format!("{} -> {tokens}", grouped(*said))
        }
        _ => tokens,
    }
}

fn row(stretch: &Stretch, tokens: String) -> Row {
    let (messages, what) = match stretch {
        Stretch::Tools { .. } => (String::new(), "tools".to_owned()),
        Stretch::SystemPrompt { .. } => (String::new(), "system prompt".to_owned()),
        Stretch::Verbatim { ids, messages, .. } => (ids_of(ids), counted(*messages as u64, "full message")),
        Stretch::Shortened { ids, messages, .. } => (ids_of(ids), counted(*messages as u64, "shortened message")),
        Stretch::Summarised { made, covers, messages, .. } => {
            let made = made.as_ref().map(|Made { by, at }| format!(", by {} since {}", line(by), local(*at)));
            let messages = counted(*messages as u64, "message");
            let what = format!("summary of {messages}{}", made.unwrap_or_default());
            (covers_of(covers), what)
        }
    };
    Row { messages, what, tokens }
}

fn ids_of(range: &MessageRange) -> String {
    if range.first == range.last { range.first.to_string() } else { format!("{}-{}", range.first, range.last) }
}

/// The first and the last message. A star marks a range with gaps.
fn covers_of(covers: &[MessageRange]) -> String {
    let (Some(first), Some(last)) =
        (covers.iter().map(|range| range.first).min(), covers.iter().map(|range| range.last).max())
    else {
        return String::new();
    };
    let gaps = if covers.len() > 1 { "*" } else { "" };
    format!("{}{gaps}", ids_of(&MessageRange::new(first, last)))
}

fn list(rows: &[Row], console: Console) -> String {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
    table.head(["messages", "tokens", "sent as"]);
    for Row { messages, what, tokens } in rows {
        table.row([messages, tokens, what].map(|cell| (Tone::Plain, cell.clone())));
    }
    let mut lines = table.lines(console).into_iter();
    let mut out = lines.next().unwrap_or_default();
    let left_out = rows.len().saturating_sub(MOST_LINES);
    for (at, line) in lines.enumerate() {
        let skipped = MOST_LINES / 2..MOST_LINES / 2 + left_out;
        if left_out > 0 && at == skipped.start {
            out.push_str(&console.paint(Tone::Faint, &format!("… {left_out} more; --json shows all\n")));
        }
        if left_out == 0 || !skipped.contains(&at) {
            out.push_str(&line);
        }
    }
    if rows.iter().any(|row| row.messages.ends_with('*')) {
        out.push_str(&console.paint(Tone::Faint, "*: with gaps\n"));
    }
    if rows.iter().any(|row| !row.messages.is_empty()) {
        let numbers = "messages have the numbers of `hermes sessions show`, which count those of all sessions";
        out.push_str(&console.paint(Tone::Faint, console.hanging(numbers, 2).trim_end()));
        out.push('\n');
    }
    out
}

fn engine(context: &Context, console: Console) -> String {
    let mut out = String::new();
    let mut add = |name: &str, value: &str| out.push_str(&console.hanging(&format!("{name:<8}  {value}"), 10));
    let engine = line(&context.engine);
    match &context.live {
        Some(live) if !live.enabled => add("engine", &format!("{engine}, not in use: compression.enabled is false")),
        Some(live) if live.preparing => add("engine", &format!("{engine}, preparing in the background")),
        _ => add("engine", &engine),
    }
    if let Some(live) = &context.live {
        for (name, value) in status(&live.status) {
            add("", &format!("{name}: {value}"));
        }
    }
    let window = context.model.context_length;
    let (before, within) = (context.heavy, window.saturating_sub(context.reserve));
    match before < within {
        true => {
            add("limits", &format!("compacts before turns above {} tokens (85 %)", grouped(before.into())));
            add("", &format!("and during one above {}", grouped(within.into())));
        }
        false => add("limits", &format!("compacts above {} tokens at the latest", grouped(within.into()))),
    }
    for faults in &context.faults {
        let times = counted(faults.in_a_row.into(), "failure");
        let cause = shortened(&line(&faults.cause), 120);
        let state = if faults.is_open() {
            format!("open: {}, {times} in a row, no longer in use; /compress tries it again", line(&faults.engine))
        } else {
            format!("closed: {}, {times} in a row (opens at {STRIKES})", line(&faults.engine))
        };
        let tone = if faults.is_open() { Tone::Bad } else { Tone::Warning };
        add("breaker", &console.paint(tone, &format!("{state}; last failure: {cause}")));
    }
    out
}

/// What the summaries in force say: all of them, or the one with this number.
pub(crate) fn summaries(context: &Context, number: Option<usize>, console: Console) -> Result<String, Failure> {
    let stretches = context.picture.stretches.iter().filter_map(|stretch| match stretch {
        Stretch::Summarised { key, .. } => Some((stretch, context.summaries.get(key)?)),
        _ => None,
    });
    let all: Vec<(&Stretch, &String)> = stretches.collect();
    let refused = |why: String, fix: &str| Failure::new(Kind::General, "there is no summary to show", why, fix);
    let none = || refused("all messages are sent as they were said".to_owned(), "`/compress` makes a summary");
    match number {
        _ if all.is_empty() => return Err(none()),
        Some(number) if number > all.len() => {
            let why = format!(
                "the request has {}",
                text::counted(all.len() as u64, "summary").replace("summarys", "summaries")
            );
            return Err(refused(why, "leave the number out to see all of them"));
        }
        _ => {}
    }
    let mut out = String::new();
    for (at, (stretch, content)) in (1..).zip(&all).filter(|(at, _)| number.is_none_or(|number| number == *at)) {
        let Row { messages, what, tokens } = row(stretch, stretch_tokens(stretch, context));
        let heading = format!("{at}  {what}, messages {messages}, tokens {tokens}");
        out.push_str(&console.paint(Tone::Faint, console.hanging(&heading, 3).trim_end()));
        out.push('\n');
        for line in console.shown(content).trim_end().lines() {
            let indent = line.len() - line.trim_start().len();
            out.push_str(&console.hanging(line, indent));
        }
        out.push('\n');
    }
    Ok(format!("{}\n", out.trim_end()))
}

/// The status that an engine reports, as names and values.
fn status(status: &Value) -> Vec<(String, String)> {
    let plain = |value: &Value| match value {
        Value::String(words) => line(words),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), grouped),
        other => line(&other.to_string()),
    };
    match status {
        Value::Object(entries) => {
            let shown = |name: &str, value: &Value| match value.as_u64() {
                // Times in the contract are Unix milliseconds.
                Some(at) if name.ends_with("_at") => local(at),
                _ => shortened(&plain(value), 120),
            };
            let entry = |(name, value): (&String, &Value)| match name.strip_suffix("_tokens").filter(|_| value.is_u64())
            {
                Some(name) => (line(&name.replace('_', " ")), format!("{} tokens", plain(value))),
                None => (line(&name.replace('_', " ")), shown(name, value)),
            };
            entries.iter().map(entry).collect()
        }
        other => vec![("status".to_owned(), shortened(&plain(other), 120))],
    }
}

fn views(steps: &[Step], console: Console) -> String {
    if steps.is_empty() {
        return "views     none: all messages are sent in full\n".to_owned();
    }
    let mut out =
        console.paint(Tone::Faint, "\n   #  when              by                before -> after       reason\n");
    let left_out = steps.len().saturating_sub(MOST_LINES);
    if left_out > 0 {
        out.push_str(&console.paint(Tone::Faint, &format!("… {left_out} earlier ones; --json shows all\n")));
    }
    for step in &steps[left_out..] {
        let Step { number, at, by, reason, before, after } = step;
        let change = format!("{} -> {}", grouped((*before).into()), grouped((*after).into()));
        out.push_str(&format!(
            "{number:>4}  {}  {:<16}  {change:<20}  {}\n",
            local(*at),
            shortened(&line(by), 16),
            shortened(&line(reason), 100)
        ));
    }
    out
}

/// The preview of `/compress`.
pub(crate) fn outlook(outlook: &CompressionPreview, console: Console) -> String {
    let change = |Change { stretch, before }: &Change| {
        let (before, after) = (grouped((*before).into()), grouped(stretch.tokens().into()));
        row(stretch, if before == after { after } else { format!("{before} -> {after}") })
    };
    let rows: Vec<Row> = outlook.changes.iter().map(change).collect();
    format!(
        "`{}` would compact messages from about {} to {} tokens: {}\n\n{}\n{}",
        line(&outlook.by),
        grouped(outlook.before.into()),
        grouped(outlook.after.into()),
        line(&outlook.reason),
        list(&rows, console),
        console.paint(
            Tone::Faint,
            "this preview changed nothing and used no model; /compress may get better summaries from a model\n"
        ),
    )
}

fn as_json(context: &Context) -> Value {
    let sums = &context.picture.sums;
    let sum = |sum: &Sum| json!({"messages": sum.messages, "tokens": sum.tokens, "said_tokens": sum.said});
    let window = context.model.context_length;
    json!({
        "session": context.session,
        "title": context.title,
        "provider": context.model.provider,
        "model": context.model.name,
        "engine": context.engine,
        "window": window,
        "reserve": context.reserve,
        "limits": {"turn_begins_below": context.heavy, "folded_above": window.saturating_sub(context.reserve)},
        "tokens": context.estimate(),
        "tokens_counted": context.counted(),
        "calibrated": context.ruler.is_calibrated(),
        "sums": {
            "tools": sums.tools,
            "system_prompt": sums.system_prompt,
            "verbatim": sum(&sums.verbatim),
            "shortened": sum(&sums.shortened),
            "summarised": sum(&sums.summarised),
        },
        "stretches": context.picture.stretches.iter().map(|stretch| stretch_json(stretch, &context.summaries)).collect::<Vec<_>>(),
        "faults": context.faults.iter().map(|faults| json!({
            "engine": faults.engine,
            "in_a_row": faults.in_a_row,
            "cause": faults.cause,
            "open": faults.is_open(),
        })).collect::<Vec<_>>(),
        "views": context.views.iter().map(|step| json!({
            "number": step.number,
            "at": step.at,
            "by": step.by,
            "reason": step.reason,
            "before": step.before,
            "after": step.after,
        })).collect::<Vec<_>>(),
    })
}

fn stretch_json(stretch: &Stretch, texts: &HashMap<String, String>) -> Value {
    match stretch {
        Stretch::Tools { tokens } => json!({"kind": "tools", "tokens": tokens}),
        Stretch::SystemPrompt { tokens } => json!({"kind": "system_prompt", "tokens": tokens}),
        Stretch::Verbatim { ids, messages, tokens } => {
            json!({"kind": "verbatim", "ids": ids, "messages": messages, "tokens": tokens})
        }
        Stretch::Shortened { ids, messages, tokens, said } => {
            json!({"kind": "shortened", "ids": ids, "messages": messages, "tokens": tokens, "said_tokens": said})
        }
        Stretch::Summarised { key, made, covers, messages, tokens, said } => json!({
            "kind": "summarised",
            "key": key,
            "by": made.as_ref().map(|made| &made.by),
            "since": made.as_ref().map(|made| made.at),
            "covers": covers,
            "text": texts.get(key),
            "messages": messages,
            "tokens": tokens,
            "said_tokens": said,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(tokens: u32) -> Part {
        Part { sign: 'x', name: "part", tokens, about: String::new() }
    }

    #[test]
    fn a_bar_has_its_width_and_a_column_for_every_part_with_tokens() {
        for (tokens, expected) in [
            (&[100, 100][..], &[32, 32][..]),
            (&[1, 1_000_000, 0], &[1, 63, 0]),
            (&[1, 1, 1, 1_000_000], &[1, 1, 1, 61]),
            (&[u32::MAX, u32::MAX, u32::MAX], &[22, 21, 21]),
            (&[0, 0], &[0, 0]),
        ] {
            let parts: Vec<Part> = tokens.iter().map(|tokens| part(*tokens)).collect();
            let mut columns = columns(&parts, WIDTH);
            columns.sort_unstable();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(columns, expected, "{tokens:?}");
        }
    }

    #[test]
    fn a_long_list_keeps_both_ends_and_counts_the_omitted_lines() {
        let row = |n: usize| Row { messages: n.to_string(), what: format!("row {n}"), tokens: "1".to_owned() };
        let shown = list(&(0..100).map(row).collect::<Vec<_>>(), Console::plain(false));
        assert_eq!(shown.lines().count(), MOST_LINES + 3);
        for text in ["row 0\n", "row 29\n", "… 40 more", "row 70\n", "row 99\n"] {
            assert!(shown.contains(text), "`{text}` is not in\n{shown}");
        }
        assert!(!shown.contains("row 30\n") && !shown.contains("row 69\n"));
        let whole = list(&(0..MOST_LINES).map(row).collect::<Vec<_>>(), Console::plain(false));
        assert_eq!(whole.lines().count(), MOST_LINES + 2);
    }

    #[test]
    fn the_status_of_an_engine_is_shown_without_control_sequences() {
        let shown = status(&json!({"prepared_through": 12_000, "words": "a\u{1b}[1mb\nc"}));
        assert_eq!(shown[0], ("prepared through".to_owned(), "12,000".to_owned()));
        let limit = status(&json!({"prepares_from_tokens": 3_000}));
        assert_eq!(limit, [("prepares from".to_owned(), "3,000 tokens".to_owned())]);
        assert_eq!(shown[1], ("words".to_owned(), "a\\u{1b}[1mb c".to_owned()));
        let at = 1_795_219_200_000;
        assert_eq!(status(&json!({"retry_at": at})), [("retry at".to_owned(), local(at))]);
        assert_eq!(status(&json!("it is\u{7} away"))[0].1, "it is\\u{7} away");
    }
}

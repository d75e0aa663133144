//! How long it takes to put a request together, by the number of messages in it. `cargo xtask bench assembly` runs it.
//!
//! The first request of a process renders every message; each later one puts two behind those that are there and
//! copies the bytes into a body.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hermes_conversation::{Role, Shown, ToolCall};
use hermes_models::{ApiMode, Breakpoints, Dialect, Marks, Prefix, Request, Style, System, ToolChoice, body};

const SIZES: [usize; 3] = [10, 1_000, 10_000];
const RUNS: usize = 31;
/// About what a message of a working session has.
const WORDS: usize = 90;

fn shown(at: usize) -> Shown {
    let role = [Role::User, Role::Assistant, Role::Tool, Role::Assistant][at % 4];
    let call = ToolCall {
        id: format!("call_{at}"),
        name: "read_file".to_owned(),
        arguments: format!(r#"{{"path":"src/part_{at}.rs","offset":{at}}}"#),
    };
    Shown {
        tool_calls: if at % 4 == 1 { vec![call] } else { Vec::new() },
        tool_call_id: (role == Role::Tool).then(|| format!("call_{}", at - 1)),
        ..Shown::words(role, format!("{at} \"so\"\n") + &"word ".repeat(WORDS))
    }
}

fn begun(style: Style, messages: &[Shown]) -> Prefix {
    let system = "You are to be measured. ".repeat(300);
    let system = System { text: &system, stable: 1_200, ephemeral: "" };
    let mut prefix = Prefix::new(style, "[]", system).expect("there are no tools to be wrong");
    messages.iter().for_each(|message| prefix.push(&style.render(message)));
    prefix
}

fn request(prefix: &Prefix) -> Request<'_> {
    let previous = prefix.messages().checked_sub(3);
    Request {
        model: "m",
        prefix,
        breakpoints: Breakpoints { previous, ..Breakpoints::default() },
        max_tokens: Some(4_096),
        temperature: None,
        schema: None,
        tool_choice: ToolChoice::Auto,
        effort: None,
    }
}

/// Least, median and most of several runs.
fn timed(mut run: impl FnMut()) -> [Duration; 3] {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            run();
            begun.elapsed()
        })
        .collect();
    times.sort();
    [times[0], times[RUNS / 2], times[RUNS - 1]]
}

fn told([least, median, most]: [Duration; 3]) -> String {
    let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
    format!("{} [{}-{}]", ms(median), ms(least), ms(most))
}

fn main() {
    println!("milliseconds: median [least-most] of {RUNS} runs");
    println!(
        "{:<24} {:>8} {:>12}  {:<26} {:<26}",
        "style", "messages", "body bytes", "first of a process", "each later one"
    );
    let styles = [
        ("chat completions", Style::PLAIN),
        ("chat, marked", Style::new(ApiMode::ChatCompletions, Marks::Envelope)),
        ("responses", Style::new(ApiMode::Responses, Marks::None)),
        ("anthropic messages", Style::new(ApiMode::AnthropicMessages, Marks::Native)),
    ];
    for (name, style) in styles {
        for size in SIZES {
            let messages: Vec<Shown> = (0..size).map(shown).collect();
            let first = timed(|| {
                let prefix = begun(style, &messages);
                black_box(body(&request(&prefix), &Dialect::PLAIN).expect("it can be sent"));
            });
            let mut prefix = begun(style, &messages);
            let more: Vec<Shown> = (size..size + 2).map(shown).collect();
            let mut bytes = 0;
            let later = timed(|| {
                more.iter().for_each(|message| prefix.push(&style.render(message)));
                bytes = black_box(body(&request(&prefix), &Dialect::PLAIN).expect("it can be sent")).len();
            });
            println!("{name:<24} {size:>8} {bytes:>12}  {:<26} {:<26}", told(first), told(later));
        }
    }
}

//! The tools of a session: who offers which, and one call from arguments to a stored result.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use hermes_conversation::{Draft, Media, Part, ToolCall, ToolResult, ToolSchema, tokens};
use hermes_plugin_host::{CallError, Cause, Effect, Image, Invocation, Tool, Tools};

use crate::approval::Gate;
use crate::skills::{self, SkillShelf};
use crate::watchers::Watchers;

/// Everything that the model may call.
pub(crate) struct Toolbox {
    offered: HashMap<String, Offered>,
    shelf: SkillShelf,
    watchers: Arc<Watchers>,
    gate: Arc<Gate>,
    /// Every plugin said what it offers.
    whole: bool,
}

struct Offered {
    plugin: Arc<dyn Tools>,
    tool: Tool,
}

/// What came of a call.
pub(crate) struct Answer {
    pub(crate) content: String,
    /// Pictures beside it.
    pub(crate) images: Vec<Part>,
    pub(crate) failed: bool,
    pub(crate) elapsed_ms: u64,
}

impl Toolbox {
    /// Asks every plugin what it offers. A name belongs to the first that offers it.
    pub(crate) async fn fill(
        plugins: &[Arc<dyn Tools>],
        shelf: SkillShelf,
        watchers: Arc<Watchers>,
        gate: Arc<Gate>,
    ) -> (Self, Vec<String>) {
        let mut notices = Vec::new();
        let mut offered: HashMap<String, Offered> = HashMap::new();
        let mut whole = true;
        for plugin in plugins {
            let tools = match plugin.catalog().await {
                Ok(tools) => tools,
                Err(error) => {
                    notices.push(format!("{error}; its tools are left out"));
                    whole = false;
                    continue;
                }
            };
            for tool in tools {
                let name = tool.schema.name.clone();
                match left_out(&tool, offered.get(&name).map(|first| first.plugin.name())) {
                    Some(why) => {
                        notices.push(format!("plugin `{}`: its tool `{name}` is left out: {why}", plugin.name()))
                    }
                    None => drop(offered.insert(name, Offered { plugin: Arc::clone(plugin), tool })),
                }
            }
        }
        (Self { offered, shelf, watchers, gate, whole }, notices)
    }

    /// Other watchers from here on.
    pub(crate) fn watch_with(&mut self, watchers: Arc<Watchers>) {
        self.watchers = watchers;
    }

    /// Whether every plugin could say what it offers.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// What the model is told of: frozen for the session by whoever asks first.
    pub(crate) fn schemas(&self) -> Vec<ToolSchema> {
        let plugins = self.offered.values().map(|offered| ToolSchema {
            name: offered.tool.schema.name.clone(),
            description: offered.tool.schema.description.clone(),
            parameters: offered.tool.schema.parameters.clone(),
        });
        let mut schemas: Vec<ToolSchema> = plugins.chain(self.shelf.schemas()).collect();
        schemas.sort_by(|a, b| a.name.cmp(&b.name));
        schemas
    }

    pub(crate) fn shelf(&self) -> &SkillShelf {
        &self.shelf
    }

    /// Splits calls into runs: neighbours that may run at once stand together, others alone.
    pub(crate) fn runs<'c>(&self, calls: &'c [ToolCall]) -> Vec<&'c [ToolCall]> {
        calls.chunk_by(|a, b| self.may_share(&a.name) && self.may_share(&b.name)).collect()
    }

    fn may_share(&self, name: &str) -> bool {
        match self.offered.get(name) {
            Some(offered) => offered.tool.parallel,
            None => name == skills::LIST || name == skills::VIEW,
        }
    }

    /// Starts the calls of a run together; answers come in the order of the calls.
    pub(crate) fn start<'a>(
        &'a self,
        run: &'a [ToolCall],
    ) -> impl futures_util::Stream<Item = (&'a ToolCall, Answer)> + 'a {
        // More at once would only queue for the processor.
        const AT_ONCE: usize = 8;
        let calls = run.iter().map(move |call| async move { (call, self.call(call).await) });
        futures_util::stream::iter(calls).buffered(AT_ONCE)
    }

    async fn call(&self, call: &ToolCall) -> Answer {
        let begun = Instant::now();
        let result = self.carry_out(call).await;
        let elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let failed = result.is_err();
        let (content, images) = result.unwrap_or_else(|why| (format!("error: {why}"), Vec::new()));
        let answer = Answer { content, images, failed, elapsed_ms };
        self.watchers.after_tool(call, &answer.content, answer.failed, answer.elapsed_ms);
        answer
    }

    async fn carry_out(&self, call: &ToolCall) -> Result<(String, Vec<Part>), String> {
        if !matches!(serde_json::from_str(&call.arguments), Ok(serde_json::Value::Object(_))) {
            return Err(format!(
                "the arguments of `{}` are no JSON object, so it was not run: write them anew",
                call.name
            ));
        }
        let ours = [skills::LIST, skills::VIEW].contains(&call.name.as_str()) && !self.shelf.schemas().is_empty();
        let offered = self.offered.get(&call.name);
        if offered.is_none() && !ours {
            let names: Vec<String> = self.schemas().into_iter().map(|schema| schema.name).collect();
            return Err(format!("there is no tool `{}`; there are: {}", call.name, names.join(", ")));
        }
        let objections = self.watchers.before_tool(call).await?;
        let plugin = offered.map(|offered| offered.plugin.name());
        let dangerous = offered.is_some_and(|offered| offered.tool.effect == Effect::Dangerous);
        self.gate.tool(plugin, call, dangerous, objections).await.map_err(|refused| refused.text)?;
        let Some(offered) = offered else {
            return self.shelf.call(&call.name, &call.arguments).await.map(|content| (content, Vec::new()));
        };
        let invocation = Invocation {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            extra: Vec::new(),
        };
        let output = offered.plugin.call(invocation).await.map_err(|error| for_the_model(&error))?;
        Ok(pictures(output.content, output.images))
    }
}

/// The text of an answer and its pictures; what cannot be sent is a line of the text.
fn pictures(mut content: String, images: Vec<Image>) -> (String, Vec<Part>) {
    let mut parts = Vec::new();
    let mut left = hermes_session_store::MOST_IN_A_MESSAGE;
    for image in images {
        let media = match image {
            Image::Url(url) => Media::image_at(&url),
            Image::Bytes(bytes) => Media::image(bytes, None),
        };
        let media = media.map_err(|error| error.to_string()).and_then(|media| {
            let size = media.blob().map_or(0, |blob| blob.size);
            left = left.checked_sub(size).ok_or("the images of one result are too large together")?;
            Ok(media)
        });
        match media {
            Ok(media) => parts.push(Part::Image(media)),
            Err(why) => content.push_str(&format!("\n[an image is left out: {why}]")),
        }
    }
    (content, parts)
}

/// A tool's own error as it is; a crash with the plugin's name.
fn for_the_model(error: &CallError) -> String {
    match &error.cause {
        Cause::Fault(fault) => fault.message.clone(),
        _ => error.to_string(),
    }
}

/// Why no session offers a tool to the model, where another plugin may hold its name already; none where one does.
pub fn left_out(tool: &Tool, holder: Option<&str>) -> Option<String> {
    if let Some(why) = unusable(tool) {
        return Some(why.to_owned());
    }
    if [skills::LIST, skills::VIEW].contains(&tool.schema.name.as_str()) {
        return Some("the name is the host's".to_owned());
    }
    holder.map(|holder| format!("`{holder}` offers one of that name"))
}

fn unusable(tool: &Tool) -> Option<&'static str> {
    let name = &tool.schema.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Some("its name is not 1 to 64 letters, digits, `_` and `-`");
    }
    match serde_json::from_str(&tool.schema.parameters) {
        Ok(serde_json::Value::Object(_)) => None,
        _ => Some("its parameters are no JSON Schema object"),
    }
}

/// Most tokens that one result may take of a window, and that all results of one reply may take.
fn shares(window: u32) -> (u32, u32) {
    ((window / 100 * 15).clamp(1_500, 25_000), (window / 100 * 30).clamp(3_000, 50_000))
}

/// The result of a call in its final form: what is too long for the window is cut for the model and kept in full, and what
/// is to be known of the place that the call touched stands behind it.
pub(crate) fn result(
    call: &ToolCall,
    answer: &Answer,
    of: usize,
    window: u32,
    hint: Option<String>,
    now: u64,
) -> Draft {
    let (each, all) = shares(window);
    let budget = each.min(all / u32::try_from(of.max(1)).unwrap_or(u32::MAX)).max(100);
    let mut draft = Draft::result(call, answer.content.clone(), now);
    // A message without a list of parts cannot say that its tool failed.
    if answer.failed || !answer.images.is_empty() {
        let text = (!answer.content.is_empty()).then(|| Part::text(answer.content.clone()));
        draft = draft.with_parts(vec![Part::ToolResult(ToolResult {
            call_id: call.id.clone(),
            tool_name: Some(call.name.clone()),
            parts: text.into_iter().chain(answer.images.iter().cloned()).collect(),
            failed: answer.failed,
            structured: None,
        })]);
    }
    if draft.content.is_empty() {
        // Some providers refuse an empty result.
        let instead = if answer.images.is_empty() { "(no output)" } else { "(see the image)" };
        draft.sent = Some(instead.to_owned());
    } else {
        draft.sent = cut(&draft.content, budget);
    }
    if let Some(hint) = hint {
        draft.sent = Some(format!("{}\n\n{hint}", draft.text_sent()));
    }
    draft
}

/// Head and tail of a text that takes more than `budget` tokens.
fn cut(text: &str, budget: u32) -> Option<String> {
    let total = tokens::of_text(text);
    if total <= budget {
        return None;
    }
    let count = text.chars().count();
    let mut keep = (count as u64 * u64::from(budget) / u64::from(total)) as usize;
    loop {
        let (head, tail) = (keep * 7 / 10, keep * 3 / 10);
        let shown = format!(
            "{}\n[{} of {count} characters are left out here; the log has all of them. Ask for less at a time.]\n{}",
            text.chars().take(head).collect::<String>(),
            count - head - tail,
            text.chars().skip(count - tail).collect::<String>(),
        );
        if tokens::of_text(&shown) <= budget.max(60) || keep == 0 {
            return Some(shown);
        }
        keep = keep * 9 / 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_in_the_middle_and_kept_whole() {
        let content: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let call = ToolCall { id: "c".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
        let answer = Answer { content: content.clone(), images: Vec::new(), failed: false, elapsed_ms: 1 };
        let draft = result(&call, &answer, 2, 12_000, None, 7);
        assert_eq!(draft.content, content);
        let sent = draft.text_sent();
        assert!(tokens::of_text(sent) <= 1_800, "{}", tokens::of_text(sent));
        assert!(sent.starts_with("line 0\n") && sent.ends_with("line 19999\n") && sent.contains("left out"));
    }

    #[test]
    fn a_failure_is_stored_with_its_result_also_without_images() {
        let call = ToolCall { id: "c".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
        let answer = |failed| Answer { content: "no such file".to_owned(), images: Vec::new(), failed, elapsed_ms: 1 };
        let failed = result(&call, &answer(true), 1, 12_000, Some("[hint]".to_owned()), 7);
        let [Part::ToolResult(stored)] = failed.parts.as_slice() else { panic!("{failed:?}") };
        assert!(stored.failed);
        let done = result(&call, &answer(false), 1, 12_000, Some("[hint]".to_owned()), 7);
        assert_eq!(done.parts, []);
        // Apart from that the messages are equal.
        assert_eq!(Draft { parts: Vec::new(), ..failed }, done);
    }

    #[test]
    fn a_hint_stands_behind_what_is_sent_and_not_in_what_is_searched() {
        let call = ToolCall { id: "c".to_owned(), name: "read_file".to_owned(), arguments: "{}".to_owned() };
        let answer = Answer { content: "found".to_owned(), images: Vec::new(), failed: false, elapsed_ms: 1 };
        let draft = result(&call, &answer, 1, 12_000, Some("[hint]".to_owned()), 7);
        assert_eq!((draft.content.as_str(), draft.text_sent()), ("found", "found\n\n[hint]"));
    }

    #[test]
    fn what_fits_is_sent_as_it_is() {
        assert_eq!(cut("short", 100), None);
    }
}

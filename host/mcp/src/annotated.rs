//! Arguments that a server on the web wants in headers too (`x-mcp-header`), so that a proxy between the server and Hermes can
//! route a call without reading it. A tool whose marks break the rules of the protocol is left out: two readers could understand
//! its calls differently. Since the version 2026-07-28; see "Custom headers from tool parameters" in its specification.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// The mark of a property, which names the header.
const MARK: &str = "x-mcp-header";
const PREFIX: &str = "mcp-param-";
/// What encloses a value that no header can carry as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");
/// The deepest place of a mark that is looked for.
const DEEPEST: usize = 32;

/// A marked argument: the names that lead to it, and its header.
type Marked = (Vec<String>, HeaderName);

/// The marked arguments of each tool of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Annotated(Arc<RwLock<HashMap<String, Vec<Marked>>>>);

impl Annotated {
    /// Remembers the marks of these tools, and takes out those that break the rules. Returns a line for each of them.
    pub(crate) fn learn(&self, tools: &mut Vec<Value>) -> Vec<String> {
        let (mut known, mut left_out) = (HashMap::new(), Vec::new());
        tools.retain(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            match tool.get("inputSchema").map_or_else(|| Ok(Vec::new()), marked) {
                Ok(marked) => {
                    if !marked.is_empty() {
                        known.insert(name.to_owned(), marked);
                    }
                    true
                }
                Err(why) => {
                    let name = crate::error::line(name);
                    left_out.push(format!("its tool `{name}` is left out: `{MARK}` in its parameters {why}"));
                    false
                }
            }
        });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = known;
        left_out
    }

    /// The headers of a call.
    pub(crate) fn headers(&self, tool: &str, arguments: &Map<String, Value>) -> Vec<(HeaderName, HeaderValue)> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let value = |path: &[String]| {
            let (first, rest) = path.split_first()?;
            let value = rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name))?;
            HeaderValue::from_str(&written(value)?).ok()
        };
        let marked = known.get(tool).into_iter().flatten();
        marked.filter_map(|(path, header)| Some((header.clone(), value(path)?))).collect()
    }
}

/// The marked properties of a schema. The error says what is wrong with a mark.
fn marked(schema: &Value) -> Result<Vec<Marked>, &'static str> {
    let mut found = Vec::new();
    if schema.get(MARK).is_some() || elsewhere(schema, true, 0) {
        return Err("marks no property of the arguments");
    }
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut seen = HashSet::new();
    match found.iter().all(|(_, header)| seen.insert(header.clone())) {
        true => Ok(found),
        false => Err("names one header twice"),
    }
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Marked>) -> Result<(), &'static str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if path.len() >= DEEPEST {
        return if schema.to_string().contains(MARK) { Err("is too deep") } else { Ok(()) };
    }
    for (name, property) in properties.into_iter().flatten() {
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
            if !matches!(kind, "string" | "integer" | "boolean") {
                return Err("marks what is neither a text, a whole number nor a truth value");
            }
            let header = mark.as_str().filter(|mark| !mark.is_empty());
            let header = header.and_then(|mark| HeaderName::try_from(format!("{PREFIX}{mark}")).ok());
            found.push((path.clone(), header.ok_or("names no header")?));
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Whether there is a mark that is not on a way of `properties` alone.
fn elsewhere(schema: &Value, is_on_way: bool, depth: usize) -> bool {
    if depth > 2 * DEEPEST {
        return schema.to_string().contains(MARK);
    }
    let inside = |value: &Value, is_on_way| match value {
        Value::Object(_) => elsewhere(value, is_on_way, depth + 1),
        Value::Array(entries) => entries.iter().any(|entry| elsewhere(entry, false, depth + 1)),
        _ => false,
    };
    let each = |value: &Value, is_on_way| {
        value.as_object().is_some_and(|named| named.values().any(|schema| inside(schema, is_on_way)))
    };
    schema.as_object().into_iter().flatten().any(|(keyword, value)| match keyword.as_str() {
        MARK => !is_on_way,
        "properties" => each(value, is_on_way),
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => each(value, false),
        // Values, and no schemas.
        "default" | "const" | "enum" | "examples" | "dependentRequired" => false,
        _ => inside(value, false),
    })
}

/// A value as a header carries it.
fn written(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let is_blank = |end: Option<char>| matches!(end, Some(' ' | '\t'));
    let needs_code = text.chars().any(|character| !matches!(character, ' '..='~'))
        || is_blank(text.chars().next())
        || is_blank(text.chars().next_back())
        || text.starts_with(ENCODED.0) && text.ends_with(ENCODED.1);
    Some(if needs_code { format!("{}{}{}", ENCODED.0, STANDARD.encode(text), ENCODED.1) } else { text })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(properties: Value) -> Value {
        json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } })
    }

    #[test]
    fn marked_arguments_go_into_headers() {
        let annotated = Annotated::default();
        let mut tools = vec![tool(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "inner": {"type": "object", "properties": {"id": {"type": "string", "x-mcp-header": "Id"}}},
            "plain": {"type": "string"},
        }))];
        assert_eq!(annotated.learn(&mut tools), Vec::<String>::new());
        let headers = |arguments: Value| -> Vec<(String, String)> {
            let headers = annotated.headers("t", arguments.as_object().unwrap());
            headers.into_iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
        };
        let named = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (format!("mcp-param-{name}"), (*value).to_owned())).collect()
        };
        assert_eq!(
            headers(json!({"region": "eu 1", "count": 3, "dry": false, "inner": {"id": "x"}, "plain": "p"})),
            named(&[("region", "eu 1"), ("count", "3"), ("dry", "false"), ("id", "x")])
        );
        assert_eq!(headers(json!({"region": null, "inner": 7})), []);
        assert_eq!(headers(json!({"region": ""})), named(&[("region", "")]));
        for (odd, expected) in [
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            // On the way, a blank at the end would be taken for none.
            ("a ", "=?base64?YSA=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(headers(json!({"region": odd})), named(&[("region", expected)]), "{odd:?}");
        }
        assert_eq!(annotated.headers("other", &Map::new()), []);
    }

    #[test]
    fn a_tool_with_a_mark_against_the_rules_is_left_out_and_named() {
        let text = |mark: Value| json!({"type": "string", "x-mcp-header": mark});
        let inside = |inner: Value| json!({"type": "object", "properties": {"a": inner}});
        let deep = tool(json!({"a": (0..40).fold(text(json!("A")), |inner, _| inside(inner))}));
        for odd in [
            tool(json!({"a": text(json!(""))})),
            tool(json!({"a": text(json!(7))})),
            tool(json!({"a": text(json!("a b"))})),
            tool(json!({"a": text(json!("a:b"))})),
            tool(json!({"a": text(json!("größe"))})),
            tool(json!({"a": text(json!("a\tb"))})),
            tool(json!({"a": {"type": "number", "x-mcp-header": "A"}})),
            tool(json!({"a": {"type": "object", "x-mcp-header": "A"}})),
            tool(json!({"a": {"x-mcp-header": "A"}})),
            tool(json!({"a": text(json!("A")), "b": text(json!("a"))})),
            tool(json!({"a": {"type": "array", "items": text(json!("A"))}})),
            tool(json!({"a": {"anyOf": [text(json!("A"))]}})),
            deep.clone(),
            json!({"name": "t", "inputSchema": {"type": "object", "x-mcp-header": "A"}}),
            json!({"name": "t", "inputSchema": {"type": "object", "$defs": {"A": text(json!("A"))}}}),
        ] {
            let mut tools = vec![odd.clone(), tool(json!({"a": text(json!("A"))}))];
            let told = Annotated::default().learn(&mut tools);
            assert!(told.len() == 1 && told[0].starts_with("its tool `t` is left out: "), "{odd}: {told:?}");
            assert_eq!(tools.len(), 1, "{odd}");
        }
        // A value that looks like a mark is none.
        let mut tools = vec![tool(json!({"a": {"type": "object", "default": {"x-mcp-header": ""}}})), json!("odd")];
        assert_eq!((Annotated::default().learn(&mut tools), tools.len()), (Vec::new(), 2));
    }
}

//! The items of `reasoning_details`, in which gateways send signed, summarised and encrypted reasoning.
//!
//! The provider takes them back only in the sequence and with the content in which it wrote them. A stream sends an item in
//! several pieces, which are joined here.

use serde_json::{Map, Value};

/// The fields that a stream sends piece by piece, by the type of the item. Items of other types arrive whole.
const STREAMED: &[(&str, &str)] = &[("reasoning.text", "text"), ("reasoning.summary", "summary")];

/// How many of the newest items a piece may continue. Servers interleave a few items at most.
const REACH: usize = 16;

/// Appends items, or pieces of them. The items of a `whole` reply stay as they are.
pub(super) fn append(kept: &mut Vec<Value>, more: &[Value], whole: bool) {
    for piece in more {
        let field = piece.as_object().and_then(streamed_field).filter(|_| !whole);
        match field.and_then(|field| Some((begun(kept, piece)?, field))) {
            Some((item, field)) => join(item, piece, field),
            None => kept.push(piece.clone()),
        }
    }
}

/// The words of items that can be read.
pub(super) fn words(items: &[Value]) -> Option<String> {
    let words: String = items
        .iter()
        .filter_map(|item| {
            let item = item.as_object()?;
            item.get(streamed_field(item)?)?.as_str()
        })
        .collect();
    (!words.is_empty()).then_some(words)
}

fn streamed_field(item: &Map<String, Value>) -> Option<&'static str> {
    let kind = item.get("type")?.as_str()?;
    STREAMED.iter().find(|(streamed, _)| *streamed == kind).map(|(_, field)| *field)
}

/// The item that a piece continues: the newest of its type and index, unless the ids differ. Without an index it can only
/// be the last item.
fn begun<'a>(kept: &'a mut [Value], piece: &Value) -> Option<&'a mut Map<String, Value>> {
    let same = |item: &Value, key: &str| item[key] == piece[key];
    let other_id = |item: &Value| item["id"].is_string() && piece["id"].is_string() && !same(item, "id");
    let reach = if piece["index"].is_null() { 1 } else { REACH };
    let mut newest = kept.iter_mut().rev().take(reach);
    newest.find(|item| same(item, "type") && same(item, "index") && !other_id(item))?.as_object_mut()
}

fn join(item: &mut Map<String, Value>, piece: &Value, field: &str) {
    for (key, value) in piece.as_object().into_iter().flatten() {
        match (item.get_mut(key), value) {
            (Some(Value::String(begun)), Value::String(more)) if key == field => begun.push_str(more),
            (_, Value::Null) => {}
            (_, value) => drop(item.insert(key.clone(), value.clone())),
        }
    }
}

//! Brings a schema in the common form into the form of one dialect: one rule for every depth, which reads its row of the table.
//!
//! What a dialect refuses is written in another form of the same meaning where there is one. Otherwise the keyword is left out, and
//! the description says what it said. A schema whose meaning would be lost is refused, so that its tool is left out.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::dialects::{NOTES, OF_TYPES, RULES, References, Row};
use super::grammar;
use super::keywords::{Shape, shape};
use super::root::{found, join};

/// The most schemas in one schema after its references are replaced by what they lead to.
const MOST_SCHEMAS: usize = 2_000;
/// The longest rules that a description repeats, in bytes.
const MOST_TOLD: usize = 1_000;
/// Keywords that describe a value, besides those of [`RULES`].
const DESCRIBING: &[&str] = &["type", "properties", "required", "items", "$ref"];

/// A schema in the form of a dialect.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) schema: Map<String, Value>,
    /// Properties that may be missing and are written as `null` then.
    pub(super) absent: BTreeSet<String>,
}

/// Why a schema has no form in a dialect. `Display` is what follows the colon behind the tool's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error(
        "its schema has more than {MOST_SCHEMAS} parts when the references in it are replaced, which this provider needs"
    )]
    Large,
    #[error("{0} may be any value, and this provider needs a type")]
    Any(String),
    #[error("{0} is an object with names that the schema does not list, and this provider needs them")]
    Free(String),
    #[error("its schema has more than {0} objects inside of each other, which this provider refuses")]
    Deep(usize),
}

/// A schema in the form of a dialect; none if it has that form.
pub(super) fn fitted(schema: &Map<String, Value>, row: &'static Row) -> Result<Option<Fitted>, Unfit> {
    let whole = Value::Object(schema.clone());
    let mut fit = Fit {
        row,
        whole: &whole,
        left: MOST_SCHEMAS,
        place: "its argument".to_owned(),
        followed: Vec::new(),
        absent: BTreeSet::new(),
        nullable: BTreeSet::new(),
    };
    let mut root = schema.clone();
    // Arguments are never null.
    if !row.takes("nullable") {
        root.shift_remove("nullable");
    }
    let fitted = fit.schema(root, 0)?;
    let absent = fit.absent.difference(&fit.nullable).cloned().collect();
    Ok((fitted != *schema).then_some(Fitted { schema: fitted, absent }))
}

struct Fit<'s> {
    row: &'static Row,
    whole: &'s Value,
    /// How many schemas may still be written.
    left: usize,
    /// The property that is looked at, for errors.
    place: String,
    /// The references that were replaced on the way to the schema that is looked at.
    followed: Vec<String>,
    /// Properties that may be null only because they may be missing.
    absent: BTreeSet<String>,
    /// Properties that may be null by themselves.
    nullable: BTreeSet<String>,
}

impl Row {
    /// Whether a keyword is taken.
    pub(super) fn takes(&self, keyword: &str) -> bool {
        self.known.is_none_or(|known| known.contains(&keyword)) && !self.refused.contains(&keyword)
    }

    /// Whether a reference may be sent.
    pub(super) fn follows(&self, reference: &str) -> bool {
        match self.references {
            References::Any | References::Bare => true,
            References::None => false,
            References::Direct => ["#/$defs/", "#/definitions/"].iter().any(|place| {
                let is_plain =
                    |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-');
                reference.strip_prefix(place).is_some_and(|name| name.chars().all(is_plain))
            }),
        }
    }
}

impl Fit<'_> {
    /// One schema, and all in it. `level` counts the objects around it.
    fn schema(&mut self, mut members: Map<String, Value>, level: usize) -> Result<Map<String, Value>, Unfit> {
        self.left = self.left.checked_sub(1).ok_or(Unfit::Large)?;
        let followed = self.followed.len();
        let mut told = Map::new();
        loop {
            self.all(&mut members)?;
            self.reference(&mut members);
            let has_all = members.contains_key("allOf") && !self.row.takes("allOf");
            if !self.choice(&mut members, &mut told)? && !has_all {
                break;
            }
        }
        self.values(&mut members);
        self.types(&mut members)?;
        self.details(&mut members, &mut told);
        let is_object =
            members.get("type").is_some_and(|kind| has(kind, "object")) || members.contains_key("properties");
        let level = if is_object { level + 1 } else { level };
        if let Some(deepest) = self.row.deepest.filter(|deepest| level > *deepest) {
            return Err(Unfit::Deep(deepest));
        }
        if self.row.closed && is_object {
            self.check_closed(&members, level)?;
        }
        self.leave_out(&mut members, &mut told);
        self.inner(&mut members, level)?;
        // Only now it is known which branches are null.
        while self.row.single_types && without_null(&mut members) {}
        if self.row.closed && is_object {
            self.close(&mut members);
        }
        tell(&mut members, told);
        self.followed.truncate(followed);
        Ok(members)
    }

    /// Replaces a reference that the dialect does not follow by what it leads to.
    fn reference(&mut self, members: &mut Map<String, Value>) {
        while let Some(Value::String(reference)) = members.get("$ref").cloned() {
            let is_alone = self.row.references != References::Direct
                || members.keys().all(|keyword| keyword == "$ref" || !describes(keyword));
            if self.row.follows(&reference) && is_alone {
                if self.row.references == References::Bare && members.len() > 1 {
                    members.shift_remove("$ref");
                    members.entry("anyOf").or_insert_with(|| json!([{ "$ref": reference }]));
                }
                return;
            }
            members.shift_remove("$ref");
            let target = found(self.whole, &reference).and_then(Value::as_object).cloned().unwrap_or_default();
            if self.followed.contains(&reference) {
                let kind = target.get("type").filter(|kind| kind.is_string()).cloned();
                let kind = members.entry("type").or_insert_with(|| kind.unwrap_or_else(|| "object".into()));
                if has(kind, "array") {
                    members.entry("items").or_insert_with(|| json!({}));
                }
                let name = reference.rsplit('/').next().unwrap_or_default();
                describe(members, &format!("Again in the form of `{name}`."));
                return;
            }
            self.followed.push(reference);
            add(members, target);
        }
    }

    /// Merges the schemas of `allOf`, where the dialect refuses it.
    fn all(&mut self, members: &mut Map<String, Value>) -> Result<(), Unfit> {
        if self.row.takes("allOf") {
            return Ok(());
        }
        let Some(Value::Array(schemas)) = members.shift_remove("allOf") else { return Ok(()) };
        // A single reference stays one.
        if let [Value::Object(only)] = &schemas[..]
            && let (1, Some(Value::String(reference))) = (only.len(), only.get("$ref"))
            && self.row.follows(reference)
            && members.keys().all(|keyword| NOTES.contains(&keyword.as_str()))
        {
            members.insert("$ref".to_owned(), reference.as_str().into());
            self.reference(members);
            return Ok(());
        }
        let mut followed = Vec::new();
        let schemas = self.branches(schemas, &[], &mut followed)?;
        self.followed.extend(followed);
        merge(members, schemas);
        Ok(())
    }

    /// The schemas of a list with what their references lead to. `path` has the references that lead to the list.
    fn branches(
        &mut self,
        schemas: Vec<Value>,
        path: &[String],
        followed: &mut Vec<String>,
    ) -> Result<Vec<Map<String, Value>>, Unfit> {
        let mut branches = Vec::new();
        for schema in schemas {
            self.left = self.left.checked_sub(1).ok_or(Unfit::Large)?;
            let Value::Object(mut branch) = schema else { continue };
            let mut here = path.to_vec();
            while let Some(Value::String(reference)) = branch.shift_remove("$ref") {
                if self.followed.contains(&reference) || here.contains(&reference) {
                    break;
                }
                let target = found(self.whole, &reference).and_then(Value::as_object).cloned().unwrap_or_default();
                here.push(reference);
                add(&mut branch, target);
            }
            if let Some(Value::Array(all)) = branch.get("allOf").filter(|_| !self.row.takes("allOf")).cloned() {
                branch.shift_remove("allOf");
                let all = self.branches(all, &here, followed)?;
                merge(&mut branch, all);
            }
            followed.extend(here);
            branches.push(branch);
        }
        Ok(branches)
    }

    /// Writes a choice as the dialect reads it. Whether only one branch was left and is part of the schema now.
    fn choice(&mut self, members: &mut Map<String, Value>, told: &mut Map<String, Value>) -> Result<bool, Unfit> {
        if !self.row.takes("oneOf")
            && let Some(choices) = members.shift_remove("oneOf")
        {
            match members.contains_key("anyOf") {
                true => drop(told.insert("oneOf".to_owned(), choices)),
                false => drop(members.insert("anyOf".to_owned(), choices)),
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            if self.row.lone_choices {
                self.alone(members, keyword)?;
            }
        }
        Ok(self.row.single_types && without_null(members))
    }

    /// Moves the keywords beside a choice into its branches: objects become one object with the properties of all, as at the root, and other
    /// schemas are completed one by one.
    fn alone(&mut self, members: &mut Map<String, Value>, keyword: &str) -> Result<(), Unfit> {
        let beside: Vec<String> = members.keys().filter(|key| *key != keyword && describes(key)).cloned().collect();
        if beside.is_empty() {
            return Ok(());
        }
        let Some(Value::Array(choices)) = members.get(keyword).cloned() else { return Ok(()) };
        let mut followed = Vec::new();
        let branches = self.branches(choices, &[], &mut followed)?;
        self.followed.extend(followed);
        let may_be_object = |schema: &Map<String, Value>| schema.get("type").is_none_or(|kind| kind == "object");
        let names = |schema: &Map<String, Value>| schema.contains_key("properties") || schema.contains_key("required");
        let all_objects = may_be_object(members) && branches.iter().all(may_be_object);
        if all_objects && (names(members) || branches.iter().any(names)) {
            members.shift_remove(keyword);
            join(members, &branches, false);
            members.entry("type").or_insert_with(|| "object".into());
            return Ok(());
        }
        let mut shared = Map::new();
        for key in beside {
            let value = members.shift_remove(&key).unwrap_or_default();
            shared.insert(key, value);
        }
        let completed = branches.into_iter().map(|mut branch| {
            merge(&mut branch, vec![shared.clone()]);
            Value::Object(branch)
        });
        let completed = completed.collect();
        members.insert(keyword.to_owned(), Value::Array(completed));
        Ok(())
    }

    /// Writes single values as lists of one, and `null` among them as the dialect reads it.
    fn values(&self, members: &mut Map<String, Value>) {
        if !self.row.takes("const")
            && let Some(value) = members.shift_remove("const")
        {
            members.entry("enum").or_insert_with(|| json!([value]));
        }
        if self.row.single_types
            && let Some(Value::Array(values)) = members.get_mut("enum")
        {
            let before = values.len();
            values.retain(|value| !value.is_null());
            let (has_null, is_empty) = (values.len() < before, values.is_empty());
            if is_empty {
                members.shift_remove("enum");
                members.insert("type".to_owned(), "null".into());
            } else if has_null {
                members.insert("nullable".to_owned(), true.into());
            }
        }
        if !self.row.takes("nullable") && members.shift_remove("nullable") == Some(true.into()) {
            make_nullable(members);
        }
    }

    /// Gives a schema a type, where the dialect needs one, and one only where it takes no list.
    fn types(&self, members: &mut Map<String, Value>) -> Result<(), Unfit> {
        let has_choice = ["anyOf", "oneOf", "$ref"].iter().any(|keyword| members.contains_key(*keyword));
        if has_choice {
            return Ok(());
        }
        if self.row.typed && !members.contains_key("type") {
            match implied(members) {
                Some(kind) => drop(members.insert("type".to_owned(), kind)),
                None if self.row.closed => return Err(Unfit::Any(self.place.clone())),
                None => {
                    members.insert("anyOf".to_owned(), any(self.row));
                    return Ok(());
                }
            }
        }
        if self.row.single_types
            && let Some(Value::Array(kinds)) = members.get("type").cloned()
        {
            let mut others: Vec<Value> = kinds.iter().filter(|kind| *kind != "null").cloned().collect();
            // Drop the types that no listed value has.
            let values = members.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
            let is_listed = |kind: &Value| values.iter().any(|value| is_of_type(value, kind));
            if others.iter().any(is_listed) {
                others.retain(is_listed);
            }
            if kinds.iter().any(|kind| kind == "null") && !others.is_empty() {
                members.insert("nullable".to_owned(), true.into());
            }
            match &others[..] {
                [] => drop(members.insert("type".to_owned(), "null".into())),
                [one] => drop(members.insert("type".to_owned(), one.clone())),
                _ => {
                    let (notes, rest): (Map<String, Value>, Map<String, Value>) =
                        std::mem::take(members).into_iter().partition(|(key, _)| NOTES.contains(&key.as_str()));
                    let one = |kind: &Value| {
                        let mut one = rest.clone();
                        if let Some(Value::Array(values)) = one.get_mut("enum").filter(|_| is_listed(kind)) {
                            values.retain(|value| is_of_type(value, kind));
                        }
                        one.insert("type".to_owned(), kind.clone());
                        Value::Object(one)
                    };
                    *members = notes;
                    members.insert("anyOf".to_owned(), others.iter().map(one).collect());
                    return Ok(());
                }
            }
        }
        let Some(kind) = members.get("type").filter(|_| self.row.typed).cloned() else { return Ok(()) };
        let is_of_other_type = |keyword: &str| {
            let mut rows = OF_TYPES.iter().filter(|(_, keywords)| keywords.contains(&keyword)).peekable();
            rows.peek().is_some() && rows.all(|(kinds, _)| kinds.iter().all(|of| !has(&kind, of)))
        };
        members.retain(|keyword, _| !is_of_other_type(keyword));
        if has(&kind, "array") {
            members.entry("items").or_insert_with(|| json!({}));
        }
        Ok(())
    }

    /// Leaves out values of keywords that the dialect takes with other values only.
    fn details(&self, members: &mut Map<String, Value>, told: &mut Map<String, Value>) {
        if self.row.text_choices
            && let Some(Value::Array(values)) = members.get("enum")
        {
            let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
            if !values.iter().all(is_text) || members.get("type").is_none_or(|kind| kind != "string") {
                leave(members, "enum", told);
            }
        }
        if let (Some(formats), Some(Value::String(format))) = (self.row.formats, members.get("format"))
            && !formats.contains(&format.as_str())
        {
            leave(members, "format", told);
        }
        if self.row.grammar_patterns
            && let Some(Value::String(written)) = members.get("pattern")
        {
            match grammar::pattern(written) {
                Some(read) if read == *written => {}
                Some(read) => drop(members.insert("pattern".to_owned(), read.into())),
                None => leave(members, "pattern", told),
            }
        }
        for keyword in ["minLength", "maxLength", "minItems", "maxItems"] {
            let count = members.get(keyword).and_then(Value::as_u64);
            if self.row.most_repeats.zip(count).is_some_and(|(most, count)| count > most) {
                leave(members, keyword, told);
            }
        }
    }

    /// Refuses an object whose names are not known, where the dialect needs them. The arguments of a tool may be none.
    fn check_closed(&self, members: &Map<String, Value>, level: usize) -> Result<(), Unfit> {
        let is_described =
            |keyword: &str| members.get(keyword).and_then(Value::as_object).is_some_and(|of| !of.is_empty());
        let has_further = members.get("additionalProperties").is_some_and(Value::is_object);
        let is_free = has_further || is_described("patternProperties") || level > 1 && !is_described("properties");
        if is_free { Err(Unfit::Free(self.place.clone())) } else { Ok(()) }
    }

    /// Leaves out the keywords that the dialect refuses.
    fn leave_out(&self, members: &mut Map<String, Value>, told: &mut Map<String, Value>) {
        let refused: Vec<String> = members.keys().filter(|keyword| !self.row.takes(keyword)).cloned().collect();
        for keyword in refused {
            leave(members, &keyword, told);
        }
        // Merged schemas may require what none of them describes.
        if let Some(Value::Array(mut required)) = members.get("required").cloned() {
            let properties = members.get("properties").and_then(Value::as_object);
            let before = required.len();
            required.retain(|name| properties.zip(name.as_str()).is_some_and(|(all, name)| all.contains_key(name)));
            if required.len() < before {
                members.insert("required".to_owned(), required.into());
            }
        }
    }

    /// The schemas in a schema.
    fn inner(&mut self, members: &mut Map<String, Value>, level: usize) -> Result<(), Unfit> {
        for (keyword, value) in members.iter_mut() {
            match shape(keyword) {
                Some(Shape::Schema | Shape::SchemaOrBool) => self.value(value, level)?,
                Some(Shape::Schemas | Shape::SchemasOrNames) => {
                    for (name, value) in value.as_object_mut().into_iter().flatten() {
                        let before = std::mem::replace(&mut self.place, format!("`{name}`"));
                        self.value(value, level)?;
                        self.place = before;
                    }
                }
                Some(Shape::SchemaList) => {
                    for value in value.as_array_mut().into_iter().flatten() {
                        self.value(value, level)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn value(&mut self, value: &mut Value, level: usize) -> Result<(), Unfit> {
        if let Value::Object(members) = value {
            *members = self.schema(std::mem::take(members), level)?;
        }
        Ok(())
    }

    /// Requires every property. An optional property may be null instead.
    fn close(&mut self, members: &mut Map<String, Value>) {
        members.insert("additionalProperties".to_owned(), false.into());
        let required: Vec<Value> = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
        for (name, property) in properties.iter_mut() {
            let Some(property) = property.as_object_mut() else { continue };
            match takes_null(property, self.whole, 0) {
                true => drop(self.nullable.insert(name.clone())),
                false if required.iter().any(|required| required == name) => {}
                false => {
                    make_nullable(property);
                    self.absent.insert(name.clone());
                }
            }
        }
        let further = properties.keys().filter(|name| !required.iter().any(|required| required == *name));
        let all: Vec<Value> = required.iter().cloned().chain(further.map(|name| name.as_str().into())).collect();
        members.insert("required".to_owned(), all.into());
    }
}

/// Whether a keyword says more of a value than a note.
fn describes(keyword: &str) -> bool {
    !NOTES.contains(&keyword) && (DESCRIBING.contains(&keyword) || RULES.contains(&keyword))
}

/// Adds the keywords that a schema does not have.
fn add(members: &mut Map<String, Value>, further: Map<String, Value>) {
    for (key, value) in further {
        members.entry(key).or_insert(value);
    }
}

/// Makes one schema of several that all hold.
fn merge(members: &mut Map<String, Value>, schemas: Vec<Map<String, Value>>) {
    join(members, &schemas, true);
    schemas.into_iter().for_each(|schema| add(members, schema));
}

/// Takes a keyword out, and keeps what it says if it is a rule.
fn leave(members: &mut Map<String, Value>, keyword: &str, told: &mut Map<String, Value>) {
    let Some(value) = members.shift_remove(keyword) else { return };
    if RULES.contains(&keyword) && !(keyword == "additionalProperties" && value.is_boolean()) {
        told.insert(keyword.to_owned(), value);
    }
}

/// Says in the description what the keywords can not.
fn tell(members: &mut Map<String, Value>, told: Map<String, Value>) {
    let rules = Value::Object(told).to_string();
    // A reference leads nowhere from there.
    if rules.len() > "{}".len() && rules.len() <= MOST_TOLD && !rules.contains("\"$ref\"") {
        describe(members, &format!("Further rules as JSON Schema: {rules}"));
    }
}

fn describe(members: &mut Map<String, Value>, sentence: &str) {
    let described = match members.get("description").and_then(Value::as_str).map(str::trim_end) {
        Some(before) if !before.is_empty() => format!("{before}\n\n{sentence}"),
        _ => sentence.to_owned(),
    };
    members.insert("description".to_owned(), described.into());
}

/// Whether a type, or a list of types, names a type.
fn has(kind: &Value, name: &str) -> bool {
    kind == name || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == name))
}

/// The types of any value. A list of anything would need itself as its items: it has no lists.
fn any(row: &Row) -> Value {
    let kinds: &[&str] = match row.single_types {
        true => &["string", "number", "boolean", "object"],
        false => &["string", "number", "boolean", "null", "object"],
    };
    let one = |kind: &&str| json!({ "type": kind });
    let items: Vec<Value> = kinds.iter().map(one).collect();
    let list = json!({"type": "array", "items": {"anyOf": items}});
    items.iter().cloned().chain([list]).collect()
}

/// The type that the other keywords of a schema imply.
fn implied(members: &Map<String, Value>) -> Option<Value> {
    if let Some(values) = members.get("enum").and_then(Value::as_array) {
        let mut kinds: Vec<&str> = values.iter().map(type_of).collect();
        kinds.sort_unstable();
        kinds.dedup();
        return match &kinds[..] {
            [] => None,
            [one] => Some((*one).into()),
            several => Some(several.iter().copied().map(Value::from).collect()),
        };
    }
    if let Some(value) = members.get("const") {
        return Some(type_of(value).into());
    }
    let row = OF_TYPES.iter().find(|(_, keywords)| keywords.iter().any(|keyword| members.contains_key(*keyword)));
    row.and_then(|(kinds, _)| kinds.first()).map(|kind| (*kind).into())
}

fn is_of_type(value: &Value, kind: &Value) -> bool {
    let own = type_of(value);
    kind == own || own == "integer" && kind == "number"
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a schema takes nothing but null.
fn is_null(schema: &Value) -> bool {
    schema["type"] == "null" || schema.get("const") == Some(&Value::Null) || schema["enum"] == json!([null])
}

/// Whether a schema takes null.
fn takes_null(members: &Map<String, Value>, whole: &Value, depth: usize) -> bool {
    let takes = |schema: &Value| depth < 16 && schema.as_object().is_some_and(|of| takes_null(of, whole, depth + 1));
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        return found(whole, reference).is_some_and(takes);
    }
    if let Some(choices) = members.get("anyOf").and_then(Value::as_array) {
        return choices.iter().any(takes);
    }
    let of_type = members.get("type").is_none_or(|kind| has(kind, "null"));
    let values = members.get("enum").and_then(Value::as_array);
    let of_values = values.is_none_or(|values| values.contains(&Value::Null));
    of_type && of_values && members.get("const").is_none_or(Value::is_null)
}

/// Says with `nullable` that a choice may be null. Whether only one branch was left and is part of the schema now.
fn without_null(members: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(choices)) = members.get_mut("anyOf") else { return false };
    let before = choices.len();
    choices.retain(|choice| !is_null(choice));
    let has_null = choices.len() < before;
    let one = match &mut choices[..] {
        [] => Some(json!({"type": "null"})),
        [one] => Some(one.take()),
        _ => None,
    };
    if has_null && one.as_ref().is_none_or(|one| !is_null(one)) {
        members.insert("nullable".to_owned(), true.into());
    }
    let Some(Value::Object(one)) = one else { return false };
    members.shift_remove("anyOf");
    add(members, one);
    true
}

/// Lets a schema take null, too.
fn make_nullable(members: &mut Map<String, Value>) {
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        if !choices.iter().any(is_null) {
            choices.push(json!({"type": "null"}));
        }
        return;
    }
    if let Some(reference) = members.shift_remove("$ref") {
        members.insert("anyOf".to_owned(), json!([{"$ref": reference}, {"type": "null"}]));
        return;
    }
    if let Some(value) = members.shift_remove("const") {
        members.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match members.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => kinds.push("null".into()),
        Some(Value::Array(_)) | None => {}
        Some(kind) if kind != "null" => *kind = json!([kind.take(), "null"]),
        Some(_) => {}
    }
}

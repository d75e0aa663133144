//! The functions of the bindings for C that free a value.
//!
//! `wit-bindgen-c` 0.63 forgets fields of types without a name, such as `list<u8>` and `option<string>`, in all interfaces but the first that
//! has such a type: the body of every response over HTTP would stay allocated. What is missing is added from the declarations.

use std::collections::HashMap;

/// A part of a value that has memory of its own: how C names it, what has to be the case, and its type.
#[derive(Debug)]
struct Part {
    place: String,
    condition: Option<String>,
    ty: String,
}

#[derive(Debug)]
enum Shape {
    /// Of items of this type, as C writes it.
    List(String),
    Fields(Vec<Part>),
}

/// A type as its functions name it.
fn plain(ty: &str) -> &str {
    ty.strip_suffix("_t").unwrap_or(ty)
}

/// Adds what is missing to the source and to the header.
pub(super) fn completed(source: &str, header: &str) -> (String, String) {
    let (mut source, mut added, mut prototypes) = (source.to_owned(), String::new(), String::new());
    // Types are declared before they are used.
    let types = types(header);
    let mut known: HashMap<String, bool> =
        types.iter().map(|(name, _)| (name.clone(), source.contains(&begin(name)))).collect();
    known.extend(aliases(header).map(|name| (name.to_owned(), source.contains(&begin(name)))));
    known.insert("project_string".to_owned(), true);
    for (name, shape) in &types {
        let frees = |ty: &str| known.get(ty).copied().unwrap_or_default();
        let has_own = frees(name);
        match shape {
            Shape::List(ty) => {
                let item = plain(ty);
                let call = format!("    for (size_t i = 0; i < list_len; i++) {item}_free(&list_ptr[i]);\n");
                let call = if frees(item) { call.as_str() } else { "" };
                if !has_own {
                    added.push_str(&format!(
                        "\n{} {{\n  size_t list_len = ptr->len;\n  if (list_len > 0) {{\n    {ty} *list_ptr = ptr->ptr;\n\
                         {call}    free(list_ptr);\n  }}\n}}\n",
                        begin(name)
                    ));
                    prototypes.push_str(&format!("\n{};\n", begin(name)));
                } else if !call.is_empty() && !body(&source, name).contains(&format!("{item}_free(&list_ptr[i])")) {
                    insert(&mut source, name, "    free(list_ptr);", call);
                }
                known.insert(name.clone(), true);
            }
            Shape::Fields(parts) => {
                let calls = parts.iter().filter(|part| frees(&part.ty)).filter(|part| {
                    !has_own || !body(&source, name).contains(&format!("{}_free(&{})", part.ty, part.place))
                });
                let calls: String = calls
                    .map(|part| {
                        let condition = part.condition.as_ref().map(|it| format!("if ({it}) ")).unwrap_or_default();
                        format!("  {condition}{}_free(&{});\n", part.ty, part.place)
                    })
                    .collect();
                if has_own {
                    insert(&mut source, name, "}\n", &calls);
                } else if !calls.is_empty() {
                    added.push_str(&format!("\n{} {{\n{calls}}}\n", begin(name)));
                    prototypes.push_str(&format!("\n{};\n", begin(name)));
                    known.insert(name.clone(), true);
                }
            }
        }
    }
    let header = match header.rfind("\n#ifdef __cplusplus") {
        Some(end) => format!("{}{prototypes}{}", &header[..end], &header[end..]),
        None => format!("{header}{prototypes}"),
    };
    (source + &added, header)
}

/// The first line of the function that frees a type, without its end.
fn begin(name: &str) -> String {
    format!("void {name}_free({name}_t *ptr)")
}

/// Where the body of a type's function lies.
fn span(source: &str, name: &str) -> Option<(usize, usize)> {
    let from = source.find(&format!("{} {{\n", begin(name)))?;
    Some((from, from + source[from..].find("\n}\n")? + 1))
}

fn body<'a>(source: &'a str, name: &str) -> &'a str {
    span(source, name).map(|(from, to)| &source[from..to]).unwrap_or_default()
}

/// Inserts text before the last place in a function that begins so.
fn insert(source: &mut String, name: &str, before: &str, text: &str) {
    let Some((from, end)) = span(source, name) else { return };
    // The function ends with its brace.
    if let Some(at) = source[from..end + 2].rfind(before) {
        source.insert_str(from + at, text);
    }
}

/// The structures of the header, in their order.
fn types(header: &str) -> Vec<(String, Shape)> {
    let mut found = Vec::new();
    for (at, _) in header.match_indices("typedef struct ") {
        let Some((declaration, rest)) = header[at..].split_once("\n} ") else { continue };
        let Some(name) = rest.split(';').next().and_then(|name| name.strip_suffix("_t")) else { continue };
        let lines = declaration.lines().skip(1).map(str::trim).filter(|line| !line.starts_with("//"));
        found.push((name.to_owned(), shape(name, lines)));
    }
    found
}

/// What a structure consists of, from the lines of its declaration.
fn shape<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> Shape {
    let (mut parts, mut union, mut discriminant) = (Vec::new(), false, "");
    for line in lines {
        if line == "union {" {
            union = true;
        }
        let Some((ty, field)) = line.strip_suffix(';').and_then(|line| line.rsplit_once(' ')) else { continue };
        let (ty, field) = (ty.trim(), field.trim());
        if field == "*ptr" {
            return Shape::List(ty.to_owned());
        }
        if matches!(field, "tag" | "is_some" | "is_err") {
            discriminant = field;
        }
        let place = if union { format!("ptr->val.{field}") } else { format!("ptr->{field}") };
        let condition = match (discriminant, union, field) {
            ("is_some", _, "val") => Some("ptr->is_some".to_owned()),
            ("is_err", true, "ok") => Some("!ptr->is_err".to_owned()),
            ("is_err", true, _) => Some("ptr->is_err".to_owned()),
            ("tag", true, _) => Some(format!("ptr->tag == {}", format!("{name}_{field}").to_uppercase())),
            _ => None,
        };
        parts.push(Part { place, condition, ty: plain(ty).to_owned() });
    }
    Shape::Fields(parts)
}

/// Other names of structures.
fn aliases(header: &str) -> impl Iterator<Item = &str> {
    header.lines().filter_map(|line| line.strip_prefix("typedef ")?.strip_suffix("_t;")?.rsplit(' ').next())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    /// The parts of values that no function frees.
    pub(crate) fn forgotten(source: &str, header: &str) -> Vec<String> {
        let freed = |name: &str| source.contains(&format!("void {name}_free("));
        let mut found = Vec::new();
        for (name, shape) in types(header).iter().filter(|(name, _)| name != "project_string") {
            let wanted = match shape {
                Shape::List(ty) if freed(plain(ty)) => vec![format!("{}_free(&list_ptr[i])", plain(ty))],
                Shape::List(_) => vec!["free(list_ptr)".to_owned()],
                Shape::Fields(parts) => {
                    let parts = parts.iter().filter(|part| freed(&part.ty));
                    parts.map(|part| format!("{}_free(&{})", part.ty, part.place)).collect()
                }
            };
            let body = body(source, name);
            found.extend(
                wanted
                    .into_iter()
                    .filter(|call| body.matches(call.as_str()).count() != 1)
                    .map(|call| format!("{name}: {call}")),
            );
        }
        found
    }

    #[test]
    fn what_the_generator_forgets_is_added_once() {
        let header = "typedef struct project_string_t {\n  uint8_t*ptr;\n  size_t len;\n} project_string_t;\n\
                      typedef struct {\n  uint8_t *ptr;\n  size_t len;\n} project_list_u8_t;\n\
                      typedef struct deep_t {\n  project_list_u8_t   body;\n  uint16_t   status;\n} deep_t;\n\
                      typedef struct {\n  deep_t *ptr;\n  size_t len;\n} project_list_deep_t;\n\
                      typedef struct choice_t {\n  uint8_t tag;\n  union {\n    project_list_deep_t     many;\n  } val;\n} choice_t;\n\
                      #define CHOICE_NONE 0\n#define CHOICE_MANY 1\n\n#ifdef __cplusplus\n}\n#endif\n";
        let source = "void project_list_u8_free(project_list_u8_t *ptr) {\n  size_t list_len = ptr->len;\n  if (list_len > 0) {\n    \
                      uint8_t *list_ptr = ptr->ptr;\n    free(list_ptr);\n  }\n}\n\n\
                      void choice_free(choice_t *ptr) {\n  switch ((int32_t) ptr->tag) {\n  }\n}\n";
        let (completed_source, completed_header) = completed(source, header);
        assert_eq!(forgotten(&completed_source, &completed_header), Vec::<String>::new(), "{completed_source}");
        assert!(
            completed_source.contains("if (ptr->tag == CHOICE_MANY) project_list_deep_free(&ptr->val.many);\n}\n"),
            "{completed_source}"
        );
        assert!(completed_header.contains("void deep_free(deep_t *ptr);\n"), "{completed_header}");
        let again = completed(&completed_source, &completed_header);
        assert_eq!(again, (completed_source, completed_header));
    }
}

//! `write_file`: writes a whole file.

use hermes_plugin::Error;
use hermes_plugin::files::{self, Kind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{ROOT, count, parameters as schema, path};

pub(crate) const DESCRIPTION: &str = "Write a file of the workspace, creating it and its folders, or replacing all that \
    it held. Give the whole content, without line numbers.";

pub(crate) fn parameters() -> Value {
    schema(
        json!({
            "path": { "type": "string", "description": "Relative to the workspace, or absolute inside it." },
            "content": { "type": "string", "description": "All that the file is to hold." },
        }),
        &["path", "content"],
    )
}

#[derive(Deserialize)]
pub(crate) struct Arguments {
    path: String,
    content: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<String, Error> {
    let path = path::locate(&arguments.path)?;
    let before = match files::stat(ROOT, &path) {
        Ok(entry) if entry.kind == Kind::Directory => {
            let name = if path.is_empty() { "the workspace" } else { &path };
            return Err(Error::invalid(format!("{name} is a folder: give the path of a file in it")));
        }
        Ok(entry) => Some(entry.size),
        Err(error) if error.code == "not-found" => None,
        Err(error) => return Err(error),
    };
    files::write(ROOT, &path, arguments.content.as_bytes(), None)?;
    Ok(answer(&path, &arguments.content, before))
}

fn answer(path: &str, content: &str, before: Option<u64>) -> String {
    let size = format!("{}, {}", count(content.len() as u64, "byte"), count(content.lines().count() as u64, "line"));
    match before {
        None => format!("created {path}: {size}"),
        Some(before) => format!("overwrote {path}: {size}, in place of {}", count(before, "byte")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_was_overwritten() {
        assert_eq!(answer("a/b.txt", "ü\nb", None), "created a/b.txt: 4 bytes, 2 lines");
        assert_eq!(answer("b.txt", "x", Some(9)), "overwrote b.txt: 1 byte, 1 line, in place of 9 bytes");
    }
}

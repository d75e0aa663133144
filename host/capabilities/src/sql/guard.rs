//! Which statements are allowed: SQLite asks for each part of a statement while it compiles it.
//!
//! SQLite itself guards its schema: the defensive mode of a connection protects the schema table and the tables of a
//! full-text index.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::lock;

/// The authorizer of one connection.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Set while the host's own statements are compiled.
    open: AtomicBool,
    /// The last refusal.
    refused: Mutex<Option<String>>,
}

impl Gate {
    /// Runs statements of the host itself.
    pub(super) fn open_for<T>(&self, work: impl FnOnce() -> T) -> T {
        self.open.store(true, Ordering::Relaxed);
        let done = work();
        self.open.store(false, Ordering::Relaxed);
        done
    }

    pub(super) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        if self.open.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match in_temporary(context).or_else(|| refusal(context.action)) {
            None => Authorization::Allow,
            Some(what) => {
                *lock(&self.refused) = Some(what);
                Authorization::Deny
            }
        }
    }

    /// The refusal since the last call of this function.
    pub(super) fn refused(&self) -> Option<String> {
        lock(&self.refused).take()
    }
}

/// Temporary objects belong to one connection, and a plugin cannot know which connection serves a call.
const TEMPORARY: &str = "a temporary table, index, trigger or view";

/// Some of these actions differ from allowed ones only by the schema.
fn in_temporary(context: &AuthContext<'_>) -> Option<String> {
    use AuthAction::{Function, Read, Select, Update};
    let reads = matches!(context.action, Read { .. } | Select | Function { .. });
    // Renaming a table checks whether a temporary object names it.
    let renames = matches!(context.action, Update { table_name, .. } if table_name.starts_with("sqlite_temp_"));
    (context.database_name == Some("temp") && !reads && !renames).then(|| TEMPORARY.to_owned())
}

/// Why an action is refused. None if it is allowed.
fn refusal(action: AuthAction<'_>) -> Option<String> {
    use AuthAction::{
        Attach, CreateTempIndex, CreateTempTable, CreateTempTrigger, CreateTempView, CreateVtable, Delete, Detach,
        DropTempIndex, DropTempTable, DropTempTrigger, DropTempView, Function, Insert, Pragma, Savepoint, Transaction,
        Unknown, Update,
    };
    match action {
        // `VACUUM` and `VACUUM INTO` also attach a file.
        Attach { .. } | Detach { .. } => Some("another database file".to_owned()),
        Transaction { .. } | Savepoint { .. } => {
            Some("a statement about transactions (all statements of one `execute` are one)".to_owned())
        }
        Pragma { pragma_name, pragma_value } => match pragma_name.to_ascii_lowercase().as_str() {
            "user_version" => None,
            // FTS5 queries it by itself, to see whether its index has changed.
            "data_version" if pragma_value.is_none() => None,
            // So does `ALTER TABLE`, which checks existing rows; it only reads.
            "quick_check" => None,
            name => Some(format!("`PRAGMA {name}` (only `user_version` is)")),
        },
        Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            match name.as_str() {
                "load_extension" | "fts3_tokenizer" => Some(format!("the function `{name}`")),
                // Its markers can have any length and are inserted at every hit, so the result could exceed every limit here.
                "highlight" => Some("the function `highlight` (`snippet` is)".to_owned()),
                _ => None,
            }
        }
        CreateVtable { module_name, .. } => {
            let name = module_name.to_ascii_lowercase();
            let open = matches!(name.as_str(), "fts5" | "fts5vocab");
            (!open).then(|| format!("the virtual table `{name}` (only `fts5` and `fts5vocab` are)"))
        }
        CreateTempTable { .. } | CreateTempIndex { .. } | CreateTempTrigger { .. } | CreateTempView { .. } => {
            Some(TEMPORARY.to_owned())
        }
        DropTempTable { .. } | DropTempIndex { .. } | DropTempTrigger { .. } | DropTempView { .. } => {
            Some(TEMPORARY.to_owned())
        }
        Insert { table_name } => protected(table_name),
        // Dropping a table and `ANALYZE` use this action.
        Delete { table_name } => protected(table_name).filter(|_| !is_about_others(table_name)),
        // So does renaming a table.
        Update { table_name, column_name } => {
            protected(table_name).filter(|_| !(is_about_others(table_name) && column_name == "name"))
        }
        Unknown { code, .. } => Some(format!("the action {code}")),
        _ => None,
    }
}

/// SQLite's own tables. The schema tables are excluded, because every change of the schema is reported here; SQLite itself
/// refuses a plugin's statement that names them.
fn protected(table: &str) -> Option<String> {
    let name = table.to_ascii_lowercase();
    let is_schema =
        matches!(name.as_str(), "sqlite_master" | "sqlite_schema" | "sqlite_temp_master" | "sqlite_temp_schema");
    (name.starts_with("sqlite_") && !is_schema).then(|| format!("writing to `{name}`"))
}

/// Functions that read other tables by their names.
fn is_about_others(table: &str) -> bool {
    let name = table.to_ascii_lowercase();
    name == "sqlite_sequence" || name.starts_with("sqlite_stat")
}

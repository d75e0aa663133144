//! Answers for imports of the contract that this host does not know.
//!
//! Some languages import the whole world of a contract, and a plugin for a later minor version may use a function that this host
//! does not have. Such a function returns the error `unsupported`, so that the plugin runs without the feature. A function
//! that cannot return an error of the contract makes the component unusable; the contract adds none.

use wasmtime::component::types::{Case, ComponentFunc, ComponentInstance, ComponentItem, Record, Type};
use wasmtime::component::{Component, Linker, Val};

use crate::context::Context;
use crate::contract::{self, Name};
use crate::error::LoadError;
use crate::imports;

/// Kind and code of the error that a stub returns.
const UNSUPPORTED: &str = "unsupported";
/// The kind for components whose contract does not have the kind `unsupported`.
const FAILED: &str = "failed";

/// A linker that also has stubs for what the component imports of the contract and the given linker lacks; none if it
/// lacks nothing.
pub(crate) fn complete(linker: &Linker<Context>, component: &Component) -> Result<Option<Linker<Context>>, LoadError> {
    let engine = component.engine();
    let mut completed = None;
    for (import, item) in component.component_type().imports(engine) {
        let (Some(name), ComponentItem::ComponentInstance(interface)) = (Name::parse(import), item.ty) else {
            continue;
        };
        if interface.exports(engine).all(|(function, item)| is_served(&name, function, &item.ty)) {
            continue;
        }
        let linker = completed.get_or_insert_with(|| linker.clone());
        // The functions that the host has belong to the version that it serves, which wasmtime finds by this name too.
        let served = contract::served(name.package).filter(|_| imports::has(&name, ""));
        let home = served
            .map_or_else(|| import.to_owned(), |version| format!("{}/{}@{version}", name.package, name.interface));
        add(linker, &home, import, &interface)?;
    }
    Ok(completed)
}

fn is_served(name: &Name<'_>, export: &str, item: &ComponentItem) -> bool {
    let is_function = matches!(item, ComponentItem::ComponentFunc(_));
    imports::has(name, if is_function { export } else { "" })
}

/// Adds a stub for each function that the linker lacks in this interface.
fn add(linker: &mut Linker<Context>, home: &str, import: &str, interface: &ComponentInstance) -> Result<(), LoadError> {
    let engine = linker.engine().clone();
    let unusable = |function: &str| LoadError::Import { import: format!("{import}#{function}") };
    let mut instance = linker.instance(home).map_err(|_| LoadError::Import { import: import.to_owned() })?;
    for (function, item) in interface.exports(&engine) {
        let ComponentItem::ComponentFunc(kind) = item.ty else { continue };
        let message = format!("this version of Hermes has no `{import}#{function}`");
        let stub = move |mut store: wasmtime::StoreContextMut<'_, Context>,
                         kind: ComponentFunc,
                         _: &[Val],
                         results: &mut [Val]| {
            store.data_mut().call.host_calls += 1;
            let answer = refusal(&kind, &message).ok_or_else(|| wasmtime::Error::msg(message.clone()))?;
            results.iter_mut().for_each(|result| *result = answer.clone());
            Ok(())
        };
        // The linker refuses a second definition: then the host has the function.
        if instance.func_new(function, stub).is_ok() && refusal(&kind, "").is_none() {
            return Err(unusable(function));
        }
    }
    Ok(())
}

/// The answer of a function that the host does not have; none if it cannot return an error of the contract.
fn refusal(function: &ComponentFunc, message: &str) -> Option<Val> {
    let mut results = function.results();
    let (Some(Type::Result(result)), None) = (results.next(), results.next()) else { return None };
    let Some(Type::Record(error)) = result.err() else { return None };
    Some(Val::Result(Err(Some(Box::new(error_of(&error, message)?)))))
}

fn error_of(error: &Record, message: &str) -> Option<Val> {
    let fields = error.fields().map(|field| {
        let value = match field.name {
            "kind" => kind_of(&field.ty)?,
            "code" => Val::String(UNSUPPORTED.to_owned()),
            "message" => Val::String(message.to_owned()),
            _ => nothing(&field.ty)?,
        };
        Some((field.name.to_owned(), value))
    });
    Some(Val::Record(fields.collect::<Option<_>>()?))
}

fn kind_of(kind: &Type) -> Option<Val> {
    match kind {
        Type::Variant(kind) => {
            let has = |name: &str| kind.cases().any(|Case { name: case, ty }| case == name && ty.is_none());
            let name = [UNSUPPORTED, FAILED].into_iter().find(|name| has(name))?;
            Some(Val::Variant(name.to_owned(), None))
        }
        Type::Enum(kind) => {
            let name = [UNSUPPORTED, FAILED].into_iter().find(|name| kind.names().any(|case| case == *name))?;
            Some(Val::Enum(name.to_owned()))
        }
        _ => None,
    }
}

/// An empty value for a field that a later version may add.
fn nothing(ty: &Type) -> Option<Val> {
    match ty {
        Type::Option(_) => Some(Val::Option(None)),
        Type::List(_) => Some(Val::List(Vec::new())),
        Type::String => Some(Val::String(String::new())),
        _ => None,
    }
}

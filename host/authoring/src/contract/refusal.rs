//! What the bindings cannot have: types and functions that the host refuses, and those that a generator does not know.
//!
//! The generators end with a panic at what they do not know. The part of the contract with which the panics begin is found by
//! generating ever more of it, so no list of such parts is needed.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use anyhow::{Result, bail};
use wit_bindgen_core::wit_parser::{
    Function, InterfaceId, LiveTypes, Resolve, Type, TypeDefKind, WorldId, WorldItem, WorldKey,
};

const SYNCHRONOUS: &str =
    "the functions of the contract are synchronous: write it without `async`, `stream` and `future`";
const UNKNOWN: &str =
    "the runtime of Hermes does not have such types: use one of the contract, such as `list` or `record`";

/// Why the host would refuse a component with a type of this kind.
fn refused(kind: &TypeDefKind) -> Option<&'static str> {
    match kind {
        TypeDefKind::Future(_) | TypeDefKind::Stream(_) => Some(SYNCHRONOUS),
        TypeDefKind::Map(..) | TypeDefKind::FixedLengthList(..) => Some(UNKNOWN),
        TypeDefKind::Record(_)
        | TypeDefKind::Resource
        | TypeDefKind::Handle(_)
        | TypeDefKind::Flags(_)
        | TypeDefKind::Tuple(_)
        | TypeDefKind::Variant(_)
        | TypeDefKind::Enum(_)
        | TypeDefKind::Option(_)
        | TypeDefKind::Result(_)
        | TypeDefKind::List(_)
        | TypeDefKind::Type(_)
        | TypeDefKind::Unknown => None,
    }
}

/// Refuses a world with functions or types that the host refuses, so that nobody writes code for them.
pub(super) fn check(resolve: &Resolve, world: WorldId) -> Result<()> {
    let world = &resolve.worlds[world];
    for (key, item) in world.imports.iter().chain(&world.exports) {
        let place = place(resolve, key, item);
        match item {
            WorldItem::Function(function) => check_function(resolve, function, &place)?,
            WorldItem::Type { id, .. } => check_type(resolve, &Type::Id(*id), &place)?,
            WorldItem::Interface { id, .. } => {
                let interface = &resolve.interfaces[*id];
                for (name, id) in &interface.types {
                    check_type(resolve, &Type::Id(*id), &format!("the type `{name}` of {place}"))?;
                }
                for (name, function) in &interface.functions {
                    check_function(resolve, function, &format!("the function `{name}` of {place}"))?;
                }
            }
        }
    }
    Ok(())
}

fn check_function(resolve: &Resolve, function: &Function, place: &str) -> Result<()> {
    if function.kind.is_async() {
        bail!("{place} is `async`, and {SYNCHRONOUS}");
    }
    let types = function.params.iter().map(|parameter| &parameter.ty).chain(&function.result);
    types.into_iter().try_for_each(|ty| check_type(resolve, ty, place))
}

fn check_type(resolve: &Resolve, ty: &Type, place: &str) -> Result<()> {
    let mut all = LiveTypes::default();
    all.add_type(resolve, ty);
    let own = all.iter().map(|id| &resolve.types[id].kind);
    for kind in own {
        if let Some(why) = refused(kind) {
            bail!("{place} has a {}, and {why}", kind.as_str());
        }
    }
    Ok(())
}

/// How a person finds an item of a world.
fn place(resolve: &Resolve, key: &WorldKey, item: &WorldItem) -> String {
    match item {
        WorldItem::Interface { .. } => format!("the interface `{}`", resolve.name_world_key(key)),
        WorldItem::Function(function) => format!("the function `{}` of the world", function.name),
        WorldItem::Type { .. } => format!("the type `{}` of the world", resolve.name_world_key(key)),
    }
}

/// Runs a generator. If it ends with a panic, the error names the part of the world that it does not know.
pub(super) fn generate<T>(
    resolve: &Resolve,
    world: WorldId,
    generator: impl Fn(&mut Resolve, WorldId) -> Result<T>,
) -> Result<T> {
    let attempt = |resolve: &Resolve| {
        let mut resolve = resolve.clone();
        catch_unwind(AssertUnwindSafe(|| generator(&mut resolve, world))).ok()
    };
    // The text of the panic would speak of the generator's source.
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let outcome = attempt(resolve).ok_or_else(|| unknown(resolve, world, &|part| attempt(part).is_some()));
    set_hook(hook);
    match outcome {
        Ok(generated) => generated,
        Err(part) => bail!("the generator of this language does not know how to write {part}: say it with other types"),
    }
}

/// The first part of a world with which a generator fails.
fn unknown(resolve: &Resolve, world: WorldId, works: &dyn Fn(&Resolve) -> bool) -> String {
    let (imports, all) = (resolve.worlds[world].imports.len(), resolve.worlds[world].exports.len());
    let first = |count: usize| {
        let mut part = resolve.clone();
        part.worlds[world].imports.truncate(count);
        part.worlds[world].exports.truncate(count.saturating_sub(imports));
        part
    };
    let part = first(shortest(imports + all, |count| works(&first(count))));
    let items = part.worlds[world].imports.iter().chain(&part.worlds[world].exports);
    let Some((key, item)) = items.last() else { return "this world".to_owned() };
    let place = place(resolve, key, item);
    match item {
        WorldItem::Interface { id, .. } => {
            unknown_in(&part, *id, works).map_or_else(|| place.clone(), |inner| format!("{inner} of {place}"))
        }
        WorldItem::Function(_) | WorldItem::Type { .. } => place,
    }
}

/// The first type or function of an interface with which a generator fails.
fn unknown_in(resolve: &Resolve, interface: InterfaceId, works: &dyn Fn(&Resolve) -> bool) -> Option<String> {
    let (types, functions) = (resolve.interfaces[interface].types.len(), resolve.interfaces[interface].functions.len());
    let first = |count: usize| {
        let mut part = resolve.clone();
        let own = &mut part.interfaces[interface];
        own.types.truncate(count);
        own.functions.truncate(count.saturating_sub(types));
        part
    };
    let part = first(shortest(types + functions, |count| works(&first(count))));
    let own = &part.interfaces[interface];
    match own.functions.last() {
        Some((name, _)) => Some(format!("the function `{name}`")),
        None => own.types.last().map(|(name, id)| format!("the {} `{name}`", resolve.types[*id].kind.as_str())),
    }
}

/// The smallest number up to `most` with which something fails; with more of it, it fails too.
fn shortest(most: usize, works: impl Fn(usize) -> bool) -> usize {
    let (mut fine, mut fails) = (0, most);
    while fine + 1 < fails {
        let middle = usize::midpoint(fine, fails);
        if works(middle) { fine = middle } else { fails = middle }
    }
    fails
}

//! Compares two texts of the contract: a later one has everything of an earlier one, with the same types.

use std::collections::BTreeMap;

use wit_parser::{Function, Handle, InterfaceId, Resolve, Type, TypeDefKind, TypeId, TypeOwner};

use crate::Shell;

/// What the draft lacks of the contract, or has with another type; nothing if it is a superset.
pub fn lost_in_draft() -> Vec<String> {
    let (contract, draft) = (facts(&Shell::of("everything")), facts(&Shell::of("everything").of_draft()));
    let lost = contract.into_iter().filter(|(name, fact)| draft.get(name) != Some(fact));
    lost.map(|(name, fact)| format!("{name}: {fact}, but in the draft {:?}", draft.get(&name))).collect()
}

/// The types and functions of all interfaces, by their names without versions.
fn facts(shell: &Shell) -> BTreeMap<String, String> {
    let (resolve, _) = shell.contract();
    let mut facts = BTreeMap::new();
    for (id, interface) in resolve.interfaces.iter() {
        let Some(home) = home(&resolve, id) else { continue };
        for (name, ty) in &interface.types {
            facts.insert(format!("{home}.{name}"), kind(&resolve, &resolve.types[*ty].kind));
        }
        for (name, function) in &interface.functions {
            facts.insert(format!("{home}#{name}"), signature(&resolve, function));
        }
    }
    facts
}

fn home(resolve: &Resolve, id: InterfaceId) -> Option<String> {
    let interface = &resolve.interfaces[id];
    let package = &resolve.packages[interface.package?].name;
    Some(format!("{}:{}/{}", package.namespace, package.name, interface.name.as_ref()?))
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let params: Vec<_> =
        function.params.iter().map(|param| format!("{}: {}", param.name, named(resolve, &param.ty))).collect();
    let result = function.result.as_ref().map(|ty| named(resolve, ty));
    format!("{:?} ({}) -> {result:?}", function.kind.is_async(), params.join(", "))
}

/// A type by its name, or by its parts if it has none.
fn named(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Id(id) => name_of(resolve, *id).unwrap_or_else(|| kind(resolve, &resolve.types[*id].kind)),
        plain => format!("{plain:?}"),
    }
}

fn name_of(resolve: &Resolve, id: TypeId) -> Option<String> {
    let ty = &resolve.types[id];
    let TypeOwner::Interface(owner) = ty.owner else { return None };
    Some(format!("{}.{}", home(resolve, owner)?, ty.name.as_ref()?))
}

fn kind(resolve: &Resolve, kind: &TypeDefKind) -> String {
    let one = |ty: &Type| named(resolve, ty);
    let maybe = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), one);
    let all = |parts: Vec<String>| parts.join(", ");
    match kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| format!("{}: {}", field.name, one(&field.ty)));
            format!("record {{{}}}", all(fields.collect()))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| format!("{}({})", case.name, maybe(&case.ty)));
            format!("variant {{{}}}", all(cases.collect()))
        }
        TypeDefKind::Enum(cases) => {
            format!("enum {{{}}}", all(cases.cases.iter().map(|case| case.name.clone()).collect()))
        }
        TypeDefKind::Flags(flags) => {
            format!("flags {{{}}}", all(flags.flags.iter().map(|flag| flag.name.clone()).collect()))
        }
        TypeDefKind::Tuple(tuple) => format!("tuple<{}>", all(tuple.types.iter().map(one).collect())),
        TypeDefKind::Option(ty) => format!("option<{}>", one(ty)),
        TypeDefKind::List(ty) => format!("list<{}>", one(ty)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", maybe(&result.ok), maybe(&result.err)),
        TypeDefKind::Handle(Handle::Own(id)) => format!("own {:?}", name_of(resolve, *id)),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow {:?}", name_of(resolve, *id)),
        TypeDefKind::Type(ty) => one(ty),
        TypeDefKind::Resource => "resource".to_owned(),
        other => panic!("the contract has no {}", other.as_str()),
    }
}

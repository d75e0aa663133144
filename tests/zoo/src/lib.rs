//! Builds small hostile plugins: a minimal plugin in which a test replaces single functions.
//!
//! A [`Shell`] is generated from the contract: it exports all functions of a world in `wit/` with minimal answers (`ok`, none,
//! empty). A test replaces the function in which its plugin misbehaves, in WAT.

#![forbid(unsafe_code)]
// Everything is built from files of the repository, so a failure here is a test failure.
#![allow(clippy::unwrap_used)]

mod memory;
mod plugins;
mod superset;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmSignature, WasmType};
use wit_parser::{Function, FunctionKind, Int, InterfaceId, Resolve, SizeAlign, Type, TypeDefKind, WorldId, WorldItem};

pub use memory::{Memory, Offered};
pub use plugins::*;
pub use superset::lost_in_draft;

/// Address of zeros. Read as a result they mean `ok`, `none`, an empty text, an empty list, `false` or the first case.
const NOTHING: u32 = 1024;

/// The version of the contract, and its folder in the repository.
const CONTRACT: &str = "1.1.0";
const FOLDER: &str = "wit/1.1.0";
/// The same of the draft.
const DRAFT: &str = "1.2.0-draft";
const DRAFT_FOLDER: &str = "tests/draft-1.2";

/// A plugin being built.
#[derive(Debug, Clone)]
pub struct Shell {
    world: String,
    folder: &'static str,
    version: &'static str,
    wit: String,
    rewritten: Vec<(String, String)>,
    allocator: String,
    imports: Vec<(String, String)>,
    bodies: BTreeMap<String, String>,
    fields: String,
    memory: Memory,
    pages: (u32, Option<u32>),
}

impl Shell {
    /// A plugin for a world of the contract, such as `tools-plugin`, that behaves.
    pub fn of(world: &str) -> Self {
        Self {
            world: world.to_owned(),
            folder: FOLDER,
            version: CONTRACT,
            wit: String::new(),
            rewritten: Vec::new(),
            allocator: ALLOCATOR.to_owned(),
            imports: Vec::new(),
            bodies: BTreeMap::new(),
            fields: String::new(),
            memory: Memory::new(),
            pages: (4, None),
        }
    }

    /// Builds against the draft of a later version.
    #[must_use]
    pub fn of_draft(self) -> Self {
        Self { folder: DRAFT_FOLDER, ..self }
    }

    /// A plugin with the tools `good` and `bad`. Both answer `good`, but `bad` runs `wat` first.
    pub fn with_tool(wat: &str) -> Self {
        let mut shell = Self::of("tools-plugin");
        let catalog = shell.memory.catalog(&[Offered::new("good"), Offered::new("bad")]);
        let answer = shell.memory.output("good");
        let is_bad = "(i32.eq (i32.load8_u (local.get $p2)) (i32.const 98))";
        shell
            .body("tools/catalog", &format!("(i32.const {catalog})"))
            .body("tools/call", &format!("(if {is_bad} (then {wat})) (i32.const {answer})"))
    }

    /// Replaces a function, named `interface/function`, by WAT. Its parameters are `$p0`, `$p1`, …
    #[must_use]
    pub fn body(mut self, function: &str, wat: &str) -> Self {
        self.bodies.insert(function.to_owned(), wat.to_owned());
        self
    }

    /// Uses another world, defined by this WIT in addition to the contract.
    #[must_use]
    pub fn on(mut self, world: &str, wit: &str) -> Self {
        world.clone_into(&mut self.world);
        self.wit(wit)
    }

    /// Adds worlds and packages in WIT to the contract.
    #[must_use]
    pub fn wit(mut self, wit: &str) -> Self {
        self.wit.push_str(wit);
        self
    }

    /// Replaces a text in the contract before building.
    #[must_use]
    pub fn rewritten(mut self, from: &str, to: &str) -> Self {
        self.rewritten.push((from.to_owned(), to.to_owned()));
        self
    }

    /// Replaces the body of the allocator: a function from `$old`, `$had`, `$align` and `$size` to an address.
    #[must_use]
    pub fn allocator(mut self, body: &str) -> Self {
        let params = "(param $old i32) (param $had i32) (param $align i32) (param $size i32)";
        self.allocator = format!("(func $alloc (export \"cabi_realloc\") {params} (result i32) {body})");
        self
    }

    /// Imports a function of the contract. WAT calls it as `$interface/function`.
    #[must_use]
    pub fn import(mut self, interface: &str, function: &str) -> Self {
        self.imports.push((interface.to_owned(), function.to_owned()));
        self
    }

    /// Adds fields to the module: globals, functions, tables, a start function.
    #[must_use]
    pub fn fields(mut self, wat: &str) -> Self {
        self.fields.push_str(wat);
        self
    }

    /// Sets the initial and the maximum number of memory pages.
    #[must_use]
    pub fn pages(mut self, least: u32, most: Option<u32>) -> Self {
        self.pages = (least, most);
        self
    }

    /// Builds against another version of the contract.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The initial memory.
    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The exported functions, as `interface/function`.
    pub fn exports(&self) -> Vec<String> {
        let (resolve, world) = self.contract();
        functions(&resolve, world)
            .iter()
            .map(|(id, function)| format!("{}/{}", resolve.interfaces[*id].name.as_deref().unwrap(), function.name))
            .collect()
    }

    /// The offset of a parameter of an exported function, among parameters that are passed in memory at `$p0`.
    pub fn parameter(&self, function: &str, at: usize) -> usize {
        let (resolve, world) = self.contract();
        let mut sizes = SizeAlign::default();
        sizes.fill(&resolve).unwrap();
        let (interface, name) = function.split_once('/').unwrap();
        let all = functions(&resolve, world);
        let is_meant = |id: InterfaceId| resolve.interfaces[id].name.as_deref() == Some(interface);
        let (_, found) = all.iter().find(|(id, function)| function.name == name && is_meant(*id)).unwrap();
        sizes.field_offsets(found.params.iter().map(|param| &param.ty))[at].0.size_wasm32()
    }

    /// The functions of the contract that the plugin can import, as interface and function; without methods.
    pub fn importable(&self) -> Vec<(String, String)> {
        let (resolve, world) = self.contract();
        let interfaces = resolve.worlds[world].imports.values().filter_map(interface_of);
        let functions = interfaces.flat_map(|id| {
            let interface = &resolve.interfaces[id];
            // A method needs a handle, which no constant can stand for.
            let free =
                interface.functions.values().filter(|function| matches!(function.kind, FunctionKind::Freestanding));
            free.map(|function| (interface.name.clone().unwrap(), function.name.clone())).collect::<Vec<_>>()
        });
        functions.collect()
    }

    /// WAT that calls an import with zeros: empty texts and lists, the first case, none.
    pub fn call_with_nothing(&self, interface: &str, function: &str) -> String {
        /// Address for the answer; nothing else is stored there.
        const ANSWER: u32 = 4096;
        let (resolve, world) = self.contract();
        let (_, signature) = imported(&resolve, world, interface, function);
        let mut arguments: Vec<String> = signature.params.iter().map(|ty| format!("({}.const 0)", wasm(*ty))).collect();
        if signature.retptr {
            arguments.pop();
            arguments.push(format!("(i32.const {ANSWER})"));
        }
        let call = format!("(call ${interface}/{function} {})", arguments.join(" "));
        if signature.results.is_empty() { call } else { format!("(drop {call})") }
    }

    /// WAT that calls an import with zeros and crashes unless it answers with an error of the kind `denied`. None for a function that
    /// returns no `result`.
    pub fn call_denied(&self, interface: &str, function: &str) -> Option<String> {
        const DENIED: u32 = 2;
        let (resolve, world) = self.contract();
        let interfaces = resolve.worlds[world].imports.values().filter_map(interface_of);
        let mut named = interfaces.filter(|id| resolve.interfaces[*id].name.as_deref() == Some(interface));
        let Some(Type::Id(id)) = resolve.interfaces[named.next()?].functions[function].result else { return None };
        let TypeDefKind::Result(result) = &resolve.types[id].kind else { return None };
        let mut sizes = SizeAlign::default();
        sizes.fill(&resolve).unwrap();
        let payload = sizes.payload_offset(Int::U8, [result.ok.as_ref(), result.err.as_ref()]).size_wasm32();
        let kind = 4096 + u32::try_from(payload).expect("a small offset");
        let byte_is = |at: u32, value: u32| {
            format!("(if (i32.ne (i32.load8_u (i32.const {at})) (i32.const {value})) (then unreachable))")
        };
        Some(format!("{} {} {}", self.call_with_nothing(interface, function), byte_is(4096, 1), byte_is(kind, DENIED)))
    }

    /// Builds the component.
    pub fn build(&self) -> Vec<u8> {
        let (resolve, world) = self.contract();
        let text = self.module(&resolve, world);
        let mut module =
            wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}: {:?} {}", self.bodies, self.fields));
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).unwrap();
        let mut encoder = ComponentEncoder::default();
        let component = encoder.validate(true).module(&module).and_then(|encoder| encoder.encode());
        component.unwrap_or_else(|error| panic!("{error:#}: {:?} {}", self.bodies, self.fields))
    }

    fn contract(&self) -> (Resolve, WorldId) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(self.folder);
        let mut packages: Vec<_> =
            std::fs::read_dir(folder.join("deps")).unwrap().map(|entry| entry.unwrap().path()).collect();
        // All other packages use the types.
        packages.sort_by_key(|path| (!path.ends_with("types.wit"), path.clone()));
        let mut resolve = Resolve::default();
        for file in packages {
            let mut map = wit_parser::SourceMap::default();
            map.push_str(&file.display().to_string(), self.text(&file));
            resolve.push_group(map.parse().map_err(|(_, error)| error).unwrap()).unwrap();
        }
        let version = if self.folder == DRAFT_FOLDER { DRAFT } else { self.version };
        let mut map = wit_parser::SourceMap::default();
        map.push_str("worlds.wit", self.text(&folder.join("worlds.wit")));
        map.push_str("zoo.wit", format!("package hermes:plugin@{version};\n{}", self.wit));
        let package = resolve.push_group(map.parse().map_err(|(_, error)| error).unwrap()).unwrap();
        let world = resolve.select_world(&[package], Some(&self.world)).unwrap();
        (resolve, world)
    }

    /// A file of the contract, in this shell's version and wording.
    fn text(&self, file: &Path) -> String {
        let text = std::fs::read_to_string(file).unwrap();
        let text = if self.version == CONTRACT {
            text
        } else {
            text.replace(&format!("@{CONTRACT}"), &format!("@{}", self.version))
                .replace("@1.0.0.{", &format!("@{}.{{", self.version))
                .replace("@1.0.0;", &format!("@{};", self.version))
        };
        self.rewritten.iter().fold(text, |text, (from, to)| text.replace(from, to))
    }

    fn module(&self, resolve: &Resolve, world: WorldId) -> String {
        let mut text = "(module\n".to_owned();
        for (interface, function) in &self.imports {
            let (module, signature) = imported(resolve, world, interface, function);
            let types = types(&signature, false);
            writeln!(text, "(import \"{module}\" \"{function}\" (func ${interface}/{function} {types}))").unwrap();
        }
        let most = self.pages.1.map_or_else(String::new, |most| most.to_string());
        let (data, heap) = (self.memory.data(), self.memory.end());
        writeln!(
            text,
            "(memory (export \"memory\") {} {most})\n(global $heap (mut i32) (i32.const {heap}))",
            self.pages.0
        )
        .unwrap();
        text.push_str(&data);
        text.push_str(&self.allocator);
        for (id, function) in functions(resolve, world) {
            let interface = resolve.interfaces[id].name.as_deref().unwrap();
            let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
            let key = format!("{interface}/{}", function.name);
            let nothing = if signature.retptr { format!("(i32.const {NOTHING})") } else { zeros(&signature) };
            let body = self.bodies.get(&key).unwrap_or(&nothing);
            writeln!(
                text,
                "(func (export \"{}#{}\") {}\n{body})",
                resolve.id_of(id).unwrap(),
                function.name,
                types(&signature, true)
            )
            .unwrap();
        }
        text.push_str(&self.fields);
        text.push(')');
        text
    }
}

/// A bump allocator after the initial memory, which grows the memory when needed.
const ALLOCATOR: &str = r#"
(func $alloc (export "cabi_realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
  (local $at i32) (local $end i32)
  (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
  (local.set $end (i32.add (local.get $at) (local.get $size)))
  (global.set $heap (local.get $end))
  (if (i32.gt_u (local.get $end) (i32.shl (memory.size) (i32.const 16)))
    (then (drop (memory.grow (i32.add (i32.const 1) (i32.shr_u (local.get $size) (i32.const 16)))))))
  (local.get $at))
"#;

fn functions(resolve: &Resolve, world: WorldId) -> Vec<(InterfaceId, &Function)> {
    let exports = resolve.worlds[world].exports.values();
    exports
        .filter_map(interface_of)
        .flat_map(|id| resolve.interfaces[id].functions.values().map(move |function| (id, function)))
        .collect()
}

/// The module and the signature of an import.
fn imported(resolve: &Resolve, world: WorldId, interface: &str, function: &str) -> (String, WasmSignature) {
    let imports = resolve.worlds[world].imports.values();
    let mut named =
        imports.filter_map(interface_of).filter(|id| resolve.interfaces[*id].name.as_deref() == Some(interface));
    let id = named.next().unwrap_or_else(|| panic!("no import {interface}"));
    let function = &resolve.interfaces[id].functions[function];
    (resolve.id_of(id).unwrap(), resolve.wasm_signature(AbiVariant::GuestImport, function))
}

fn interface_of(item: &WorldItem) -> Option<InterfaceId> {
    if let WorldItem::Interface { id, .. } = item { Some(*id) } else { None }
}

fn types(signature: &WasmSignature, named: bool) -> String {
    let name = |at: usize| if named { format!("$p{at} ") } else { String::new() };
    let params = signature.params.iter().enumerate().map(|(at, ty)| format!("(param {}{})", name(at), wasm(*ty)));
    let results = signature.results.iter().map(|ty| format!("(result {})", wasm(*ty)));
    params.chain(results).collect::<Vec<_>>().join(" ")
}

fn zeros(signature: &WasmSignature) -> String {
    signature.results.iter().map(|ty| format!("({}.const 0)", wasm(*ty))).collect()
}

fn wasm(ty: WasmType) -> &'static str {
    match ty {
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Adds the names of the enums that a type contains.
    fn enums(resolve: &Resolve, ty: &Type, found: &mut BTreeSet<String>) {
        let Type::Id(id) = ty else { return };
        let definition = &resolve.types[*id];
        let mut inside: Vec<Type> = Vec::new();
        match &definition.kind {
            TypeDefKind::Enum(_) => drop(found.insert(definition.name.clone().unwrap())),
            TypeDefKind::Record(record) => inside.extend(record.fields.iter().map(|field| field.ty)),
            TypeDefKind::Variant(variant) => inside.extend(variant.cases.iter().filter_map(|case| case.ty)),
            TypeDefKind::Tuple(tuple) => inside.extend(&tuple.types),
            TypeDefKind::Result(result) => inside.extend(result.ok.into_iter().chain(result.err)),
            TypeDefKind::List(ty) | TypeDefKind::Option(ty) | TypeDefKind::Type(ty) => inside.push(*ty),
            TypeDefKind::Resource | TypeDefKind::Handle(_) => {}
            other => panic!("a new kind of types: {other:?}"),
        }
        inside.iter().for_each(|ty| enums(resolve, ty, found));
    }

    #[test]
    fn enums_go_from_the_plugin_to_the_host_only() {
        let (resolve, world) = Shell::of("everything").contract();
        let world = &resolve.worlds[world];
        let functions = |items: &mut dyn Iterator<Item = &WorldItem>| -> Vec<Function> {
            let interfaces = items.filter_map(interface_of);
            interfaces.flat_map(|id| resolve.interfaces[id].functions.values().cloned()).collect()
        };
        let (mut to_plugin, mut to_host) = (BTreeSet::new(), BTreeSet::new());
        for function in functions(&mut world.exports.values()) {
            function.params.iter().for_each(|param| enums(&resolve, &param.ty, &mut to_plugin));
            function.result.iter().for_each(|ty| enums(&resolve, ty, &mut to_host));
        }
        for function in functions(&mut world.imports.values()) {
            function.params.iter().for_each(|param| enums(&resolve, &param.ty, &mut to_host));
            function.result.iter().for_each(|ty| enums(&resolve, ty, &mut to_plugin));
        }
        assert_eq!(to_plugin, BTreeSet::new());
        assert_eq!(to_host.into_iter().collect::<Vec<_>>(), ["effect", "level", "matching", "progress", "timing"]);
    }
}

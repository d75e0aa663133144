//! Memory for the adapter of WASI preview 1 in modules whose own allocator works only after the start of their runtime.
//!
//! The adapter needs a stack and a page before the first call. It would take them with `memory.grow`, but Go believes that it alone
//! enlarges the memory. So the SDK for Go reserves an array, and the module gets a function that allocates from it.

use anyhow::{Context as _, Result};
use wasm_encoder::reencode::{self, Reencode, RoundtripReencoder};
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ExportKind, ExportSection, Function, FunctionSection, GlobalSection, GlobalType,
    Module, TypeSection, ValType,
};
use wasmparser::{DataKind, Operator, Parser, Payload, TypeRef};

/// The first bytes of the reserved array.
const MARK: &[u8] = b"hermes adapter memory\xff";
/// The size of the memory behind it; `sdk/go/wit/runtime` reserves a little more.
const SIZE: u32 = 159 << 10;
/// The name under which the adapter looks for its own allocator.
const EXPORT: &str = "cabi_realloc_adapter";

/// The module with an allocator for the adapter; unchanged if it reserves no memory.
pub(super) fn with_adapter_memory(module: Vec<u8>) -> Result<Vec<u8>> {
    let Some(start) = reserved(&module)? else { return Ok(module) };
    let mut extended = Module::new();
    let mut encoder = Extension::of(&module, start)?;
    encoder.parse_core_module(&mut extended, Parser::new(0), &module).context("the module cannot be extended")?;
    Ok(extended.finish())
}

/// The address of the reserved memory.
fn reserved(module: &[u8]) -> Result<Option<u32>> {
    for payload in Parser::new(0).parse_all(module) {
        let Payload::DataSection(segments) = payload? else { continue };
        for segment in segments {
            let segment = segment?;
            let DataKind::Active { offset_expr, .. } = segment.kind else { continue };
            let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? else { continue };
            if let Some(at) = segment.data.windows(MARK.len()).position(|bytes| bytes == MARK) {
                // The mark itself stays, so the memory begins behind it.
                return Ok(Some(value.cast_unsigned() + u32::try_from(at + MARK.len())?));
            }
        }
    }
    Ok(None)
}

/// Copies a module and appends the allocator.
#[derive(Debug)]
struct Extension {
    /// The index of its type, its function, and the global with the next free address.
    ty: u32,
    function: u32,
    global: u32,
    start: u32,
}

impl Extension {
    fn of(module: &[u8], start: u32) -> Result<Self> {
        let mut found = Self { ty: 0, function: 0, global: 0, start };
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(types) => found.ty = types.count(),
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) => found.function += 1,
                            TypeRef::Global(_) => found.global += 1,
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(functions) => found.function += functions.count(),
                Payload::GlobalSection(globals) => found.global += globals.count(),
                _ => {}
            }
        }
        Ok(found)
    }

    /// `fn(old, old_size, align, new_size) -> address`: the next free address, rounded up. Nothing is ever freed.
    fn body(&self) -> Function {
        const ALIGN: u32 = 2;
        const NEW_SIZE: u32 = 3;
        const ADDRESS: u32 = 4;
        let mut function = Function::new([(1, ValType::I32)]);
        let mut code = function.instructions();
        // address = (next + align - 1) & -align
        code.global_get(self.global).local_get(ALIGN).i32_add().i32_const(1).i32_sub();
        code.i32_const(0).local_get(ALIGN).i32_sub().i32_and().local_tee(ADDRESS);
        code.local_get(NEW_SIZE).i32_add().global_set(self.global);
        code.global_get(self.global).i32_const((self.start + SIZE).cast_signed()).i32_gt_u();
        code.if_(BlockType::Empty).unreachable().end();
        code.local_get(ADDRESS).end();
        function
    }
}

impl Reencode for Extension {
    type Error = std::convert::Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        RoundtripReencoder.parse_type_section(types, section)?;
        types.ty().function([ValType::I32; 4], [ValType::I32]);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        RoundtripReencoder.parse_function_section(functions, section)?;
        functions.function(self.ty);
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: wasmparser::GlobalSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        RoundtripReencoder.parse_global_section(globals, section)?;
        let ty = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(ty, &ConstExpr::i32_const(self.start.cast_signed()));
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        RoundtripReencoder.parse_export_section(exports, section)?;
        exports.export(EXPORT, ExportKind::Func, self.function);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Result<(), reencode::Error> {
        RoundtripReencoder.parse_code_section(code, section)?;
        code.function(&self.body());
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use wasm_encoder::{DataSection, MemorySection, MemoryType};

    use super::*;

    /// A module with a function, a global, a memory and this data at 4,096.
    fn module(data: &[u8]) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], []);
        let mut functions = FunctionSection::new();
        functions.function(0);
        let mut memories = MemorySection::new();
        let memory = MemoryType { minimum: 4, maximum: None, memory64: false, shared: false, page_size_log2: None };
        memories.memory(memory);
        let mut globals = GlobalSection::new();
        let ty = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(ty, &ConstExpr::i32_const(0));
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        let mut code = CodeSection::new();
        let mut function = Function::new([]);
        function.instructions().end();
        code.function(&function);
        let mut segments = DataSection::new();
        segments.active(0, &ConstExpr::i32_const(4_096), data.iter().copied());
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&memories).section(&globals).section(&exports);
        module.section(&code).section(&segments);
        module.finish()
    }

    #[test]
    fn a_module_that_reserves_memory_gets_an_allocator_and_stays_valid() {
        let data = [b"before".as_slice(), MARK, &[0; 64]].concat();
        let extended = with_adapter_memory(module(&data)).unwrap();
        wasmparser::validate(&extended).unwrap();
        assert!(extended.windows(EXPORT.len()).any(|bytes| bytes == EXPORT.as_bytes()));
        assert_eq!(reserved(&extended).unwrap(), Some(4_096 + 6 + MARK.len() as u32));
    }

    #[test]
    fn other_modules_stay_as_they_are() {
        let plain = module(b"data");
        assert_eq!(with_adapter_memory(plain.clone()).unwrap(), plain);
        assert!(with_adapter_memory(b"not a module".to_vec()).is_err());
    }
}

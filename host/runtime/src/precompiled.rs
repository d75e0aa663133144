//! Code of the bundled plugins that was compiled while the binary was built.
//!
//! It is compiled for a processor without optional features, so that it runs on every machine of its target. The build
//! packs it into the binary; on first use the code cache copies it into the home and maps it from there, in the same way
//! as code that was compiled on this machine.

use std::sync::OnceLock;

use crate::compiler;
use crate::engine;
use crate::error::LoadError;
use crate::fingerprint::fingerprint;
use crate::packed::Packed;

const MAGIC: &[u8; 16] = b"hermes bundle 01";
/// Length of the header: magic, hash of the component, fingerprint of the compiler, hash of everything else.
const HEADER: usize = 16 + 32 + 32 + 32;

/// Compiled code in the program: the digest of its component, and the artifact.
pub type Artifact = ([u8; 32], Packed<'static>);

/// Compiles a component for the baseline processor. The result begins with a header that records its origin.
///
/// # Errors
///
/// [`LoadError::NotAComponent`] when the bytes cannot be compiled.
pub fn compile(component: &[u8]) -> Result<Vec<u8>, LoadError> {
    let code = compiler::precompile(&engine::baseline(), component)?;
    let mut artifact = Vec::with_capacity(HEADER + code.len());
    artifact.extend(MAGIC);
    artifact.extend(blake3::hash(component).as_bytes());
    artifact.extend(compiled_by());
    artifact.extend(digest(&artifact, &code).as_bytes());
    artifact.extend(code);
    Ok(artifact)
}

/// Whether an artifact is complete and was compiled from this component by the compiler of this build.
pub fn is_current(artifact: &[u8], component: &[u8]) -> bool {
    code(artifact, blake3::hash(component)).is_ok()
}

/// Why a precompiled artifact is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it was made from another component")]
    Source,
    #[error("it was made by another compiler or for another target")]
    Compiler,
    #[error("it is cut short or altered")]
    Altered,
}

/// The artifact of the component with this digest.
pub(crate) fn find(artifacts: &'static [Artifact], source: blake3::Hash) -> Option<Packed<'static>> {
    artifacts.iter().find(|(digest, _)| digest == source.as_bytes()).map(|(_, artifact)| *artifact)
}

/// The code of an artifact, after every check except wasmtime's own.
pub(crate) fn code(artifact: &[u8], source: blake3::Hash) -> Result<&[u8], Refusal> {
    let (header, code) = artifact.split_at_checked(HEADER).ok_or(Refusal::Altered)?;
    let (made_from, stored) = header.split_at(HEADER - 32);
    if !made_from.starts_with(MAGIC) {
        return Err(Refusal::Altered);
    }
    if made_from[16..48] != *source.as_bytes() {
        return Err(Refusal::Source);
    }
    if made_from[48..] != compiled_by() {
        return Err(Refusal::Compiler);
    }
    if stored != digest(made_from, code).as_bytes() {
        return Err(Refusal::Altered);
    }
    Ok(code)
}

/// Identifies the compiler's version and settings, the target and this build.
fn compiled_by() -> [u8; 32] {
    static FINGERPRINT: OnceLock<[u8; 32]> = OnceLock::new();
    *FINGERPRINT.get_or_init(|| fingerprint(&engine::baseline()))
}

fn digest(header: &[u8], code: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(header).update(code).finalize()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use wasmtime::component::Component;
    use wasmtime::{Config, Engine};

    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn code_is_used_only_if_complete_and_for_its_own_component_and_compiler() {
        let artifact = compile(EMPTY).unwrap();
        let source = blake3::hash(EMPTY);
        assert!(code(&artifact, source).is_ok() && is_current(&artifact, EMPTY));
        assert_eq!(code(&artifact, blake3::hash(b"another")), Err(Refusal::Source));
        let altered = |at: usize| {
            let mut altered = artifact.clone();
            altered[at] ^= 1;
            code(&altered, source).unwrap_err()
        };
        assert_eq!([altered(0), altered(20)], [Refusal::Altered, Refusal::Source]);
        assert_eq!([altered(50), altered(79)], [Refusal::Compiler, Refusal::Compiler]);
        for at in (80..artifact.len()).step_by(97).chain([artifact.len() - 1]) {
            assert_eq!(altered(at), Refusal::Altered, "byte {at}");
        }
        for length in [0, 16, 111, 112, artifact.len() / 2, artifact.len() - 1] {
            assert!(code(&artifact[..length], source).is_err(), "{length} bytes");
        }
        assert_eq!(code(&[&artifact[..], b"x"].concat(), source), Err(Refusal::Altered));
    }

    #[test]
    fn an_artifact_is_found_by_its_component() {
        let artifact = Packed::Plain(b"compiled");
        let artifacts: &'static [Artifact] =
            vec![([7; 32], Packed::Plain(b"")), (*blake3::hash(EMPTY).as_bytes(), artifact)].leak();
        let found = find(artifacts, blake3::hash(EMPTY)).unwrap();
        assert_eq!(*found.unpack().unwrap(), *b"compiled");
        assert!(find(artifacts, blake3::hash(b"another")).is_none());
    }

    /// An engine for a processor without optional features. No code runs in it.
    fn old_processor() -> Engine {
        let mut config: Config = engine::configuration();
        config.target(engine::TARGET).unwrap();
        // SAFETY: reporting fewer features than the processor has makes wasmtime refuse code, never run unsupported code.
        #[allow(unsafe_code)]
        unsafe {
            config.detect_host_feature(|_| Some(false));
        }
        Engine::new(&config).unwrap()
    }

    #[test]
    fn code_runs_on_a_processor_without_optional_features() {
        // One function that counts bits, for which x86-64 has an optional instruction.
        let module = wat::parse_str(r#"(module (func (param i32) (result i32) local.get 0 i32.popcnt))"#).unwrap();
        let component = [EMPTY, &[1, u8::try_from(module.len()).unwrap()], &module].concat();
        let artifact = compile(&component).unwrap();
        let code = code(&artifact, blake3::hash(&component)).unwrap();
        for engine in [old_processor(), engine::engine()] {
            // SAFETY: the compiler of this process wrote these bytes.
            #[allow(unsafe_code)]
            let loaded = unsafe { Component::deserialize(&engine, code) };
            loaded.unwrap();
        }
        assert_eq!(artifact, compile(&component).unwrap(), "the build is reproducible");
    }
}

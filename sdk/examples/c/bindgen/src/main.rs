//! `bindgen header WIT WORLD FOLDER` writes the C header, its source and the object file with the component's type.
//! `bindgen component MODULE COMPONENT` turns the linked core module into a component.

use std::path::Path;

use anyhow::{Context, Result, bail};
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;
use wit_component::ComponentEncoder;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["header", wit, world, folder] => header(Path::new(wit), world, Path::new(folder)),
        ["component", module, component] => {
            let module = std::fs::read(module).with_context(|| format!("cannot read {module}"))?;
            let bytes = ComponentEncoder::default().module(&module)?.validate(true).encode()?;
            std::fs::write(component, bytes).with_context(|| format!("cannot write {component}"))
        }
        _ => bail!("usage: bindgen header WIT WORLD FOLDER | bindgen component MODULE COMPONENT"),
    }
}

fn header(wit: &Path, world: &str, folder: &Path) -> Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve.select_world(&[package], Some(world))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files)?;
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in files.iter() {
        std::fs::write(folder.join(name), bytes).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

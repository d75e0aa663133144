//! `hermes plugins push`: packs a built project and publishes it as an image of an OCI registry.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use hermes_app::operations;
use hermes_authoring::{Image, Login, Package, Tagged, image, pack, prepare_push};
use serde_json::json;

use super::sign::{Secret, hidden};
use crate::console::{Console, print};
use crate::failure::{Failure, Kind};
use crate::progress::Terminal;
use crate::question;
use crate::text;

/// The project to publish, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct PushArguments {
    /// The image, as in oci://registry.example/name:1.0; without a tag, the version of the plugin
    image: String,
    /// The folder of the project, which has been built
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Your name at the registry; the password is asked for, or read from standard input [default: what `docker login` or `podman login` stored]
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Use an unencrypted connection; a password goes to this machine only
    #[arg(long)]
    insecure: bool,
    /// Do not ask before the tag is given to another image
    #[arg(short, long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(arguments: &PushArguments, console: Console) -> Result<ExitCode, Failure> {
    let package = pack(&arguments.folder)?;
    let image = image(&arguments.image, &package)?;
    let login = login(arguments.username.as_deref(), &image)?;
    let push = prepare_push(&package, &image, arguments.insecure, login.as_ref()).await?;
    let digest = push.digest();
    let tagged = push.tagged.clone();
    match &tagged {
        Tagged::Free => {}
        Tagged::Same => {
            console.note(&format!("{image} has exactly this content already"));
            return shown(&image, &digest, &package, &tagged, arguments);
        }
        Tagged::Other(before) => {
            console.warning(&format!(
                "{image} names another image, {before}. The next update from this tag brings the new image; the earlier one can still \
                 be installed by its digest"
            ));
            let fix = "push under another tag, or add --yes to replace what the tag names";
            if !arguments.yes && !question::confirmed("give the tag to the new image?", "nothing was pushed", fix)? {
                return Err(Failure::new(Kind::General, "nothing was pushed", "you declined", fix));
            }
        }
    }
    operations::push_image(push, &Terminal::new(console)).await?;
    shown(&image, &digest, &package, &tagged, arguments)
}

/// The login of the options, else the stored one.
fn login(name: Option<&str>, image: &Image) -> Result<Option<Login>, Failure> {
    let Some(name) = name else {
        return Ok(hermes_authoring::stored_login(image));
    };
    let whose = format!("{name} at {}", image.registry);
    let secret = Secret {
        whose: &whose,
        nothing: "nothing was pushed",
        empty: "--username needs a password, and standard input is empty",
    };
    Ok(Some(Login { name: name.to_owned(), password: hidden(&secret)? }))
}

fn shown(
    image: &Image,
    digest: &str,
    package: &Package,
    tagged: &Tagged,
    arguments: &PushArguments,
) -> Result<ExitCode, Failure> {
    if arguments.json {
        let before = if let Tagged::Other(before) = tagged { Some(before) } else { None };
        let value = json!({
            "image": image.to_string(), "digest": digest, "replaced": before, "pushed": *tagged != Tagged::Same,
            "bytes": package.archive.len(), "signer": package.signer,
        });
        print(&text::json(&value))?;
        return Ok(ExitCode::SUCCESS);
    }
    let insecure = if arguments.insecure { " --insecure" } else { "" };
    let by = package.signer.as_ref().map_or_else(|| "not signed".to_owned(), |key| format!("signed with key {key}"));
    if *tagged != Tagged::Same {
        let size = text::grouped(package.archive.len() as u64);
        print(&format!("pushed {image}: {size} bytes, {by}\n"))?;
    }
    print(&format!("  digest {digest}\n  users install it with `hermes plugins install {image}{insecure}`\n"))?;
    Ok(ExitCode::SUCCESS)
}

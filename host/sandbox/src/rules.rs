//! Landlock: the second check of every write, by the kernel's own path lookup. It needs no namespaces.

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};

use crate::{Plan, SetupError};

/// The newest version of the interface that these rules were written for.
const KNOWN: ABI = ABI::V9;

/// Restricts this process as far as the kernel can. Returns the version of the kernel's interface; none without Landlock.
pub(crate) fn restrict(plan: &Plan) -> Result<Option<i32>, SetupError> {
    let status = restricted(plan).map_err(|error| SetupError::new("Landlock", of_system(error)))?;
    Ok(match status {
        LandlockStatus::Available { effective_abi, kernel_abi } => Some(kernel_abi.unwrap_or(effective_abi as i32)),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}

/// The system's error below another one.
fn of_system(error: RulesetError) -> std::io::Error {
    let mut below: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = below {
        if let Some(number) = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return std::io::Error::from_raw_os_error(number);
        }
        below = cause.source();
    }
    std::io::Error::other(error)
}

fn restricted(plan: &Plan) -> Result<LandlockStatus, RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        // Abstract sockets and signals of processes outside. Namespaces keep them away too, except with the network on.
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let read = AccessFs::from_read(KNOWN);
    // A server at a socket elsewhere, such as that of containers, would act for the program.
    let files = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let mut allow = |path: &std::path::Path, access: BitFlags<AccessFs>| -> Result<(), RulesetError> {
        // What does not exist needs no rule.
        let Ok(folder) = PathFd::new(path) else { return Ok(()) };
        (&mut ruleset).add_rule(PathBeneath::new(folder, access))?;
        Ok(())
    };
    allow("/".as_ref(), read)?;
    for path in ["/dev", "/proc"] {
        allow(path.as_ref(), read | files)?;
    }
    allow("/dev/shm".as_ref(), all)?;
    let temporary = plan.temporary.iter().flat_map(|temporary| &temporary.at);
    for path in plan.writable.iter().chain(&plan.pinned).chain(temporary) {
        allow(path, if path.is_dir() { all } else { all & AccessFs::from_file(KNOWN) })?;
    }
    Ok(ruleset.restrict_self()?.landlock)
}

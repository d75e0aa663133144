//! What confines the programs of plugins on this machine.

use hermes_capabilities::process::{Holds, Offer, SandboxMode, SandboxRules, offer};

use super::Check;

const SUBJECT: &str = "sandbox";

pub(super) fn examine(rules: &SandboxRules) -> Check {
    match rules.mode {
        SandboxMode::Off => Check::ok(SUBJECT, "programs run without one: `sandbox.mode: off`"),
        SandboxMode::Auto | SandboxMode::Require => match offer() {
            Ok(offer) => of(rules, offer),
            Err(why) => Check::warn(
                SUBJECT,
                format!(
                    "no program runs at the moment, because Hermes could not find out what this machine offers: {why}"
                ),
                "end other programs if processes, memory or files ran out, and try again",
            ),
        },
    }
}

fn of(rules: &SandboxRules, offer: &Offer) -> Check {
    match offer {
        Offer::Confined(holds) => {
            let network = if rules.network { "with the network" } else { "no network" };
            let found = format!("programs run in namespaces of their own{}; {network}", locks(holds));
            match (holds.landlock, holds.seccomp) {
                (Some(_), true) => Check::ok(SUBJECT, found),
                _ => Check::warn(
                    SUBJECT,
                    found,
                    "boot a kernel with Landlock and seccomp, enabled with `lsm=` if need be",
                ),
            }
        }
        Offer::Nothing(why) => {
            let found = match rules.mode {
                SandboxMode::Require => format!("no program runs, because this machine offers no sandbox: {why}"),
                _ => format!("programs run without one, each with your approval: {why}"),
            };
            Check::warn(SUBJECT, found, offer.remedy())
        }
    }
}

fn locks(holds: &Holds) -> String {
    const NO_LANDLOCK: &str = "without Landlock, which this kernel lacks or does not enable";
    const NO_SECCOMP: &str = "without seccomp, which this processor lacks";
    let locks = match (holds.landlock, holds.seccomp) {
        (Some(version), true) => format!("with Landlock (version {version}) and seccomp"),
        (Some(version), false) => format!("with Landlock (version {version}), and {NO_SECCOMP}"),
        (None, true) => format!("with seccomp, and {NO_LANDLOCK}"),
        (None, false) => format!("{NO_LANDLOCK}, and {NO_SECCOMP}"),
    };
    let processes = if holds.own_processes { "" } else { "; /proc shows the names of all processes" };
    format!(", {locks}{processes}")
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    fn found(rules: &SandboxRules, offer: &Offer) -> (Outcome, String) {
        let check = of(rules, offer);
        (check.outcome, check.found)
    }

    #[test]
    fn each_offer_is_named_with_what_is_missing() {
        let whole = Holds { landlock: Some(7), seccomp: true, own_processes: true, network: false };
        let rules = SandboxRules::default();
        let text = "programs run in namespaces of their own, with Landlock (version 7) and seccomp; no network";
        assert_eq!(found(&rules, &Offer::Confined(whole.clone())), (Outcome::Ok, text.to_owned()));
        let (outcome, text) = found(&rules, &Offer::Confined(Holds { landlock: None, ..whole }));
        assert!(outcome == Outcome::Warn, "{text}");
        assert!(text.contains(", with seccomp, and without Landlock, which this kernel lacks"), "{text}");
        let nothing = Offer::Nothing("seccomp: Function not implemented".to_owned());
        assert!(of(&rules, &nothing).fix.to_string().contains("CONFIG_SECCOMP_FILTER"));
        let nothing = Offer::Nothing("user namespace: denied".to_owned());
        assert!(of(&rules, &nothing).fix.to_string().contains("allow user namespaces"));
        let (outcome, text) = found(&rules, &nothing);
        assert!(
            outcome == Outcome::Warn && text.ends_with("each with your approval: user namespace: denied"),
            "{text}"
        );
        let (_, text) = found(&SandboxRules { mode: SandboxMode::Require, ..rules }, &nothing);
        assert!(text.starts_with("no program runs"), "{text}");
    }
}

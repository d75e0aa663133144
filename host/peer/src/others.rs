//! What a home of the peer has besides, which stays behind.

use crate::PeerHome;
use crate::report::PartReport;

/// Names in the home, and why they stay.
const KNOWN: [(&str, &str); 8] = [
    ("auth.json", "logins: run `hermes login`, which makes new ones"),
    ("cron", "scheduled tasks do not exist here yet"),
    ("plugins", "plugins in Python do not run here"),
    ("hooks", "hooks of its gateway, in Python, do not run here"),
    ("profiles", "import each profile by the path of its folder"),
    ("channel_directory.json", "messengers do not exist here"),
    ("pairing", "messengers do not exist here"),
    ("kanban.db", "boards do not exist here"),
];

pub(crate) fn report(peer: &PeerHome, report: &mut PartReport) {
    for (name, why) in KNOWN {
        let path = peer.path().join(name);
        let is_empty = path.is_dir() && std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
        if path.symlink_metadata().is_ok() && !is_empty {
            report.left(format!("{name}: {why}"));
        }
    }
}

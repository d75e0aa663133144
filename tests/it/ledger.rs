//! What `hermes cache ID --json` says of a session.

use hermes_tests::{Home, Request};
use serde_json::Value;

/// The requests of a session as the ledger has them.
pub(crate) struct Ledger {
    pub(crate) requests: Vec<Value>,
}

impl Ledger {
    /// That of the newest session.
    #[track_caller]
    pub(crate) fn of(home: &Home) -> Self {
        Self::of_session(home, &home.newest_session())
    }

    /// That of one session.
    #[track_caller]
    pub(crate) fn of_session(home: &Home, id: &str) -> Self {
        let told = home.cache_json(id);
        assert_eq!(told["session"], id);
        let requests = told["requests"].as_array().unwrap_or_else(|| panic!("no requests in {told}")).clone();
        let numbers: Vec<u64> = requests.iter().map(|request| request["number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=requests.len() as u64).collect::<Vec<_>>());
        Self { requests }
    }

    /// Why each request could not read all of the one before it; none where it could.
    pub(crate) fn causes(&self) -> Vec<Option<&str>> {
        self.requests.iter().map(|request| request["cause"].as_str()).collect()
    }

    /// The places of the requests with a cause other than that they are the first.
    pub(crate) fn breaks(&self) -> Vec<usize> {
        let causes = self.causes();
        assert_eq!(causes[0], Some("first-request"));
        (1..causes.len()).filter(|at| causes[*at].is_some()).collect()
    }

    /// Panics unless the ledger has the prefix in bytes that the server measured, request by request.
    #[track_caller]
    pub(crate) fn assert_measured_as_by_the_server(&self, turns: &[Request]) {
        assert_eq!(self.requests.len(), turns.len());
        for (at, (entry, request)) in self.requests.iter().zip(turns).enumerate() {
            let overlap = request.billed().overlap.unwrap();
            assert_eq!(entry["prefix_bytes"], overlap.bytes, "request {at}: {entry}");
            assert_eq!(entry["bytes"], overlap.of_bytes, "request {at}: {entry}");
        }
    }

    /// Panics unless the ledger has the usage that the server reported.
    #[track_caller]
    pub(crate) fn assert_used_as_reported(&self, turns: &[Request]) {
        assert_eq!(self.requests.len(), turns.len());
        for (at, (entry, request)) in self.requests.iter().zip(turns).enumerate() {
            let (usage, bill) = (&entry["usage"], request.billed());
            assert_eq!(usage["input"], bill.prompt, "request {at}: {entry}");
            assert_eq!(usage["cache_read"], bill.read, "request {at}: {entry}");
            assert_eq!(usage["cache_write"], bill.written, "request {at}: {entry}");
        }
    }
}

//! Resolves names to addresses, once for a connection: the connection goes to the addresses that were checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;

use super::address::{is_local, is_public};

/// Resolves names.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All addresses of a name, in the order of attempts.
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The resolver of the system.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A name that resolves to an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("{host} leads to {address}")]
pub(super) struct Closed {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

/// Most names that one plugin has the system look up at the same time. A lookup takes a thread until it ends, even if the
/// request that wanted it has given up, and names of a hostile zone take long.
const LOOKUPS: usize = 8;

/// Limits the lookups of one plugin. Further ones wait, within the time of their request.
#[derive(Debug, Clone)]
pub(super) struct Lookups(Arc<Semaphore>);

impl Lookups {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }

    async fn resolve(&self, resolver: Arc<dyn Resolver>, host: String) -> std::io::Result<Vec<IpAddr>> {
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(std::io::Error::other)?;
        // A task of its own, so that the lookup counts until it really ends.
        let lookup = tokio::spawn(async move {
            let addresses = resolver.resolve(&host).await;
            drop(permit);
            addresses
        });
        lookup.await.map_err(std::io::Error::other)?
    }
}

/// The resolver of the client, which connects to no other addresses.
///
/// Numeric addresses are not resolved. A grant covers one only by naming it, since a star does not match addresses. The
/// same holds for `localhost`.
pub(super) struct Checked {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) lookups: Lookups,
    /// The names that may lead into the user's own network.
    pub(super) local: Vec<String>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, lookups) = (Arc::clone(&self.resolver), self.lookups.clone());
        let may_be_local = self.local.iter().any(|local| local == name.as_str());
        Box::pin(async move {
            let host = name.as_str();
            let addresses = if host == "localhost" {
                // `localhost` is never resolved by a server.
                vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            } else {
                let addresses = lookups.resolve(resolver, host.to_owned()).await?;
                // One address that is not public is enough: a name that mixes both kinds is suspicious.
                let is_open = |address: IpAddr| is_public(address) || (may_be_local && is_local(address));
                if let Some(address) = addresses.iter().copied().find(|address| !is_open(*address)) {
                    return Err(Closed { host: host.to_owned(), address }.into());
                }
                addresses
            };
            // The URL decides the port.
            let sockets: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(sockets.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod attack {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// Answers when it is released, on a thread that nothing can end before.
    #[derive(Default)]
    struct Stalling {
        running: Arc<AtomicUsize>,
        most: AtomicUsize,
        gate: Arc<Mutex<()>>,
    }

    #[async_trait]
    impl Resolver for Stalling {
        async fn resolve(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            let (gate, running) = (Arc::clone(&self.gate), Arc::clone(&self.running));
            let waiting = tokio::task::spawn_blocking(move || {
                drop(gate.lock());
                running.fetch_sub(1, Ordering::SeqCst);
            });
            waiting.await.map_err(std::io::Error::other)?;
            Ok(vec![IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34))])
        }
    }

    #[tokio::test]
    #[expect(clippy::await_holding_lock, reason = "only the threads of lookups take this lock")]
    async fn names_that_stall_leave_few_lookups_behind_and_then_others_work() {
        let stalling = Arc::new(Stalling::default());
        let lookups = Lookups::new();
        let gate = Arc::clone(&stalling.gate);
        let closed = gate.lock().unwrap();
        for at in 0..600 {
            let host = format!("stalls-{at}.example");
            let lookup = lookups.resolve(Arc::clone(&stalling) as Arc<dyn Resolver>, host);
            assert!(tokio::time::timeout(Duration::from_millis(1), lookup).await.is_err(), "{at}");
        }
        assert!(stalling.most.load(Ordering::SeqCst) <= LOOKUPS, "{}", stalling.most.load(Ordering::SeqCst));
        drop(closed);
        let found = lookups.resolve(Arc::clone(&stalling) as Arc<dyn Resolver>, "works.example".to_owned());
        assert_eq!(tokio::time::timeout(Duration::from_secs(30), found).await.unwrap().unwrap().len(), 1);
    }
}

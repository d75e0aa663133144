//! Resolves names to addresses, once for a connection: the connection goes to the addresses that were checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

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

/// The resolver of the client, which connects to no other addresses.
///
/// Numeric addresses are not resolved. A grant covers one only by naming it, since a star does not match addresses. The
/// same holds for `localhost`.
pub(super) struct Checked {
    pub(super) resolver: Arc<dyn Resolver>,
    /// The names that may lead into the user's own network.
    pub(super) local: Vec<String>,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.resolver);
        let may_be_local = self.local.iter().any(|local| local == name.as_str());
        Box::pin(async move {
            let host = name.as_str();
            let addresses = if host == "localhost" {
                // `localhost` is never resolved by a server.
                vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            } else {
                let addresses = resolver.resolve(host).await?;
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

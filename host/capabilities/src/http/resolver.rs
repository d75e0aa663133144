//! From names to addresses: asked once for a connection, and the connection goes to what was checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

/// Tells the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// All of them, in the order in which they are tried.
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// Asks the system.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A name that leads to an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("{host} leads to {address}")]
pub(super) struct Closed {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

/// What the client resolves by: its connections go to nothing but what this answers.
///
/// Addresses by their numbers never come here. They lie in a grant only where it has the same ones, since no star
/// stands for an address, and so does `localhost`.
pub(super) struct Checked(pub(super) Arc<dyn Resolver>);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str();
            let addresses = if host == "localhost" {
                // Nobody else is asked where this machine is.
                vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
            } else {
                let addresses = resolver.resolve(host).await?;
                // One bad address is enough: a name that mixes them is out to be tried again.
                if let Some(address) = addresses.iter().copied().find(|address| !is_public(*address)) {
                    return Err(Closed { host: host.to_owned(), address }.into());
                }
                addresses
            };
            // The port is the address's own.
            let sockets: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(sockets.into_iter()) as Addrs)
        })
    }
}

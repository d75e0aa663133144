//! What one instance finds behind WASI: nothing but the host's clocks and random numbers, and streams to print to.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use rand_core::TryRng;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

use super::output::{Output, Source};
use crate::services::{Clock, Random, Services};

/// The most random bytes that a guest gets at once through WASI.
const RANDOM_BYTES: u64 = 1 << 20;

/// The empty world of one instance. What the instance prints goes to `output`.
pub(crate) fn empty(services: &Services, output: &Output) -> WasiCtx {
    let random = || FromHost(Arc::clone(&services.random));
    let mut seed = [0; 16];
    services.random.fill(&mut seed);
    WasiCtx::builder()
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .stdout(output.stream(Source::Stdout))
        .stderr(output.stream(Source::Stderr))
        .wall_clock(FromHost(Arc::clone(&services.clock)))
        .monotonic_clock(FromHost(Arc::clone(&services.clock)))
        .secure_random(random())
        .insecure_random(random())
        .insecure_random_seed(u128::from_le_bytes(seed))
        .max_random_size(RANDOM_BYTES)
        .build()
}

/// Adapts a service of the host to a trait of WASI's implementation.
struct FromHost<T: ?Sized>(Arc<T>);

impl HostWallClock for FromHost<dyn Clock> {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.now())
    }
}

impl HostMonotonicClock for FromHost<dyn Clock> {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl TryRng for FromHost<dyn Random> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(bytes);
        Ok(())
    }
}

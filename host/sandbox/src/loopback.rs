//! Brings up the loopback device of a new network namespace, so that programs can test servers of their own.

use std::io;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

const NEW_LINK: u16 = 16;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
const ERROR: u16 = 2;
/// The first device of every namespace.
const LOOPBACK: i32 = 1;
const UP: u32 = 1;

pub(crate) fn bring_up() -> io::Result<()> {
    // Without a protocol it is that of routes.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, &request(), SendFlags::NOSIGNAL)?;
    let mut answer = [0; 256];
    let (count, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    // The header, and the number of the error with a minus sign; 0 means that it succeeded.
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, code) {
        (Some(ERROR), Some(0)) if count >= 20 => Ok(()),
        (Some(ERROR), Some(code)) if count >= 20 => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// `struct nlmsghdr` and `struct ifinfomsg`.
fn request() -> Vec<u8> {
    const LENGTH: u32 = 32;
    let mut bytes = LENGTH.to_ne_bytes().to_vec();
    bytes.extend(NEW_LINK.to_ne_bytes());
    bytes.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    // The number of the message, and the port of the sender, which the kernel knows.
    bytes.extend([1_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat());
    // Family, padding, type of the device.
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    // Flags, and those of them to change.
    bytes.extend([UP.to_ne_bytes(), UP.to_ne_bytes()].concat());
    bytes
}

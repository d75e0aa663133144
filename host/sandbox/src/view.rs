//! The file system as confined programs see it.
//!
//! All mounts become read-only, and then writable ones are put over the planned folders. They were copied before, so that no
//! program can swap a folder for a link in between. Nothing of this can be undone without capabilities, and outside of the
//! namespace nothing changes.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};

use crate::syscalls::{NO_DEVICES, NO_SET_UID, READ_ONLY, restrict_mounts};
use crate::{Plan, SetupError};

/// Devices that are part of every program's world.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Parts of `/proc` that concern the machine. The user root could change them.
const MACHINE: [&str; 7] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];
/// Sockets of the system and of the desktop are in here: a server behind one, such as the session bus, starts programs.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];
/// The visible parts of these folders: the addresses of name servers, and the programs of NixOS.
const OF_RUNTIME: [&str; 7] = [
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
];
const EMPTY_FILE: &str = "/dev/null";

/// Something that is put at a path. Their order counts for the same path.
enum Layer {
    /// An empty folder that is made read-only at the end.
    Empty,
    /// Mounts that were copied before.
    Copy(OwnedFd),
    /// What is there, read-only.
    ReadOnly,
    /// An empty folder or file, whatever is there.
    Hidden,
}

/// The sockets with a path that other programs listen at. Read before the network namespace is left.
///
/// # Errors
///
/// When the table of the kernel cannot be read.
pub(crate) fn foreign_sockets() -> Result<Vec<PathBuf>, SetupError> {
    const TABLE: &str = "/proc/net/unix";
    let table = match fs::read(TABLE) {
        Ok(table) => table,
        // A kernel without such sockets, or a place without /proc, where the next steps fail.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(SetupError::at("sockets", Path::new(TABLE), error)),
    };
    Ok(paths_in(&table))
}

/// A path is any bytes. One that is no text must not hide the others.
fn paths_in(table: &[u8]) -> Vec<PathBuf> {
    let path = |line: &[u8]| {
        let at = line.windows(2).position(|pair| pair == b" /")?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[at + 1..])))
    };
    let mut sockets: Vec<PathBuf> = table.split(|byte| *byte == b'\n').filter_map(path).collect();
    sockets.sort();
    sockets.dedup();
    sockets
}

/// The path with links resolved; none if there is nothing that this user can reach.
fn reachable(path: &Path) -> Result<Option<PathBuf>, SetupError> {
    match path.canonicalize() {
        Ok(real) => Ok(Some(real)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::ELOOP | libc::ENAMETOOLONG) => Ok(None),
            _ => Err(SetupError::at("look at", path, error)),
        },
    }
}

/// Builds the view of this process. False if `/proc` shows all processes of the machine, because the system does not allow another
/// one.
pub(crate) fn build(plan: &Plan, sockets: &[PathBuf]) -> Result<bool, SetupError> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| SetupError::new("private mounts", error))?;
    let mut layers: Vec<(PathBuf, Layer)> = Vec::new();
    for path in RUNTIME.map(Path::new).into_iter().filter(|path| is_folder(path)) {
        layers.push((path.to_owned(), Layer::Empty));
    }
    for path in OF_RUNTIME.iter().map(Path::new).chain(plan.readable.iter().map(PathBuf::as_path)) {
        // It may lead through links, and need not exist.
        if let Ok(real) = path.canonicalize() {
            layers.push((real.clone(), Layer::Copy(copy(&real, READ_ONLY | NO_SET_UID)?)));
        }
    }
    if let Some(temporary) = &plan.temporary {
        for path in temporary.at.iter().filter(|path| is_folder(path)) {
            let path = path.canonicalize().map_err(|error| SetupError::at("temporary folder", path, error))?;
            layers.push((path, Layer::Copy(copy(&temporary.folder, NO_SET_UID | NO_DEVICES)?)));
        }
    }
    for path in plan.writable.iter().chain(&plan.pinned) {
        layers.push((path.clone(), Layer::Copy(copy(path, NO_SET_UID | NO_DEVICES)?)));
    }
    layers.extend(plan.read_only.iter().map(|path| (path.clone(), Layer::ReadOnly)));
    for path in &plan.hidden {
        if let Some(real) = reachable(path)? {
            layers.push((real, Layer::Hidden));
        }
    }
    // A stable sort: parents first, and for the same path in the order above.
    layers.sort_by_key(|(path, _)| path.components().count());

    let devices = copied_devices()?;
    let root = open(Path::new("/"))?;
    restrict_mounts(root.as_fd(), READ_ONLY | NO_SET_UID, true)
        .map_err(|error| SetupError::new("read-only mounts", error))?;
    let mut empty = vec![PathBuf::from("/dev")];
    make_devices(devices)?;
    let own_processes = mount_processes()?;
    for (path, layer) in layers {
        put(&path, layer, &mut empty)?;
    }
    // Without the network, the confined programs of the session have sockets of their own, which are not in this list.
    let may_be_own = |socket: &PathBuf| plan.network && plan.writable.iter().any(|folder| socket.starts_with(folder));
    for socket in sockets.iter().filter(|socket| !may_be_own(socket)) {
        cover_socket(socket)?;
    }
    for path in empty {
        let folder = open(&path)?;
        restrict_mounts(folder.as_fd(), READ_ONLY, false)
            .map_err(|error| SetupError::at("read-only folder", &path, error))?;
    }
    Ok(own_processes)
}

fn is_folder(path: &Path) -> bool {
    // A link to a folder that is in the list itself is none.
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// Opens a path without following any link. A program that can write a folder could put a link there.
fn open(path: &Path) -> Result<OwnedFd, SetupError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    opened.map_err(|error| SetupError::at("open", path, error))
}

/// A copy of the mounts at a path.
fn copy(path: &Path, attributes: u64) -> Result<OwnedFd, SetupError> {
    let opened = open(path)?;
    let failed = |error: io::Error| SetupError::at("bind", path, error);
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = rustix::mount::open_tree(&opened, "", flags).map_err(|error| failed(error.into()))?;
    if attributes != 0 {
        restrict_mounts(tree.as_fd(), attributes, true).map_err(failed)?;
    }
    Ok(tree)
}

fn attach(tree: &OwnedFd, path: &Path) -> Result<(), SetupError> {
    let place = open(path)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, "", &place, "", flags).map_err(|error| SetupError::at("bind", path, error))
}

fn mount_empty(path: &Path, mode: &std::ffi::CStr) -> Result<(), SetupError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", path, "tmpfs", flags, mode)
        .map_err(|error| SetupError::at("empty folder", path, error))
}

fn put(path: &Path, layer: Layer, empty: &mut Vec<PathBuf>) -> Result<(), SetupError> {
    match layer {
        Layer::Empty => {
            mount_empty(path, c"mode=0755,size=1m")?;
            empty.push(path.to_owned());
        }
        Layer::Copy(tree) => {
            make_place(path, &tree)?;
            attach(&tree, path)?;
        }
        // A path that has vanished since the plan needs no protection if its folder exists. If the folder is missing too, the
        // path could come back with it.
        Layer::ReadOnly if path.symlink_metadata().is_err() && path.parent().is_none_or(Path::exists) => {}
        Layer::ReadOnly => attach(&copy(path, READ_ONLY)?, path)?,
        Layer::Hidden => match path.symlink_metadata() {
            // A layer above has it covered.
            Err(_) => {}
            Ok(data) if data.is_dir() => {
                mount_empty(path, c"mode=0755,size=1m")?;
                empty.push(path.to_owned());
            }
            Ok(_) => attach(&copy(Path::new(EMPTY_FILE), READ_ONLY)?, path)?,
        },
    }
    Ok(())
}

/// Creates the place of a copy if a layer above it hides it. That layer is a folder of this sandbox.
fn make_place(path: &Path, tree: &OwnedFd) -> Result<(), SetupError> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let failed = |error: io::Error| SetupError::at("place", path, error);
    let is_folder = rustix::fs::fstat(tree)
        .map(|data| rustix::fs::FileType::from_raw_mode(data.st_mode).is_dir())
        .map_err(|error| failed(error.into()))?;
    if is_folder {
        return fs::create_dir_all(path).map_err(failed);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, "").map_err(failed)
}

fn copied_devices() -> Result<Vec<(&'static str, OwnedFd)>, SetupError> {
    let path = |name: &str| Path::new("/dev").join(name);
    let there = DEVICES.into_iter().filter(|name| path(name).exists());
    there.map(|name| Ok((name, copy(&path(name), NO_SET_UID)?))).collect()
}

/// A `/dev` with a few devices, terminals of its own and shared memory. Disks, the host's terminals and the like are absent.
fn make_devices(devices: Vec<(&'static str, OwnedFd)>) -> Result<(), SetupError> {
    let folder = Path::new("/dev");
    let failed = |error: io::Error| SetupError::at("devices", folder, error);
    mount_empty(folder, c"mode=0755,size=1m")?;
    for (name, tree) in devices {
        let path = folder.join(name);
        fs::write(&path, "").map_err(failed)?;
        attach(&tree, &path)?;
    }
    for name in ["pts", "shm"] {
        fs::create_dir(folder.join(name)).map_err(failed)?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    rustix::mount::mount("devpts", "/dev/pts", "devpts", flags, options).map_err(|error| failed(error.into()))?;
    mount_empty(&folder.join("shm"), c"mode=1777")?;
    let links = [
        ("pts/ptmx", "ptmx"),
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
    ];
    links.into_iter().try_for_each(|(target, name)| symlink(target, folder.join(name)).map_err(failed))
}

fn mount_processes() -> Result<bool, SetupError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let own = match rustix::mount::mount("proc", "/proc", "proc", flags, None) {
        Ok(()) => true,
        // Containers hide parts of theirs, and the kernel then refuses another one. Processes outside stay unreachable: looking
        // into them would need a capability in their user namespace.
        Err(Errno::PERM) => false,
        Err(error) => return Err(SetupError::new("/proc", error)),
    };
    for name in MACHINE.iter().filter(|_| own) {
        let path = Path::new("/proc").join(name);
        match path.symlink_metadata() {
            Ok(_) => attach(&copy(&path, READ_ONLY)?, &path)?,
            Err(_) => continue,
        }
    }
    Ok(own)
}

/// Puts an empty file over a socket, so that nobody can connect to it. One that this user cannot reach needs none.
fn cover_socket(path: &Path) -> Result<(), SetupError> {
    let is_socket = |real: &PathBuf| real.symlink_metadata().is_ok_and(|data| data.file_type().is_socket());
    let Some(real) = reachable(path)?.filter(is_socket) else { return Ok(()) };
    match copy(Path::new(EMPTY_FILE), READ_ONLY).and_then(|tree| attach(&tree, &real)) {
        // It may be gone by now.
        Err(error) if is_socket(&real) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_no_text_hides_no_other_socket() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0: 2 0 1 1 1 9 /run/a b\n1: 2 0 1 1 1 9 /tmp/\xff\n2: 2 0 1 1 1 9 @abstract\n3: 2 0 1 1 1 9\n4: 2 0 1 1 1 9 /run/a b\n";
        let odd = PathBuf::from(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
        assert_eq!(paths_in(table), [PathBuf::from("/run/a b"), odd]);
    }
}

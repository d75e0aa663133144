//! What is at the path of an output, and how content gets there: a plain file is replaced as a whole, a link is followed, and
//! what passes content on (a pipe, a terminal, another character device, an open file of this process) is written as it is. A disk
//! and a socket are refused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{UNFINISHED, folder_of, sync_folder};

/// The most links from a path to its file. The kernel follows as many.
const MOST_LINKS: usize = 40;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing: a new file belongs here, at the end of all links.
    New(PathBuf),
    /// A plain file, at the end of all links.
    File(PathBuf),
    /// No file that could be replaced: a pipe, a terminal, another device, or an open file of this process such as `/dev/stdout`.
    Stream(PathBuf),
}

/// Who may read a file that an output creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Everybody whom the user's umask allows.
    Everybody,
}

/// Whether the content of a replaced file must survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    Yes,
    No,
}

/// What a pipe without a reader is worth.
#[derive(Clone, Copy)]
pub enum Patience<'a> {
    /// Its reader may come later, as with a shell's `>`. This is called once before the wait, which has no end of its own.
    Waits(&'a dyn Fn()),
    /// An error.
    None,
}

impl Place {
    /// Looks at a path.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::IsADirectory`] for a folder, [`io::ErrorKind::InvalidInput`] for a disk or a socket, and what the system says
    /// about links that lead nowhere.
    pub fn of(path: &Path) -> io::Result<Self> {
        let target = target(path)?;
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_open_file(&target) => {
                return Ok(Self::New(target));
            }
            Err(error) => return Err(error),
        };
        if found.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if let Some(why) = unfit(&found) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if found.is_file() && !is_open_file(&target) {
            Ok(Self::File(target))
        } else {
            Ok(Self::Stream(path.to_owned()))
        }
    }

    /// Whether it can be written. Leaves everything as it is, and does not open a stream: its reader would see the end of it.
    ///
    /// # Errors
    ///
    /// The reason why not.
    pub fn check(&self) -> io::Result<()> {
        match self {
            Self::New(target) | Self::File(target) => draft(target, Readers::Owner).map(drop),
            Self::Stream(_) => Ok(()),
        }
    }

    /// Opens it for an output that is written piece by piece and overwrites nothing.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] for a plain file, or the system's reason.
    pub fn begin(&self, patience: Patience<'_>) -> io::Result<File> {
        match self {
            Self::New(target) => crate::create_file(target),
            Self::File(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Self::Stream(path) => open_stream(path, patience),
        }
    }

    pub(crate) fn write(
        &self,
        content: &[u8],
        readers: Readers,
        durable: Durable,
        patience: Patience<'_>,
    ) -> io::Result<()> {
        match self {
            Self::New(target) | Self::File(target) => replace(target, content, readers, durable),
            Self::Stream(path) => open_stream(path, patience)?.write_all(content),
        }
    }
}

/// Writes an output of a command to the path that the user gave. A plain file is replaced as a whole: after an error it is as it
/// was. Says whether there was one.
///
/// # Errors
///
/// Those of [`Place::of`], or the system's reason.
pub fn write_output(path: &Path, content: &[u8], readers: Readers, patience: Patience<'_>) -> io::Result<bool> {
    let place = Place::of(path)?;
    place.write(content, readers, Durable::Yes, patience)?;
    Ok(matches!(place, Place::File(_)))
}

/// The path at the end of all links, whether something is there or not.
///
/// # Errors
///
/// When a link cannot be read, or links form a circle.
pub fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..=MOST_LINKS {
        // What it leads to is no path that could be opened again.
        if is_open_file(&path) {
            return Ok(path);
        }
        let link = match fs::read_link(&path) {
            Ok(link) => link,
            // Not a link, or nothing there.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        };
        path = folder_of(&path).join(link);
    }
    #[cfg(unix)]
    return Err(io::Error::from_raw_os_error(libc::ELOOP));
    #[cfg(not(unix))]
    Err(io::Error::other("too many links"))
}

/// Whether a path names a file that a process has open, or another entry of the kernel's: `/proc/self/fd/1`, `/dev/fd/1`.
fn is_open_file(path: &Path) -> bool {
    let Ok(folder) = fs::canonicalize(folder_of(path)) else { return false };
    cfg!(unix) && (folder.starts_with("/proc") || folder.starts_with("/dev/fd"))
}

/// Why Hermes writes nothing to a file of this kind, even if the user asks for it. The other kinds of files pass content on.
#[cfg(unix)]
fn unfit(found: &fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    unfit_mode(found.mode())
}

#[cfg(not(unix))]
fn unfit(_: &fs::Metadata) -> Option<&'static str> {
    None
}

#[cfg(unix)]
fn unfit_mode(mode: u32) -> Option<&'static str> {
    match mode & libc::S_IFMT {
        libc::S_IFBLK => Some("it is a disk (a block device), and its content would be overwritten"),
        libc::S_IFSOCK => Some("it is a socket, which cannot be written as a file"),
        _ => None,
    }
}

fn open_stream(path: &Path, patience: Patience<'_>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let found = fs::metadata(path)?;
    // A file that is open elsewhere keeps what it has, as with a shell's `>>`.
    match found.is_file() {
        true => options.append(true),
        false => options.write(true),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
        // A terminal does not become the one of this process.
        let mut opened = options.custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open(path);
        let has_no_reader = |error: &io::Error| error.raw_os_error() == Some(libc::ENXIO);
        if found.file_type().is_fifo() && opened.as_ref().is_err_and(has_no_reader) {
            opened = match patience {
                // The other end of a pipe that this process has open is gone for good.
                _ if is_open_file(&target(path)?) => Err(io::ErrorKind::BrokenPipe.into()),
                Patience::Waits(say) => {
                    say();
                    options.custom_flags(libc::O_NOCTTY).open(path)
                }
                Patience::None => Err(io::Error::new(io::ErrorKind::NotConnected, "no program reads from this pipe")),
            };
        }
        let file = opened?;
        // It has a reader, who may be slower than this process.
        rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - rustix::fs::OFlags::NONBLOCK)?;
        // Something else may be there by now.
        match unfit(&file.metadata()?) {
            Some(why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
            None => Ok(file),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = patience;
        options.open(path)
    }
}

/// Puts a complete file in the place of the one at `target`, which keeps its permissions.
pub(crate) fn replace(target: &Path, content: &[u8], readers: Readers, durable: Durable) -> io::Result<()> {
    let mut file = draft(target, readers)?;
    file.write_all(content)?;
    if let Ok(before) = fs::symlink_metadata(target)
        && before.is_file()
    {
        file.as_file().set_permissions(before.permissions())?;
    }
    if durable == Durable::Yes {
        file.as_file().sync_all()?;
    }
    file.persist(target)?;
    if durable == Durable::Yes { sync_folder(folder_of(target)) } else { Ok(()) }
}

/// An empty file beside `target`, which is removed unless it is put in its place.
fn draft(target: &Path, readers: Readers) -> io::Result<tempfile::NamedTempFile> {
    let mut draft = tempfile::Builder::new();
    draft.prefix(UNFINISHED);
    #[cfg(unix)]
    if readers == Readers::Everybody {
        draft.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    #[cfg(not(unix))]
    let _ = readers;
    draft.tempfile_in(folder_of(target))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::{write_atomically, write_whole};

    /// How content is written.
    type Write = fn(&Path, &[u8]) -> io::Result<()>;

    fn private(path: &Path, content: &[u8]) -> io::Result<()> {
        write_output(path, content, Readers::Owner, Patience::Waits(&|| ())).map(drop)
    }

    fn public(path: &Path, content: &[u8]) -> io::Result<()> {
        write_output(path, content, Readers::Everybody, Patience::Waits(&|| ())).map(drop)
    }

    const WAYS: [Write; 4] = [write_whole, write_atomically, private, public];

    /// A folder with files and links to them.
    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let world = Self(tempfile::tempdir().unwrap());
            fs::create_dir(world.at("elsewhere")).unwrap();
            fs::write(world.at("elsewhere/file"), "old").unwrap();
            fs::set_permissions(world.at("elsewhere/file"), fs::Permissions::from_mode(0o640)).unwrap();
            symlink("elsewhere", world.at("folder")).unwrap();
            symlink("folder/file", world.at("link")).unwrap();
            symlink(world.at("link"), world.at("chain")).unwrap();
            symlink("elsewhere/new", world.at("dangling")).unwrap();
            symlink("../dangling", world.at("elsewhere/chain")).unwrap();
            symlink("round-2", world.at("round-1")).unwrap();
            symlink("round-1", world.at("round-2")).unwrap();
            symlink("nowhere/file", world.at("lost")).unwrap();
            world
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn pipe(&self, path: &str) -> PathBuf {
            let path = self.at(path);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        }

        /// Every name below the folder, with what a link is.
        fn names(&self) -> Vec<String> {
            let mut names = Vec::new();
            for folder in [self.at(""), self.at("elsewhere")] {
                for entry in fs::read_dir(folder).unwrap() {
                    let entry = entry.unwrap();
                    names.push(format!("{} {:?}", entry.path().display(), entry.file_type().unwrap()));
                }
            }
            names.sort();
            names
        }
    }

    #[test]
    fn links_are_followed_and_their_targets_are_replaced_as_a_whole() {
        for write in WAYS {
            for (path, target) in [
                ("elsewhere/file", "elsewhere/file"),
                ("folder/file", "elsewhere/file"),
                ("link", "elsewhere/file"),
                ("chain", "elsewhere/file"),
                ("dangling", "elsewhere/new"),
                ("elsewhere/chain", "elsewhere/new"),
                ("folder/other", "elsewhere/other"),
            ] {
                let world = World::new();
                let mut names = world.names();
                let before = fs::metadata(world.at(target)).ok();
                write(&world.at(path), b"content").unwrap();
                assert_eq!(fs::read_to_string(world.at(target)).unwrap(), "content", "{path}");
                if let Some(before) = before {
                    use std::os::unix::fs::MetadataExt as _;
                    let now = fs::metadata(world.at(target)).unwrap();
                    assert_eq!(now.mode() & 0o777, 0o640, "{path}");
                    assert_ne!(now.ino(), before.ino(), "{path} was not replaced as a whole");
                } else {
                    names.push(format!(
                        "{} {:?}",
                        world.at(target).display(),
                        fs::metadata(world.at(target)).unwrap().file_type()
                    ));
                    names.sort();
                }
                assert_eq!(world.names(), names, "{path}");
            }
        }
    }

    #[test]
    fn what_cannot_be_written_stays_as_it_is() {
        for write in WAYS {
            for (path, kind) in [
                ("elsewhere", Some(io::ErrorKind::IsADirectory)),
                ("folder", Some(io::ErrorKind::IsADirectory)),
                ("lost", Some(io::ErrorKind::NotFound)),
                ("round-1", None),
                ("elsewhere/file/below", None),
            ] {
                let world = World::new();
                let names = world.names();
                let error = write(&world.at(path), b"content").unwrap_err();
                assert!(kind.is_none_or(|kind| kind == error.kind()), "{path}: {error}");
                assert_eq!(world.names(), names, "{path}");
                assert_eq!(fs::read_to_string(world.at("link")).unwrap(), "old", "{path}");
                let checked = Place::of(&world.at(path)).and_then(|place| place.check());
                assert!(checked.is_err(), "{path}");
            }
        }
    }

    #[test]
    fn a_pipe_gets_the_content_and_stays_a_pipe() {
        // More than the pipe holds.
        let content = vec![7_u8; 300_000];
        for write in WAYS {
            for linked in [false, true] {
                let world = World::new();
                let pipe = world.pipe("pipe");
                let path = if linked { world.at("to-pipe") } else { pipe.clone() };
                if linked {
                    symlink("pipe", &path).unwrap();
                }
                let names = world.names();
                // Both ends, so that no order of the two threads matters.
                let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
                let read = thread::scope(|scope| {
                    let writer = scope.spawn(|| write(&path, &content));
                    let mut read = vec![0; content.len()];
                    reader.read_exact(&mut read).unwrap();
                    writer.join().unwrap().unwrap();
                    read
                });
                assert!(read == content);
                assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
                assert_eq!(world.names(), names);
            }
        }
    }

    #[test]
    fn only_an_output_waits_for_the_reader_of_a_pipe_and_says_so_once() {
        let world = World::new();
        let pipe = world.pipe("pipe");
        for write in [write_whole, write_atomically] {
            let error = write(&pipe, b"content").unwrap_err();
            assert_eq!(error.to_string(), "no program reads from this pipe");
        }
        let place = Place::of(&pipe).unwrap();
        place.check().unwrap();
        assert_eq!(place.begin(Patience::None).unwrap_err().kind(), io::ErrorKind::NotConnected);
        let (said, waits) = std::sync::mpsc::channel();
        let read = thread::scope(|scope| {
            scope.spawn(|| {
                let say = || said.send(()).unwrap();
                assert!(!write_output(&pipe, b"content", Readers::Owner, Patience::Waits(&say)).unwrap());
            });
            waits.recv().unwrap();
            fs::read(&pipe).unwrap()
        });
        assert_eq!(read, b"content");
        assert!(waits.try_recv().is_err(), "said twice");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn only_a_replaced_file_counts_as_replaced() {
        let world = World::new();
        for (path, was_there) in [("elsewhere/file", true), ("link", true), ("dangling", false), ("new", false)] {
            let write = || write_output(&world.at(path), b"x", Readers::Owner, Patience::None).unwrap();
            assert_eq!(write(), was_there, "{path}");
        }
    }

    #[test]
    fn disks_and_sockets_are_refused_by_their_kind() {
        for (kind, fits) in [
            (libc::S_IFREG, true),
            (libc::S_IFIFO, true),
            (libc::S_IFCHR, true),
            (libc::S_IFBLK, false),
            (libc::S_IFSOCK, false),
        ] {
            for permissions in [0, 0o600, 0o7777] {
                assert_eq!(unfit_mode(kind | permissions).is_none(), fits, "{kind:o}");
            }
        }
        let world = World::new();
        let _socket = std::os::unix::net::UnixListener::bind(world.at("socket")).unwrap();
        symlink("socket", world.at("to-socket")).unwrap();
        // Only root makes a node of a disk. No driver has this number.
        let made = Command::new("mknod").arg(world.at("disk")).args(["b", "250", "250"]).output().unwrap().status;
        let disks: &[&str] = if made.success() { &["disk"] } else { &[] };
        for path in disks.iter().chain(&["socket", "to-socket"]) {
            let before = fs::symlink_metadata(world.at(path)).unwrap().file_type();
            for write in WAYS {
                let error = write(&world.at(path), b"content").unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}: {error}");
            }
            assert_eq!(fs::symlink_metadata(world.at(path)).unwrap().file_type(), before, "{path}");
        }
    }

    /// A terminal of its own is a device that no other program uses.
    #[test]
    fn a_device_is_written_and_stays_a_device() {
        for write in WAYS {
            let world = World::new();
            let controller =
                rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
            rustix::pty::grantpt(&controller).unwrap();
            rustix::pty::unlockpt(&controller).unwrap();
            let device = PathBuf::from(rustix::pty::ptsname(&controller, Vec::new()).unwrap().into_string().unwrap());
            symlink(&device, world.at("device")).unwrap();
            for path in [&device, &world.at("device")] {
                write(path, b"content").unwrap();
                let mut read = [0; 7];
                rustix::io::read(&controller, &mut read).unwrap();
                assert_eq!(&read, b"content");
                assert!(fs::metadata(path).unwrap().file_type().is_char_device());
            }
            assert!(world.at("device").is_symlink());
        }
    }

    /// `/dev/stdout` leads to a file that a shell opened: what was written there before stays.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_is_continued() {
        use std::os::fd::AsRawFd as _;

        for write in WAYS {
            let world = World::new();
            let mut open = File::options().append(true).open(world.at("link")).unwrap();
            symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), world.at("stdout")).unwrap();
            write(&world.at("stdout"), b" content").unwrap();
            open.write_all(b" more").unwrap();
            assert_eq!(fs::read_to_string(world.at("elsewhere/file")).unwrap(), "old content more");
            assert!(world.at("stdout").is_symlink());
        }
    }

    #[test]
    fn a_new_file_of_an_output_is_private_or_as_public_as_the_umask_allows() {
        let world = World::new();
        let mode = |name: &str| fs::metadata(world.at(name)).unwrap().permissions().mode() & 0o777;
        fs::write(world.at("usual"), "").unwrap();
        private(&world.at("private"), b"").unwrap();
        public(&world.at("public"), b"").unwrap();
        assert_eq!((mode("private"), mode("public")), (0o600, mode("usual")));
    }

    #[test]
    fn an_output_that_overwrites_nothing_begins_at_the_end_of_links() {
        let world = World::new();
        let begin = |path: &str| Place::of(&world.at(path)).and_then(|place| place.begin(Patience::None));
        for path in ["elsewhere/file", "link", "chain"] {
            assert_eq!(begin(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{path}");
        }
        begin("dangling").unwrap().write_all(b"content").unwrap();
        assert_eq!(fs::read_to_string(world.at("elsewhere/new")).unwrap(), "content");
        assert!(world.at("dangling").is_symlink());
    }
}

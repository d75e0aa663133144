//! A terminal that shows nothing of what is typed while Hermes works, and its state before, which every end restores.

#[cfg(unix)]
pub(crate) use unix::{Silent, give_back, set_echo};

/// The terminal is never silent there.
#[cfg(not(unix))]
pub(crate) fn give_back() {}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::{Mutex, PoisonError};

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// The terminal as it was before it was silent, until it is given back.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// Restores the terminal, if it is silent.
    pub(crate) fn give_back() {
        if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }

    /// A silent terminal shows nothing of what is typed, and Ctrl-C drops nothing of it. Dropping this restores the terminal.
    pub(crate) struct Silent;

    impl Silent {
        /// `None` if the terminal cannot be switched; it stays as it is.
        pub(crate) fn begin() -> Option<Self> {
            let before = tcgetattr(io::stdin()).ok()?;
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
            set_echo(false);
            Some(Self)
        }
    }

    impl Drop for Silent {
        fn drop(&mut self) {
            give_back();
        }
    }

    /// Lets a silent terminal show what is typed, or not.
    pub(crate) fn set_echo(shows: bool) {
        if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            let mut modes = before.clone();
            if !shows {
                modes.local_modes.remove(LocalModes::ECHO);
                modes.local_modes.insert(LocalModes::NOFLSH);
            }
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        }
    }
}

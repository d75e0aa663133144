//! Turns, crashes, resuming, branching, pictures, wire formats, and the sessions of older versions.

mod branches;
mod budget;
mod commands;
mod crash;
mod damaged;
mod delegation;
mod fallback;
mod known_providers;
mod login;
mod login_browser;
mod login_key;
mod login_lifetime;
mod logins;
mod modes;
mod pictures;
mod providers;
mod reasoning;
mod recall;
mod released;
mod responses;
mod results;
mod scripts;
mod thinking;
mod turns;
mod undo;
mod windows;

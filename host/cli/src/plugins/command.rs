//! The commands below `hermes plugins`.

use clap::Subcommand;

use super::grant::GrantArguments;
use super::install::InstallArguments;
use super::new::NewArguments;
use super::remove::RemoveArguments;
use super::test::TestArguments;
use super::update::UpdateArguments;

/// What to do with plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// Rebuild a plugin project at every change and reload it in running sessions, until Ctrl-C
    Dev(super::dev::DevArguments),
    /// List all plugins with kind and state
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch and check a plugin, show its permissions, and install it if you agree
    Install(InstallArguments),
    /// Update installed plugins from their sources
    Update(UpdateArguments),
    /// Return a plugin to its previous version
    Rollback {
        /// The plugin's name
        name: String,
    },
    /// Remove a plugin and its entries in config.yaml
    #[command(visible_aliases = ["rm", "uninstall"])]
    Remove(RemoveArguments),
    /// Let a plugin that moved to another source keep its permissions, configuration and data
    Adopt(super::adopt::AdoptArguments),
    /// Allow a plugin to run with its present files, and grant all or some of the permissions that it requests
    Grant(GrantArguments),
    /// Revoke permissions of a plugin; if you name none, it cannot run until you grant it again
    Revoke {
        /// The plugin's name
        name: String,
        /// Permissions to revoke, such as http or process [default: all, and the permission to run]
        #[arg(value_name = "PERMISSION")]
        permissions: Vec<String>,
    },
    /// List the actions that you approved with `always`
    Approvals {
        /// Forget the approvals of this plugin, so that it must ask again
        #[arg(long, value_name = "PLUGIN")]
        forget: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check that no plugin file has changed since it was installed
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Create a small, working project for a plugin
    New(NewArguments),
    /// Test a plugin against the contract of its kind, in the real runtime
    Test(TestArguments),
    /// Pack a built project into NAME-VERSION.tar.gz, for publishing
    Pack(super::pack::PackArguments),
    /// Pack a built plugin and publish it as an image of an OCI registry
    Push(super::push::PushArguments),
    /// Sign a built plugin with your minisign key, for publishing
    Sign(super::sign::SignArguments),
    /// Write the contract (the files of wit/) to a folder
    Wit(super::wit::WitArguments),
    /// Write the contract as C or Go; projects of `plugins new` call it when they are built
    Bindings(super::bindings::BindingsArguments),
    /// Turn a core module of a C or Go compiler into a component; projects of `plugins new` call it when they are built
    Component(super::bindings::ComponentArguments),
    /// Show a plugin's details, permissions, statistics and failures
    Info {
        /// The plugin's name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain missing or failing plugins and tools, and suggest fixes
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show statistics of all plugins: calls, time, memory and model tokens
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Enable a plugin; a context engine or memory provider replaces the current one
    Enable {
        /// The plugin's name
        name: String,
    },
    /// Disable a plugin
    Disable {
        /// The plugin's name
        name: String,
    },
    /// Show a plugin's log
    Logs {
        /// The plugin's name
        name: String,
        /// Show the newest N lines
        #[arg(long, short = 'n', value_name = "N", default_value_t = 40)]
        lines: usize,
        /// Keep printing new lines
        #[arg(long, short)]
        follow: bool,
        /// Print the raw lines, a JSON object each
        #[arg(long)]
        json: bool,
    },
}

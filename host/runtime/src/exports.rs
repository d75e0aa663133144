//! The interfaces that a plugin exports.

use crate::interfaces::interfaces;
use crate::limits::Tier;

macro_rules! exports {
    (required $required:ident $required_name:literal { $($required_functions:tt)* }
     $($(#[$doc:meta])* $interface:ident $name:literal { $($functions:tt)* })+) => {
        /// The interfaces that a plugin exports besides `lifecycle`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Exports {
            $($(#[$doc])* pub $interface: bool,)+
        }

        impl Exports {
            /// The names of the exported interfaces, in the order of the contract.
            pub fn names(&self) -> Vec<&'static str> {
                let all = [$((self.$interface, $name),)+];
                all.into_iter().filter_map(|(exported, name)| exported.then_some(name)).collect()
            }
        }
    };
}

interfaces!(exports);

impl Exports {
    /// The tier of limits for its instances.
    pub fn tier(&self) -> Tier {
        if self.context_engine || self.memory_provider || self.embedder { Tier::Session } else { Tier::Tools }
    }
}

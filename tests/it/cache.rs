//! The prompt cache of the provider: bytes that stay the same, cache marks, and the reasons for a miss.

mod alias;
mod breakpoints;
mod causes;
mod prefix;
mod warming;

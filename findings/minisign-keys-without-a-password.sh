#!/usr/bin/env bash
# minisign 0.11 (Debian 12) and the crate minisign 0.10.0 (crates.io).
#
# `minisign -G -W` writes a secret key without a password. Version 0.11 leaves zeros in place of the key's checksum, and itself
# signs with the key. The crate, of the same author, checks the checksum also where there is no password:
# `into_unencrypted_secret_key` refuses the file with "Corrupted key". A key that the crate generates has a checksum, so a test with
# its own keys does not show this.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download --quiet minisign=0.11-1 > apt.log 2>&1
dpkg -x minisign_0.11-1_*.deb program
minisign=program/usr/bin/minisign
"$minisign" -G -W -p key.pub -s key > generated.log
echo tea > tea.txt
"$minisign" -S -s key -m tea.txt > signed.log
"$minisign" -V -p key.pub -m tea.txt | head -n 1
mkdir -p try/src
cat > try/Cargo.toml <<'TOML'
[package]
name = "try"
version = "0.0.0"
edition = "2021"
[dependencies]
minisign = "=0.10.0"
[workspace]
TOML
cat > try/src/main.rs <<'RUST'
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let key = minisign::SecretKeyBox::from_string(&text).unwrap().into_unencrypted_secret_key();
    println!("{}", key.map_or_else(|error| error.to_string(), |_| "accepted".to_owned()));
}
RUST
seen=$(cargo run --quiet --manifest-path try/Cargo.toml -- key)
echo "$seen"
[ "$seen" = 'Corrupted key' ]

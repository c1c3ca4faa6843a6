//! Puts the files of `web/dist` into the program. Where they were not built there are none, and the page says so.

#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let home = env::var("CARGO_MANIFEST_DIR")?;
    let built = env::var_os("CONFIDANT_WEB_DIST").map(PathBuf::from);
    let dist = built.unwrap_or_else(|| Path::new(&home).join("../../web/dist"));
    println!("cargo::rerun-if-env-changed=CONFIDANT_WEB_DIST");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut names: Vec<String> = match fs::read_dir(&dist) {
        Ok(files) => files
            .map(|file| file.map(|file| file.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_, _>>()?,
        Err(_) => Vec::new(),
    };
    names.retain(|name| is_asset(name));
    names.sort();
    let mut code = String::from("static BUILT: &[Built] = &[\n");
    for name in names.iter().filter(|name| !name.ends_with(".br")) {
        let path = fs::canonicalize(dist.join(name))?;
        let packed = format!("{name}.br");
        let brotli = match names.contains(&packed) {
            true => format!("Some(include_bytes!({:?}))", fs::canonicalize(dist.join(packed))?),
            false => "None".to_owned(),
        };
        writeln!(code, "    Built {{ name: {name:?}, bytes: include_bytes!({path:?}), brotli: {brotli} }},")?;
    }
    code.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("built.rs"), code)?;
    Ok(())
}

/// `name.kind`, or the same packed: `name.kind.br`.
fn is_asset(name: &str) -> bool {
    let plain = name.strip_suffix(".br").unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let kinds = ["html", "js", "css", "json", "svg", "png", "webmanifest", "wasm"];
    plain.chars().all(is_plain)
        && plain.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && kinds.contains(&kind))
}

//! The layout is what the crate's documentation says: imports point downwards only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Uses within or across layers that the table alone would allow, and that are not meant to be.
const FORBIDDEN: &[(&str, &str)] = &[
    ("agent", "render"),
    ("agent", "term"),
    ("render", "term"),
    ("compact", "render"),
    ("compact", "term"),
];

/// The layers of the table in the crate's documentation, top first; modules of one row may use each
/// other, but for the screen's two.
fn layers() -> Vec<Vec<String>> {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("//! | "));
    let modules = |row: &str| -> Vec<String> {
        let links = row.split("[`").skip(1);
        links
            .filter_map(|link| Some(link.split_once("`]")?.0.to_owned()))
            .collect()
    };
    rows.map(modules).filter(|row| !row.is_empty()).collect()
}

fn layer(layers: &[Vec<String>], module: &str) -> usize {
    layers
        .iter()
        .position(|layer| layer.iter().any(|name| name == module))
        .unwrap_or_else(|| panic!("{module} is in no row of the table in src/lib.rs"))
}

/// Every source file with the top module it belongs to.
fn sources() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let top = path.strip_prefix(&root).unwrap().iter().next().unwrap();
                let module = Path::new(top).file_stem().unwrap();
                let module = module.to_string_lossy().into_owned();
                found.push((module, path));
            }
        }
    }
    found
}

/// The top modules that a source text names as `crate::MODULE`, its unit tests left out.
fn imports(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| {
        line.split("crate::")
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    })
    .map(|rest| {
        rest.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    })
    .filter(|module: &String| !module.is_empty())
    .collect()
}

#[test]
fn imports_point_downwards_only() {
    let layers = layers();
    let mut faults = BTreeMap::new();
    for (module, path) in sources() {
        if matches!(module.as_str(), "main" | "lib") || path.ends_with("tests.rs") {
            continue;
        }
        let own = layer(&layers, &module);
        for used in imports(&fs::read_to_string(&path).unwrap()) {
            let upwards = layer(&layers, &used) < own;
            if upwards || FORBIDDEN.contains(&(module.as_str(), used.as_str())) {
                faults.insert(path.clone(), used);
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_readme_names_every_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let layout = readme.split("## How the code is laid out").nth(1).unwrap();
    let layout = layout.split("\n## ").next().unwrap();
    let is_separator = |c: char| !c.is_alphanumeric();
    for module in layers().concat() {
        assert!(
            layout.split(is_separator).any(|word| word == module),
            "{module} is not in the README's layout"
        );
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for (_, path) in sources() {
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("//!") || path.ends_with("tests.rs"),
            "{} has no //!",
            path.display()
        );
    }
}

//! The layout is what the crate's documentation says: imports point downwards only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, top first; modules of one line may use each other, but for the screen's two.
const LAYERS: &[&[&str]] = &[
    &["app", "commands"],
    &["agent", "compact", "prompt"],
    &["render", "term"],
    &["tools"],
    &["client", "wire"],
    &["config", "session", "shell", "signals", "trust", "private"],
    &[
        "address", "message", "repair", "event", "model", "usage", "sanitize", "error",
    ],
];

/// Uses within or across layers that the table alone would allow, and that are not meant to be.
const FORBIDDEN: &[(&str, &str)] = &[
    ("agent", "render"),
    ("agent", "term"),
    ("render", "term"),
    ("compact", "render"),
    ("compact", "term"),
];

fn layer(module: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| layer.contains(&module))
        .unwrap_or_else(|| panic!("{module} is in no layer"))
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
                let first = path
                    .strip_prefix(&root)
                    .unwrap()
                    .components()
                    .next()
                    .unwrap();
                let module = Path::new(first.as_os_str())
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
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
    let mut faults = BTreeMap::new();
    for (module, path) in sources() {
        if matches!(module.as_str(), "main" | "lib") || path.ends_with("tests.rs") {
            continue;
        }
        for used in imports(&fs::read_to_string(&path).unwrap()) {
            let upwards = layer(&used) < layer(&module);
            if upwards || FORBIDDEN.contains(&(module.as_str(), used.as_str())) {
                faults.insert(path.clone(), used);
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
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

//! The icons there are, by name.

use std::sync::LazyLock;

/// Whether Lucide has an icon of this name.
pub(crate) fn exists(name: &str) -> bool {
    ICONS.binary_search(&name).is_ok()
}

/// The icon of this name, as long as the program.
pub(super) fn named(name: &str) -> Option<&'static str> {
    ICONS.binary_search(&name).ok().map(|at| ICONS[at])
}

static ICONS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    include_str!("../data/icons.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_whole() {
        assert!(ICONS.is_sorted() && ICONS.len() > 2_000);
        assert!(exists("code") && exists("message-circle") && !exists("Code") && !exists(""));
    }
}

//! How far apart two spellings are, for a "did you mean". Pure.

/// How many letters have to be changed, added, dropped or swapped with their neighbour to make `b`
/// of `a` (the optimal string alignment distance).
pub fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped {
                    best.min(rows[i - 2][j - 2] + 1)
                } else {
                    best
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slip_of_the_fingers_counts_once() {
        for (a, b, slips) in [
            ("", "", 0),
            ("", "abc", 3),
            ("help", "help", 0),
            ("help", "hlep", 1),
            ("help", "hel", 1),
            ("help", "yelp", 1),
            ("help", "helpp", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), slips, "{a} {b}");
            assert_eq!(distance(b, a), slips, "{b} {a}");
        }
    }
}

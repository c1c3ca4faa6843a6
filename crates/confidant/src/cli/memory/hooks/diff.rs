//! The difference of two texts, line by line, for people to read before they agree.

/// What changes, with a few lines around it; nothing if nothing does.
pub(super) fn diff(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let steps = steps(&before, &after);
    let near = |at: usize| {
        let (from, until) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(steps.len()));
        steps[from..until].iter().any(|(kind, _)| *kind != ' ')
    };
    let mut shown = Vec::new();
    let mut is_cut = false;
    for (at, (kind, line)) in steps.iter().enumerate() {
        if near(at) {
            if std::mem::take(&mut is_cut) && !shown.is_empty() {
                shown.push("…".to_owned());
            }
            shown.push(format!("{kind}{line}"));
        } else {
            is_cut = true;
        }
    }
    shown
}

/// Every line of both, in order: kept, taken out or put in.
fn steps<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(char, &'t str)> {
    let shortest = before.len().min(after.len());
    let head = (0..shortest).take_while(|&at| before[at] == after[at]).count();
    let same = |at: &usize| before[before.len() - 1 - at] == after[after.len() - 1 - at];
    let tail = (0..shortest - head).take_while(same).count();
    let (old, new) = (&before[head..before.len() - tail], &after[head..after.len() - tail]);
    let mut steps: Vec<(char, &str)> = before[..head].iter().map(|line| (' ', *line)).collect();
    steps.extend(middle(old, new));
    steps.extend(before[before.len() - tail..].iter().map(|line| (' ', *line)));
    steps
}

/// The same where both differ: by the longest sequence of lines that they share, unless that would take long.
fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let out = |lines: &[&'t str], kind: char| -> Vec<(char, &'t str)> {
        lines.iter().map(|line| (kind, *line)).collect()
    };
    if old.len().saturating_mul(new.len()) > MOST_WORK {
        return [out(old, '-'), out(new, '+')].concat();
    }
    // How many lines the rests from here on share.
    let width = new.len() + 1;
    let mut shared = vec![0_usize; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let (below, right) = (shared[(i + 1) * width + j], shared[i * width + j + 1]);
            let diagonal = shared[(i + 1) * width + j + 1];
            shared[i * width + j] = if old[i] == new[j] { diagonal + 1 } else { below.max(right) };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            steps.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if shared[(i + 1) * width + j] >= shared[i * width + j + 1] {
            steps.push(('-', old[i]));
            i += 1;
        } else {
            steps.push(('+', new[j]));
            j += 1;
        }
    }
    steps.extend(out(&old[i..], '-'));
    steps.extend(out(&new[j..], '+'));
    steps
}

const AROUND: usize = 2;
const MOST_WORK: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_eq!(diff(before, before), Vec::<String>::new());
        let after = "1\n2\n3\n4\nx\n6\n7\n8\n9\n";
        assert_eq!(diff(before, after), [" 3", " 4", "-5", "+x", " 6", " 7"]);
        assert_eq!(diff("", "a\nb\n"), ["+a", "+b"]);
        assert_eq!(diff("a\nb\n", ""), ["-a", "-b"]);
        let apart = diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n");
        assert_eq!(apart, ["+0", " 1", " 2", "…", " 8", " 9", "+x"]);
    }
}

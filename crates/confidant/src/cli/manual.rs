//! `confidant completions` and `confidant man`: what shells and `man` know of the commands, from the words of the help itself.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use super::shared::Outcome;
use crate::output::{self, counted, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(confidant completions bash)                                                    for this shell
  confidant completions bash > ~/.local/share/bash-completion/completions/confidant       for every bash
  confidant completions zsh > ~/.zfunc/_confidant                                         a folder of your $fpath
  confidant completions fish > ~/.config/fish/completions/confidant.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  confidant man | man -l -                        read it
  confidant man ~/.local/share/man/man1           a page for every command: man confidant-serve")]
pub(super) struct ManArgs {
    /// The folder for a page of every command; made if it is not there [default: print the page of confidant]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints what a shell needs to complete our commands.
pub(super) fn completions(args: &CompletionsArgs, mut command: Command) -> anyhow::Result<Outcome> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::text(&String::from_utf8(script)?)?;
    Ok(Outcome::Done)
}

/// Prints the manual page of the program, or writes those of all its commands.
pub(super) fn man(args: &ManArgs, command: Command) -> anyhow::Result<Outcome> {
    let pages = pages(command)?;
    let Some(folder) = &args.folder else {
        if let Some((_, page)) = pages.first() {
            output::text(page)?;
        }
        return Ok(Outcome::Done);
    };
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error.kind()))?;
    for (name, page) in &pages {
        let file = folder.join(name);
        fs::write(&file, page).map_err(|error| unwritable(&file, error.kind()))?;
    }
    note(&format!("{} in {}", counted(pages.len() as u64, "manual page"), folder.display()));
    Ok(Outcome::Done)
}

/// The pages by the names of their files, the program's own first.
fn pages(command: Command) -> anyhow::Result<Vec<(String, String)>> {
    let mut command = command.disable_help_subcommand(true);
    // Gives every command its whole name and the options that all have.
    command.build();
    let source = format!("Confidant {}", command.get_version().unwrap_or_default());
    let mut left = vec![command];
    let mut pages = Vec::new();
    while let Some(command) = left.pop() {
        let inner: Vec<Command> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).cloned().collect();
        left.extend(inner.into_iter().rev());
        let man = Man::new(command).source(&source).manual("Confidant Manual");
        let mut page = Vec::new();
        man.render(&mut page)?;
        // Examples stand on lines of their own: words that are moved apart to fill them would be wrong to paste.
        let page = String::from_utf8(page)?.replace(".SH EXTRA\n", ".SH NOTES\n.na\n.nh\n");
        pages.push((man.get_filename(), page));
    }
    Ok(pages)
}

fn unwritable(path: &Path, kind: ErrorKind) -> anyhow::Error {
    anyhow!("{} cannot be written ({kind}); hint: check its folder and permissions", path.display())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page_with_its_help() {
        let pages = pages(Cli::command()).unwrap();
        let page = |name: &str| pages.iter().find(|(file, _)| file == name).map(|(_, page)| page.as_str());
        assert_eq!(pages[0].0, "confidant.1");
        let shown = Cli::command().get_subcommands().filter(|one| !one.is_hide_set()).count();
        let direct = pages.iter().filter(|(name, _)| name.matches('-').count() == 1).count();
        assert_eq!(direct, shown);
        let erase = page("confidant-person-erase.1").unwrap();
        assert!(erase.contains("\\-\\-dry\\-run") && erase.contains("\\-\\-data\\-dir"), "{erase}");
        assert!(
            pages[0].1.contains("Confidant 0.") && pages[0].1.contains("confidant serve"),
            "{}",
            pages[0].1
        );
        assert!(pages[0].1.contains(".SH NOTES\n.na\n.nh\nExamples:\n"), "{}", pages[0].1);
        assert!(!pages.iter().any(|(name, _)| name.contains("help")));
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "confidant", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["serve", "erase", "dry-run", "data-dir"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}

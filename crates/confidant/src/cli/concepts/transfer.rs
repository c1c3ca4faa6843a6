//! Vocabularies in and out.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use confidant_concepts::skos::{self, Defaults, Form};
use confidant_concepts::{Graph as _, SqliteGraph};
use confidant_memory::regular;
use indicatif::{ProgressBar, ProgressStyle};

use super::super::shared::{JsonArg, Outcome};
use crate::output::{self, counted, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Reads labels, definitions, relations and sources of skos:Concept, and skips the rest. Every text is checked for
personal data first. If interrupted, run it again; it resumes. Importing the same file twice changes nothing.

Examples:
  confidant concepts import taxes.ttl
  confidant concepts import eurovoc.rdf --domain LAW --jurisdiction EU")]
pub(in crate::cli) struct ImportArgs {
    /// The vocabulary file
    file: PathBuf,
    /// The file's format [default: by its name]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// The subject area, for concepts that do not name one
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// The jurisdiction, for concepts that do not name one
    #[arg(long, value_name = "CODE")]
    jurisdiction: Option<String>,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    /// The file to write; - is stdout
    file: PathBuf,
    /// The format to write [default: by the file's name, else Turtle]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Turtle or N-Triples
    Turtle,
    /// RDF/XML
    Rdfxml,
}

impl From<Format> for Form {
    fn from(format: Format) -> Self {
        match format {
            Format::Turtle => Self::Turtle,
            Format::Rdfxml => Self::RdfXml,
        }
    }
}

fn form(format: Option<Format>, file: &Path) -> Option<Form> {
    let named = || file.file_name().and_then(|name| Form::of_name(&name.to_string_lossy()));
    format.map(Form::from).or_else(named)
}

pub(super) async fn import(args: &ImportArgs, graph: &SqliteGraph) -> anyhow::Result<Outcome> {
    let path = args.file.clone();
    let form = form(args.format, &path).ok_or_else(|| {
        anyhow!("the file's name does not show its format; hint: give --format turtle or rdfxml")
    })?;
    let unread = |error: io::Error| {
        anyhow!("{} cannot be read ({}); hint: check the path", path.display(), regular::why(&error))
    };
    let file = regular::open_linked(&path).map_err(unread)?;
    let size = file.metadata().map_err(unread)?.len();
    let bar = bar(size);
    let defaults = Defaults { domain: args.domain.clone(), jurisdiction: args.jurisdiction.clone() };
    let (graph, shown, opened) = (graph.clone(), bar.clone(), path.clone());
    let done = tokio::task::spawn_blocking(move || -> anyhow::Result<skos::Imported> {
        shown.set_message("reading");
        let digest =
            digest(&opened, &defaults).with_context(|| format!("{} cannot be read", opened.display()))?;
        let progress = |statements: u64, bytes: u64| {
            shown.set_position(bytes);
            shown.set_message(counted(statements, "statement"));
        };
        Ok(skos::import(&graph, form, BufReader::new(file), &digest, &defaults, &progress)?)
    })
    .await;
    bar.finish_and_clear();
    let done = done.context("the import was interrupted; hint: run it again, it resumes")??;
    if args.output.json {
        output::json(&done)?;
    } else if done.known {
        note("this file was imported before; nothing was changed");
    } else {
        output::line(&format!(
            "{} from {}",
            counted(done.concepts, "concept"),
            counted(done.statements, "statement")
        ))?;
        if done.resumed_at > 0 {
            note(&format!("resumed after {}", counted(done.resumed_at, "statement")));
        }
        if done.passed_over > 0 {
            note(&format!("{} skipped: not part of a concept", counted(done.passed_over, "statement")));
        }
        for (reason, count) in &done.refused {
            note(&format!("refused {}: {reason}", counted(*count, "statement")));
        }
    }
    Ok(if done.concepts == 0 && !done.known { Outcome::NothingFound } else { Outcome::Done })
}

/// What a file is known by: its content, and what is taken of it.
fn digest(path: &Path, defaults: &Defaults) -> io::Result<Vec<u8>> {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(format!("{:?} {:?}\n", defaults.domain, defaults.jurisdiction).as_bytes());
    let mut file = regular::open_linked(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(context.finish().as_ref().to_vec()),
            read => context.update(&buffer[..read]),
        }
    }
}

pub(super) async fn export(args: &ExportArgs, graph: &SqliteGraph) -> anyhow::Result<Outcome> {
    let form = form(args.format, &args.file).unwrap_or(Form::Turtle);
    let total = graph.count().await?;
    let bar = bar(total);
    let (graph, shown, to) = (graph.clone(), bar.clone(), args.file.clone());
    let done = tokio::task::spawn_blocking(move || -> anyhow::Result<skos::Exported> {
        let progress = |concepts: u64| shown.set_position(concepts);
        let output: Box<dyn Write> = if to.as_os_str() == "-" {
            Box::new(BufWriter::new(io::stdout()))
        } else {
            let file = File::create_new(&to).map_err(|error| {
                anyhow!("{} cannot be created ({}); hint: choose another name", to.display(), error.kind())
            })?;
            Box::new(BufWriter::new(file))
        };
        Ok(skos::export(&graph, form, output, &progress)?)
    })
    .await;
    bar.finish_and_clear();
    let done = done.context("the export was interrupted; hint: run it again")??;
    let told = format!("{} in {}", counted(done.concepts, "concept"), counted(done.statements, "statement"));
    match (args.output.json, args.file.as_os_str() == "-") {
        // What was exported is the data then.
        (_, true) => note(&told),
        (true, false) => output::json(&done)?,
        (false, false) => output::line(&told)?,
    }
    Ok(if done.concepts == 0 { Outcome::NothingFound } else { Outcome::Done })
}

/// A bar, on a terminal only.
fn bar(length: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}  {elapsed}");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

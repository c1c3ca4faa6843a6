//! `confidant concepts`: the shared graph of public concepts, what waits to enter it, and what is in scope.

mod transfer;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use confidant_concepts::{Graph as _, Look, Node, SqliteGraph};
use confidant_engine::concepts::{Candidate, ScopeView};
use confidant_engine::{Actor, ChannelName, PlaceId, Scope, Session, ThreadId, UserId};

use super::shared::{JsonArg, Outcome, TenantArg, with_engine};
use crate::config::Loaded;
use crate::damage::Part;
use crate::open::{Opened, Purpose};
use crate::output::{self, clean, counted, moment, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant concepts import eurovoc.rdf --domain LAW --jurisdiction EU
  confidant concepts find value added tax
  confidant concepts list --candidates
  confidant concepts approve TAX:IE:VRT --label \"Vehicle Registration Tax\"
  confidant concepts scope discord_conv:111
  confidant concepts export concepts.ttl")]
pub(super) enum ConceptsCommand {
    /// Read a SKOS vocabulary (Turtle, N-Triples or RDF/XML) into the shared graph
    Import(transfer::ImportArgs),
    /// Write the shared graph as a SKOS vocabulary
    Export(transfer::ExportArgs),
    /// List concepts, or the candidates that conversations captured
    List(ListArgs),
    /// Find concepts by words in their labels
    Find(FindArgs),
    /// Show one concept
    Show(ShowArgs),
    /// Add a candidate to the shared graph
    Approve(ApproveArgs),
    /// Show the concepts in scope of a conversation
    Scope(ConversationArgs),
    /// Rebuild the concepts in scope of a conversation from its capture log
    Rebuild(ConversationArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// List candidates that wait for approval instead, with their number of captures and sessions
    #[arg(long)]
    candidates: bool,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Start after this id
    #[arg(long, value_name = "ID", conflicts_with = "candidates")]
    after: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct FindArgs {
    /// Words of a label, in any language
    #[arg(required = true)]
    words: Vec<String>,
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The concept's id, such as TAX:IE:VAT
    id: String,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// The candidate's id, as `concepts list --candidates` prints it
    id: String,
    /// Its label in the shared graph
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Another label; may be repeated
    #[arg(long = "alt-label", value_name = "LABEL")]
    alt_labels: Vec<String>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ConversationArgs {
    /// A session id, or an application's own conversation id (then add --user)
    conversation: String,
    /// The person in the conversation
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) async fn run(command: ConceptsCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    if !loaded.config.concepts.enabled {
        return Err(anyhow!(
            "concepts are switched off; hint: set concepts.enabled = true in confidant.toml"
        ));
    }
    let makes = matches!(command, ConceptsCommand::Import(_));
    let purpose = if makes { Purpose::SetUp } else { Purpose::LookAtData };
    with_engine(loaded, purpose, async |opened| match command {
        ConceptsCommand::Import(args) => transfer::import(&args, graph(opened)?).await,
        ConceptsCommand::Export(args) => transfer::export(&args, graph(opened)?).await,
        ConceptsCommand::List(args) if args.candidates => candidates(&args, opened).await,
        ConceptsCommand::List(args) => list(&args, graph(opened)?),
        ConceptsCommand::Find(args) => find(&args, graph(opened)?).await,
        ConceptsCommand::Show(args) => show(&args, graph(opened)?).await,
        ConceptsCommand::Approve(args) => approve(&args, opened).await,
        ConceptsCommand::Scope(args) => scope(&args, opened).await,
        ConceptsCommand::Rebuild(args) => rebuild(&args, opened).await,
    })
    .await
}

/// The embedded graph, which alone can be listed, imported into and exported.
fn graph(opened: &Opened) -> anyhow::Result<&SqliteGraph> {
    opened.require(Part::Concepts)?;
    opened.graph.as_ref().ok_or_else(|| {
        anyhow!(
            "concepts.graph_url names a graph server; hint: use that server's own tools, or set it to sqlite:"
        )
    })
}

fn list(args: &ListArgs, graph: &SqliteGraph) -> anyhow::Result<Outcome> {
    let page = graph.list(args.after.as_deref(), LANGUAGE, args.limit)?;
    told(&page.concepts, args.output.json.then_some(&page))?;
    note(&format!("{} of {}", page.concepts.len(), counted(page.total, "concept")));
    Ok(if page.concepts.is_empty() { Outcome::NothingFound } else { Outcome::Done })
}

async fn find(args: &FindArgs, graph: &SqliteGraph) -> anyhow::Result<Outcome> {
    let found = graph.find(Look::Words(&args.words.join(" ")), LANGUAGE, args.limit).await?;
    told(&found, args.output.json.then_some(&found))?;
    if found.is_empty() {
        note("no concept matches");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

async fn show(args: &ShowArgs, graph: &SqliteGraph) -> anyhow::Result<Outcome> {
    let found = graph.nodes(std::slice::from_ref(&args.id), LANGUAGE).await?.into_iter().flatten().next();
    let Some(node) = found else {
        note("no such concept; `confidant concepts find` searches them by label");
        return Ok(Outcome::NothingFound);
    };
    if args.output.json {
        output::json(&node)?;
        return Ok(Outcome::Done);
    }
    let field = |name: &str, text: &str| match text {
        "" => Ok(()),
        text => output::line(&format!("{name}\t{}", clean(text))),
    };
    field("id", &node.id)?;
    field("label", &node.pref_label)?;
    field("also", &node.alt_labels.join(", "))?;
    field("definition", node.definition.as_deref().unwrap_or_default())?;
    field("jurisdiction", node.jurisdiction.as_deref().unwrap_or_default())?;
    field("broader", &node.broader.join(", "))?;
    field("narrower", &node.narrower.join(", "))?;
    field("related", &node.related.join(", "))?;
    field("sources", &node.source_urls.join(", "))?;
    Ok(Outcome::Done)
}

fn told<T: serde::Serialize>(nodes: &[Node], json: Option<&T>) -> anyhow::Result<()> {
    if let Some(value) = json {
        return output::json(value);
    }
    for node in nodes {
        output::line(&format!("{}\t{}", clean(&node.id), clean(&node.pref_label)))?;
    }
    Ok(())
}

async fn candidates(args: &ListArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let mut candidates = administrator.candidates(&args.tenant.id()?).await?;
    candidates.truncate(args.limit);
    if args.output.json {
        output::json(&candidates)?;
    } else {
        for candidate in &candidates {
            output::line(&described(candidate))?;
        }
    }
    if candidates.is_empty() {
        note("no candidates wait for approval");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

fn described(candidate: &Candidate) -> String {
    let Candidate { concept, said, captures, sessions, last, .. } = candidate;
    let said = if *said { "\tneeds another label: this one is a person's own words" } else { "" };
    let uses = format!("{} by {}", counted(*captures, "capture"), counted(sessions.len() as u64, "session"));
    format!("{}\t{}\t{uses}\t{}{said}", clean(&concept.id), clean(&concept.pref_label), moment(*last))
}

async fn approve(args: &ApproveArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let tenant = args.tenant.id()?;
    let approved =
        administrator.approve_concept(&tenant, &args.id, args.label.as_deref(), &args.alt_labels).await?;
    let Some(approved) = approved else {
        note("no such candidate; `confidant concepts list --candidates` lists them");
        return Ok(Outcome::NothingFound);
    };
    if args.output.json {
        output::json(&approved)?;
    } else {
        output::line(&format!("{}\t{}", approved.id, approved.pref_label))?;
    }
    Ok(Outcome::Done)
}

/// A person's part in a conversation.
fn session(args: &ConversationArgs, opened: &Opened) -> anyhow::Result<Session> {
    let tenant = args.tenant.id()?;
    let scope = match (Scope::parse(tenant.clone(), &args.conversation), &args.user) {
        (Ok(scope), None) => scope,
        (_, Some(user)) => Scope::place(
            tenant,
            ChannelName::new("chat")?,
            PlaceId::new(&args.conversation)?,
            ThreadId::new("main")?,
            UserId::new(user)?,
        ),
        (Err(_), None) => {
            return Err(anyhow!(
                "this is not a session id; hint: for a conversation of POST /api/chat, name the person with \
                 --user"
            ));
        }
    };
    Ok(opened.engine.session(scope, Actor::cli()))
}

async fn scope(args: &ConversationArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let view = session(args, opened)?.concepts_in_scope().await?;
    viewed(args, &view)
}

async fn rebuild(args: &ConversationArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let session = session(args, opened)?;
    session.rebuild_concepts().await?;
    viewed(args, &session.concepts_in_scope().await?)
}

fn viewed(args: &ConversationArgs, view: &ScopeView) -> anyhow::Result<Outcome> {
    if args.output.json {
        output::json(view)?;
    } else {
        for one in &view.concepts {
            let pinned = if one.pinned { "\tpinned" } else { "" };
            let uses = counted(one.uses, "use");
            output::line(&format!("{}\t{}\t{uses}{pinned}", clean(&one.id), clean(&one.label)))?;
        }
    }
    if view.concepts.is_empty() {
        note("no concepts are in scope");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

/// What labels are shown in.
const LANGUAGE: &str = "en";

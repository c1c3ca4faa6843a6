//! Where the server of a test keeps chats.

use std::path::Path;

use confidant_chat_format::DeviceId;
use confidant_chats::store::postgres;
use confidant_chats::store::sqlite::SqliteChats;
use confidant_postgres::{Link, PostgresAddress};

use crate::rows::Kept;

/// Where a server keeps chats; can be opened again and again.
pub(crate) enum Place {
    Folder(tempfile::TempDir),
    Schema(Box<Link>),
}

impl Place {
    /// A folder of its own, in memory where that can be had: these tests kill devices, not machines.
    pub(crate) fn sqlite() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir());
        Self::Folder(folder.unwrap())
    }

    /// A schema of its own on the server that a variable names.
    ///
    /// Without such a server nothing is tested, which is an error where all must be.
    pub(crate) fn postgres_at(variable: &str) -> Option<Self> {
        #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
        let (url, required) = (std::env::var(variable), std::env::var_os("REQUIRE_ALL_STORES"));
        let Ok(url) = url else {
            assert!(required.is_none_or(|value| value != "1"), "{variable} is not set");
            #[expect(clippy::print_stderr, reason = "a skip is never silent")]
            {
                eprintln!("skipped: {variable} is not set; hint: run it through tests/postgres_servers.py");
            }
            return None;
        };
        let schema = format!("test_{}_client", DeviceId::random().as_str());
        let address = PostgresAddress::parse(&url).unwrap().waited_for(std::time::Duration::from_secs(60));
        Some(Self::Schema(Box::new(Link { address, ca: None, schema, connections: 4 })))
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder.path()),
            Self::Schema(_) => None,
        }
    }

    /// The schema, if it is one.
    pub(crate) fn link(&self) -> Option<&Link> {
        match self {
            Self::Folder(_) => None,
            Self::Schema(link) => Some(link),
        }
    }

    pub(crate) async fn open(&self) -> Kept {
        match self {
            Self::Folder(folder) => Kept::of(SqliteChats::open(folder.path()).unwrap()),
            Self::Schema(link) => Kept::of(postgres::open(link).await.unwrap()),
        }
    }
}

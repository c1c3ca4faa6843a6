//! What stands in for PostgreSQL where it is not built in: nobody has an address, so nothing here can be called.

use confidant_postgres::Link;

use super::Result;
use super::sqlite::SqliteChats;

/// Opens the chats of a database, which this program was built without.
#[expect(clippy::unused_async, reason = "with the feature it waits")]
pub async fn open(link: &Link) -> Result<SqliteChats> {
    link.address.never()
}

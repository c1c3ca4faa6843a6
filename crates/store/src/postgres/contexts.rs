//! The table `conversation_context`, and the capture log beside it. A write is one function call, bound to its tenant.

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::data::{kid, tag};
use super::lanes::{Written, get, many, odd};
use super::pool::For;
use crate::clock::Millis;
use crate::contexts::{
    CaptureRow, CapturesOf, ContextRow, ContextUpkeep, Contexts, ConversationName, Put, PutContext,
    WholeContext,
};
use crate::{PendingAudit, Result};

#[async_trait]
impl Contexts for PostgresStore {
    async fn context(&self, name: ConversationName) -> Result<Option<ContextRow>> {
        let sql =
            "SELECT found_version, found_kid, content, used_at, found_archived_at FROM load_context($1, $2)";
        let (tenant, conversation) = bytes(name);
        let rows = self.pool.query(For::Reading, sql, &[&tenant, &conversation]).await?;
        rows.first().map(context).transpose()
    }

    async fn put_context(&self, put: PutContext) -> Result<Put> {
        let sql = "SELECT put_context($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
        let (tenant, conversation) = bytes(put.name);
        let (kid, expected) = (put.kid.as_bytes().to_vec(), put.expected.cast_signed());
        let (used_at, archived_at) = (put.updated_at.0, put.archived_at.map(|at| at.0));
        let capture = put.capture.as_ref();
        let of_capture = |tag: fn(&CaptureRow) -> Tag| capture.map(|row| tag(row).as_bytes().to_vec());
        let (request, scope, person) =
            (of_capture(|row| row.request), of_capture(|row| row.scope), of_capture(|row| row.person));
        let (at, sealed) = (capture.map(|row| row.at.0), capture.map(|row| row.sealed.as_bytes()));
        let forget = put.forget.map(|scope| scope.as_bytes().to_vec());
        let args: [&(dyn ToSql + Sync); 13] = [
            &tenant,
            &conversation,
            &kid,
            &expected,
            &put.content,
            &used_at,
            &archived_at,
            &request,
            &scope,
            &person,
            &at,
            &sealed,
            &forget,
        ];
        let said = |rows: &[Row]| rows.first().and_then(|row| row.try_get::<_, String>(0).ok());
        let writes = |rows: &[Row]| said(rows).is_some_and(|said| said != "conflict" && said != "known");
        let (Written::Done(rows, _) | Written::Untouched(rows)) =
            self.lanes.with_lane(sql, &args, &put.audit, writes).await?;
        match said(&rows).as_deref() {
            Some("done" | "again") => Ok(Put::Done),
            Some("conflict") => Ok(Put::Conflict),
            Some("known") => Ok(Put::Known),
            _ => Err(odd()),
        }
    }

    async fn captures(&self, of: CapturesOf) -> Result<Vec<CaptureRow>> {
        let rows = match of {
            CapturesOf::Conversation(name) => {
                let sql = "SELECT tenant_id, conversation_id, request, scope_tag, person_tag, at, sealed
                           FROM captures_of_conversation($1, $2)";
                let (tenant, conversation) = bytes(name);
                self.pool.query(For::Reading, sql, &[&tenant, &conversation]).await?
            }
            CapturesOf::Tenant(tenant) => {
                let sql = "SELECT tenant_id, conversation_id, request, scope_tag, person_tag, at, sealed
                           FROM captures_of_tenant($1)";
                self.pool.query(For::Reading, sql, &[&tenant.as_bytes().to_vec()]).await?
            }
            CapturesOf::SessionOf { tenant, scope } => {
                let sql = "SELECT tenant_id, conversation_id, request, scope_tag, person_tag, at, sealed
                           FROM captures_of_session($1, $2)";
                let (tenant, scope) = (tenant.as_bytes().to_vec(), scope.as_bytes().to_vec());
                self.pool.query(For::Reading, sql, &[&tenant, &scope]).await?
            }
            CapturesOf::Session(scope) => {
                let sql = "SELECT tenant_id, conversation_id, request, scope_tag, person_tag, at, sealed
                           FROM concept_captures WHERE scope_tag = $1 ORDER BY at, request";
                self.pool.query(For::Reading, sql, &[&scope.as_bytes().to_vec()]).await?
            }
        };
        rows.iter().map(capture).collect()
    }

    async fn erase_context(&self, name: ConversationName, audit: Vec<PendingAudit>) -> Result<u64> {
        let sql = "SELECT erase_context($1, $2, $3, $4, $5, $6, $7, $8)";
        let (tenant, conversation) = bytes(name);
        let (Written::Done(rows, _) | Written::Untouched(rows)) =
            self.lanes.with_lane(sql, &[&tenant, &conversation], &audit, |_| true).await?;
        Ok(get::<i64>(rows.first().ok_or_else(odd)?, 0)?.cast_unsigned())
    }

    async fn idle_contexts(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>> {
        let sql = "SELECT as_tag(tenant_id), as_tag(conversation_id) FROM conversation_context
                   WHERE updated_at < as_time($1) AND archived_at IS NULL ORDER BY updated_at LIMIT $2";
        let rows = self.pool.query(For::Reading, sql, &[&before.0, &many(limit)]).await?;
        rows.iter().map(name).collect()
    }

    async fn adopt_context(
        &self,
        name: ConversationName,
        whole: WholeContext,
        _expires_at: Option<Millis>,
    ) -> Result<()> {
        let sql = "SELECT adopt_context($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let (tenant, conversation) = bytes(name);
        let ContextRow { version, kid, content, updated_at, archived_at } = &whole.row;
        let (version, kid) = (version.cast_signed(), kid.as_bytes().to_vec());
        let archived_at = archived_at.map(|at| at.0);
        let each = |tag: fn(&CaptureRow) -> Tag| -> Vec<Vec<u8>> {
            whole.captures.iter().map(|row| tag(row).as_bytes().to_vec()).collect()
        };
        let (requests, scopes, persons) =
            (each(|row| row.request), each(|row| row.scope), each(|row| row.person));
        let moments: Vec<i64> = whole.captures.iter().map(|row| row.at.0).collect();
        let contents: Vec<&[u8]> = whole.captures.iter().map(|row| row.sealed.as_bytes()).collect();
        let args: [&(dyn ToSql + Sync); 12] = [
            &tenant,
            &conversation,
            content,
            &updated_at.0,
            &version,
            &kid,
            &archived_at,
            &requests,
            &scopes,
            &persons,
            &moments,
            &contents,
        ];
        self.pool.query(For::Writing, sql, &args).await.map(drop)
    }
}

impl ContextUpkeep for PostgresStore {}

fn bytes(name: ConversationName) -> (Vec<u8>, Vec<u8>) {
    (name.tenant.as_bytes().to_vec(), name.conversation.as_bytes().to_vec())
}

fn name(row: &Row) -> Result<ConversationName> {
    Ok(ConversationName { tenant: tag(row, 0)?, conversation: tag(row, 1)? })
}

fn context(row: &Row) -> Result<ContextRow> {
    Ok(ContextRow {
        version: get::<i64>(row, 0)?.cast_unsigned(),
        kid: kid(row, 1)?,
        content: get(row, 2)?,
        updated_at: Millis(get(row, 3)?),
        archived_at: get::<Option<i64>>(row, 4)?.map(Millis),
    })
}

fn capture(row: &Row) -> Result<CaptureRow> {
    Ok(CaptureRow {
        name: name(row)?,
        request: tag(row, 2)?,
        scope: tag(row, 3)?,
        person: tag(row, 4)?,
        at: Millis(get(row, 5)?),
        sealed: Sealed::from_bytes(get(row, 6)?),
    })
}

//! Sessions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::lanes::{Lanes, Written, get, many, odd};
use super::leases::{self, Keeper};
use super::pool::{For, Pool};
use crate::clock::Millis;
use crate::leases::Leases;
use crate::random_id;
use crate::{
    Append, Appended, Find, Instance, Known, Listed, Loaded, Logs, Names, PendingAudit, Result, Upkeep,
};

/// The data in a database.
#[derive(Debug)]
pub struct PostgresStore {
    pub(super) pool: Arc<Pool>,
    pub(super) leases: Arc<Leases>,
    pub(super) lanes: Lanes,
}

impl PostgresStore {
    pub(super) async fn open(pool: Arc<Pool>, keep_audit: Option<Duration>) -> Result<Self> {
        let leases = Leases::new(Arc::new(Keeper::new(Arc::clone(&pool))));
        let me = Instance(random_id());
        leases.keep_writer(me).await?;
        let lanes = Lanes::new(Arc::clone(&pool), Arc::clone(&leases), me, keep_audit);
        Ok(Self { pool, leases, lanes })
    }
}

/// For whom a statement works: the tenant, if it is known, and the system if not.
fn works_for(known: Option<Known<'_>>) -> String {
    known.map_or_else(|| "*".to_owned(), |known| known.tenant.to_string())
}

#[async_trait]
impl Logs for PostgresStore {
    async fn load(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<Loaded>> {
        let sql = "SELECT version, kid, expires_at, owner, covers, snapshot, seqs, entries FROM load_session($1, $2)";
        let (scope, tenant) = (scope.as_bytes().to_vec(), works_for(known));
        let rows = self.pool.query(For::Reading, sql, &[&scope, &tenant]).await?;
        rows.first().map(loaded).transpose()
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let sql = "SELECT append_session($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
        let names = append.names;
        let tag = |tag: Tag| tag.as_bytes().to_vec();
        let (scope, person, tenant, kid) =
            (tag(names.scope), tag(names.person), tag(names.tenant), append.kid.as_bytes().to_vec());
        let entries: Vec<&[u8]> = append.entries.iter().map(Sealed::as_bytes).collect();
        let (covers, snapshot) = match &append.snapshot {
            Some((covers, sealed)) => (Some(covers.cast_signed()), Some(sealed.as_bytes())),
            None => (None, None),
        };
        // Tells this write from any other: the tag of the last thing in it.
        let last = append.snapshot.as_ref().map(|(_, sealed)| sealed).or(append.entries.last());
        let stamp = last.and_then(Sealed::tag).unwrap_or_default().to_vec();
        let (expected, expires_at) = (append.expected.cast_signed(), append.expires_at.map(|at| at.0));
        let owner = append.owner.map(|owner| owner.to_bytes().to_vec());
        let args: [&(dyn ToSql + Sync); 11] = [
            &scope,
            &person,
            &tenant,
            &kid,
            &expected,
            &entries,
            &covers,
            &snapshot,
            &expires_at,
            &owner,
            &stamp,
        ];
        let said = |rows: &[Row]| rows.first().and_then(|row| row.try_get::<_, String>(0).ok());
        let writes = |rows: &[Row]| said(rows).is_some_and(|said| said != "conflict");
        let (Written::Done(rows, _) | Written::Untouched(rows)) =
            self.lanes.with_lane(sql, &args, &append.audit, writes).await?;
        match said(&rows).as_deref() {
            Some("done" | "again") => Ok(Appended::Done),
            Some("conflict") => Ok(Appended::Conflict),
            _ => Err(odd()),
        }
    }

    async fn erase(&self, scope: Tag, known: Option<Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64> {
        let sql = "SELECT erase_session($1, $2, $3, $4, $5, $6, $7, $8)";
        let (scope, tenant) = (scope.as_bytes().to_vec(), works_for(known));
        let (Written::Done(rows, _) | Written::Untouched(rows)) =
            self.lanes.with_lane(sql, &[&scope, &tenant], &audit, |_| true).await?;
        Ok(get::<i64>(rows.first().ok_or_else(odd)?, 0)?.cast_unsigned())
    }

    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>> {
        let after = after.map_or_else(Vec::new, |tag| tag.as_bytes().to_vec());
        let limit = many(limit);
        let rows = match find {
            Find::All => {
                let sql =
                    "SELECT scope_tag, person_tag, tenant_tag, kid, version, expires_at, owner FROM sessions
                           WHERE scope_tag > $1 ORDER BY scope_tag LIMIT $2";
                self.pool.query(For::Reading, sql, &[&after, &limit]).await?
            }
            Find::Tenant(tenant) => {
                let sql = "SELECT scope_tag, person_tag, tenant_tag, kid, version, expires_at, owner
                           FROM sessions_of_tenant($1, $2, $3)";
                let tenant = tenant.as_bytes().to_vec();
                self.pool.query(For::Reading, sql, &[&tenant, &after, &limit]).await?
            }
            Find::Person { tenant, person } => {
                let sql = "SELECT scope_tag, person_tag, tenant_tag, kid, version, expires_at, owner
                           FROM sessions_of_person($1, $2, $3, $4)";
                let (tenant, person) = (tenant.as_bytes().to_vec(), person.as_bytes().to_vec());
                self.pool.query(For::Reading, sql, &[&tenant, &person, &after, &limit]).await?
            }
        };
        rows.iter().map(listed).collect()
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let sql = "SELECT scope_tag FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2";
        let rows = self.pool.query(For::Reading, sql, &[&now.0, &many(limit)]).await?;
        rows.iter().map(|row| tag(row, 0)).collect()
    }
}

#[async_trait]
impl Upkeep for PostgresStore {
    async fn tidy(&self) -> Result<()> {
        let sql = "DELETE FROM instances WHERE alive_until < now() - interval '7 days'";
        self.pool.query(For::Writing, sql, &[]).await.map(drop)
    }

    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        self.pool.check().await
    }

    fn writable(&self) -> Result<()> {
        self.leases.writable()
    }
}

pub(super) fn tag(row: &Row, index: usize) -> Result<Tag> {
    let bytes: Vec<u8> = get(row, index)?;
    bytes.try_into().map(Tag::from_bytes).map_err(|_| odd())
}

/// A key id; one that is none belongs to no key.
pub(super) fn kid(row: &Row, index: usize) -> Result<Kid> {
    let bytes: Vec<u8> = get(row, index)?;
    Ok(Kid::from_bytes(bytes.try_into().unwrap_or_default()))
}

fn loaded(row: &Row) -> Result<Loaded> {
    let (covers, snapshot): (Option<i64>, Option<Vec<u8>>) = (get(row, 4)?, get(row, 5)?);
    let (seqs, entries): (Vec<i64>, Vec<Vec<u8>>) = (get(row, 6)?, get(row, 7)?);
    let owner: Option<Vec<u8>> = get(row, 3)?;
    Ok(Loaded {
        version: get::<i64>(row, 0)?.cast_unsigned(),
        kid: kid(row, 1)?,
        expires_at: get::<Option<i64>>(row, 2)?.map(Millis),
        owner: owner.and_then(leases::owner),
        snapshot: snapshot.map(|sealed| (covers.unwrap_or(0).cast_unsigned(), Sealed::from_bytes(sealed))),
        entries: seqs
            .into_iter()
            .map(i64::cast_unsigned)
            .zip(entries.into_iter().map(Sealed::from_bytes))
            .collect(),
    })
}

fn listed(row: &Row) -> Result<Listed> {
    let owner: Option<Vec<u8>> = get(row, 6)?;
    Ok(Listed {
        names: Names { scope: tag(row, 0)?, person: tag(row, 1)?, tenant: tag(row, 2)? },
        kid: kid(row, 3)?,
        version: get::<i64>(row, 4)?.cast_unsigned(),
        expires_at: get::<Option<i64>>(row, 5)?.map(Millis),
        owner: owner.and_then(leases::owner),
    })
}

//! Sessions, tokens, and who is alive.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::lanes::{Lanes, Written, get, many, odd};
use super::pool::{For, Pool};
use crate::audit::Lane;
use crate::clock::Millis;
use crate::engine::random_id;
use crate::error::StoreError;
use crate::store::leases::{LEASE, LeaseKeeper, Leases, Work};
use crate::store::{
    Append, Appended, AuditHead, AuditLane, Find, Instance, Known, Listed, Loaded, Names, PendingAudit,
    Result, Store, TokenRow, TokenSelector,
};

/// The data in a database.
#[derive(Debug)]
pub(crate) struct PostgresStore {
    pub(super) pool: Arc<Pool>,
    leases: Arc<Leases>,
    pub(super) lanes: Lanes,
}

impl PostgresStore {
    pub(super) async fn open(pool: Arc<Pool>) -> Result<Self> {
        let leases = Leases::new(Arc::new(Keeper(Arc::clone(&pool))));
        let me = Instance(random_id());
        leases.keep_writer(me).await?;
        let lanes = Lanes::new(Arc::clone(&pool), Arc::clone(&leases), me);
        Ok(Self { pool, leases, lanes })
    }
}

/// For whom a statement works: the tenant, if it is known, and the system if not.
fn works_for(known: Option<Known<'_>>) -> String {
    known.map_or_else(|| "*".to_owned(), |known| known.tenant.to_string())
}

#[async_trait]
impl Store for PostgresStore {
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
        let owner = append.owner.map(|owner| owner.0.to_vec());
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

    async fn orphans(&self) -> Result<Vec<(Tag, Instance)>> {
        let sql = "SELECT scope_tag, owner FROM sessions WHERE owner IS NOT NULL ORDER BY scope_tag";
        let rows = self.pool.query(For::Reading, sql, &[]).await?;
        let open = rows.iter().map(|row| Ok((tag(row, 0)?, instance(get(row, 1)?).ok_or_else(odd)?)));
        let open = open.collect::<Result<Vec<_>>>()?;
        let owners: HashSet<Instance> = open.iter().map(|(_, owner)| *owner).collect();
        let alive = self.leases.alive(&owners.into_iter().collect::<Vec<_>>()).await?;
        Ok(open.into_iter().filter(|(_, owner)| !alive.contains(owner)).collect())
    }

    async fn claim(&self, scope: Tag, from: Instance, to: Instance) -> Result<bool> {
        let sql = "UPDATE sessions SET owner = $3 WHERE scope_tag = $1 AND owner IN ($2, $3) RETURNING 1";
        let (scope, from, to) = (scope.as_bytes().to_vec(), from.0.to_vec(), to.0.to_vec());
        Ok(!self.pool.query(For::Writing, sql, &[&scope, &from, &to]).await?.is_empty())
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(self.leases.enlist(instance).await?))
    }

    async fn resign(&self, instance: Instance) -> Result<()> {
        let parting = async {
            self.lanes.release().await?;
            self.leases.end(instance).await
        };
        // Others find out by themselves if it must be: no reason to keep a process from ending.
        let parted = tokio::time::timeout(std::time::Duration::from_secs(3), parting).await;
        parted.unwrap_or_else(|_| Err(StoreError::Unreachable("timed out".to_owned())))
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        Ok(self.leases.alive(&[instance]).await?.contains(&instance))
    }

    async fn others_alive(&self, than: Instance) -> Result<bool> {
        self.leases.others_alive(than).await
    }

    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.lanes.record(&audit).await
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        self.lanes.all().await
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        self.lanes.adopt(lane, before, records).await
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        self.lanes.read(lane, after, limit).await
    }

    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        self.lanes.record(&audit).await?;
        let sql = "INSERT INTO tokens (id, hash, person_tag, sealed) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (id) DO UPDATE SET hash = excluded.hash RETURNING 1";
        let (hash, person) = (row.hash.to_vec(), row.person.map(|tag| tag.as_bytes().to_vec()));
        let args: [&(dyn ToSql + Sync); 4] = [&row.id, &hash, &person, &row.sealed.as_bytes()];
        self.pool.query(For::Writing, sql, &args).await.map(drop)
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        let sql = "SELECT id, hash, person_tag, sealed FROM tokens ORDER BY id";
        self.pool.query(For::Reading, sql, &[]).await?.iter().map(token).collect()
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        let sql = "SELECT id, hash, person_tag, sealed FROM tokens WHERE hash = $1";
        let rows = self.pool.query(For::Reading, sql, &[&hash.to_vec()]).await?;
        rows.first().map(token).transpose()
    }

    async fn remove_tokens(&self, which: TokenSelector, audit: Vec<PendingAudit>) -> Result<u64> {
        self.lanes.record(&audit).await?;
        let rows = match which {
            TokenSelector::Id(id) => {
                self.pool.query(For::Writing, "DELETE FROM tokens WHERE id = $1 RETURNING 1", &[&id]).await?
            }
            TokenSelector::Person(tag) => {
                let sql = "DELETE FROM tokens WHERE person_tag = $1 RETURNING 1";
                self.pool.query(For::Writing, sql, &[&tag.as_bytes().to_vec()]).await?
            }
        };
        Ok(rows.len() as u64)
    }

    async fn tidy(&self) -> Result<()> {
        let sql = "DELETE FROM instances WHERE alive_until < now() - interval '7 days'";
        self.pool.query(For::Writing, sql, &[]).await.map(drop)
    }

    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        check(&self.pool).await
    }

    fn writable(&self) -> Result<()> {
        self.leases.writable()
    }
}

/// Whether the database answers, and whether row-level security holds for us; says what it is.
pub(super) async fn check(pool: &Pool) -> Result<String> {
    let sql = "SELECT current_setting('server_version'), rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user";
    let rows = pool.query(For::Reading, sql, &[]).await?;
    let row = rows.first().ok_or_else(odd)?;
    let (version, bypasses): (String, bool) = (get(row, 0)?, get(row, 1)?);
    if bypasses {
        return Err(StoreError::Mismatch(
            "the database user is a superuser or bypasses row-level security, so that it protects nobody; hint: give Confidant a \
             role of its own, without SUPERUSER and BYPASSRLS, that owns its schema"
                .to_owned(),
        ));
    }
    Ok(format!("PostgreSQL {}", version.split_whitespace().next().unwrap_or_default()))
}

/// Leases as rows.
#[derive(Debug)]
struct Keeper(Arc<Pool>);

#[async_trait]
impl LeaseKeeper for Keeper {
    async fn renew(&self, leases: &[(Instance, Work)]) -> Result<()> {
        let sql = "INSERT INTO instances
                   SELECT id, answers, now() + $3 * interval '1 second' FROM unnest($1::bytea[], $2::boolean[]) AS i (id, answers) ORDER BY id
                   ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until RETURNING 1";
        let ids: Vec<Vec<u8>> = leases.iter().map(|(instance, _)| instance.0.to_vec()).collect();
        let answers: Vec<bool> = leases.iter().map(|(_, work)| *work == Work::Turns).collect();
        self.0.query(For::Writing, sql, &[&ids, &answers, &LEASE.as_secs_f64()]).await.map(drop)
    }

    async fn engines(&self) -> Result<Vec<Instance>> {
        let sql = "SELECT id FROM instances WHERE answers AND alive_until > now()";
        let rows = self.0.query(For::Reading, sql, &[]).await?;
        rows.iter().map(|row| instance(get(row, 0)?).ok_or_else(odd)).collect()
    }

    async fn end(&self, instance: Instance) -> Result<()> {
        let sql = "DELETE FROM instances WHERE id = $1";
        self.0.query(For::Writing, sql, &[&instance.0.to_vec()]).await.map(drop)
    }

    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        let sql = "SELECT id FROM instances WHERE id = ANY($1::bytea[]) AND alive_until > now()";
        let rows = self.0.query(For::Reading, sql, &[&ids(instances)]).await?;
        rows.iter().map(|row| instance(get(row, 0)?).ok_or_else(odd)).collect()
    }
}

fn ids(instances: &[Instance]) -> Vec<Vec<u8>> {
    instances.iter().map(|instance| instance.0.to_vec()).collect()
}

fn instance(id: Vec<u8>) -> Option<Instance> {
    id.try_into().ok().map(Instance)
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
        owner: owner.and_then(instance),
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
        owner: owner.and_then(instance),
    })
}

fn token(row: &Row) -> Result<TokenRow> {
    let (hash, person): (Vec<u8>, Option<Vec<u8>>) = (get(row, 1)?, get(row, 2)?);
    Ok(TokenRow {
        id: get(row, 0)?,
        hash: hash.try_into().map_err(|_| odd())?,
        person: person.and_then(|tag| tag.try_into().ok()).map(Tag::from_bytes),
        sealed: Sealed::from_bytes(get(row, 3)?),
    })
}

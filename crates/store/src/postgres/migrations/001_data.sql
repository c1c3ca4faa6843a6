-- Sessions, the audit log, tokens, and running processes.
--
-- Every row belongs to a tenant or to the system. `confidant.tenant` says for whom a connection works: a tenant's tag in hex,
-- '*' for the system, nothing at all for nobody. Row-level security holds for the tables' owner as well, so that a wrong
-- query of ours sees no more than a stranger's.

CREATE FUNCTION works_for(tenant bytea) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT current_setting('confidant.tenant', true) IN ('*', encode(tenant, 'hex')) $$;

CREATE FUNCTION works_for_the_system() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS
$$ SELECT current_setting('confidant.tenant', true) = '*' $$;

CREATE TABLE sessions (
    scope_tag  bytea PRIMARY KEY,
    person_tag bytea NOT NULL,
    tenant_tag bytea NOT NULL,
    kid        bytea NOT NULL,
    version    bigint NOT NULL,
    stamp      bytea NOT NULL,  -- the tag of the last thing written: tells a write that is made twice
    expires_at bigint,
    owner      bytea,           -- not indexed: it changes with every turn
    covers     bigint,          -- what the snapshot covers
    snapshot   bytea
) WITH (fillfactor = 80);
-- Ciphertext does not get smaller.
ALTER TABLE sessions ALTER COLUMN snapshot SET STORAGE EXTERNAL;
CREATE INDEX sessions_by_tenant ON sessions (tenant_tag, scope_tag);
CREATE INDEX sessions_by_person ON sessions (person_tag, scope_tag);
CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL;
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_tenant ON sessions USING (works_for(tenant_tag));

CREATE TABLE session_entries (
    scope_tag  bytea NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq        bigint NOT NULL,
    tenant_tag bytea NOT NULL,
    sealed     bytea NOT NULL,
    PRIMARY KEY (scope_tag, seq)
);
ALTER TABLE session_entries ALTER COLUMN sealed SET STORAGE EXTERNAL;
ALTER TABLE session_entries ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_tenant ON session_entries USING (works_for(tenant_tag));

-- Which lanes there are and how long: nothing of any tenant.
CREATE TABLE audit_lanes (
    lane   integer PRIMARY KEY,
    writer bytea,
    seq    bigint NOT NULL DEFAULT 0,
    tag    bytea,
    floor_seq bigint NOT NULL DEFAULT 0,  -- the last record before those that are there; of a lane that was copied from elsewhere
    floor_tag bytea
) WITH (fillfactor = 50);

CREATE TABLE audit_records (
    lane   integer NOT NULL,
    seq    bigint NOT NULL,
    sealed bytea NOT NULL,
    PRIMARY KEY (lane, seq)
);
ALTER TABLE audit_records ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY seen_by_the_system ON audit_records FOR SELECT USING (works_for_the_system());
CREATE POLICY written_by_all ON audit_records FOR INSERT WITH CHECK (true);

CREATE TABLE tokens (
    id         text PRIMARY KEY,
    hash       bytea NOT NULL UNIQUE,
    person_tag bytea,
    sealed     bytea NOT NULL
);
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_system ON tokens USING (works_for_the_system());

CREATE TABLE instances (
    id          bytea PRIMARY KEY,
    answers     boolean NOT NULL,  -- turns, not only writes of the audit log
    alive_until timestamptz NOT NULL
);

-- One write to a session: all of it, or nothing. Works for the session's tenant only.
CREATE FUNCTION append_session(
    scope bytea, person bytea, tenant bytea, key bytea, expected bigint, entries bytea[], new_covers bigint, new_snapshot bytea,
    new_expiry bigint, new_owner bytea, new_stamp bytea,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    count bigint := cardinality(entries);
    have  sessions%ROWTYPE;
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    IF expected = 0 THEN
        INSERT INTO sessions VALUES (scope, person, tenant, key, count, new_stamp, new_expiry, new_owner, new_covers, new_snapshot)
        ON CONFLICT (scope_tag) DO NOTHING;
    ELSE
        UPDATE sessions SET
            version = expected + count, stamp = new_stamp, expires_at = new_expiry, owner = new_owner,
            covers = coalesce(new_covers, covers), snapshot = coalesce(new_snapshot, snapshot)
        WHERE scope_tag = scope AND version = expected AND kid = key;
    END IF;
    IF NOT FOUND THEN
        -- A reply that was lost: the caller asks again, and it was done.
        SELECT * INTO have FROM sessions WHERE scope_tag = scope;
        IF FOUND AND have.version = expected + count AND have.kid = key AND have.stamp = new_stamp THEN
            RETURN 'again';
        END IF;
        RETURN 'conflict';
    END IF;
    INSERT INTO session_entries
    SELECT scope, expected + place, tenant, sealed FROM unnest(entries) WITH ORDINALITY AS e (sealed, place)
    WHERE expected + place > coalesce(new_covers, 0);
    IF new_covers IS NOT NULL THEN
        DELETE FROM session_entries WHERE scope_tag = scope AND seq <= new_covers;
    END IF;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN 'done';
END $$;

-- Writes audit records to a lane; ends the transaction if the lane is somebody else's or has moved on.
CREATE FUNCTION write_lane(
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE audit_lanes SET seq = seq + cardinality(notes), tag = audit_new_tag
    WHERE lane = audit_lane AND writer = audit_writer AND seq = audit_seq AND tag IS NOT DISTINCT FROM audit_tag;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the audit lane is not ours' USING ERRCODE = 'CFLAN';
    END IF;
    INSERT INTO audit_records
    SELECT audit_lane, audit_seq + place, sealed FROM unnest(notes) WITH ORDINALITY AS n (sealed, place);
END $$;

-- The same for records of their own; 'again' if this very write was done before.
CREATE FUNCTION record_audit(
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM audit_lanes
    WHERE lane = audit_lane AND writer = audit_writer AND seq = audit_seq + cardinality(notes) AND tag = audit_new_tag;
    IF FOUND THEN
        RETURN 'again';
    END IF;
    PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    RETURN 'done';
END $$;

-- A whole session. Works for the tenant that is given.
CREATE FUNCTION load_session(scope bytea, tenant text) RETURNS TABLE (
    version bigint, kid bytea, expires_at bigint, owner bytea, covers bigint, snapshot bytea, seqs bigint[], entries bytea[]
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', tenant, true);
    RETURN QUERY SELECT s.version, s.kid, s.expires_at, s.owner, s.covers, s.snapshot,
        ARRAY(SELECT e.seq FROM session_entries e WHERE e.scope_tag = s.scope_tag ORDER BY e.seq),
        ARRAY(SELECT e.sealed FROM session_entries e WHERE e.scope_tag = s.scope_tag ORDER BY e.seq)
    FROM sessions s WHERE s.scope_tag = scope;
END $$;

-- Removes a session; says how many log records went. Works for the tenant that is given.
CREATE FUNCTION erase_session(
    scope bytea, tenant text,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM set_config('confidant.tenant', tenant, true);
    SELECT count(*) INTO gone FROM session_entries WHERE scope_tag = scope;
    SELECT gone + count(*) INTO gone FROM sessions WHERE scope_tag = scope AND snapshot IS NOT NULL;
    DELETE FROM sessions WHERE scope_tag = scope;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN gone;
END $$;

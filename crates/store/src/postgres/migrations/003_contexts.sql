-- Which concepts are in scope of a conversation, and the log that this can be made anew from.

CREATE TABLE conversation_context (
    tenant_id       bytea NOT NULL,
    conversation_id bytea NOT NULL,
    context_json    bytea NOT NULL,  -- sealed, unless the operator chose otherwise
    updated_at      bigint NOT NULL,
    version         bigint NOT NULL,
    kid             bytea NOT NULL,
    archived_at     bigint,
    PRIMARY KEY (tenant_id, conversation_id)
) WITH (fillfactor = 80);
-- Ciphertext does not get smaller.
ALTER TABLE conversation_context ALTER COLUMN context_json SET STORAGE EXTERNAL;
CREATE INDEX conversation_context_by_use ON conversation_context (updated_at) WHERE archived_at IS NULL;
ALTER TABLE conversation_context ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_tenant ON conversation_context USING (works_for(tenant_id));

CREATE TABLE concept_captures (
    tenant_id       bytea NOT NULL,
    conversation_id bytea NOT NULL,
    request         bytea NOT NULL,
    scope_tag       bytea NOT NULL,
    person_tag      bytea NOT NULL,
    at              bigint NOT NULL,
    sealed          bytea NOT NULL,
    PRIMARY KEY (tenant_id, conversation_id, request)
);
ALTER TABLE concept_captures ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX concept_captures_by_scope ON concept_captures (scope_tag);
ALTER TABLE concept_captures ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_tenant ON concept_captures USING (works_for(tenant_id));

-- A conversation's context. Works for its tenant only, as all of these do.
CREATE FUNCTION load_context(tenant bytea, conversation bytea) RETURNS SETOF conversation_context LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT * FROM conversation_context c WHERE c.tenant_id = tenant AND c.conversation_id = conversation;
END $$;

-- The records of a conversation.
CREATE FUNCTION captures_of_conversation(tenant bytea, conversation bytea) RETURNS SETOF concept_captures
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT * FROM concept_captures c WHERE c.tenant_id = tenant AND c.conversation_id = conversation
        ORDER BY c.at, c.request;
END $$;

-- The records of all its conversations.
CREATE FUNCTION captures_of_tenant(tenant bytea) RETURNS SETOF concept_captures LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT * FROM concept_captures c WHERE c.tenant_id = tenant ORDER BY c.at, c.request;
END $$;

-- One write of a context: all of it, or nothing. Without a request there is no record to add, without a scope to forget
-- none to remove.
CREATE FUNCTION put_context(
    tenant bytea, conversation bytea, key bytea, expected bigint, content bytea, used_at bigint, new_archived_at bigint,
    new_request bytea, new_scope bytea, new_person bytea, new_at bigint, new_sealed bytea, forgotten bytea,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    IF expected = 0 THEN
        INSERT INTO conversation_context VALUES (tenant, conversation, content, used_at, 1, key, new_archived_at)
        ON CONFLICT (tenant_id, conversation_id) DO NOTHING;
    ELSE
        UPDATE conversation_context
        SET context_json = content, updated_at = used_at, version = expected + 1, archived_at = new_archived_at
        WHERE tenant_id = tenant AND conversation_id = conversation AND version = expected AND kid = key;
    END IF;
    IF NOT FOUND THEN
        -- A reply that was lost: the caller asks again, and it was done.
        PERFORM 1 FROM conversation_context
        WHERE tenant_id = tenant AND conversation_id = conversation AND version = expected + 1 AND kid = key
            AND context_json = content AND updated_at = used_at AND archived_at IS NOT DISTINCT FROM new_archived_at
            AND (new_request IS NULL OR EXISTS (
                SELECT 1 FROM concept_captures
                WHERE tenant_id = tenant AND conversation_id = conversation AND request = new_request AND sealed = new_sealed))
            AND (forgotten IS NULL OR NOT EXISTS (
                SELECT 1 FROM concept_captures
                WHERE tenant_id = tenant AND conversation_id = conversation AND scope_tag = forgotten
                    AND request IS DISTINCT FROM new_request));
        IF FOUND THEN
            RETURN 'again';
        END IF;
        RETURN 'conflict';
    END IF;
    IF forgotten IS NOT NULL THEN
        DELETE FROM concept_captures
        WHERE tenant_id = tenant AND conversation_id = conversation AND scope_tag = forgotten;
    END IF;
    IF new_request IS NOT NULL THEN
        INSERT INTO concept_captures VALUES (tenant, conversation, new_request, new_scope, new_person, new_at, new_sealed)
        ON CONFLICT (tenant_id, conversation_id, request) DO UPDATE
        SET scope_tag = new_scope, person_tag = new_person, at = new_at, sealed = new_sealed;
    END IF;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN 'done';
END $$;

-- Removes a context with its records; says how many records went.
CREATE FUNCTION erase_context(
    tenant bytea, conversation bytea,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    DELETE FROM conversation_context WHERE tenant_id = tenant AND conversation_id = conversation;
    DELETE FROM concept_captures WHERE tenant_id = tenant AND conversation_id = conversation;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN gone;
END $$;

-- Puts a context with its records in place of what is there.
CREATE FUNCTION adopt_context(
    tenant bytea, conversation bytea, content bytea, used_at bigint, new_version bigint, key bytea, new_archived_at bigint,
    requests bytea[], scopes bytea[], persons bytea[], moments bigint[], contents bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    DELETE FROM conversation_context WHERE tenant_id = tenant AND conversation_id = conversation;
    DELETE FROM concept_captures WHERE tenant_id = tenant AND conversation_id = conversation;
    INSERT INTO conversation_context
    VALUES (tenant, conversation, content, used_at, new_version, key, new_archived_at);
    INSERT INTO concept_captures
    SELECT tenant, conversation, c.* FROM unnest(requests, scopes, persons, moments, contents) AS c;
END $$;

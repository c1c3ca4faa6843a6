-- `conversation_context` with the very types that its readers know: two uuids, jsonb, timestamptz. A sealed context is a JSON
-- string of base64 there; one that the operator chose to have readable is the JSON itself.

CREATE FUNCTION context_as_json(content bytea) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN substring(content FROM 1 FOR 1) = '\x7b'::bytea THEN convert_from(content, 'UTF8')::jsonb
        ELSE to_jsonb(translate(encode(content, 'base64'), E'\n', '')) END
$$;
CREATE FUNCTION context_as_bytes(context jsonb) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(context) = 'string' THEN decode(context #>> '{}', 'base64')
        ELSE convert_to(context::text, 'UTF8') END
$$;
CREATE FUNCTION as_uuid(tag bytea) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT encode(tag, 'hex')::uuid $$;
CREATE FUNCTION as_tag(id uuid) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT decode(replace(id::text, '-', ''), 'hex') $$;
CREATE FUNCTION as_time(millis bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT to_timestamp(0) + millis * interval '1 millisecond' $$;
CREATE FUNCTION as_millis(moment timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT round(extract(epoch FROM moment) * 1000)::bigint $$;

DROP FUNCTION load_context(bytea, bytea);
DROP POLICY of_its_tenant ON conversation_context;
ALTER TABLE conversation_context
    ALTER COLUMN tenant_id TYPE uuid USING as_uuid(tenant_id),
    ALTER COLUMN conversation_id TYPE uuid USING as_uuid(conversation_id),
    ALTER COLUMN context_json TYPE jsonb USING context_as_json(context_json),
    ALTER COLUMN updated_at TYPE timestamptz USING as_time(updated_at),
    ALTER COLUMN updated_at SET DEFAULT now();
CREATE POLICY of_its_tenant ON conversation_context USING (works_for(as_tag(tenant_id)));

-- A conversation's context. Works for its tenant only, as all of these do.
CREATE FUNCTION load_context(tenant bytea, conversation bytea) RETURNS TABLE (
    found_version bigint, found_kid bytea, content bytea, used_at bigint, found_archived_at bigint
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT c.version, c.kid, context_as_bytes(c.context_json), as_millis(c.updated_at), c.archived_at
    FROM conversation_context c WHERE c.tenant_id = as_uuid(tenant) AND c.conversation_id = as_uuid(conversation);
END $$;

-- One write of a context: all of it, or nothing. Without a request there is no record to add, without something to forget
-- none to remove.
CREATE OR REPLACE FUNCTION put_context(
    tenant bytea, conversation bytea, key bytea, expected bigint, content bytea, used_at bigint, new_archived_at bigint,
    new_request bytea, new_scope bytea, new_person bytea, new_at bigint, new_sealed bytea, forgotten bytea,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    of_tenant uuid := as_uuid(tenant);
    of_conversation uuid := as_uuid(conversation);
    new_context jsonb := context_as_json(content);
    new_used_at timestamptz := as_time(used_at);
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    -- What the turn named is in it already.
    PERFORM 1 FROM conversation_context c
    WHERE c.tenant_id = of_tenant AND c.conversation_id = of_conversation AND c.version = expected AND c.kid = key FOR UPDATE;
    IF FOUND AND new_request IS NOT NULL THEN
        PERFORM 1 FROM concept_captures
        WHERE tenant_id = tenant AND conversation_id = conversation AND request = new_request;
        IF FOUND THEN
            RETURN 'known';
        END IF;
    END IF;
    IF expected = 0 THEN
        INSERT INTO conversation_context (tenant_id, conversation_id, context_json, updated_at, version, kid, archived_at)
        VALUES (of_tenant, of_conversation, new_context, new_used_at, 1, key, new_archived_at)
        ON CONFLICT (tenant_id, conversation_id) DO NOTHING;
    ELSE
        UPDATE conversation_context c
        SET context_json = new_context, updated_at = new_used_at, version = expected + 1, archived_at = new_archived_at
        WHERE c.tenant_id = of_tenant AND c.conversation_id = of_conversation AND c.version = expected AND c.kid = key;
    END IF;
    IF NOT FOUND THEN
        -- A reply that was lost: the caller asks again, and it was done.
        PERFORM 1 FROM conversation_context c
        WHERE c.tenant_id = of_tenant AND c.conversation_id = of_conversation AND c.version = expected + 1 AND c.kid = key
            AND c.context_json = new_context AND c.updated_at = new_used_at
            AND c.archived_at IS NOT DISTINCT FROM new_archived_at
            AND (new_request IS NULL OR EXISTS (
                SELECT 1 FROM concept_captures
                WHERE tenant_id = tenant AND conversation_id = conversation AND request = new_request AND sealed = new_sealed))
            AND (forgotten IS NULL OR NOT EXISTS (
                SELECT 1 FROM concept_captures
                WHERE tenant_id = tenant AND conversation_id = conversation AND forgotten IN (scope_tag, request)
                    AND request IS DISTINCT FROM new_request));
        IF FOUND THEN
            RETURN 'again';
        END IF;
        RETURN 'conflict';
    END IF;
    IF forgotten IS NOT NULL THEN
        DELETE FROM concept_captures
        WHERE tenant_id = tenant AND conversation_id = conversation AND forgotten IN (scope_tag, request);
    END IF;
    IF new_request IS NOT NULL THEN
        INSERT INTO concept_captures VALUES (tenant, conversation, new_request, new_scope, new_person, new_at, new_sealed);
    END IF;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN 'done';
END $$;

-- Removes a context with its records; says how many records went.
CREATE OR REPLACE FUNCTION erase_context(
    tenant bytea, conversation bytea,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    DELETE FROM conversation_context WHERE tenant_id = as_uuid(tenant) AND conversation_id = as_uuid(conversation);
    DELETE FROM concept_captures WHERE tenant_id = tenant AND conversation_id = conversation;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN gone;
END $$;

-- Puts a context with its records in place of what is there.
CREATE OR REPLACE FUNCTION adopt_context(
    tenant bytea, conversation bytea, content bytea, used_at bigint, new_version bigint, key bytea, new_archived_at bigint,
    requests bytea[], scopes bytea[], persons bytea[], moments bigint[], contents bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    DELETE FROM conversation_context WHERE tenant_id = as_uuid(tenant) AND conversation_id = as_uuid(conversation);
    DELETE FROM concept_captures WHERE tenant_id = tenant AND conversation_id = conversation;
    INSERT INTO conversation_context (tenant_id, conversation_id, context_json, updated_at, version, kid, archived_at)
    VALUES (as_uuid(tenant), as_uuid(conversation), context_as_json(content), as_time(used_at), new_version, key,
        new_archived_at);
    INSERT INTO concept_captures
    SELECT tenant, conversation, c.* FROM unnest(requests, scopes, persons, moments, contents) AS c;
END $$;

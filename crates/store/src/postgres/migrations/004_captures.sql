-- A turn's concepts come into scope once: a second record of the same turn is refused.

-- One write of a context: all of it, or nothing. Without a request there is no record to add, without a scope to forget
-- none to remove.
CREATE OR REPLACE FUNCTION put_context(
    tenant bytea, conversation bytea, key bytea, expected bigint, content bytea, used_at bigint, new_archived_at bigint,
    new_request bytea, new_scope bytea, new_person bytea, new_at bigint, new_sealed bytea, forgotten bytea,
    audit_lane integer, audit_writer bytea, audit_seq bigint, audit_tag bytea, audit_new_tag bytea, notes bytea[]
) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    -- What the turn named is in it already.
    PERFORM 1 FROM conversation_context
    WHERE tenant_id = tenant AND conversation_id = conversation AND version = expected AND kid = key FOR UPDATE;
    IF FOUND AND new_request IS NOT NULL THEN
        PERFORM 1 FROM concept_captures
        WHERE tenant_id = tenant AND conversation_id = conversation AND request = new_request;
        IF FOUND THEN
            RETURN 'known';
        END IF;
    END IF;
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
        INSERT INTO concept_captures VALUES (tenant, conversation, new_request, new_scope, new_person, new_at, new_sealed);
    END IF;
    IF cardinality(notes) > 0 THEN
        PERFORM write_lane(audit_lane, audit_writer, audit_seq, audit_tag, audit_new_tag, notes);
    END IF;
    RETURN 'done';
END $$;

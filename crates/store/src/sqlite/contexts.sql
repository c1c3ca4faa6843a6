CREATE TABLE conversation_context (
    tenant_id       BLOB NOT NULL,
    conversation_id BLOB NOT NULL,
    context_json    BLOB NOT NULL, -- sealed, unless the operator chose otherwise
    updated_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    kid             BLOB NOT NULL,
    archived_at     INTEGER,
    PRIMARY KEY (tenant_id, conversation_id)
) WITHOUT ROWID;
CREATE INDEX conversation_context_by_use ON conversation_context (updated_at) WHERE archived_at IS NULL;

CREATE TABLE concept_captures (
    tenant_id       BLOB NOT NULL,
    conversation_id BLOB NOT NULL,
    request         BLOB NOT NULL,
    scope_tag       BLOB NOT NULL,
    person_tag      BLOB NOT NULL,
    at              INTEGER NOT NULL,
    sealed          BLOB NOT NULL,
    PRIMARY KEY (tenant_id, conversation_id, request)
) WITHOUT ROWID;
CREATE INDEX concept_captures_by_scope ON concept_captures (scope_tag);

-- The keyring. Nothing of it is any tenant's to see.

CREATE TABLE key_roots (one integer PRIMARY KEY CHECK (one = 1), kid bytea NOT NULL);
CREATE TABLE named_keys (name text PRIMARY KEY, root bytea NOT NULL, sealed bytea NOT NULL);
CREATE TABLE session_keys (
    scope_tag    bytea PRIMARY KEY,
    generation   integer NOT NULL,
    root         bytea NOT NULL,
    kid          bytea NOT NULL,
    sealed_key   bytea NOT NULL,
    sealed_scope bytea NOT NULL,
    anchor       bigint NOT NULL,
    expires_at   bigint          -- not indexed: it changes with every turn, and is asked for once a minute
) WITH (fillfactor = 80);
CREATE INDEX session_keys_by_root ON session_keys (root);
CREATE TABLE lane_anchors (
    lane  integer NOT NULL,
    until bigint NOT NULL,       -- 0 for never
    seq   bigint NOT NULL,
    PRIMARY KEY (lane, until)
) WITH (fillfactor = 50);

ALTER TABLE named_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_system ON named_keys USING (works_for_the_system());
ALTER TABLE session_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_the_system ON session_keys USING (works_for_the_system());

-- Adds a row, if there is none and the root is still the row's. The root stays what it is until the row is there.
CREATE FUNCTION create_key(
    scope bytea, new_generation integer, new_root bytea, new_kid bytea, new_key bytea, new_scope bytea, new_anchor bigint,
    new_expiry bigint
) RETURNS TABLE (outcome text, other_root bytea) LANGUAGE plpgsql AS $$
DECLARE
    current bytea;
BEGIN
    PERFORM 1 FROM session_keys WHERE scope_tag = scope;
    IF FOUND THEN
        RETURN QUERY SELECT 'existing', NULL::bytea;
        RETURN;
    END IF;
    SELECT r.kid INTO current FROM key_roots r FOR SHARE;
    IF current <> new_root THEN
        RETURN QUERY SELECT 'root', current;
        RETURN;
    END IF;
    INSERT INTO session_keys
    VALUES (scope, new_generation, new_root, new_kid, new_key, new_scope, new_anchor, new_expiry)
    ON CONFLICT (scope_tag) DO NOTHING;
    IF FOUND THEN
        RETURN QUERY SELECT 'new', NULL::bytea;
    ELSE
        RETURN QUERY SELECT 'existing', NULL::bytea;
    END IF;
END $$;

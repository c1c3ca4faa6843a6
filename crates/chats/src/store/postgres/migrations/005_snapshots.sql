-- Snapshots that are shared: what the server sealed, by the digest of a snapshot's id. They name their chat by its id, and go with it.

CREATE TABLE snapshots (
    id         bytea PRIMARY KEY,
    account    text COLLATE "C" NOT NULL,
    chat       text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    line       bytea NOT NULL,
    content    bytea NOT NULL,
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
);
CREATE INDEX snapshots_account ON snapshots (account, id);
CREATE INDEX snapshots_chat ON snapshots (account, chat);
CREATE INDEX snapshots_expires ON snapshots (expires_at);
ALTER TABLE snapshots ALTER COLUMN line SET STORAGE EXTERNAL;
ALTER TABLE snapshots ALTER COLUMN content SET STORAGE EXTERNAL;

-- An account's rows are its own.
ALTER TABLE snapshots ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_account ON snapshots USING (account = me());

-- Whoever has a link shows the digest of its id, and sees that one.
CREATE POLICY by_id ON snapshots FOR SELECT USING (id = shown());

-- What is over is seen by whoever removes it.
CREATE POLICY seen_when_over ON snapshots FOR SELECT USING (expires_at <= until());
CREATE POLICY gone_when_over ON snapshots FOR DELETE USING (expires_at <= until());

-- Removes snapshots that are over by then. Says how many went.
CREATE FUNCTION expire_snapshots(now_is bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    went bigint;
BEGIN
    PERFORM set_config('confidant.until', now_is::text, true);
    DELETE FROM snapshots WHERE expires_at <= now_is;
    GET DIAGNOSTICS went = ROW_COUNT;
    PERFORM set_config('confidant.until', '', true);
    RETURN went;
END $$;

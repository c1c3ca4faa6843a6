-- Marks of answers that are on their way: what a letter needs, sealed by the server, without words. They name their chat by its
-- id, and go with it.

CREATE TABLE marks (
    account  text COLLATE "C" NOT NULL,
    chat     text COLLATE "C" NOT NULL,
    turn     text COLLATE "C" NOT NULL,
    asked_at bigint NOT NULL,
    look_at  bigint NOT NULL,
    held     boolean NOT NULL,
    sealed   bytea NOT NULL,
    PRIMARY KEY (account, chat, turn),
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
);
CREATE INDEX marks_oldest ON marks (account, asked_at, chat, turn);
CREATE INDEX marks_asked ON marks (asked_at);
CREATE INDEX marks_due ON marks (look_at);
ALTER TABLE marks ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- An account's rows are its own.
ALTER TABLE marks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_account ON marks USING (account = me());

-- What has expired is seen by whoever removes it, what is due by whoever looks what became of it.
CREATE POLICY seen_when_over ON marks FOR SELECT USING (asked_at <= until());
CREATE POLICY gone_when_over ON marks FOR DELETE USING (asked_at <= until());
CREATE POLICY seen_by_finders ON marks FOR SELECT USING (task() = 'find');
CREATE POLICY taken_by_finders ON marks FOR UPDATE USING (task() = 'find');

-- Removes marks of turns that were asked for by then. Says how many went.
CREATE FUNCTION expire_marks(asked_by bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    went bigint;
BEGIN
    PERFORM set_config('confidant.until', asked_by::text, true);
    DELETE FROM marks WHERE asked_at <= asked_by;
    GET DIAGNOSTICS went = ROW_COUNT;
    PERFORM set_config('confidant.until', '', true);
    RETURN went;
END $$;

-- Marks that are due. They are due again after a quarter of their age, within these limits, and nobody has them in hand. What
-- another transaction is about to change is left to it.
CREATE FUNCTION claim_marks(now_is bigint, shortest bigint, longest bigint, most bigint)
RETURNS TABLE (account text, chat text, turn text, asked_at bigint, sealed bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('confidant.task', 'find', true);
    RETURN QUERY
        UPDATE marks AS m
            SET held = false, look_at = now_is + greatest(shortest, least(longest, (now_is - m.asked_at) / 4))
            FROM (SELECT d.account, d.chat, d.turn FROM marks AS d WHERE d.look_at <= now_is
                      ORDER BY d.look_at LIMIT most FOR UPDATE SKIP LOCKED) AS due
            WHERE m.account = due.account AND m.chat = due.chat AND m.turn = due.turn
            RETURNING m.account, m.chat, m.turn, m.asked_at, m.sealed;
    PERFORM set_config('confidant.task', '', true);
END $$;

-- Letters: answers that came when no device was there, sealed to the account's mailbox. And what is remembered of a chat
-- without its words. Both name their chat by its id, and go with it.

CREATE TABLE letters (
    account text COLLATE "C" NOT NULL,
    chat    text COLLATE "C" NOT NULL,
    turn    text COLLATE "C" NOT NULL,
    reply   text COLLATE "C" NOT NULL,
    left_at bigint NOT NULL,
    letter  bytea NOT NULL,
    more    bytea,
    PRIMARY KEY (account, chat, turn),
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
);
CREATE INDEX letters_oldest ON letters (account, left_at, chat, turn);
CREATE INDEX letters_left ON letters (left_at);
CREATE TABLE safety (
    account text COLLATE "C" NOT NULL,
    chat    text COLLATE "C" NOT NULL,
    rev     bigint NOT NULL,
    sealed  bytea NOT NULL,
    PRIMARY KEY (account, chat),
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
);

-- Ciphertext does not get smaller.
ALTER TABLE letters ALTER COLUMN letter SET STORAGE EXTERNAL;
ALTER TABLE letters ALTER COLUMN more SET STORAGE EXTERNAL;
ALTER TABLE safety ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- An account's rows are its own.
ALTER TABLE letters ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_account ON letters USING (account = me());
ALTER TABLE safety ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_its_account ON safety USING (account = me());

-- What has expired is seen by whoever removes it.
CREATE POLICY seen_when_over ON letters FOR SELECT USING (left_at <= until());
CREATE POLICY gone_when_over ON letters FOR DELETE USING (left_at <= until());

-- Removes letters that were left by then. Says how many went.
CREATE FUNCTION expire_letters(left_by bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    went bigint;
BEGIN
    PERFORM set_config('confidant.until', left_by::text, true);
    DELETE FROM letters WHERE left_at <= left_by;
    GET DIAGNOSTICS went = ROW_COUNT;
    PERFORM set_config('confidant.until', '', true);
    RETURN went;
END $$;

-- Every process that runs turns looks every two seconds for those that a dead one left open; without this it reads all sessions.
-- It has as many rows as there are turns under way and approvals that wait.
CREATE INDEX sessions_open ON sessions (scope_tag) WHERE owner IS NOT NULL;

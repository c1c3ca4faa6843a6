-- What a copy of the whole store needs besides the rows of each account: the ids of accounts, and what belongs to nobody.

CREATE FUNCTION accounts_after(last text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    found text[];
BEGIN
    PERFORM set_config('confidant.task', 'count', true);
    found := ARRAY(SELECT account FROM accounts WHERE account > last ORDER BY account LIMIT 500);
    PERFORM set_config('confidant.task', '', true);
    RETURN found;
END $$;

CREATE POLICY read_by_copies ON codes FOR SELECT USING (task() = 'copy');
CREATE POLICY made_by_copies ON codes FOR INSERT WITH CHECK (task() = 'copy');
CREATE POLICY read_by_copies ON pairings FOR SELECT USING (task() = 'copy');
CREATE POLICY made_by_copies ON pairings FOR INSERT WITH CHECK (task() = 'copy');
CREATE POLICY read_by_copies ON attempts FOR SELECT USING (task() = 'copy');
CREATE POLICY made_by_copies ON attempts FOR INSERT WITH CHECK (task() = 'copy');

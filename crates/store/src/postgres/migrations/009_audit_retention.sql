-- Audit records go when their time is over (store.audit_days). Without a rule for it, nothing is ever deleted here.
CREATE POLICY gone_in_its_time ON audit_records FOR DELETE USING (works_for_the_system());

-- Lists that are made in a tenant's name see that tenant's rows only, whatever their conditions say.

-- The sessions of a tenant after one of them, in order.
CREATE OR REPLACE FUNCTION sessions_of_tenant(tenant bytea, after bytea, most bigint) RETURNS TABLE (
    scope_tag bytea, person_tag bytea, tenant_tag bytea, kid bytea, version bigint, expires_at bigint, owner bytea
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT s.scope_tag, s.person_tag, s.tenant_tag, s.kid, s.version, s.expires_at, s.owner FROM sessions s
    WHERE s.tenant_tag = tenant AND s.scope_tag > after ORDER BY s.scope_tag LIMIT most;
END $$;

-- The sessions of a person of a tenant.
CREATE OR REPLACE FUNCTION sessions_of_person(tenant bytea, person bytea, after bytea, most bigint) RETURNS TABLE (
    scope_tag bytea, person_tag bytea, tenant_tag bytea, kid bytea, version bigint, expires_at bigint, owner bytea
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT s.scope_tag, s.person_tag, s.tenant_tag, s.kid, s.version, s.expires_at, s.owner FROM sessions s
    WHERE s.person_tag = person AND s.scope_tag > after ORDER BY s.scope_tag LIMIT most;
END $$;

-- The records of why, of a session of a tenant.
CREATE OR REPLACE FUNCTION captures_of_session(tenant bytea, scope bytea) RETURNS SETOF concept_captures
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('confidant.tenant', encode(tenant, 'hex'), true);
    RETURN QUERY SELECT * FROM concept_captures c WHERE c.scope_tag = scope ORDER BY c.at, c.request;
END $$;

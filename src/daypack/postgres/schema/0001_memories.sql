-- Memories, entries and documents, as docs/design.md describes them for SQLite. What differs:
--   tenant    the user, first in every key; row-level security compares it with the setting daypack.tenant
--   bytea     for every text of a caller: text of PostgreSQL cannot hold a NUL
--   crc       the checksum of the record (memory/store/checksums.py), the same as in SQLite
-- Large tables are partitioned by the hash of the tenant. Entries and documents are inserted, never changed.

-- protect: partitions, row-level security and rights of a table that has a column `tenant`.
--   daypack_app        the rows of one tenant, with the rights in `app`
--   daypack_eraser     the rows of one tenant, to read, insert, change and delete
--   daypack_operator   the rows of all tenants, to read and to insert (backup, restore, doctor)
CREATE FUNCTION protect(name text, app text, partitions int DEFAULT 8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR number IN 0 .. partitions - 1 LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                       name || '_' || number, name, partitions, number);
    END LOOP;
    IF name = 'small_vectors' THEN RETURN; END IF;
    EXECUTE format('ALTER TABLE %I ADD CHECK (tenant <> '''')', name);  -- a transaction of nobody has ''
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY own ON %I TO daypack_app, daypack_eraser
                    USING (tenant = current_setting(''daypack.tenant''))
                    WITH CHECK (tenant = current_setting(''daypack.tenant''))', name);
    EXECUTE format('CREATE POLICY every ON %I TO daypack_operator USING (true) WITH CHECK (true)', name);
    EXECUTE format('GRANT %s ON %I TO daypack_app', app, name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO daypack_eraser', name);
    EXECUTE format('GRANT SELECT, INSERT ON %I TO daypack_operator', name);
END $$;

CREATE TABLE store(
    id text NOT NULL,
    signing_key bytea NOT NULL,
    created timestamptz NOT NULL DEFAULT now()
);
INSERT INTO store(id, signing_key)
VALUES (left(replace(gen_random_uuid()::text, '-', ''), 16),
        decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'));

CREATE TABLE users(
    tenant text PRIMARY KEY, name bytea NOT NULL, email bytea NOT NULL DEFAULT '',
    max_memories bigint, max_entries bigint, max_bytes bigint,
    memories bigint NOT NULL DEFAULT 0, entries bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0,
    crc bigint NOT NULL
);
CREATE TABLE tokens(
    id text PRIMARY KEY, digest bytea NOT NULL UNIQUE, tenant text NOT NULL, name bytea NOT NULL, scope text NOT NULL,
    created text NOT NULL, expires text, crc bigint NOT NULL
);
CREATE INDEX tokens_of ON tokens(tenant);
CREATE TABLE memories(
    tenant text NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL UNIQUE,
    title bytea NOT NULL, type bytea NOT NULL, description bytea NOT NULL, created bigint NOT NULL, deleted bigint,
    newest bigint NOT NULL DEFAULT 0, documents bigint NOT NULL DEFAULT 0, latest bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0, crc bigint NOT NULL,
    PRIMARY KEY (tenant, number)
);
CREATE TABLE entries(
    tenant text NOT NULL, memory bigint NOT NULL, seq bigint NOT NULL, stem bytea NOT NULL, created bigint NOT NULL,
    moment bigint NOT NULL, session bytea, role bytea, author bytea, at bytea, source bytea, tags bytea,
    client_key bytea, raw bytea NOT NULL, summary bytea, crc bigint NOT NULL,
    PRIMARY KEY (tenant, memory, seq)
) PARTITION BY HASH (tenant);
CREATE UNIQUE INDEX entries_by_key ON entries(tenant, memory, client_key) WHERE client_key IS NOT NULL;
CREATE TABLE documents(
    tenant text NOT NULL, memory bigint NOT NULL, version bigint NOT NULL, stem bytea NOT NULL,
    created bigint NOT NULL, content bytea NOT NULL, crc bigint NOT NULL,
    PRIMARY KEY (tenant, memory, version)
) PARTITION BY HASH (tenant);
CREATE TABLE tags(
    tenant text NOT NULL, memory bigint NOT NULL, tag bytea NOT NULL, seq bigint NOT NULL,
    PRIMARY KEY (tenant, memory, tag, seq)
) PARTITION BY HASH (tenant);
-- Index work (memory/store/postgres/jobs.py). The oldest living job of a memory stands for all of them: only it is
-- claimed, so at most one job of a memory has a lease.
--   goal, documents   the newest entry and version of the document when it was made
--   not_before        when it is due; of a job with a lease, when the lease ends
CREATE SEQUENCE jobs_id;
CREATE TABLE jobs(
    id bigint NOT NULL DEFAULT nextval('jobs_id'), tenant text NOT NULL, memory bigint NOT NULL, goal bigint NOT NULL,
    documents bigint NOT NULL DEFAULT 0, created timestamptz NOT NULL DEFAULT now(),
    not_before timestamptz NOT NULL DEFAULT now(), attempts int NOT NULL DEFAULT 0, lease uuid, problem bytea,
    dead timestamptz,
    PRIMARY KEY (id)
);
CREATE INDEX jobs_due ON jobs(not_before) WHERE dead IS NULL;
CREATE INDEX jobs_of ON jobs(tenant, memory, id);
CREATE UNIQUE INDEX jobs_leased ON jobs(tenant, memory) WHERE lease IS NOT NULL;

SELECT protect('users', 'SELECT, INSERT, UPDATE', 0);
SELECT protect('tokens', 'SELECT, INSERT', 0);
-- Whoever has the secret of a token may read the row of the token.
CREATE POLICY bearer ON tokens FOR SELECT TO daypack_app
    USING (digest = decode(current_setting('daypack.token', true), 'hex'));
SELECT protect('memories', 'SELECT, INSERT, UPDATE', 0);
SELECT protect('entries', 'SELECT, INSERT');
SELECT protect('documents', 'SELECT, INSERT');
SELECT protect('tags', 'SELECT, INSERT');
SELECT protect('jobs', 'SELECT, INSERT, DELETE', 0);
GRANT UPDATE, DELETE ON jobs TO daypack_operator;
GRANT UPDATE ON users, memories TO daypack_operator;
GRANT DELETE ON tokens TO daypack_operator;
GRANT USAGE ON SEQUENCE jobs_id TO daypack_app, daypack_operator, daypack_eraser;
GRANT SELECT ON store TO daypack_app, daypack_eraser, daypack_operator;
GRANT INSERT, DELETE ON store TO daypack_operator;

-- The planner's statistics would hold samples of texts, also of erased ones.
ALTER TABLE users ALTER name SET STATISTICS 0, ALTER email SET STATISTICS 0;
ALTER TABLE tokens ALTER name SET STATISTICS 0;
ALTER TABLE memories ALTER title SET STATISTICS 0, ALTER description SET STATISTICS 0;
ALTER TABLE entries ALTER session SET STATISTICS 0, ALTER author SET STATISTICS 0, ALTER at SET STATISTICS 0,
    ALTER source SET STATISTICS 0, ALTER tags SET STATISTICS 0, ALTER client_key SET STATISTICS 0,
    ALTER raw SET STATISTICS 0, ALTER summary SET STATISTICS 0;
ALTER TABLE documents ALTER content SET STATISTICS 0;
ALTER TABLE tags ALTER tag SET STATISTICS 0;

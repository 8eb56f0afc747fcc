-- Sessions: their two logs, what they captured, and their settings. A folder on a worker is a cache of this.
--   log          0: messages.jsonl, 1: events.jsonl
--   start, stop  the bytes of the log that a row has: rows follow each other without a gap, so together they are the file
--   crc          the running checksum of the log up to `stop`, as in context/offsets/*.idx
--   writer       of an append: a worker that lost its connection learns by it whether the append was stored
--   generation   grows when the logs are rewritten, which only an erasure does: caches of an earlier one are dropped
--   version      a checksum of meta and cwd: a counter would repeat numbers after a restore, with other contents
--   writers      of the rows that such a rewrite has replaced, 16 bytes each: an append of them is not stored again
--   folded       the name without case: two names that macOS takes for one cannot both exist
CREATE TABLE sessions(
    tenant text NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY, agent text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL, folded text COLLATE "C" NOT NULL, generation int NOT NULL DEFAULT 0,
    meta bytea NOT NULL, cwd bytea NOT NULL, created bytea NOT NULL,
    version bigint NOT NULL
        GENERATED ALWAYS AS (('x' || encode(substr(sha256(meta || cwd), 1, 8), 'hex'))::bit(64)::bigint) STORED,
    writers uuid[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant, number), UNIQUE (tenant, agent, folded)
);
CREATE TABLE session_lines(
    tenant text NOT NULL, session bigint NOT NULL, log smallint NOT NULL, start bigint NOT NULL, stop bigint NOT NULL,
    crc bigint NOT NULL, writer uuid NOT NULL, data bytea NOT NULL, CHECK (stop = start + length(data)),
    PRIMARY KEY (tenant, session, log, start)
) PARTITION BY HASH (tenant);
CREATE TABLE session_blobs(
    tenant text NOT NULL, session bigint NOT NULL, name text COLLATE "C" NOT NULL, data bytea NOT NULL,
    PRIMARY KEY (tenant, session, name)
) PARTITION BY HASH (tenant);

SELECT protect('sessions', 'SELECT, INSERT, UPDATE', 0);
SELECT protect('session_lines', 'SELECT, INSERT');
SELECT protect('session_blobs', 'SELECT, INSERT');

-- append_lines: store bytes at the end of a log, with the blobs they refer to, or nothing. One call is one round trip,
-- and a transaction by itself, so it takes the role and the tenant for its transaction.
--   stored      they are in the log, or were until a rewrite, also if an earlier attempt of this writer stored them
--   overtaken   another worker has appended since, or the caller's log is not the beginning of this one
--   rewritten   the generation is another; gone: there is no such session
--   busy        another worker has the lock, and the caller does not wait for it
--   unsuited    the account begins transactions that do not write, or do not see what others commit meanwhile
CREATE FUNCTION append_lines(
    owner text, chosen bigint, known int, which smallint, place bigint, before bigint, after bigint, author uuid,
    bytes bytea, names text[] DEFAULT '{}', contents bytea[] DEFAULT '{}', waiting boolean DEFAULT true
) RETURNS text LANGUAGE plpgsql SET search_path = daypack, pg_temp AS $$
DECLARE
    current int;
    is_known boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('transaction_read_only') = 'on'
    THEN RETURN 'unsuited'; END IF;
    PERFORM set_config('role', 'daypack_app', true), set_config('daypack.tenant', owner, true),
        set_config('row_security', 'on', true);
    IF waiting THEN PERFORM pg_advisory_xact_lock(hashtextextended(owner, chosen));
    ELSIF NOT pg_try_advisory_xact_lock(hashtextextended(owner, chosen)) THEN RETURN 'busy'; END IF;
    INSERT INTO daypack.session_lines(tenant, session, log, start, stop, crc, writer, data)
    SELECT owner, chosen, which, place, place + length(bytes), after, author, bytes
    FROM daypack.sessions LEFT JOIN LATERAL (SELECT stop, crc FROM daypack.session_lines
        WHERE tenant = owner AND session = chosen AND log = which ORDER BY start DESC LIMIT 1) l ON true
    WHERE tenant = owner AND number = chosen AND generation = known
        AND coalesce(l.stop, 0) = place AND coalesce(l.crc, 0) = before;
    IF NOT FOUND THEN
        SELECT generation, author = ANY (writers) INTO current, is_known
        FROM daypack.sessions WHERE tenant = owner AND number = chosen;
        IF NOT FOUND THEN RETURN 'gone'; END IF;
        IF is_known THEN RETURN 'stored'; END IF;
        IF current <> known THEN RETURN 'rewritten'; END IF;
        PERFORM 1 FROM daypack.session_lines
        WHERE tenant = owner AND session = chosen AND log = which AND start = place AND writer = author;
        RETURN CASE WHEN FOUND THEN 'stored' ELSE 'overtaken' END;
    END IF;
    IF cardinality(names) > 0 THEN
        INSERT INTO daypack.session_blobs(tenant, session, name, data)
        SELECT owner, chosen, * FROM unnest(names, contents) ON CONFLICT DO NOTHING;
    END IF;
    RETURN 'stored';
END $$;

-- append_several: do that for several sessions, also of different tenants, in one transaction. `bytes` has the bytes of
-- all, one after the other, beginning at `begins`. What cannot simply be stored is left to append_lines, one by one.
CREATE FUNCTION append_several(
    owners text[], chosen bigint[], known int[], which smallint[], places bigint[], before bigint[], after bigint[],
    authors uuid[], begins int[], lengths int[], bytes bytea
) RETURNS text[] LANGUAGE plpgsql
SET search_path = daypack, pg_temp SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    outcomes text[] := '{}';
    locked boolean[];
    stored uuid[];
    owner text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('transaction_read_only') = 'on'
    THEN RETURN array_fill('unsuited'::text, ARRAY[cardinality(owners)]); END IF;
    PERFORM set_config('role', 'daypack_app', true), set_config('row_security', 'on', true);
    SELECT array_agg(pg_try_advisory_xact_lock(hashtextextended(g.owner, g.number)) ORDER BY g.place) INTO locked
    FROM unnest(owners, chosen) WITH ORDINALITY AS g(owner, number, place);
    FOR owner IN SELECT DISTINCT unnest(owners) LOOP
        PERFORM set_config('daypack.tenant', owner, true);
        WITH added AS (
            INSERT INTO daypack.session_lines(tenant, session, log, start, stop, crc, writer, data)
            SELECT s.tenant, s.number, g.log, g.place, g.place + g.length, g.after, g.writer,
                substr(bytes, g.begin, g.length)
            FROM unnest(owners, chosen, known, which, places, before, after, authors, begins, lengths, locked)
                AS g(tenant, number, generation, log, place, before, after, writer, begin, length, locked)
            JOIN daypack.sessions s USING (tenant, number, generation)
            LEFT JOIN LATERAL (SELECT stop, crc FROM daypack.session_lines l
                WHERE l.tenant = g.tenant AND l.session = g.number AND l.log = g.log ORDER BY start DESC LIMIT 1
            ) l ON true
            WHERE g.tenant = owner AND g.locked AND coalesce(l.stop, 0) = g.place AND coalesce(l.crc, 0) = g.before
            RETURNING writer
        )
        SELECT stored || array_agg(writer) INTO stored FROM added;
    END LOOP;
    FOR i IN 1 .. cardinality(owners) LOOP
        outcomes := outcomes || CASE
            WHEN authors[i] = ANY (stored) THEN 'stored'
            WHEN NOT locked[i] THEN 'busy'
            ELSE daypack.append_lines(owners[i], chosen[i], known[i], which[i], places[i], before[i], after[i], authors[i],
                substr(bytes, begins[i], lengths[i]), waiting => false)
        END;
    END LOOP;
    RETURN outcomes;
END $$;

-- reach_of_session: its generation, its version, and `stop` and `crc` of both logs; null if it is gone.
-- For the question whether a cache is up to date, which every turn asks: one statement, a transaction by itself.
CREATE FUNCTION reach_of_session(owner text, chosen bigint) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = daypack, pg_temp AS $$
DECLARE
    reach bigint[];
BEGIN
    PERFORM set_config('role', 'daypack_app', true), set_config('daypack.tenant', owner, true),
        set_config('row_security', 'on', true);
    SELECT ARRAY[generation, version, coalesce(m.stop, 0), coalesce(m.crc, 0), coalesce(e.stop, 0), coalesce(e.crc, 0)]
    INTO reach FROM daypack.sessions
    LEFT JOIN LATERAL (SELECT stop, crc FROM daypack.session_lines
        WHERE tenant = owner AND session = chosen AND log = 0 ORDER BY start DESC LIMIT 1) m ON true
    LEFT JOIN LATERAL (SELECT stop, crc FROM daypack.session_lines
        WHERE tenant = owner AND session = chosen AND log = 1 ORDER BY start DESC LIMIT 1) e ON true
    WHERE tenant = owner AND number = chosen;
    RETURN reach;
END $$;

-- The planner's statistics would hold samples of texts, also of erased ones.
ALTER TABLE sessions ALTER agent SET STATISTICS 0, ALTER name SET STATISTICS 0, ALTER folded SET STATISTICS 0,
    ALTER meta SET STATISTICS 0, ALTER cwd SET STATISTICS 0, ALTER version SET STATISTICS 0;
ALTER TABLE session_lines ALTER data SET STATISTICS 0;
ALTER TABLE session_blobs ALTER data SET STATISTICS 0;

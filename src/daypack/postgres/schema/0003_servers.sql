-- What several servers share: the audit log, rate limits, metrics.

-- audit: sealed lines, as in the file (memory/audit_log/record.py), without their LF. `seq` is the number in the line.
--   daypack_app        appends
--   daypack_operator   reads, and appends (restore)
--   daypack_eraser     removes the older part; of the lines it sees only the numbers
CREATE TABLE audit(
    seq bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), line bytea NOT NULL
);
-- The number of the last line. A transaction that appends takes its numbers here, so it holds the lock of this row until
-- it ends: numbers have no gaps, and a line that is gone is noticed, also at the end.
CREATE TABLE audit_end(last bigint NOT NULL);
INSERT INTO audit_end VALUES (0);
-- rates: how much of a limit a key has used, at a time of the database's clock. Not worth a log: after a crash it is empty.
CREATE UNLOGGED TABLE rates(
    kind text NOT NULL, key bytea NOT NULL, spent double precision NOT NULL, at timestamptz NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);
-- used_tokens: one-time tokens of the page that were used, until they have expired. With a log: also after a crash or at
-- a replica that was promoted, none of them works again.
CREATE TABLE used_tokens(nonce bytea PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp());
-- processes: the metrics that each server last published. The row 0 has the sums of the servers that ended.
CREATE TABLE processes(
    id uuid PRIMARY KEY, started timestamptz NOT NULL DEFAULT now(), seen timestamptz NOT NULL DEFAULT now(),
    about bytea NOT NULL, metrics bytea NOT NULL
) WITH (fillfactor = 50);
INSERT INTO processes(id, about, metrics) VALUES ('00000000-0000-0000-0000-000000000000', 'ended', '[]');

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit FORCE ROW LEVEL SECURITY;
CREATE POLICY append ON audit FOR INSERT TO daypack_app, daypack_eraser WITH CHECK (true);
CREATE POLICY every ON audit TO daypack_operator USING (true) WITH CHECK (true);
CREATE POLICY cut ON audit FOR DELETE TO daypack_eraser USING (true);
CREATE POLICY numbers ON audit FOR SELECT TO daypack_eraser USING (true);
GRANT INSERT ON audit TO daypack_app;
GRANT SELECT, INSERT ON audit TO daypack_operator;
GRANT SELECT (seq), INSERT, DELETE ON audit TO daypack_eraser;
GRANT SELECT, UPDATE ON audit_end TO daypack_app, daypack_operator, daypack_eraser;
GRANT SELECT, INSERT, UPDATE, DELETE ON rates, processes TO daypack_app, daypack_operator;
GRANT SELECT, INSERT, DELETE ON used_tokens TO daypack_app;

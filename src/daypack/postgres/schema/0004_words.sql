-- Reading which chunks contain which words.
--
-- Row-level security lets a plan use only operators that are known not to leak, and @@ is not: for daypack_app, the
-- tenant's rows would be read and compared one by one. So these functions run as daypack_owner, which may read all
-- postings, and compare the tenant themselves. (Distances of vectors are not filters: an index may order by them.)
--
-- A query is a tsquery in which "#" stands for memory, kind and block: '#paint' | '#painter'. Blocks are read one after
-- the other until enough is found. Each is a scan of its own (= ANY): a scan for many words compares each row with all.

CREATE POLICY search ON postings FOR SELECT TO daypack_owner USING (true);

-- The key of postings. With the tenant in it, or with conditions on the column posting alone, plans would combine it with
-- the full-text index and read all postings of a tenant.
DO $$
DECLARE partition regclass;
BEGIN
    FOR partition IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'postings'::regclass LOOP
        EXECUTE format('CREATE UNIQUE INDEX ON %s (memory, kind, posting)', partition);
    END LOOP;
END $$;

-- next_step: how many blocks to read next, if `done` blocks had `found` of `most` rows: as many as are expected to have
-- the rest, but not many more than were read, because a word may be more common in older blocks.
CREATE FUNCTION next_step(done bigint, found bigint, most bigint) RETURNS bigint IMMUTABLE LANGUAGE sql
RETURN least(1024, 8 * done, 1 + 5 * done * (coalesce(most, 1 << 30) - found) / (4 * greatest(found, 1)));

-- find_postings: of each query the postings that are > `above` and < `below`, at most `most` of them (NULL: all): the
-- newest, newest first, or the oldest, oldest first.
CREATE FUNCTION find_postings(
    of_memory bigint, of_kind int, queries text[], above bigint[], below bigint, most int, newest_first boolean
) RETURNS SETOF bigint[] STABLE SECURITY DEFINER LANGUAGE plpgsql
SET search_path = daypack, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    own CONSTANT text := current_setting('daypack.tenant');
    prefix CONSTANT text := of_memory || '.' || of_kind || '.';
    oldest bigint;
    last bigint;
    wanted tsquery[];
    hits bigint[];
    first bigint;
    low bigint;
    done bigint;
    step bigint;
BEGIN
    SELECT min(posting), least(below - 1, max(posting)) >> 24 INTO oldest, last FROM postings
    WHERE tenant = own AND memory = of_memory AND kind = of_kind;
    IF oldest IS NULL THEN last := -1; END IF;  -- least() ignores what is NULL
    FOR number IN 1 .. cardinality(queries) LOOP
        hits := '{}';
        first := greatest(above[number] + 1, oldest) >> 24;
        done := 0;
        step := CASE WHEN most IS NULL THEN 1024 ELSE 1 END;
        WHILE first + done <= last AND (most IS NULL OR cardinality(hits) < most) LOOP
            step := least(step, last - first - done + 1);
            low := CASE WHEN newest_first THEN last - done - step + 1 ELSE first + done END;
            wanted := ARRAY(
                SELECT replace(queries[number], '#', prefix || block || ':')::tsquery
                FROM generate_series(low, low + step - 1) block);
            hits := hits || ARRAY(
                SELECT posting FROM postings
                WHERE tenant = own AND words @@ ANY (wanted) AND posting + 0 > above[number] AND posting + 0 < below
                ORDER BY CASE WHEN newest_first THEN -posting ELSE posting END LIMIT most - cardinality(hits));
            done := done + step;
            step := next_step(done, cardinality(hits), most);
        END LOOP;
        RETURN NEXT hits;
    END LOOP;
END $$;

-- count_postings: how many postings < `below` each query has, or `most` if there are more.
CREATE FUNCTION count_postings(of_memory bigint, of_kind int, queries text[], below bigint, most int)
RETURNS SETOF bigint STABLE SECURITY DEFINER LANGUAGE plpgsql
SET search_path = daypack, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    own CONSTANT text := current_setting('daypack.tenant');
    prefix CONSTANT text := of_memory || '.' || of_kind || '.';
    first bigint;
    last bigint;
    wanted tsquery[];
    query text;
    total bigint;
    done bigint;
    step bigint;
BEGIN
    SELECT min(posting) >> 24, least(below - 1, max(posting)) >> 24 INTO first, last FROM postings
    WHERE tenant = own AND memory = of_memory AND kind = of_kind;
    FOREACH query IN ARRAY queries LOOP
        total := 0;
        done := 0;
        step := 1;
        WHILE first + done <= last AND total < most LOOP
            step := least(step, last - first - done + 1);
            wanted := ARRAY(
                SELECT replace(query, '#', prefix || block || ':')::tsquery
                FROM generate_series(last - done - step + 1, last - done) block);
            total := total + (
                SELECT count(*) FROM postings WHERE tenant = own AND words @@ ANY (wanted) AND posting + 0 < below);
            done := done + step;
            step := next_step(done, total, most);
        END LOOP;
        RETURN NEXT least(total, most);
    END LOOP;
END $$;

-- merge_words: merge the rows that were just inserted into the full-text index. Inserted together and then merged they
-- cost a third; unmerged, every search would read them all.
CREATE FUNCTION merge_words(posting_table oid) RETURNS void SECURITY DEFINER LANGUAGE sql
SET search_path = daypack, pg_temp AS $$
    SELECT gin_clean_pending_list(i.indexrelid) FROM pg_inherits p
    JOIN pg_index i ON i.indrelid = p.inhrelid
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_am a ON a.oid = c.relam AND a.amname = 'gin'
    WHERE p.inhparent = 'postings'::regclass AND p.inhrelid = posting_table;
$$;

REVOKE EXECUTE ON FUNCTION find_postings, count_postings, merge_words FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_postings, count_postings TO daypack_app, daypack_operator;
GRANT EXECUTE ON FUNCTION merge_words TO daypack_app;

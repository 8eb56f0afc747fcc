-- The search index of memories: derived from entries and documents, so it may be deleted and is made again.
--   kind      0: entries, 1: versions of the document
--   words     the tokens of a chunk (search/tokens.py), each after its memory, its kind and its block of 4,096 entries,
--             "17.0.3:token": one full-text index finds the newest chunks of one memory and reads no others (see 0004)
--   format    of the tokens: an index of an earlier one is made again
--   place     0, or the number of the partition that a large memory has for its vectors alone; `due`: it is to get one
--   code      a vector as a row of search/nearest.py; they are numbered from 0 within a generation, and the rows of a
--             generation only grow: vectors that were erased and made again have another one
--   direction the same vector, only in a partition of its own, where an index is on it

CREATE TABLE indexes(
    tenant text NOT NULL, memory bigint NOT NULL, kind smallint NOT NULL, format smallint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0, newest bigint NOT NULL DEFAULT 0, oldest bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0,
    chunks bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0, stretches bigint NOT NULL DEFAULT 0,
    persons bigint NOT NULL DEFAULT 0, gap bytea, skipped bytea NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, memory, kind)
) PARTITION BY HASH (tenant);
CREATE SEQUENCE index_generations;
CREATE TABLE postings(
    tenant text NOT NULL, memory bigint NOT NULL, kind smallint NOT NULL, posting bigint NOT NULL,
    words tsvector NOT NULL  -- the key, without the tenant, is on each partition: see 0004
) PARTITION BY HASH (tenant);
CREATE INDEX postings_words ON postings USING gin(words);  -- its list of pending rows is merged after every write
CREATE TABLE places(
    tenant text NOT NULL, memory bigint NOT NULL, kind smallint NOT NULL, id bigint NOT NULL, stretch bigint NOT NULL,
    before bigint NOT NULL, after bigint NOT NULL, speaker bigint NOT NULL, cuts bytea NOT NULL,
    PRIMARY KEY (tenant, memory, kind, id)
) PARTITION BY HASH (tenant);
CREATE TABLE conversations(
    tenant text NOT NULL, memory bigint NOT NULL, kind smallint NOT NULL, name bytea NOT NULL, newest bigint NOT NULL,
    moment double precision, stretch bigint NOT NULL, length bigint NOT NULL,
    PRIMARY KEY (tenant, memory, kind, name)
) PARTITION BY HASH (tenant);
CREATE TABLE authors(
    tenant text NOT NULL, memory bigint NOT NULL, kind smallint NOT NULL, number bigint NOT NULL, name bytea NOT NULL,
    given int NOT NULL, entries bigint NOT NULL,
    PRIMARY KEY (tenant, memory, kind, number), UNIQUE (tenant, memory, kind, name)
) PARTITION BY HASH (tenant);
CREATE INDEX authors_busy ON authors(tenant, memory, kind, entries);
CREATE TABLE author_names(
    tenant text NOT NULL, memory bigint NOT NULL, kind smallint NOT NULL, word bytea NOT NULL, author bigint NOT NULL,
    PRIMARY KEY (tenant, memory, kind, word, author)
) PARTITION BY HASH (tenant);
CREATE SEQUENCE vector_generations;
CREATE TABLE embeddings(
    tenant text NOT NULL, memory bigint NOT NULL, model bytea NOT NULL, dimensions int NOT NULL,
    generation bigint NOT NULL DEFAULT nextval('vector_generations'), newest bigint NOT NULL DEFAULT 0,
    vectors bigint NOT NULL DEFAULT 0, place bigint NOT NULL DEFAULT 0, due boolean NOT NULL DEFAULT false,
    embedder uuid, leased_until timestamptz,
    PRIMARY KEY (tenant, memory, model)
) PARTITION BY HASH (tenant);
CREATE INDEX embeddings_due ON embeddings(tenant, memory) WHERE due;
CREATE SEQUENCE vector_places;
CREATE TABLE vectors(
    tenant text NOT NULL, place bigint NOT NULL, memory bigint NOT NULL, generation bigint NOT NULL,
    number bigint NOT NULL, seq bigint NOT NULL, code bytea STORAGE EXTERNAL NOT NULL,
    PRIMARY KEY (tenant, memory, generation, number, place)
) PARTITION BY LIST (place);
DO $$ BEGIN  -- the extension may be in a schema that is not in the path
    EXECUTE (SELECT format('ALTER TABLE vectors ADD direction %s.halfvec', extnamespace::regnamespace)
             FROM pg_extension WHERE extname = 'vector');
END $$;
CREATE TABLE small_vectors PARTITION OF vectors FOR VALUES IN (0) PARTITION BY HASH (tenant);

SELECT protect('indexes', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('postings', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('places', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('conversations', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('authors', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('author_names', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('embeddings', 'SELECT, INSERT, UPDATE, DELETE');
SELECT protect('vectors', 'SELECT, INSERT, UPDATE, DELETE', 0);
SELECT protect('small_vectors', 'SELECT, INSERT, UPDATE, DELETE');
GRANT USAGE ON SEQUENCE index_generations, vector_generations, vector_places TO daypack_app, daypack_eraser, daypack_operator;

-- Statistics would hold samples of words, also of erased ones.
ALTER TABLE postings ALTER words SET STATISTICS 0;
ALTER TABLE conversations ALTER name SET STATISTICS 0;
ALTER TABLE authors ALTER name SET STATISTICS 0;
ALTER TABLE author_names ALTER word SET STATISTICS 0;

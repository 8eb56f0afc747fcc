CREATE TABLE embedding_metadata (
    id INTEGER REFERENCES embeddings(id),
    key TEXT NOT NULL,
    string_value TEXT,
    int_value INTEGER,
    float_value REAL, bool_value INTEGER,
    PRIMARY KEY (id, key)
);
INSERT INTO "embedding_metadata" VALUES(1,'topic','x',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'data','Lives in Hamburg',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'user_id','ada',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'text_lemmatized','Lives in Hamburg',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'created_at','2026-11-18T03:24:54.778375+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'hash','0e19a6d1cf5e40344032c39fd02d5e33',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'updated_at','2026-11-18T03:24:54.822400+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(1,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'created_at','2026-11-18T03:24:54.788451+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'data','The staging port is 5432',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'hash','8d28f670f413f8150ae8682d233bb541',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'user_id','ada',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'topic','x',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'updated_at','2026-11-18T03:24:54.788451+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(2,'text_lemmatized','The staging port is 5432',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'user_id','ada',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'hash','5b1df6e791a3f297da049affce574059',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'text_lemmatized','Prefers tea over coffee',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'updated_at','2026-11-18T03:24:54.793842+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'topic','x',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'created_at','2026-11-18T03:24:54.793842+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(3,'data','Prefers tea over coffee',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'text_lemmatized','The staging port is 5433 now',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'data','The staging port is 5433 now',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'hash','42bea550de001df94b769f5696ea60d2',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'topic','x',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'created_at','2026-11-18T03:24:54.803519+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'updated_at','2026-11-18T03:24:54.803519+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'user_id','ada',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(5,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'text_lemmatized','Prefers tea over coffee.',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'topic','x',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'updated_at','2026-11-18T03:24:54.809567+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'created_at','2026-11-18T03:24:54.809567+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'user_id','ada',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'data','Prefers tea over coffee.',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(6,'hash','0b7deb10a15be877e9b4ac0b26648131',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'hash','9943c0f5b930c188a549c40fa351888a',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'updated_at','2026-11-18T03:24:54.814268+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'text_lemmatized','Will call the bank tomorrow',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'topic','x',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'data','Will call the bank tomorrow',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'role','user',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'created_at','2026-11-18T03:24:54.814268+00:00',NULL,NULL,NULL);
INSERT INTO "embedding_metadata" VALUES(7,'user_id','bob',NULL,NULL,NULL);
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    segment_id TEXT NOT NULL,
    embedding_id TEXT NOT NULL,
    seq_id BLOB NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (segment_id, embedding_id)
);
INSERT INTO "embeddings" VALUES(1,'d0dcdaac-cc98-409a-9bac-5ed861d6b995','e39a5410-114f-44f8-a603-47c11fd2caee',8,'2026-11-18 03:24:54');
INSERT INTO "embeddings" VALUES(2,'d0dcdaac-cc98-409a-9bac-5ed861d6b995','85adfe73-5426-458d-bd41-d3daeaaaa152',2,'2026-11-18 03:24:54');
INSERT INTO "embeddings" VALUES(3,'d0dcdaac-cc98-409a-9bac-5ed861d6b995','8c88763e-59ef-4d5d-8d71-38499bf616be',3,'2026-11-18 03:24:54');
INSERT INTO "embeddings" VALUES(5,'d0dcdaac-cc98-409a-9bac-5ed861d6b995','d5480264-b97e-44eb-8e05-ec65e585b077',5,'2026-11-18 03:24:54');
INSERT INTO "embeddings" VALUES(6,'d0dcdaac-cc98-409a-9bac-5ed861d6b995','1387601e-0915-4d40-84f7-317224d80908',6,'2026-11-18 03:24:54');
INSERT INTO "embeddings" VALUES(7,'d0dcdaac-cc98-409a-9bac-5ed861d6b995','51e9876e-e1f0-4ae4-a827-41badfa1aeca',7,'2026-11-18 03:24:54');
CREATE TABLE "segments" (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    scope TEXT NOT NULL,
    collection TEXT REFERENCES collection(id) NOT NULL
);
INSERT INTO "segments" VALUES('667a285b-a0f4-4b35-80e8-1a40283efd08','urn:chroma:segment/vector/hnsw-local-persisted','VECTOR','bd44d584-70e0-4720-adea-c0585d9aa3e6');
INSERT INTO "segments" VALUES('d0dcdaac-cc98-409a-9bac-5ed861d6b995','urn:chroma:segment/metadata/sqlite','METADATA','bd44d584-70e0-4720-adea-c0585d9aa3e6');

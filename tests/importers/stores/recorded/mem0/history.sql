CREATE TABLE history (
                        id           TEXT PRIMARY KEY,
                        memory_id    TEXT,
                        old_memory   TEXT,
                        new_memory   TEXT,
                        event        TEXT,
                        created_at   DATETIME,
                        updated_at   DATETIME,
                        is_deleted   INTEGER,
                        actor_id     TEXT,
                        role         TEXT
                    );
INSERT INTO "history" VALUES('85222444-eec7-4b27-9445-70b9768fbb62','7a8921e1-d037-4053-84a2-f0dcb671090a',NULL,'Lives in Berlin','ADD','2026-11-18T03:24:52.597710+00:00','2026-11-18T03:24:52.597710+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('e7ba678c-ea5d-4c5f-8007-6d1cbf4d234a','645077a0-49ae-467c-92bc-6394a10266d4',NULL,'The staging port is 5432','ADD','2026-11-18T03:24:52.600708+00:00','2026-11-18T03:24:52.600708+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('8829b449-3f06-485c-b6f7-e518f865aee4','294b058c-a16c-4cea-9363-061a299819a3',NULL,'Prefers tea over coffee','ADD','2026-11-18T03:24:52.602773+00:00','2026-11-18T03:24:52.602773+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('6c6695bc-470a-42f5-a19a-b5e1f3232f97','23249d07-d1be-4998-be87-75c7791f02f0',NULL,'Likes hiking in the Alps','ADD','2026-11-18T03:24:52.604465+00:00','2026-11-18T03:24:52.604465+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('e181ab6b-2725-4bc3-90ac-ae4e4b4b5126','03250410-15bd-432c-a099-a06680ca19df',NULL,'The staging port is 5433 now','ADD','2026-11-18T03:24:52.606071+00:00','2026-11-18T03:24:52.606071+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('4a5ef9ab-cdb4-41a6-b781-9da6cddfe8ed','cae3af16-edc8-4f90-a65c-6784c78abd12',NULL,'Prefers tea over coffee.','ADD','2026-11-18T03:24:52.607642+00:00','2026-11-18T03:24:52.607642+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('afa61e1d-9a11-405b-b7a1-342be7d9cbbe','d1683232-a408-4a79-b020-0232307d3b32',NULL,'Will call the bank tomorrow','ADD','2026-11-18T03:24:52.609202+00:00','2026-11-18T03:24:52.609202+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('e4f78efa-c082-45e5-8ab3-fb42eea72463','7a8921e1-d037-4053-84a2-f0dcb671090a','Lives in Berlin','Lives in Hamburg','UPDATE','2026-11-18T03:24:52.597710+00:00','2026-11-18T03:24:52.610979+00:00',0,NULL,'user');
INSERT INTO "history" VALUES('df86ec80-003e-4771-a410-12dc5ac4be67','23249d07-d1be-4998-be87-75c7791f02f0','Likes hiking in the Alps',NULL,'DELETE','2026-11-18T03:24:52.604465+00:00','2026-11-18T03:24:52.612893+00:00',1,NULL,'user');

CREATE TABLE agents (
	id VARCHAR NOT NULL, 
	agent_type VARCHAR, 
	name VARCHAR, 
	description VARCHAR, 
	system VARCHAR, 
	message_ids JSON, 
	response_format JSON, 
	metadata_ JSON, 
	llm_config JSON, 
	embedding_config JSON, 
	compaction_settings JSON, 
	tool_rules JSON, 
	message_buffer_autoclear BOOLEAN NOT NULL, 
	enable_sleeptime BOOLEAN, 
	last_run_completion DATETIME, 
	last_run_duration_ms INTEGER, 
	last_stop_reason VARCHAR, 
	timezone VARCHAR, 
	max_files_open INTEGER, 
	per_file_view_window_char_limit INTEGER, 
	hidden BOOLEAN, 
	_vector_db_namespace VARCHAR, 
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP, 
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP, 
	is_deleted BOOLEAN DEFAULT FALSE NOT NULL, 
	_created_by_id VARCHAR, 
	_last_updated_by_id VARCHAR, 
	organization_id VARCHAR NOT NULL, 
	project_id VARCHAR, 
	entity_id VARCHAR, 
	base_template_id VARCHAR, 
	template_id VARCHAR, 
	deployment_id VARCHAR, 
	PRIMARY KEY (id)
);
CREATE TABLE block (
	template_name VARCHAR, 
	description VARCHAR, 
	label VARCHAR NOT NULL, 
	is_template BOOLEAN NOT NULL, 
	preserve_on_migration BOOLEAN, 
	value VARCHAR NOT NULL, 
	"limit" INTEGER NOT NULL, 
	metadata_ JSON, 
	read_only BOOLEAN NOT NULL, 
	hidden BOOLEAN, 
	current_history_entry_id VARCHAR, 
	version INTEGER DEFAULT '1' NOT NULL, 
	organization_id VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP, 
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP, 
	is_deleted BOOLEAN DEFAULT FALSE NOT NULL, 
	_created_by_id VARCHAR, 
	_last_updated_by_id VARCHAR, 
	project_id VARCHAR, 
	entity_id VARCHAR, 
	base_template_id VARCHAR, 
	template_id VARCHAR, 
	deployment_id VARCHAR, 
	PRIMARY KEY (id)
	CONSTRAINT fk_block_current_history_entry FOREIGN KEY(current_history_entry_id) REFERENCES block_history (id)
);
CREATE TABLE blocks_agents (
	agent_id VARCHAR NOT NULL, 
	block_id VARCHAR NOT NULL, 
	block_label VARCHAR NOT NULL, 
	PRIMARY KEY (agent_id, block_id, block_label)
	CONSTRAINT fk_block_id_label FOREIGN KEY(block_id, block_label) REFERENCES block (id, label) ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY IMMEDIATE
	FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE CASCADE
);
CREATE TABLE archival_passages (
	id VARCHAR NOT NULL, 
	text VARCHAR NOT NULL, 
	embedding_config JSON, 
	metadata_ JSON NOT NULL, 
	tags JSON, 
	embedding BINARY, 
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP, 
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP, 
	is_deleted BOOLEAN DEFAULT FALSE NOT NULL, 
	_created_by_id VARCHAR, 
	_last_updated_by_id VARCHAR, 
	organization_id VARCHAR NOT NULL, 
	archive_id VARCHAR NOT NULL, 
	PRIMARY KEY (id)
	FOREIGN KEY(archive_id) REFERENCES archives (id) ON DELETE CASCADE
);
CREATE TABLE archives_agents (
	agent_id VARCHAR NOT NULL, 
	archive_id VARCHAR NOT NULL, 
	created_at DATETIME DEFAULT 'now()' NOT NULL, 
	is_owner BOOLEAN NOT NULL, 
	PRIMARY KEY (agent_id, archive_id)
	FOREIGN KEY(agent_id) REFERENCES agents (id) ON DELETE CASCADE
);
INSERT INTO "agents" VALUES('agent-1','memgpt_agent','helper',NULL,'You are Letta',NULL,'null',NULL,'null','null','null','[]',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-18 03:47:09','2026-11-18 03:47:09',0,NULL,NULL,'org-00000000-0000-4000-8000-000000000000',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "archival_passages" VALUES('passage-0','The staging port is 5432','{"embedding_endpoint_type": "hugging-face", "embedding_endpoint": null, "embedding_model": "m", "embedding_dim": 8, "embedding_chunk_size": 300, "handle": null, "batch_size": 32, "azure_endpoint": null, "azure_version": null, "azure_deployment": null}','{}','["ops"]',X'','2026-11-18 03:47:10','2026-11-18 03:47:10',0,NULL,NULL,'org-00000000-0000-4000-8000-000000000000','archive-1');
INSERT INTO "archival_passages" VALUES('passage-1','The staging port is 5433 now','{"embedding_endpoint_type": "hugging-face", "embedding_endpoint": null, "embedding_model": "m", "embedding_dim": 8, "embedding_chunk_size": 300, "handle": null, "batch_size": 32, "azure_endpoint": null, "azure_version": null, "azure_deployment": null}','{}','["ops"]',X'','2026-11-18 03:47:10','2026-11-18 03:47:10',0,NULL,NULL,'org-00000000-0000-4000-8000-000000000000','archive-1');
INSERT INTO "archives_agents" VALUES('agent-1','archive-1','now()',0);
INSERT INTO "block" VALUES(NULL,NULL,'human',0,0,'Name: Ada. Lives in Berlin.',5000,'{}',0,NULL,NULL,1,'org-00000000-0000-4000-8000-000000000000','block-1','2026-11-18 03:47:09','2026-11-18 03:47:09',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "block" VALUES(NULL,NULL,'persona',0,0,'I am a calm and helpful companion.',5000,'{}',0,NULL,NULL,1,'org-00000000-0000-4000-8000-000000000000','block-2','2026-11-18 03:47:09','2026-11-18 03:47:09',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "block" VALUES(NULL,NULL,'notes',0,0,'Unused block',5000,'{}',0,NULL,NULL,1,'org-00000000-0000-4000-8000-000000000000','block-3','2026-11-18 03:47:09','2026-11-18 03:47:09',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "blocks_agents" VALUES('agent-1','block-1','human');
INSERT INTO "blocks_agents" VALUES('agent-1','block-2','persona');

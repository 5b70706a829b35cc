-- One immutable part of an index: documents, and their postings clustered by term. Times are UTC without
-- a zone: with one, DuckDB asks for an extension that its wheel does not carry.
CREATE TABLE docs (
    doc UINTEGER, key VARCHAR, digest VARCHAR, session_id VARCHAR, prompt_number BIGINT, level VARCHAR,
    cli VARCHAR, role VARCHAR, project_id VARCHAR, project VARCHAR, ts TIMESTAMP, content VARCHAR
);
CREATE TABLE dead (key VARCHAR);
CREATE TEMP TABLE unsorted (tid UINTEGER, doc UINTEGER, tf UINTEGER, len UINTEGER);

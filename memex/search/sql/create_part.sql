-- One immutable part of an index: documents, their postings clustered by term, and the documents of older parts
-- that it makes void. Times are UTC without a zone: with one, DuckDB asks for an extension that its wheel does
-- not carry.
ATTACH '{path}' AS part (ROW_GROUP_SIZE {rows});
USE part;
CREATE TABLE docs (
    doc UINTEGER, key VARCHAR, digest VARCHAR, session_id VARCHAR, prompt_number BIGINT, level VARCHAR,
    cli VARCHAR, role VARCHAR, type VARCHAR, project_id VARCHAR, project VARCHAR, ts TIMESTAMP, content VARCHAR
);
CREATE TABLE void (part VARCHAR, doc UINTEGER);
CREATE TEMP TABLE new_terms (term VARCHAR, tid UINTEGER);
CREATE TEMP TABLE unsorted (tid UINTEGER, doc UINTEGER, tf UINTEGER, len UINTEGER);

-- Cluster the postings, so that a term is one short scan.
CREATE TABLE terms AS SELECT * FROM new_terms ORDER BY term;
CREATE TABLE postings AS SELECT * FROM unsorted ORDER BY tid, doc;
DROP TABLE unsorted;
DROP TABLE new_terms;

-- Cluster the postings, so that a term is one short scan; count the documents of each term.
CREATE TABLE postings AS SELECT * FROM unsorted ORDER BY tid, doc;
CREATE TABLE terms AS
    SELECT term, tid, df
    FROM new_terms JOIN (SELECT tid, count(*) AS df FROM unsorted GROUP BY tid) USING (tid)
    ORDER BY term;
DROP TABLE unsorted;
DROP TABLE new_terms;

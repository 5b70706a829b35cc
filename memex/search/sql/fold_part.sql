-- Take in an older part: its living documents under new numbers, its terms, its postings.
CREATE OR REPLACE TEMP TABLE moved AS
    SELECT doc AS old, (SELECT count(*) FROM docs) + row_number() OVER (ORDER BY doc) - 1 AS doc
    FROM {old}.docs WHERE doc NOT IN (SELECT doc FROM void WHERE part = '{name}');
INSERT INTO docs SELECT moved.doc, docs.* EXCLUDE (doc) FROM {old}.docs AS docs JOIN moved ON moved.old = docs.doc;
INSERT INTO new_terms
    SELECT term, (SELECT count(*) FROM new_terms) + row_number() OVER () - 1
    FROM {old}.terms ANTI JOIN new_terms USING (term);
INSERT INTO unsorted
    SELECT new_terms.tid, moved.doc, tf, len
    FROM {old}.postings AS postings
    JOIN moved ON moved.old = postings.doc
    JOIN {old}.terms AS terms ON terms.tid = postings.tid
    JOIN new_terms ON new_terms.term = terms.term;
DROP TABLE moved;

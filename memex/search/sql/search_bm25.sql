-- BM25 (k1 = 1.2, b = 0.75) over every part, with counts summed so that the parts score like one index.
-- Filters apply before the ranking. Documents with all the words come first.
WITH asked AS (SELECT unnest($tokens::VARCHAR[]) AS term),
found AS ({postings}),
counts AS (SELECT term, count(*)::DOUBLE AS df FROM found GROUP BY term),
corpus AS (SELECT $docs::DOUBLE AS n, $mean_length::DOUBLE AS mean),
scored AS (
    SELECT part, doc, count(*) AS matched,
           sum(ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2::DOUBLE
               / (tf + 1.2::DOUBLE * (0.25::DOUBLE + 0.75::DOUBLE * len / mean))) AS score
    FROM found JOIN counts USING (term), corpus
    GROUP BY part, doc
),
names AS (SELECT * FROM (VALUES {names}) AS names (part, name)),
void AS (SELECT names.part, doc FROM ({void}) AS void JOIN names ON names.name = void.part)
SELECT key, session_id, prompt_number, level, role, project, ts, content, score
FROM scored ANTI JOIN void USING (part, doc) JOIN ({docs}) USING (part, doc)
WHERE {filters}
ORDER BY matched = len($tokens) DESC, score DESC, key
LIMIT $limit

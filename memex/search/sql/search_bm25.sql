-- BM25 (k1 = 1.2, b = 0.75) over every part; the weights of terms are those of one index. Documents with all the
-- words come first. Filters and refusals apply before the best are taken.
WITH found AS ({found}),
scored AS (
    SELECT part, doc, count(*) = {asked} AS complete,
           sum(idf * tf * 2.2::DOUBLE / (tf + 1.2::DOUBLE * (0.25::DOUBLE + 0.75::DOUBLE * len / {mean}))) AS score
    FROM found WHERE refusal = 0
    GROUP BY part, doc {having}
)
SELECT part, doc, score
FROM scored {without}
ORDER BY complete DESC, score DESC, part, doc
LIMIT {limit}

-- What meets the filters, when no word is asked for: the newest first.
WITH void AS ({void}),
docs AS ({docs}),
refused AS (
    SELECT part, doc FROM ({found}) WHERE refusal > 0 GROUP BY part, doc, refusal, size HAVING count(*) = size
)
SELECT key, session_id, prompt_number, level, cli, role, type, project, ts, content, 0::DOUBLE AS score
FROM docs ANTI JOIN void USING (part, doc) ANTI JOIN refused USING (part, doc)
WHERE {condition}
ORDER BY ts DESC NULLS LAST, key
LIMIT {limit}

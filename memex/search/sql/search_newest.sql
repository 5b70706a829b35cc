-- What meets the filters, when no word is asked for: the newest first.
WITH found AS ({found})
SELECT key, session_id, prompt_number, level, cli, role, type, project, ts, content, 0::DOUBLE AS score
FROM ({docs}) {without}
ORDER BY ts DESC NULLS LAST, key
LIMIT {limit}

-- What meets the filters, when no word is asked for: the newest first.
WITH found AS ({found})
SELECT part, doc, 0::DOUBLE AS score
FROM ({docs}) {without}
ORDER BY ts DESC NULLS LAST, key
LIMIT {limit}

-- Documents, tokens, and documents of other parts made void.
SELECT (SELECT count(*) FROM docs), (SELECT coalesce(sum(tf), 0)::BIGINT FROM unsorted), (SELECT count(*) FROM void);

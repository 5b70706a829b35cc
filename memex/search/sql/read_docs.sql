-- Read documents of a part by their numbers.
SELECT {number} AS part, doc, key, session_id, prompt_number, level, cli, role, type, project_id, project, ts, content
FROM p{number}.docs WHERE doc IN ({docs})

-- source_places: projects and folders of sources, for results
SELECT s.id AS source_id, s.title AS source_title, s.scope, s.project_id, f.name AS folder_name, s.tags
FROM sources s LEFT JOIN folders f ON f.id = s.folder_id WHERE s.id = ANY(%(ids)s)

-- document_word_counts: the length of whole documents in words
SELECT id, regexp_count(text, '\S+') AS words FROM documents WHERE id = ANY(%(ids)s)

-- The best run of a finished experiment, found once: a list of experiments shows it without reading their answers.

ALTER TABLE experiments ADD COLUMN winner jsonb;

-- A test set measures a part of a person's documents: the scope by ids, with the titles that these had then; empty: everything.

ALTER TABLE datasets ADD COLUMN scope jsonb NOT NULL DEFAULT '{}';

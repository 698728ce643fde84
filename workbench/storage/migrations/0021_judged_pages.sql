-- Pages of a document as truth, and what a search within the right document found.

ALTER TABLE judgments ADD COLUMN pages integer[] NOT NULL DEFAULT '{}';
ALTER TABLE eval_answers ADD COLUMN within jsonb NOT NULL DEFAULT '[]';

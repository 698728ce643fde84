-- A source's language was never used: documents have their own. From here on it says whether a person chose one ('auto'
-- where nobody did), and documents that come in later get it too. Languages that documents were given stay.

ALTER TABLE sources ALTER COLUMN language SET DEFAULT 'auto';
UPDATE sources SET language = 'auto';

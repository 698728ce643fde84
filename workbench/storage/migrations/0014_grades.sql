-- Public test sets grade below 0 (TREC-COVID) and above 3, too.

ALTER TABLE judgments DROP CONSTRAINT judgments_grade_check;
ALTER TABLE judgments ADD CONSTRAINT judgments_grade_check CHECK (grade BETWEEN -100 AND 100);

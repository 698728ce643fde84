-- How long a job will still take, as its runner says it from what it has measured; null where it cannot say.

ALTER TABLE jobs ADD COLUMN seconds_left real;

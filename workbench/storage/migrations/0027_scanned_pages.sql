-- The pages that OCR read, with the place of every word in the document's text and on its page.

CREATE TABLE scanned_pages (
    document_id text NOT NULL REFERENCES documents ON DELETE CASCADE,
    number integer NOT NULL CHECK (number > 0),
    confidence double precision NOT NULL,
    words jsonb NOT NULL,  -- [start, end, left, top, right, bottom, confidence] each; boxes in shares of the page
    PRIMARY KEY (document_id, number)
);

-- Whether any document changed since an index was last seen complete is asked by every search of an index that is not the default.
CREATE INDEX documents_by_update ON documents (updated_at);

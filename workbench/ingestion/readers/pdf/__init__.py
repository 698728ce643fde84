"""Reading PDF: text, layout, tables and charts."""

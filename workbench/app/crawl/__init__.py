"""The Crawl page: websites as sources."""

"""The Crawl page: websites on their way into the corpus."""

"""Crawl websites within rate limits and access rules, and store their pages as documents."""

"""Crawling of websites within rate limits and access rules, and storage of their pages as documents."""

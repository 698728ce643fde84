"""Suggested tags by category, as the specification of the scoped tools lists them."""

from __future__ import annotations

TAG_CATALOGUE: dict[str, tuple[str, ...]] = {
    "Framework": ("react", "nextjs", "fastapi", "django", "express"),
    "Language": ("python", "typescript", "javascript", "rust", "go"),
    "Architecture": ("microservices", "rest-api", "graphql", "event-driven"),
    "Security": ("authentication", "authorization", "encryption", "security-best-practices"),
    "Testing": ("unit-testing", "integration-testing", "e2e-testing"),
    "Deployment": ("docker", "kubernetes", "ci-cd"),
    "Database": ("postgresql", "mongodb", "redis", "vector-search"),
    "API": ("openapi", "websockets"),
    "UI": ("tailwind", "radix-ui", "design-system"),
    "Documentation": ("api-reference", "tutorial", "architecture-docs", "troubleshooting"),
}


def format_catalogue() -> str:
    """Return the catalogue as one line of text."""
    return "; ".join(f"{category}: {', '.join(tags)}" for category, tags in TAG_CATALOGUE.items())
